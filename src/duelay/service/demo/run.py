"""Run the demo: the service on a store of its own, simulated visitors, and a fast clock.

Visitors are simulated in threads of this process, and call the service over HTTP. Before
they come, some hours of the past are made up, as fast as the store can write them.
"""

from __future__ import annotations

import contextlib
import heapq
import math
import os
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import uvicorn

from duelay._core import checks
from duelay._core.patience import at_least
from duelay.errors import (
    InvalidValueError,
    PausedError,
    StoreError,
    UnknownDuelError,
    UnknownExperimentError,
)
from duelay.live import Experiment, connect
from duelay.live.client.clients import RemoteExperiment
from duelay.live.storage.store import Store
from duelay.service.app import make_app
from duelay.service.demo.visitors import SCENES, Scene, Visitors
from duelay.service.server import TURN, open_page

HOST = "127.0.0.1"
PORT = 8123  # where it is free
SPEED = 1000.0  # seconds of its clock in a second
_BEFORE = 8 * 3600.0  # seconds of its clock that have passed when it begins
_DAY = 86_400.0
_FRESH = 300.0  # seconds of its clock: how old the evidence for choosing a pair may be
_PATIENCE = 2.0  # seconds that a visitor tries again
_SHUTDOWN = math.ceil(at_least(2.0))  # seconds that requests have to end
_FOLDER = "duelay-demo-"


class FastClock:
    """Seconds since the epoch that pass fast; it stands still until it is let go.

    >>> clock = FastClock(1000.0)
    >>> clock.hold(2000.0)
    >>> clock()
    2000.0
    """

    def __init__(
        self,
        start: float,
        speed: float = SPEED,
        passed: Callable[[], float] = time.monotonic,
    ) -> None:
        self._at, self._speed, self._since = start, speed, math.inf
        self._passed = passed

    def __call__(self) -> float:
        """Return the time."""
        return self._at + self._speed * max(self._passed() - self._since, 0.0)

    def hold(self, moment: float) -> None:
        """Stand still at a moment, until another is said."""
        self._at = moment

    def run(self) -> None:
        """Let it go."""
        self._since = self._passed()

    def seconds_to(self, moment: float) -> float:
        """Return how many seconds of the world pass until then."""
        return (moment - self()) / self._speed


def demonstrate(
    minutes: float = 10.0,
    port: int | None = None,
    seed: int = 0,
    *,
    opens: bool = False,
    say: Callable[[str], Any] = print,
    scenes: Sequence[Scene] = SCENES,
) -> None:
    """Serve simulated experiments for some minutes, or until Ctrl-C; nothing is left behind.

    Only the main thread of a process may call this.

    Parameters
    ----------
    minutes : float
        The minutes until it ends.
    port : int, optional
        The port; 0 for any port that is free. None takes 8123, or another port if that is taken.
    seed : int
        The seed of the simulated visitors.
    opens : bool
        Whether to open the page in a browser.
    say : callable
        A function that is called with each line about the address and the experiments.
    scenes : sequence of Scene
        The experiments.
    """
    minutes = checks.number("minutes", minutes, above=0)
    with contextlib.ExitStack() as stack:
        stop = threading.Event()
        _catch(stack, stop)  # before there is anything that has to be removed
        remove_left()
        listening = stack.enter_context(contextlib.closing(_listen(port)))
        folder = stack.enter_context(_folder())
        # The clock of the demonstration ends on a morning, a day or two before now.
        begin = math.floor((time.time() - 60.0 * minutes * SPEED) / _DAY) * _DAY - 0.9 * _DAY
        opened: dict[str, Any] = {"clock": FastClock(begin), "freshness": _FRESH}
        url = f"sqlite:///{folder}/duels.db"
        app = make_app(url, webhooks_to="loopback", **opened)
        config = uvicorn.Config(
            app, log_config=None, access_log=False, server_header=False,
            timeout_graceful_shutdown=_SHUTDOWN,
        )  # fmt: skip
        server = _Server(config, stop)
        address = f"http://{HOST}:{listening.getsockname()[1]}"
        crowd = _Crowd(server, url, address, opened, [
            Visitors(scene, begin, [seed, place]) for place, scene in enumerate(scenes)
        ])  # fmt: skip
        for line in _words(address, minutes, scenes):
            say(line)
        if opens:
            open_page(HOST, listening.getsockname()[1])
        stack.callback(sys.setswitchinterval, sys.getswitchinterval())
        sys.setswitchinterval(TURN)
        thread = threading.Thread(target=crowd.run, args=(60.0 * minutes,), name="duelay-crowd")
        thread.start()
        try:
            server.run(sockets=[listening])
        finally:
            server.should_exit = True
            thread.join()
    if crowd.trouble is not None:
        raise crowd.trouble
    say("stopped, and nothing is left")


def remove_left() -> None:
    """Remove the folders of demonstrations that were killed."""
    if os.name != "posix":  # elsewhere `os.kill(pid, 0)` may end the process
        return
    for path in Path(tempfile.gettempdir()).glob(f"{_FOLDER}*"):
        pid = path.name.removeprefix(_FOLDER).partition("-")[0]
        if not pid.isdigit():
            continue
        try:
            os.kill(int(pid), 0)
        except ProcessLookupError:
            shutil.rmtree(path, ignore_errors=True)
        except OSError:
            continue  # it is somebody else's


@contextlib.contextmanager
def _folder() -> Any:
    """Give a folder that is removed at the end; temporary files of this process go there, too."""
    before = tempfile.tempdir
    with tempfile.TemporaryDirectory(
        prefix=f"{_FOLDER}{os.getpid()}-", ignore_cleanup_errors=True
    ) as folder:
        tempfile.tempdir = folder
        try:
            yield folder
        finally:
            tempfile.tempdir = before


def _listen(port: int | None) -> socket.socket:
    """Return a socket at a port of this machine."""
    for each in (PORT, 0) if port is None else (port,):
        found = socket.socket()
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            found.bind((HOST, each))
            found.listen()  # fails where another process, which has bound the port too, listens
            return found
        except OSError as error:
            found.close()
            if port is not None:
                raise InvalidValueError(f"port {port} cannot be had: {error.strerror}") from None
    raise AssertionError


def _words(address: str, minutes: float, scenes: Sequence[Scene]) -> list[str]:
    width = max(len(scene.name) for scene in scenes)
    return [
        f"the page: {address}/",
        "",
        *(f"  {scene.name:<{width}}  {scene.words}" for scene in scenes),
        "",
        f"A day takes {_DAY / SPEED:.0f} seconds here, and all visitors are made up.",
        f"Ctrl-C stops it; it stops by itself after {minutes:g} minutes, and leaves nothing.",
    ]


class _Server(uvicorn.Server):
    """A server that ends in good order once it is told to stop, maybe before it has begun."""

    def __init__(self, config: uvicorn.Config, stop: threading.Event) -> None:
        self._stop = stop
        super().__init__(config)

    @property
    def should_exit(self) -> bool:
        return self._stop.is_set()

    @should_exit.setter
    def should_exit(self, value: bool) -> None:
        if value:
            self._stop.set()

    def handle_exit(self, sig: int, frame: Any) -> None:
        """Stop, as often as a signal comes."""
        self._stop.set()


def _catch(stack: contextlib.ExitStack, stop: threading.Event) -> None:
    """Let signals set `stop`, also those that the server does not handle itself."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if (which := getattr(signal, name, None)) is not None:
            before = signal.signal(which, lambda sig, frame: stop.set())
            stack.callback(signal.signal, which, before)


class _Crowd:
    """All visitors of a demonstration."""

    def __init__(
        self, server: _Server, url: str, address: str, opened: dict[str, Any],
        visitors: list[Visitors],
    ) -> None:  # fmt: skip
        self._server, self._url, self._address = server, url, address
        self._opened, self._visitors = opened, visitors
        self._clock: FastClock = opened["clock"]
        self._until = math.inf
        self.trouble: BaseException | None = None

    def run(self, seconds: float) -> None:
        """Make up some hours, then let visitors come for some seconds, and stop the server."""
        try:
            if self._server_starts():
                self._make_up()
                self._clock.run()
                self._until = time.monotonic() + seconds
                threads = [threading.Thread(target=self._come, args=(each,), name="duelay-visitors")
                           for each in self._visitors]  # fmt: skip
                for thread in threads:
                    thread.start()
                while not self._is_over:
                    time.sleep(0.1)
                for thread in threads:
                    thread.join()
        except Exception as error:
            self.trouble = error
        finally:
            self._server.should_exit = True

    @property
    def _is_over(self) -> bool:
        return self._server.should_exit or time.monotonic() > self._until

    def _server_starts(self) -> bool:
        """Wait until the server answers; return False where it is stopped before."""
        while not self._server.started and not self._server.should_exit:
            time.sleep(0.05)
        return not self._server.should_exit

    def _make_up(self) -> None:
        """Make the experiments, with a past."""
        with contextlib.closing(Store(self._url)) as store:
            made = [
                Experiment.create(
                    store, each.scene.name, list(each.scene.strengths), window=each.scene.window,
                    feedback=each.scene.feedback, share=each.scene.share, **self._opened,
                )
                for each in self._visitors
            ]  # fmt: skip
            until = self._clock() + _BEFORE
            next_ones = [(each.due, place) for place, each in enumerate(self._visitors)]
            heapq.heapify(next_ones)
            while next_ones[0][0] < until and not self._server.should_exit:
                due, place = next_ones[0]
                self._clock.hold(due)
                self._visitors[place].step(made[place])
                heapq.heapreplace(next_ones, (self._visitors[place].due, place))
            self._clock.hold(until)

    def _come(self, visitors: Visitors) -> None:
        """Let visitors of one experiment come, by the clock."""
        with connect(self._address, patience=_PATIENCE) as service:
            experiment = RemoteExperiment(service, visitors.scene.name)
            while not self._is_over:
                wait = self._clock.seconds_to(visitors.due)
                if wait > 0:
                    time.sleep(min(wait, 0.2))
                    continue
                try:
                    visitors.step(experiment)
                except (PausedError, PermissionError):
                    continue  # somebody has paused it, or made a key: the visitor goes away
                except (UnknownExperimentError, UnknownDuelError):
                    return  # somebody has deleted it
                except StoreError:
                    continue  # it is about to end, or too busy for this one
