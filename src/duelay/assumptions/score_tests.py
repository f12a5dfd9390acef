"""Score statistics within strata, their chi-squared, and the duels that may be compared."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duelay._core.arrays import Floats
from duelay._core.linear_systems import factored, forward
from duelay.logs.history import History

Ints = NDArray[np.int64]

_ROWS_AT_ONCE = 200_000  # bounds the memory for a log of millions
_SHARE_BY_AGE = 0.95  # of the answers heard come by age A


def scores(x: Floats | Ints, y: Floats, strata: Ints) -> tuple[Floats, Floats]:
    """Return the score of y (n,) on x, and its variance, each added up over strata.

    x is (n, p), or (n,) groups from 0. A stratum's score is the sum of (x - its mean) y; its
    variance is that over all permutations of y within it, for an effect common to all strata.
    """
    p = x.shape[1] if x.ndim == 2 else int(x.max(initial=0)) + 1
    score, variance = np.zeros(p), np.zeros((p, p))
    order = np.argsort(strata, kind="stable")
    _, begin = np.unique(strata[order], return_index=True)
    ends = np.append(begin[1:], len(order))
    place = 0
    while place < len(begin):  # some strata at a time, none in parts
        last = max(int(np.searchsorted(ends, begin[place] + _ROWS_AT_ONCE)), place + 1)
        rows, n = order[begin[place] : ends[last - 1]], (ends - begin)[place:last]
        x_ = x[rows] if x.ndim == 2 else one_hot(x[rows], p)
        starts, stratum = begin[place:last] - begin[place], np.repeat(np.arange(len(n)), n)
        mean = np.add.reduceat(x_, starts, axis=0) / n[:, None]
        y_ = y[rows] - (np.add.reduceat(y[rows], starts) / n)[stratum]
        spread = np.add.reduceat(y_ * y_, starts) / np.maximum(n - 1, 1)
        x_ = x_ - mean[stratum]
        score += x_.T @ y_
        variance += (x_ * spread[stratum, None]).T @ x_
        place = last
    return score, variance


def ranks(values: Floats) -> Floats:
    """Rank from 1; equal values share their mean rank."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[inverse])


def delay_scores(delays: Floats) -> Floats:
    """Score delays by their ranks: the sum of Wilcoxon's and Savage's scores, each scaled to 1.

    Savage's, the expectations of ranked exponentials, are the best ones if one delay law is a
    multiple of another and both are exponential; Wilcoxon's are better if they are log-normal. The
    sum loses little in either case.
    """
    values, inverse, counts = np.unique(delays, return_inverse=True, return_counts=True)
    ends, steps = np.cumsum(counts), 1.0 / np.arange(len(delays), 0, -1.0)
    sums = np.append(0.0, np.cumsum(np.cumsum(steps)))
    savage = (sums[ends] - sums[ends - counts]) / counts  # equal delays share their mean score
    found = np.zeros(len(values))
    for score in (ends - (counts - 1) / 2, savage):
        mean = np.average(score, weights=counts)
        spread = np.average((score - mean) ** 2, weights=counts)
        found += (score - mean) / math.sqrt(spread) if spread > 0.0 else 0.0
    return np.asarray(found[inverse])


def one_hot(codes: NDArray[Any], n: int) -> Floats:
    """Return a column for each code: 1 where it occurs, 0 elsewhere."""
    found = np.zeros((len(codes), n))
    found[np.arange(len(codes)), codes] = 1.0
    return found


def quadratic(score: Floats, variance: Floats) -> tuple[float, int]:
    """Return score' variance^-1 score (a generalised inverse) and its rank, the degrees of freedom.

    All generalised inverses give the same, since the score is in the range of its variance.
    """
    z = forward(factored(variance, largest_first=True), score)
    return float((z * z).sum()), len(z)


def chi_squared(score: Floats, variance: Floats) -> tuple[float, float]:
    """Return the statistic and its p-value; nan where nothing varies."""
    statistic, df = quadratic(score, variance)
    return (statistic, tail(statistic, df)) if df else (math.nan, math.nan)


def tail(x: float, df: int) -> float:
    """Return the probability that chi-squared with df degrees of freedom exceeds x."""
    from scipy.special import chdtrc

    return float(chdtrc(df, max(x, 0.0)))


def cut(history: History) -> tuple[NDArray[np.bool_], NDArray[np.bool_], float]:
    """Return the duels that are older than an age, those of them answered by that age, and the age.

    Comparing only these compares like with like, although later duels had less time for an answer.
    95 % of the answers heard came by the age. Self-duels are left out, since their arm may have
    been shown alone, or not at all.
    """
    two = history.first != history.second
    delays = np.sort(history.delay[history.is_heard & two])
    age: float = 1
    if delays.size:
        age = float(delays[math.ceil(_SHARE_BY_AGE * delays.size) - 1])
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
