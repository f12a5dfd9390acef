"""Cut connections to a database that does not answer in time.

A database that is frozen keeps its connections open, and a driver waits for as long as they are:
timeouts of the server are of no use then, and those of TCP do not exist on a local socket.
"""

from __future__ import annotations

import contextlib
import functools
import socket
import threading
import time
from collections.abc import Callable, Iterator

from duelay._core import forks


class Watchdog:
    """A thread that shuts down sockets whose time is over; it ends where none is watched."""

    def __init__(self) -> None:
        self._lock = forks.lock(self)
        self._forked()

    def _forked(self, is_whole: bool = True) -> None:
        self._watched: dict[socket.socket, float] = {}
        self._thread: threading.Thread | None = None
        self._wakes = 0.0  # when the thread looks again
        self._is_new = threading.Event()  # something is due before that

    @contextlib.contextmanager
    def watching(self, fileno: int, until: float) -> Iterator[Callable[[float], None]]:
        """Shut a socket down if the block has not ended by a moment of `time.monotonic`.

        It gives a function that sets a later moment.
        """
        own = socket.fromfd(fileno, socket.AF_INET, socket.SOCK_STREAM)  # a copy: it stays ours
        try:
            with self._lock:
                self._watched[own] = until
                if self._thread is None:
                    self._thread = threading.Thread(target=self._run, name="duelay-watchdog",
                                                    daemon=True)  # fmt: skip
                    self._thread.start()
                elif until < self._wakes:
                    self._is_new.set()
            yield functools.partial(self._extend, own)
        finally:
            with self._lock:
                self._watched.pop(own, None)
            own.close()

    def _extend(self, own: socket.socket, until: float) -> None:
        with self._lock:
            if own in self._watched:  # else it is shut down already
                self._watched[own] = until

    def _run(self) -> None:
        while True:
            with self._lock:
                now = time.monotonic()
                for own, until in list(self._watched.items()):
                    if until <= now:
                        with contextlib.suppress(OSError):
                            own.shutdown(socket.SHUT_RDWR)
                        del self._watched[own]
                if not self._watched:
                    self._thread = None
                    return
                self._wakes = min(self._watched.values())
                self._is_new.clear()
            self._is_new.wait(max(self._wakes - now, 0.0))
