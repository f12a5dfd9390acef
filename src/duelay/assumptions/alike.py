"""Comparing like with like: duels older than an age A, and their answers heard by age A."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from duelay.assumptions.scores import Ints
from duelay.logs.history import History

_SHARE = 0.95  # of the answers heard come by age A


def cut(history: History) -> tuple[NDArray[np.bool_], NDArray[np.bool_], float]:
    """Return which duels are older than A, which of them were heard by age A, and A.

    Self-duels are left out: the arm may have been shown alone, or not at all.
    """
    two = history.first != history.second
    delays = np.sort(history.delay[history.is_heard & two])
    age: float = 1
    if delays.size:
        age = float(delays[math.ceil(_SHARE * delays.size) - 1])
        half = float(history.ages.max()) / 2  # of the time so far, however many duels are in it
        age = min(int(age), max(1, int(half))) if history.at is None else min(age, half)
    old = (history.ages > age) & two  # answers due at the next ask may not all have been told
    return old, old & (history.delay <= age), age


def part_of_time(history: History, age: float, parts: int) -> Ints:
    """Return each duel's part of the time, from 0: equal parts of the ticks older than an age."""
    ticks = max(int((history.ages > age).sum()), 1)
    return np.asarray(np.arange(history.n) * parts // ticks)


def pairs_of(history: History) -> Ints:
    """Number each duel's unordered pair: i K + j for i <= j."""
    low = np.minimum(history.first, history.second)
    return np.asarray(low * history.n_arms + np.maximum(history.first, history.second))
