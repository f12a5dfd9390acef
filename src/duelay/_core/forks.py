"""Locks across a fork: a child must not wait for a lock that a thread of its parent holds."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Sequence
from typing import Any

from tqdm.std import TqdmDefaultWriteLock

_MAX_WAIT_SECONDS = 5.0  # seconds that a fork waits for threads at work ...
_MAX_HOLD_SECONDS = 0.05  # ... and for each, while it holds what that one may wait for
_OWNERS: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
_MINE = threading.local()  # the locks that the forking thread has taken, and of which owners


def lock(owner: Any) -> Any:
    """Return a lock that the owner must keep as `_lock`; in a child process it is replaced.

    A fork first takes all these locks, so that no object is copied in the middle of a call. An
    owner with a method `_forked(is_whole)` has it called in the child: `is_whole` is False if a
    thread of the parent still held the lock.
    """
    _OWNERS[id(owner)] = owner
    return threading.RLock()


def _before() -> None:
    owners = [owner for reference in _OWNERS.valuerefs() if (owner := reference()) is not None]
    locks = {id(owner): own for owner in owners
             if (own := getattr(owner, "_lock", None)) is not None}  # fmt: skip
    # A thread that draws a bar of progress holds the last one: a copy of it is never released.
    _MINE.taken = _take([*locks.values(), TqdmDefaultWriteLock.th_lock])
    taken = {id(lock) for lock in _MINE.taken}
    _MINE.whole = {owner for owner, own in locks.items() if id(own) in taken}


def _take(locks: Sequence[Any]) -> list[Any]:
    """Take locks, and return them: all, or once it takes too long those that are free.

    A thread may hold one of them and wait for another, in any order. So whoever waits for one for
    long gives back the others first, and begins with that one.
    """
    until, taken = time.monotonic() + _MAX_WAIT_SECONDS, list[Any]()
    while True:
        rest = [each for each in locks if each not in taken]
        blocked = next((each for each in rest if not _takes(each, taken)), None)
        if blocked is None:
            return taken
        _release(taken)
        if not blocked.acquire(timeout=max(0.0, until - time.monotonic())):
            return [each for each in locks if each.acquire(blocking=False)]
        taken.append(blocked)


def _takes(lock: Any, taken: list[Any]) -> bool:
    if not lock.acquire(timeout=_MAX_HOLD_SECONDS):
        return False
    taken.append(lock)
    return True


def _release(taken: list[Any]) -> None:
    while taken:
        taken.pop().release()


def _in_parent() -> None:
    _release(_MINE.taken)


def _in_child() -> None:
    bars = TqdmDefaultWriteLock.th_lock
    _release([lock for lock in _MINE.taken if lock is bars])  # the others are replaced
    _MINE.taken = []
    for reference in _OWNERS.valuerefs():
        owner = reference()
        if owner is not None:
            owner._lock = threading.RLock()
            if hasattr(owner, "_forked"):
                owner._forked(id(owner) in _MINE.whole)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
