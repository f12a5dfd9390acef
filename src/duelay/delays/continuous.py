"""Weibull, Pareto, log-normal, exponential and gamma times: in time, or rounded up to a tick.

A law whose scale is a duration, such as "10m", is in time.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from duelay._core import checks
from duelay._core.arrays import Floats
from duelay._core.duration import Duration
from duelay.delays.base import Law, _like, ages_of, sum_survival
from duelay.text import named

_ALMOST = 1.0 - 2.0**-53  # the largest share below one
_HEAD = 2**12  # ticks that the mean of a Pareto law adds up one by one


class ContinuousLaw(Law):
    """In ticks D = ceil(X) for a positive X: tau_t is X's own distribution function at whole t.

    In time D is X itself.
    """

    @property
    @abstractmethod
    def unit(self) -> float | Duration:
        """The parameter that X is proportional to."""

    @property
    def in_time(self) -> bool:
        """Whether it was given a duration."""
        return isinstance(self.unit, Duration)

    @abstractmethod
    def survival(self, x: Floats) -> Floats:
        """P(X > x) for x > 0."""

    @abstractmethod
    def arrived(self, x: Floats) -> Floats:
        """P(X <= x) for x > 0, with all its digits where it is small."""

    def guess(self, q: Floats) -> Floats:
        """The tick in which X falls."""
        return np.asarray(np.ceil(self.invert(q)))

    def cdf(self, t: ArrayLike) -> Any:
        """tau_t = P(X <= t)."""
        t = ages_of(self, t)
        if self.in_time:
            arrived = self.arrived(np.where(t > 0, t, 1.0))
            return _like(t, np.where(t > 0, arrived, 0.0))
        ages = np.floor(t).astype(np.float64)
        return _like(t, np.where(ages >= 1, 1.0 - self.survival(np.maximum(ages, 1.0)), 0.0))

    @property
    @abstractmethod
    def exact_mean(self) -> float:
        """E[X]."""

    @property
    def mean(self) -> float:
        """E[D] = E[ceil(X)]: a sum, or E[X] + 1/2 where that is exact to nine digits.

        In time it is E[X].
        """
        if self.in_time:
            return self.exact_mean
        if self.exact_mean > 1e9:
            return self.exact_mean + 0.5
        return sum_survival(self.survival)


@dataclass(frozen=True)
class ShapedLaw(ContinuousLaw):
    """A law of a shape, which is a number, and a scale, which may be a duration."""

    largest_shape: ClassVar[float | None] = None
    shape: float
    scale: float | Duration

    def __post_init__(self) -> None:
        shape = checks.number("shape", self.shape, above=0, most=self.largest_shape)
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "scale", checks.length("scale", self.scale))

    @property
    def unit(self) -> float | Duration:
        """The scale."""
        return self.scale


@named("law", "weibull")
@dataclass(frozen=True)
class Weibull(ShapedLaw):
    """A Weibull delay. In ticks it is rounded up.

    Parameters
    ----------
    shape : float
        A number above 0.
    scale : float, Duration or str
        A number of ticks, or a duration for a law in time.

    Examples
    --------
    >>> round(Weibull(1.0, 100.0).cdf(100), 4)
    0.6321
    """

    @property
    def exact_mean(self) -> float:
        """E[X] = scale · Gamma(1 + 1 / shape)."""
        if self.shape < 1e-3:
            return math.inf  # Gamma(1001) overflows a float
        log = math.log(self.scale) + math.lgamma(1.0 + 1.0 / self.shape)
        return math.exp(log) if log < 700 else math.inf

    def survival(self, x: Floats) -> Floats:
        """P(X > x) = exp(-(x / scale)^shape)."""
        with np.errstate(over="ignore"):  # (x / scale)^shape past 1e308: the survival is 0
            return np.asarray(np.exp(-((x / self.scale) ** self.shape)))

    def arrived(self, x: Floats) -> Floats:
        """P(X <= x) = 1 - exp(-(x / scale)^shape)."""
        with np.errstate(over="ignore"):
            return np.asarray(-np.expm1(-((x / self.scale) ** self.shape)))

    def invert(self, q: Floats) -> Floats:
        """scale · (-log(1 - q))^(1 / shape)."""
        with np.errstate(over="ignore"):
            return np.asarray(self.scale * (-np.log1p(-q)) ** (1.0 / self.shape))


@named("law", "pareto")
@dataclass(frozen=True)
class Pareto(ShapedLaw):
    """A Pareto delay of the second kind (Lomax). In ticks it is rounded up.

    The tail falls like x^-shape. With a shape of at most 1 the mean is infinite, although every
    conversion comes.

    Parameters
    ----------
    shape : float
        A number above 0.
    scale : float, Duration or str
        A number of ticks, or a duration for a law in time.

    Examples
    --------
    >>> Pareto(1.0, 100.0).cdf(100), Pareto(1.0, 100.0).mean, Pareto(3, "10m").mean
    (0.5, inf, 300.0)
    """

    @property
    def exact_mean(self) -> float:
        """E[X] = scale / (shape - 1), infinite for a shape of at most one."""
        return float(self.scale) / (self.shape - 1.0) if self.shape > 1 else math.inf

    @property
    def mean(self) -> float:
        """E[D]: in ticks a sum, whose tail is Euler's and Maclaurin's; blocks die out too late."""
        if self.in_time or math.isinf(self.exact_mean):
            return self.exact_mean
        head = float(np.sum(self.survival(np.arange(float(_HEAD)))))
        last, reach = float(self.survival(np.asarray(float(_HEAD)))), _HEAD + self.scale
        return head + last * (reach / (self.shape - 1.0) + 0.5 + self.shape / (12.0 * reach))

    def survival(self, x: Floats) -> Floats:
        """P(X > x) = (1 + x / scale)^-shape."""
        return np.asarray(np.exp(-self.shape * np.log1p(x / self.scale)))

    def arrived(self, x: Floats) -> Floats:
        """P(X <= x) = 1 - (1 + x / scale)^-shape."""
        return np.asarray(-np.expm1(-self.shape * np.log1p(x / self.scale)))

    def invert(self, q: Floats) -> Floats:
        """scale · ((1 - q)^(-1 / shape) - 1)."""
        with np.errstate(over="ignore"):
            return np.asarray(self.scale * np.expm1(-np.log1p(-q) / self.shape))


@named("law", "exponential")
@dataclass(frozen=True, repr=False)
class Exponential(ContinuousLaw):
    """An exponential delay. In ticks it is rounded up to a whole tick.

    Parameters
    ----------
    mean : float, Duration or str
        The mean before rounding. With a duration, such as ``"2h"``, the law is in time.

    Examples
    --------
    >>> Exponential("2h").cdf("2h") == Exponential(100).cdf(100)
    True
    >>> Exponential("2h").mean, round(Exponential(100).mean, 3)
    (7200.0, 100.501)
    """

    unit_mean: float | Duration = field(metadata={"argument": "mean"})

    def __init__(self, mean: Any) -> None:
        object.__setattr__(self, "unit_mean", checks.length("mean", mean))

    def __repr__(self) -> str:
        return f"Exponential(mean={self.unit_mean!r})"

    @property
    def unit(self) -> float | Duration:
        """The mean of X."""
        return self.unit_mean

    @property
    def exact_mean(self) -> float:
        """E[X]."""
        return float(self.unit_mean)

    @property
    def mean(self) -> float:
        """E[D]: in ticks 1 / (1 - exp(-1 / E[X])), since the time is rounded up."""
        return self.exact_mean if self.in_time else -1.0 / math.expm1(-1.0 / self.exact_mean)

    def survival(self, x: Floats) -> Floats:
        """P(X > x) = exp(-x / E[X])."""
        return np.asarray(np.exp(-x / self.unit_mean))

    def arrived(self, x: Floats) -> Floats:
        """P(X <= x) = 1 - exp(-x / E[X])."""
        return np.asarray(-np.expm1(-x / self.unit_mean))

    def invert(self, q: Floats) -> Floats:
        """E[X] · -log(1 - q)."""
        return np.asarray(self.unit_mean * -np.log1p(-q))


@named("law", "gamma")
@dataclass(frozen=True)
class Gamma(ShapedLaw):
    """A gamma delay. In ticks it is rounded up.

    Parameters
    ----------
    shape : float
        A number above 0.
    scale : float, Duration or str
        A number of ticks, or a duration for a law in time.

    Examples
    --------
    >>> Gamma(2, "10m").mean, round(Gamma(1, 100).cdf(100), 4)
    (1200.0, 0.6321)
    """

    largest_shape: ClassVar[float | None] = 1e6  # beyond it, it spreads by less than 0.1 %

    @property
    def exact_mean(self) -> float:
        """E[X] = shape · scale."""
        return self.shape * self.scale

    def survival(self, x: Floats) -> Floats:
        """P(X > x) = Q(shape, x / scale), the regularised upper incomplete gamma function."""
        from scipy.special import gammaincc

        return np.asarray(gammaincc(self.shape, x / float(self.scale)))

    def arrived(self, x: Floats) -> Floats:
        """P(X <= x) = P(shape, x / scale), the regularised lower incomplete gamma function."""
        from scipy.special import gammainc

        return np.asarray(gammainc(self.shape, x / float(self.scale)))

    def invert(self, q: Floats) -> Floats:
        """scale times the inverse of P(shape, ·), taken from the smaller of the two tails."""
        from scipy.special import gammainccinv, gammaincinv

        lower, upper = gammaincinv(self.shape, q), gammainccinv(self.shape, 1.0 - q)
        return np.asarray(self.scale * np.where(q < 0.5, lower, upper))


@named("law", "log-normal")
@dataclass(frozen=True)
class LogNormal(ContinuousLaw):
    """A log-normal delay. In ticks it is rounded up.

    Parameters
    ----------
    median : float, Duration or str
        A number of ticks, or a duration for a law in time.
    sigma : float
        The standard deviation of the logarithm, above 0.

    Examples
    --------
    >>> LogNormal(100.0, 1.5).cdf(100)
    0.5
    """

    median: float | Duration
    sigma: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "median", checks.length("median", self.median))
        object.__setattr__(self, "sigma", checks.number("sigma", self.sigma, above=0))

    @property
    def unit(self) -> float | Duration:
        """The median."""
        return self.median

    @property
    def exact_mean(self) -> float:
        """E[X] = median · exp(sigma^2 / 2)."""
        log = math.log(self.median) + self.sigma * self.sigma / 2
        return math.exp(log) if log < 700 else math.inf

    def survival(self, x: Floats) -> Floats:
        """P(X > x) = 1 - Phi(log(x / median) / sigma)."""
        return self._tail(x, -1.0)

    def arrived(self, x: Floats) -> Floats:
        """P(X <= x) = Phi(log(x / median) / sigma)."""
        return self._tail(x, 1.0)

    def invert(self, q: Floats) -> Floats:
        """median · exp(sigma · Phi^-1(q))."""
        from scipy.special import ndtri

        with np.errstate(over="ignore"):
            return np.asarray(self.median * np.exp(self.sigma * ndtri(np.minimum(q, _ALMOST))))

    def _tail(self, x: Floats, sign: float) -> Floats:
        from scipy.special import ndtr

        return np.asarray(ndtr(sign * np.log(x / self.median) / self.sigma))
