"""Commits in groups: what many threads want to write at one time is written in one transaction.

A commit waits for the disk, and meanwhile more callers come. Whoever comes first leads: it writes
for all who are waiting, and then hands over to the first of those who have come since. Nobody
returns before its own commit. There is no thread in the background.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from duelay._core import forks

MOST = 500  # requests in a group


class Request:
    """What a caller wants to be written, and then what came of it."""

    def __init__(self) -> None:
        self.result: Any = None
        self.error: BaseException | None = None
        self.is_done = False
        self._wake = threading.Lock()
        self._wake.acquire()

    def outcome(self) -> Any:
        """Return what came of it, or raise."""
        if self.error is not None:
            raise self.error
        return self.result


class Committer:
    """Lets one caller at a time write, for all who are waiting.

    `commit` is given a group of requests, and fills in what came of each. What it raises is raised
    for all of the group.
    """

    def __init__(self, commit: Callable[[list[Any]], None], most: int = MOST) -> None:
        self._commit, self._most = commit, most
        self.n_groups = 0
        self.n_requests = 0
        self._lock = forks.lock(self)
        self._forked()

    def _forked(self, is_whole: bool = True) -> None:
        """Begin with nobody waiting; in a child process the parent's threads are not there."""
        self._queue: list[Request] = []
        self._leader: Request | None = None

    def submit(self, request: Request) -> Any:
        """Write a request, alone or with others; return or raise once that is done."""
        try:
            with self._lock:
                self._queue.append(request)
                if self._leader is None:
                    self._leader = request
            if self._leader is not request:
                request._wake.acquire()  # until the request is done, or is the one to lead
            if not request.is_done:
                self._lead(request)
        except BaseException:  # Ctrl-C at any moment: nobody waits for the request any longer
            with self._lock:
                if request in self._queue:
                    self._queue.remove(request)
                if self._leader is request:
                    self._hand_over()
            raise
        return request.outcome()

    def _lead(self, request: Request) -> None:
        group: list[Request] = []
        try:
            with self._lock:
                group, self._queue = self._queue[: self._most], self._queue[self._most :]
            self._commit(group)
        except BaseException as error:
            for each in group:
                each.error = error if each is request else _for_others(error)
            raise
        finally:
            self.n_groups += 1
            self.n_requests += len(group)
            for each in group:
                each.is_done = True
            with self._lock:
                self._hand_over()
            for each in group:
                if each is not request:
                    each._wake.release()

    def _hand_over(self) -> None:
        """Let the first waiting request lead. The caller holds the lock."""
        self._leader = self._queue[0] if self._queue else None
        if self._leader is not None:
            self._leader._wake.release()


def _for_others(error: BaseException) -> BaseException:
    """Return the leader's error for other threads; its Ctrl-C becomes one that says: call again."""
    if isinstance(error, Exception):
        return error
    return RuntimeError("the thread that was writing was stopped, nothing was kept: call again")
