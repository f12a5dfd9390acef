"""Score statistics: the covariance of y with x within strata, and its chi-squared."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Part(NamedTuple):
    """A stratum's score and its variance over all permutations."""

    score: Floats  # (p,): sum of (x - its mean) y
    variance: Floats  # (p, p)


def scores(x: Floats | Ints, y: Floats, strata: Ints) -> list[Part]:
    """Return each stratum's score of y (n,) on x, which is (n, p), or (n,) groups from 0."""
    parts = []
    order = np.argsort(strata, kind="stable")
    _, begin = np.unique(strata[order], return_index=True)
    for rows in np.split(order, begin[1:]):
        if len(rows) > 1:
            x_ = x[rows] if x.ndim == 2 else one_hot(x[rows], int(x.max()) + 1)
            x_, y_ = x_ - x_.mean(axis=0), y[rows] - y[rows].mean()
            parts.append(Part(x_.T @ y_, (x_.T @ x_) * (y_ @ y_) / (len(rows) - 1)))
    return parts


def add_up(parts: list[Part]) -> tuple[Floats, Floats]:
    """Add up scores and variances over strata, for an effect common to all."""
    if not parts:
        return np.zeros(1), np.zeros((1, 1))
    scores, variances = [part.score for part in parts], [part.variance for part in parts]
    return np.asarray(np.sum(scores, axis=0)), np.asarray(np.sum(variances, axis=0))


def ranks(values: Floats) -> Floats:
    """Rank from 1; equal values share their mean rank."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[inverse])


def one_hot(codes: NDArray[Any], n: int) -> Floats:
    """Return a column for each code: 1 where it occurs, 0 elsewhere."""
    return np.asarray(np.eye(n)[codes])


def quadratic(score: Floats, variance: Floats) -> tuple[float, int]:
    """Return score' variance^-1 score (a pseudo-inverse) and its rank, the degrees of freedom."""
    size, axes = np.linalg.eigh(variance)
    good = size > 1e-9 * max(float(size[-1]), 1e-300)
    along = axes[:, good].T @ score
    return float((along**2 / size[good]).sum()), int(good.sum())


def chi_squared(score: Floats, variance: Floats) -> tuple[float, float]:
    """Return the statistic and its p-value; nan where nothing varies."""
    statistic, df = quadratic(score, variance)
    return (statistic, tail(statistic, df)) if df else (math.nan, math.nan)


def tail(x: float, df: int) -> float:
    """P(chi-squared with df degrees of freedom > x), in closed form."""
    if x <= 0:
        return 1.0
    half, log = x / 2, math.log(x / 2)
    total = math.erfc(math.sqrt(half)) if df % 2 else 0.0
    for k in range(df // 2):
        power = k + 0.5 * (df % 2)
        total += math.exp(power * log - half - math.lgamma(power + 1))
    return min(total, 1.0)
