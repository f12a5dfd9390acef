"""Score statistics: the covariance of y with x within strata, and its chi-squared."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duelay._core.triangles import factored, forward

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


_ROWS = 200_000  # that are looked at together, so that a log of millions takes no more memory


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
        last = max(int(np.searchsorted(ends, begin[place] + _ROWS)), place + 1)
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
