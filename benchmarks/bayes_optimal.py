"""The least regret that a policy can have on average over a few problems, exactly."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from duelay._core import checks
from duelay.errors import InvalidValueError
from duelay.problems.problem import Problem

Counts = NDArray[np.int64]

_MAX_STATES = 5_000_000  # states: some hundred megabytes
_SAMPLED_LEVELS, _MAX_SAMPLE_SIZE = 60, 2_000_000  # to see whether there are too many states
_MAX_RANK = 2**62  # a rank that fits an int64


class _Level(NamedTuple):
    """The states after a number of duels: all that may be known then; S states, L pairs."""

    stop: NDArray[np.float64]  # (S,), regret to come where the best arm duels itself to the end
    goes: NDArray[np.int64]  # the states where another duel may be worth its regret
    cost: NDArray[np.float64]  # (goes, L), the expected regret of a duel
    chance: NDArray[np.float64]  # (goes, L), that the arm with the smaller index wins it
    after: NDArray[np.int64]  # (goes, L, 2), the next level's state, won or lost


def bayes_optimal_regret(
    problems: Sequence[Problem], horizon: int, *, weights: ArrayLike | None = None
) -> float:
    """Return the least regret of any policy, averaged over problems that it knows.

    One of `problems` is drawn. The policy knows the list and the weights, and is told each outcome
    at once; with delay no policy has less. The number is exact, by dynamic programming over the
    wins of each pair. A self-duel gives no information, so that a policy that starts one may as
    well let that arm duel itself to the end.

    Parameters
    ----------
    problems : sequence of Problem
        Problems with the same number of arms. A single problem has the answer 0, since the policy
        then knows the winner: give the same problem under its other names, too.
    horizon : int
        T: for two arms some ten thousand at most, for three a dozen, for four eight.
    weights : array_like, optional
        The probabilities of the problems; None makes all equally likely.

    Returns
    -------
    The regret.

    Raises
    ------
    ValueError
        If too many states can be reached.

    Examples
    --------
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

    def believe(counts: Counts) -> NDArray[np.float64]:
        """Return how likely each problem is after these outcomes."""
        likely = before + counts @ told.T
        likely = np.exp(likely - likely.max(axis=1, keepdims=True))
        return np.asarray(likely / likely.sum(axis=1, keepdims=True))

    def goes_on(counts: Counts, left: Counts) -> NDArray[np.bool_]:
        """Whether another duel may be worth its regret, with so many duels left."""
        likely = believe(counts)
        return np.asarray(left * (likely @ gaps).min(axis=1) > (likely @ costs).min(axis=1))

    too_many = (
        f"horizon must be less than {horizon} for these {gaps.shape[1]} arms: too many states can "
        f"be reached (two arms allow some ten thousand duels, three a dozen, four eight)"
    )
    if _are_too_many(goes_on, horizon, told.shape):
        raise InvalidValueError(too_many)
    counts = np.zeros((1, 2 * len(i)), dtype=np.int64)  # wins and losses, pair by pair
    levels: list[_Level] = []
    states = 0
    for left in range(horizon, -1, -1):
        likely = believe(counts)
        stop = left * (likely @ gaps).min(axis=1)
        cost = likely @ costs
        goes = np.flatnonzero(stop > cost.min(axis=1)) if left else np.zeros(0, dtype=np.int64)
        states += len(goes) * counts.shape[1]
        if states > _MAX_STATES:
            raise InvalidValueError(too_many)
        counts, after = _one_more(counts[goes])
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


def _are_too_many(
    goes_on: Callable[[Counts, Counts], NDArray[np.bool_]], horizon: int, shape: tuple[int, ...]
) -> bool:
    """Whether a sample of the states says that they are too many to be listed.

    Of all states after n outcomes some are drawn, each with an order in which the outcomes came:
    a way. If the policy goes on at every state of a way, its last state is reached. So the share of
    such ways, less five standard errors, is below the share of states that are reached. `shape` is
    the number of problems, and the number of kinds of outcomes.
    """
    n_problems, kinds = shape
    levels = min(horizon, _SAMPLED_LEVELS)
    if kinds * math.comb(levels + kinds - 1, kinds) <= _MAX_STATES:  # all states before that level
        return False
    rng, states = np.random.default_rng(0), 0.0
    for n in range(levels):
        ways = min(1000, max(100, _MAX_SAMPLE_SIZE // (n_problems * (n + 1))))
        is_bar = np.arange(n + kinds - 1) < kinds - 1  # stars and bars: a star is an outcome
        is_bar = rng.permuted(np.tile(is_bar, (ways, 1)), axis=1)
        came = np.cumsum(is_bar, axis=1)[~is_bar].reshape(ways, n)
        came = rng.permuted(came, axis=1)[:, :, None] == np.arange(kinds)
        counts = np.zeros((ways, n + 1, kinds), dtype=np.int64)
        np.cumsum(came, axis=1, out=counts[:, 1:])
        left = np.tile(horizon - np.arange(n + 1), ways)
        is_reached = goes_on(counts.reshape(-1, kinds), left).reshape(ways, n + 1).all(axis=1)
        if not is_reached.any():
            return False
        share = max(0.0, float(is_reached.mean()) - 2.5 / math.sqrt(ways))
        states += share * kinds * math.comb(n + kinds - 1, kinds - 1)
        if states > _MAX_STATES:
            return True
    return False


def _one_more(counts: Counts) -> tuple[Counts, Counts]:
    """Return all counts after one more outcome, and which of them each outcome of a state leads to.

    Counts c_0, ..., c_C-1 are known by their rank among all with the same sum: the sum over
    j < C - 1 of b_j choose j + 1, where b_j = c_0 + ... + c_j + j. To sort numbers is quick.
    """
    kinds = counts.shape[1]
    n = int(counts[0].sum()) + 1 if len(counts) else 0
    if math.comb(n + kinds - 1, kinds - 1) > _MAX_RANK:
        ahead = (counts[:, None, :] + np.eye(kinds, dtype=np.int64)).reshape(-1, kinds)
        found, after = np.unique(ahead, axis=0, return_inverse=True)
        return found, after.reshape(-1, kinds)
    j = np.arange(kinds - 1)
    chosen = np.ones((n + kinds - 1, kinds), dtype=np.int64)  # [b, j]: b choose j
    for k in j:
        chosen[0, k + 1] = 0
        np.cumsum(chosen[:-1, k], out=chosen[1:, k + 1])
    chosen = chosen[:, 1:]
    b = np.cumsum(counts[:, :-1], axis=1) + j
    # One more of kind k adds 1 to the b_j from k on.
    before, beyond = np.zeros(counts.shape, np.int64), np.zeros(counts.shape, np.int64)
    np.cumsum(chosen[b, j], axis=1, out=before[:, 1:])
    beyond[:, :-1] = np.cumsum(chosen[b + 1, j][:, ::-1], axis=1)[:, ::-1]
    _, where, after = np.unique(before + beyond, return_index=True, return_inverse=True)
    found = counts[where // kinds]
    found[np.arange(len(found)), where % kinds] += 1
    return found, after.reshape(-1, kinds)


def _check(
    problems: Sequence[Problem], weights: ArrayLike | None
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return preferences, gaps and chances, stacked."""
    if isinstance(problems, Problem) or not all(isinstance(each, Problem) for each in problems):
        raise InvalidValueError("problems must be a list of duelay.Problem")
    if len({problem.n_arms for problem in problems}) != 1:
        raise InvalidValueError("problems must be one or more, all with as many arms")
    if any(problem.first_bonus for problem in problems):
        raise InvalidValueError("problems must have no first_bonus")
    prior = np.ones(len(problems)) if weights is None else np.asarray(weights, dtype=np.float64)
    if prior.shape != (len(problems),) or not np.isfinite(prior).all() or prior.min() < 0:
        raise InvalidValueError(
            f"weights must be {len(problems)} numbers of at least 0, got {weights!r}"
        )
    if prior.sum() == 0:
        raise InvalidValueError("weights must not all be 0")
    mu = np.stack([problem.matrix for problem in problems])
    gaps = np.stack([problem.gaps for problem in problems])
    return mu, gaps, prior / prior.sum()
