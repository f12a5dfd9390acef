"""Delay laws on the whole numbers: geometric, constant, uniform, negative binomial, Zipf.

The constant and the uniform law are also there in time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from duelay._core import checks
from duelay._core.arrays import Floats
from duelay._core.duration import Duration, is_duration
from duelay.delays.base import Law, TableLaw, _like, ages_of
from duelay.errors import InvalidValueError
from duelay.text import named

_MAX_TABLE = 50_000_000  # entries of a table


@named("law", "geometric")
@dataclass(frozen=True)
class Geometric(Law):
    """The geometric law: the conversion comes at each tick with the same probability. Mean 1/p.

    Parameters
    ----------
    p : float
        The probability of a conversion at each tick, above 0 and at most 1.

    Examples
    --------
    >>> Geometric(0.01).mean, Geometric(0.01).cdf([1, 100])
    (100.0, array([0.01      , 0.63396766]))
    """

    p: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "p", checks.number("p", self.p, above=0, most=1))

    @property
    def mean(self) -> float:
        """E[D] = 1/p."""
        return 1.0 / self.p

    @property
    def support(self) -> float:
        """1 for p = 1, otherwise infinite."""
        return 1.0 if self.p == 1 else math.inf

    def cdf(self, t: ArrayLike) -> Any:
        """tau_t = 1 - (1 - p)^t."""
        t = np.asarray(t)
        ages = np.maximum(np.floor(t), 0.0)
        if self.p == 1:
            return _like(t, (ages >= 1).astype(np.float64))
        return _like(t, -np.expm1(ages * math.log1p(-self.p)))


@named("law", "constant")
@dataclass(frozen=True)
class Constant(Law):
    """The same delay for every conversion; 1 tick, the default, is no delay.

    Parameters
    ----------
    ticks : int, Duration or str
        The delay. With a duration, such as ``"1h"``, the law is in time.

    Examples
    --------
    >>> Constant().cdf(1), Constant(7).mean, Constant("1h").mean
    (1.0, 7.0, 3600.0)
    """

    ticks: int | Duration = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "ticks", _ticks_or_time("ticks", self.ticks))

    @property
    def in_time(self) -> bool:
        """Whether it was given a duration."""
        return isinstance(self.ticks, Duration)

    @property
    def mean(self) -> float:
        """E[D] = ticks."""
        return float(self.ticks)

    @property
    def support(self) -> float:
        """The one delay."""
        return float(self.ticks)

    def cdf(self, t: ArrayLike) -> Any:
        """tau_t = 1 from the delay on."""
        t = ages_of(self, t)
        return _like(t, (t >= self.ticks).astype(np.float64))

    def invert(self, q: Floats) -> Floats:
        """The one delay."""
        return np.full(q.shape, float(self.ticks))


@named("law", "uniform")
@dataclass(frozen=True)
class Uniform(Law):
    """Every delay from `low` to `high` is equally likely.

    Parameters
    ----------
    low, high : int, Duration or str
        The shortest and the longest delay. With two durations, such as ``"1m"`` and ``"10m"``, the
        law is in time, and `high` must be longer than `low`.

    Examples
    --------
    >>> Uniform(1, 4).pmf([0, 1, 4, 5])
    array([0.  , 0.25, 0.25, 0.  ])
    """

    low: int | Duration
    high: int | Duration

    def __post_init__(self) -> None:
        low = _ticks_or_time("low", self.low)
        object.__setattr__(self, "low", low)
        if isinstance(low, Duration):
            object.__setattr__(self, "high", checks.duration("high", self.high))
            if not self.high > low:
                raise InvalidValueError(f"high must be longer than low, {low}, got {self.high}")
        else:
            object.__setattr__(self, "high", checks.whole("high", self.high, least=low))

    @property
    def in_time(self) -> bool:
        """Whether it was given durations."""
        return isinstance(self.low, Duration)

    @property
    def mean(self) -> float:
        """E[D] = (low + high) / 2."""
        return (self.low + self.high) / 2

    @property
    def support(self) -> float:
        """The largest delay, `high`."""
        return float(self.high)

    def cdf(self, t: ArrayLike) -> Any:
        """tau_t grows evenly from `low` to `high`."""
        t = ages_of(self, t)
        if self.in_time:
            return _like(t, np.clip((t - self.low) / (self.high - self.low), 0.0, 1.0))
        count = np.clip(np.floor(t) - self.low + 1, 0, self.high - self.low + 1)
        return _like(t, count / (self.high - self.low + 1))

    def invert(self, q: Floats) -> Floats:
        """low + q (high - low)."""
        return np.asarray(self.low + q * (self.high - self.low))


@named("law", "negative-binomial")
@dataclass(frozen=True)
class NegativeBinomial(TableLaw):
    """One tick plus the number of failures before the `r`-th success. With r = 1 it is geometric.

    Parameters
    ----------
    r : float
        The number of successes, above 0.
    p : float
        Their probability, above 0 and at most 1.

    Examples
    --------
    >>> NegativeBinomial(2, 0.5).pmf([1, 2, 3])
    array([0.25  , 0.25  , 0.1875])
    """

    r: float
    p: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "r", checks.number("r", self.r, above=0))
        object.__setattr__(self, "p", checks.number("p", self.p, above=0, most=1))
        if self._length() > _MAX_TABLE:
            raise InvalidValueError(
                f"r and p must give a table of at most {_MAX_TABLE} ticks (mean, ten standard "
                f"deviations and 45 / p), got {self._length():g}"
            )

    @property
    def mean(self) -> float:
        """E[D] = 1 + r (1 - p) / p."""
        return 1.0 + self.r * (1.0 - self.p) / self.p

    @property
    def support(self) -> float:
        """1 for p = 1, otherwise infinite."""
        return 1.0 if self.p == 1 else math.inf

    def _length(self) -> float:
        # Beyond the mean the tail falls at least as fast as a geometric one: 45 / p ticks leave
        # e^-45. Ten standard deviations allow for the spread of a sum of r.
        spread = math.sqrt(self.r) * math.sqrt(1.0 - self.p) / self.p
        return math.floor(min(self.mean + 10 * spread + 45 / self.p, 1e300)) + 1

    def masses(self) -> Floats:
        """P(D = k + 1) = C(k + r - 1, k) p^r (1 - p)^k, by its ratio from k to k + 1.

        `_cumulated` makes them sum to one: for a large r the logarithms have drifted a little.
        """
        if self.p == 1:
            return np.ones(1)
        k = np.arange(int(self._length()))
        steps = np.log((k[:-1] + self.r) / (k[:-1] + 1.0)) + math.log1p(-self.p)
        logs = self.r * math.log(self.p) + np.concatenate(([0.0], np.cumsum(steps)))
        return np.asarray(np.exp(logs))


@named("law", "zipf")
@dataclass(frozen=True)
class Zipf(TableLaw):
    """A power law with a cut-off: P(D = t) is proportional to t^-exponent for t <= cutoff.

    Parameters
    ----------
    exponent : float
        The exponent of the power law, at least 0.
    cutoff : int
        The largest delay in ticks.

    Examples
    --------
    >>> Zipf(1.2, 1000).cdf(1000)
    1.0
    """

    exponent: float
    cutoff: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "exponent", checks.number("exponent", self.exponent, least=0))
        object.__setattr__(self, "cutoff", checks.whole("cutoff", self.cutoff))
        if self.cutoff > _MAX_TABLE:
            raise InvalidValueError(f"cutoff must be at most {_MAX_TABLE}, got {self.cutoff}")

    @property
    def support(self) -> float:
        """The cut-off."""
        return float(self.cutoff)

    def masses(self) -> Floats:
        """t^-exponent, made to sum to one."""
        weights = np.arange(1, self.cutoff + 1, dtype=np.float64) ** -self.exponent
        return np.asarray(weights / weights.sum())


def _ticks_or_time(name: str, value: Any) -> int | Duration:
    """Return a whole number of ticks, or a duration."""
    return checks.duration(name, value) if is_duration(value) else checks.whole(name, value)
