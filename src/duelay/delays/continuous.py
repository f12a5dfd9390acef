"""Delay laws in continuous time, rounded up to the next tick: Weibull and log-normal."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from duelay._core import checks
from duelay._core.jit import kernel
from duelay.delays._law import Floats, Law, _like, sum_survival
from duelay.text import named


class ContinuousLaw(Law):
    """D = ceil(X) for a positive X: tau_t is X's own distribution function at whole t."""

    @abstractmethod
    def survival(self, x: Floats) -> Floats:
        """P(X > x) for x > 0."""

    def cdf(self, t: ArrayLike) -> Any:
        """tau_t = P(X <= t)."""
        t = np.asarray(t)
        ages = np.floor(t).astype(np.float64)
        return _like(t, np.where(ages >= 1, 1.0 - self.survival(np.maximum(ages, 1.0)), 0.0))

    @property
    @abstractmethod
    def exact_mean(self) -> float:
        """E[X]."""

    @property
    def mean(self) -> float:
        """E[D] = E[ceil(X)]: a sum, or E[X] + 1/2 where that is exact to nine digits."""
        if self.exact_mean > 1e9:
            return self.exact_mean + 0.5
        return sum_survival(self.survival)


@named("law", "weibull")
@dataclass(frozen=True)
class Weibull(ContinuousLaw):
    """A Weibull time rounded up: a tail heavier than geometric for a shape below one.

    >>> round(Weibull(1.0, 100.0).cdf(100), 4)
    0.6321
    """

    shape: float
    scale: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", checks.number("shape", self.shape, above=0))
        object.__setattr__(self, "scale", checks.number("scale", self.scale, above=0))

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


@named("law", "log-normal")
@dataclass(frozen=True)
class LogNormal(ContinuousLaw):
    """A log-normal time rounded up: half come by `median`; `sigma` is the spread of its logarithm.

    >>> LogNormal(100.0, 1.5).cdf(100)
    0.5
    """

    median: float
    sigma: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "median", checks.number("median", self.median, above=0))
        object.__setattr__(self, "sigma", checks.number("sigma", self.sigma, above=0))

    @property
    def exact_mean(self) -> float:
        """E[X] = median · exp(sigma^2 / 2)."""
        log = math.log(self.median) + self.sigma * self.sigma / 2
        return math.exp(log) if log < 700 else math.inf

    def survival(self, x: Floats) -> Floats:
        """P(X > x) = 1 - Phi(log(x / median) / sigma)."""
        z = np.log(x / self.median) / (self.sigma * math.sqrt(2.0))
        answer = np.array(z, dtype=np.float64, order="C")  # a copy; reshape(-1) of it is a view
        _half_erfc(answer.reshape(-1))
        return answer


@kernel
def _half_erfc(z: NDArray[np.float64]) -> None:
    """Put erfc(z) / 2 in the place of z."""
    for index in range(z.size):
        z[index] = 0.5 * math.erfc(z[index])
