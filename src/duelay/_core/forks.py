"""Locks across a fork: a child must not wait for a lock that a thread of its parent holds."""

from __future__ import annotations

import os
import threading
import time
import weakref
from typing import Any

from tqdm.std import TqdmDefaultWriteLock

_MAX_WAIT_SECONDS = 5.0  # seconds that a fork waits for threads at work
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
    _MINE.taken, _MINE.whole = [], set()
    until = time.monotonic() + _MAX_WAIT_SECONDS  # a thread may hold one and wait for another
    for reference in _OWNERS.valuerefs():
        owner = reference()
        own = getattr(owner, "_lock", None)  # none yet, or the owner is gone
        if own is not None and own.acquire(timeout=max(0.0, until - time.monotonic())):
            _MINE.taken.append(own)
            _MINE.whole.add(id(owner))
    # A thread that draws a bar of progress holds this one: a copy of it would never be released.
    bars = TqdmDefaultWriteLock.th_lock
    _MINE.bars = bars if bars.acquire(timeout=_MAX_WAIT_SECONDS) else None


def _in_parent() -> None:
    for taken in _MINE.taken:
        taken.release()
    _MINE.taken = []
    _release_bars()


def _release_bars() -> None:
    if _MINE.bars is not None:
        _MINE.bars.release()
        _MINE.bars = None


def _in_child() -> None:
    _MINE.taken = []
    _release_bars()
    for reference in _OWNERS.valuerefs():
        owner = reference()
        if owner is not None:
            owner._lock = threading.RLock()
            if hasattr(owner, "_forked"):
                owner._forked(id(owner) in _MINE.whole)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
