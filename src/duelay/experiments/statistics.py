"""How sure a comparison is: paired bootstrap over runs, and whether regret has levelled off."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from duelay._core.arrays import Floats
from duelay.simulation import Result

RESAMPLES = 4000
_MAX_NUMBERS = 2_000_000  # numbers of resamples in memory
CONVERGED = 0.15  # share of the regret that falls into the second half; 1/2 is a straight line


class Interval(NamedTuple):
    """A number with the ends of its 95 % interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        if np.isnan(self.value):
            return "?"
        if np.isinf(self.low):
            return f"{self.value:,.2f}"
        digits = 0 if abs(self.value) >= 100 else 2
        return f"{self.value:,.{digits}f} [{self.low:,.{digits}f}, {self.high:,.{digits}f}]"


def bootstrap(statistic: Callable[..., Floats], *samples: Floats) -> Interval:
    """Estimate a statistic of means by a paired bootstrap: run r is drawn in all samples at once.

    `statistic` takes one array of means for each sample, with resamples along the first axis, and
    returns one number for each resample. The seed is fixed: the same interval every time.
    """
    runs = len(samples[0])
    value = float(np.squeeze(statistic(*(sample.mean(axis=0)[None] for sample in samples))))
    if runs == 1:  # nothing to resample: no interval
        return Interval(value, -np.inf, np.inf)
    resampled = [
        np.asarray(statistic(*(shares @ sample for sample in samples)))
        for shares in (_kept_shares(runs) if RESAMPLES * runs <= _MAX_NUMBERS else _shares(runs))
    ]
    low, high = np.quantile(np.concatenate(resampled), [0.025, 0.975])
    return Interval(value, float(low), float(high))


def _shares(runs: int) -> Iterator[Floats]:
    """Yield how often each run is drawn, as a share, a row a resample; the same every time."""
    rng = np.random.default_rng(20240801)
    size = max(1, min(RESAMPLES, _MAX_NUMBERS // runs))  # less memory for many runs
    for start in range(0, RESAMPLES, size):
        n = min(size, RESAMPLES - start)
        yield rng.multinomial(runs, np.full(runs, 1 / runs), size=n) / runs


@functools.lru_cache(maxsize=1)
def _kept_shares(runs: int) -> list[Floats]:
    """All the shares, kept for the next estimate with as many runs: to draw them takes longest."""
    return list(_shares(runs))


def difference(a: Result, b: Result) -> Interval:
    """Mean of a's final regret minus b's, paired by run."""
    return bootstrap(lambda x, y: x - y, a.final, b.final)


def ratio(a: Result, b: Result) -> Interval:
    """a's mean final regret divided by b's, paired by run."""
    return bootstrap(lambda x, y: x / y, a.final, b.final)


def late_share(result: Result) -> Interval:
    """The share of the regret that falls into the second half of the horizon: 1/2 if linear.

    nan with fewer than four checkpoints.
    """
    if len(result.t) < 4:
        return Interval(np.nan, np.nan, np.nan)
    return bootstrap(lambda m: 1.0 - m[:, 0] / np.maximum(m[:, 1], 1e-300), _half_and_whole(result))


def _half_and_whole(result: Result) -> Floats:
    """(runs, 2): regret at half the horizon, interpolated linearly, and at the horizon."""
    t = np.concatenate(([0], result.t))
    half = [np.interp(result.horizon / 2, t, np.concatenate(([0.0], r))) for r in result.regret]
    return np.column_stack([half, result.regret[:, -1]])


def has_converged(result: Result) -> bool:
    """Whether the mean regret has levelled off; False with fewer than four checkpoints."""
    if len(result.t) < 4:
        return False
    half, whole = _half_and_whole(result).mean(axis=0)
    return bool(1.0 - half / max(whole, 1e-300) < CONVERGED)


def converged_at(result: Result) -> int:
    """The tick by which 95 % of the final regret has come; the horizon where it goes on rising."""
    if not has_converged(result):
        return result.horizon
    return int(result.t[np.argmax(result.mean >= 0.95 * result.mean[-1])])


def slope(results: list[Result], x: list[float]) -> Interval:
    """The slope of log mean regret over log x, by least squares over several results."""
    logs = np.log(x) - np.mean(np.log(x))

    def fit(*means: Floats) -> Floats:
        y = np.log(np.stack(means))
        return np.asarray((logs[:, None] * y).sum(axis=0) / (logs**2).sum())

    return bootstrap(fit, *(result.final for result in results))


def rank_correlation(x: Floats, y: Floats) -> Floats:
    """Spearman's correlation along the last axis; 0 where one side does not vary."""
    from scipy.stats import rankdata

    x, y = (ranks - ranks.mean(axis=-1, keepdims=True) for ranks in (
        rankdata(x, axis=-1), rankdata(y, axis=-1)))  # fmt: skip
    scale = np.sqrt((x**2).sum(axis=-1) * (y**2).sum(axis=-1))
    return np.asarray((x * y).sum(axis=-1) / np.where(scale > 0, scale, np.inf))
