"""The least regret that a policy can have on average over a few problems, exactly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from duelay._core import checks
from duelay.problems import Problem

_MOST = 5_000_000  # states: some hundred megabytes


class _Level(NamedTuple):
    """All that may be known after as many duels as there have been; S states, L pairs."""

    stop: NDArray[np.float64]  # (S,), regret to come where the best arm duels itself to the end
    goes: NDArray[np.int64]  # the states where another duel may be worth its regret
    cost: NDArray[np.float64]  # (goes, L), the expected regret of a duel
    chance: NDArray[np.float64]  # (goes, L), that the arm with the smaller index wins it
    after: NDArray[np.int64]  # (goes, L, 2), the next level's state, won or lost


def bayes_optimal_regret(
    problems: Sequence[Problem], horizon: int, *, weights: ArrayLike | None = None
) -> float:
    """Return the least regret of any policy, on average over problems that it knows.

    One of `problems` is drawn, with the chances `weights` (all alike if None). The policy knows the
    list and the chances, and is told each outcome at once: with delay, no policy has less. Dynamic
    programming over the wins of each pair; exact. An arm against itself tells nothing, so that
    whoever has it duel may as well have it duel to the end: a state is left by a duel of two
    arms, or for good. Of one problem alone it is 0: who knows it knows the winner. Give the same
    problem under its other names, too.

    For two arms the horizon may be some ten thousand, for three a dozen, for four eight.

    >>> from duelay import Problem
    >>> good, bad = Problem([[0.5, 0.6], [0.4, 0.5]]), Problem([[0.5, 0.4], [0.6, 0.5]])
    >>> round(bayes_optimal_regret([good, bad], 1000), 3)
    3.674
    """
    horizon = checks.whole("horizon", horizon)
    mu, gaps, prior = _check(problems, weights)
    i, j = np.triu_indices(gaps.shape[1], 1)
    pairs = mu[:, i, j]  # (problems, L)
    with np.errstate(divide="ignore"):
        told = np.log(np.stack([pairs, 1 - pairs], axis=2)).reshape(len(pairs), -1)
        before = np.log(prior)
    told = np.maximum(told, -1e6)  # what cannot be
    costs = (gaps[:, i] + gaps[:, j]) / 2
    one_more = np.eye(2 * len(i), dtype=np.int64)
    counts = np.zeros((1, 2 * len(i)), dtype=np.int64)  # wins and losses, pair by pair
    levels: list[_Level] = []
    states = 0
    for left in range(horizon, -1, -1):
        likely = before + counts @ told.T
        likely = np.exp(likely - likely.max(axis=1, keepdims=True))
        likely /= likely.sum(axis=1, keepdims=True)
        stop = left * (likely @ gaps).min(axis=1)
        cost = likely @ costs
        goes = np.flatnonzero(stop > cost.min(axis=1)) if left else np.zeros(0, dtype=np.int64)
        states += len(goes) * len(one_more)
        if states > _MOST:
            raise ValueError(
                f"horizon must be less than {horizon} for these {gaps.shape[1]} arms: too many "
                f"states can be reached"
            )
        ahead = (counts[goes, None, :] + one_more).reshape(-1, len(one_more))
        counts, after = np.unique(ahead, axis=0, return_inverse=True)
        after = after.reshape(len(goes), len(i), 2)
        levels.append(_Level(stop, goes, cost[goes], (likely @ pairs)[goes], after))
        if len(goes) == 0:
            break
    value = levels.pop().stop
    for level in reversed(levels):
        won, lost = value[level.after[..., 0]], value[level.after[..., 1]]
        value = level.stop
        on = (level.cost + level.chance * won + (1 - level.chance) * lost).min(axis=1)
        value[level.goes] = np.minimum(value[level.goes], on)
    return float(value[0])


def _check(
    problems: Sequence[Problem], weights: ArrayLike | None
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return preferences, gaps and chances, stacked."""
    if isinstance(problems, Problem) or not all(isinstance(each, Problem) for each in problems):
        raise ValueError("problems must be a list of duelay.Problem")
    if len({problem.n_arms for problem in problems}) != 1:
        raise ValueError("problems must be one or more, all with as many arms")
    if any(problem.first_bonus for problem in problems):
        raise ValueError("problems must have no first_bonus")
    prior = np.ones(len(problems)) if weights is None else np.asarray(weights, dtype=np.float64)
    if prior.shape != (len(problems),) or not np.isfinite(prior).all() or prior.min() < 0:
        raise ValueError(f"weights must be {len(problems)} numbers of at least 0, got {weights!r}")
    if prior.sum() == 0:
        raise ValueError("weights must not all be 0")
    mu = np.stack([problem.matrix for problem in problems])
    gaps = np.stack([problem.gaps for problem in problems])
    return mu, gaps, prior / prior.sum()
