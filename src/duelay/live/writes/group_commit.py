"""Group commit: requests that arrive during a transaction are written together in the next one.

A commit waits for the disk, and meanwhile more requests arrive. One request at a time leads: its
caller writes for all that are waiting, and then hands over to the first of those that have arrived
since. Nobody returns before its own commit. There is no thread in the background.

Threads call `submit`. Another kind of caller, such as a task of an event loop, sets `notify` of its
request, calls `enqueue`, and calls `lead` in some thread if the request is to lead.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from duelay._core import forks

MAX_GROUP = 500  # requests in a transaction, those of a batch counted one by one


class Request:
    """What a caller wants to be written, and then what came of it."""

    notify: Callable[[], object]  # called once the request is done, or is to lead

    def __init__(self) -> None:
        self.result: Any = None
        self.error: BaseException | None = None
        self.is_done = False

    def outcome(self) -> Any:
        """Return what came of it, or raise."""
        if self.error is not None:
            raise self.error
        return self.result


class Batch(Request):
    """Requests that are written in one transaction: answers among them are news of one moment."""

    def __init__(self, parts: Sequence[Request]) -> None:
        super().__init__()
        self.parts = parts


class Committer(ABC):
    """Lets one caller at a time write, for all who are waiting."""

    def __init__(self, max_group: int = MAX_GROUP) -> None:
        self._max_group = max_group
        self._lock = forks.lock(self)
        self._forked()

    def _forked(self, is_whole: bool = True) -> None:
        """Begin with nobody waiting; in a child process the parent's threads are not there."""
        self._queue: list[Request] = []
        self._leader: Request | None = None

    @abstractmethod
    def commit(self, group: list[Request]) -> None:
        """Write a group of requests, a batch as its parts, and fill in the result of each.

        What it raises is raised for all of the group.
        """

    def submit(self, request: Request) -> Any:
        """Write a request, alone or with others; return or raise once that is done."""
        is_called = threading.Lock()
        is_called.acquire()
        request.notify = is_called.release
        try:
            if not self.enqueue(request):
                is_called.acquire()
            if not request.is_done:
                self.lead(request)
        except BaseException:  # Ctrl-C at any moment: nobody waits for the request any longer
            with self._lock:
                if request in self._queue:
                    self._queue.remove(request)
                if self._leader is request:
                    self._hand_over()
            raise
        return request.outcome()

    def enqueue(self, request: Request) -> bool:
        """Let a request wait for a commit; return whether it is to lead, at once."""
        with self._lock:
            self._queue.append(request)
            if self._leader is None:
                self._leader = request
            return self._leader is request

    def lead(self, request: Request) -> None:
        """Write for all that are waiting, and hand over; an error is kept in each request."""
        group: list[Request] = []
        try:
            with self._lock:
                n = self._count_group()
                group, self._queue = self._queue[:n], self._queue[n:]
            self.commit([part for each in group for part in _parts(each)])
        except BaseException as error:
            for each in group:
                each.error = error if each is request else _for_others(error)
            if not group:
                raise
        finally:
            for each in group:
                each.is_done = True
            for each in group:
                each.notify()
            with self._lock:  # only now: who asks again at once is in the next group
                self._hand_over()

    def _count_group(self) -> int:
        """Return how many waiting requests are written next: one, and more that are not too many.

        The caller holds the lock.
        """
        parts = 0
        for n, request in enumerate(self._queue):
            parts += len(_parts(request))
            if n and parts > self._max_group:
                return n
        return len(self._queue)

    def _hand_over(self) -> None:
        """Let the first waiting request lead. The caller holds the lock."""
        self._leader = self._queue[0] if self._queue else None
        if self._leader is not None:
            self._leader.notify()


def _parts(request: Request) -> Sequence[Request]:
    return request.parts if isinstance(request, Batch) else (request,)


def _for_others(error: BaseException) -> BaseException:
    """Return the leader's error for other threads; its Ctrl-C becomes one that says: call again."""
    if isinstance(error, Exception):
        return error
    return RuntimeError("the thread that was writing was stopped, nothing was kept: call again")
