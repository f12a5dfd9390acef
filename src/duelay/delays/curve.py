"""A delay law in time that is given by points: the share that has come by each of some ages."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from duelay._core import checks, duration
from duelay._core.arrays import Floats
from duelay._core.duration import Duration
from duelay.delays.base import Law, _like, ages_of
from duelay.errors import InvalidValueError
from duelay.text import named

_MAX_PRINTED = 50  # points that are printed
_NO_TEXT = {"has_text": False}


@named("law", "curve")
@dataclass(frozen=True, repr=False)
class Curve(Law):
    """A law in time that is given by points of its distribution function.

    The share grows linearly between two ages, and from 0 at age 0. The rest after the last age
    never comes.

    Parameters
    ----------
    ages : tuple of Duration
        Durations or seconds, rising.
    shares : tuple of float
        The share that has come by each age, from 0 to 1 and never falling.
    lower, upper : tuple of float, optional
        Bounds of the shares if these are estimates. They do not count when two laws are compared,
        and are not part of the text form.

    Examples
    --------
    >>> law = Curve(["1m", "10m", "1h"], [0.2, 0.5, 0.8])
    >>> law.cdf(["30s", "10m", "2h"]), law.quantile(0.5), round(law.never, 12)
    (array([0.1, 0.5, 0.8]), 600.0, 0.2)
    >>> str(law)
    'curve:1m/10m/1h,0.2/0.5/0.8'
    """

    ages: tuple[Duration, ...]
    shares: tuple[float, ...]
    lower: tuple[float, ...] | None = field(
        default=None, compare=False, kw_only=True, metadata=_NO_TEXT, repr=False
    )
    upper: tuple[float, ...] | None = field(
        default=None, compare=False, kw_only=True, metadata=_NO_TEXT, repr=False
    )

    def __post_init__(self) -> None:
        ages = _ages("ages", self.ages)
        if not len(ages) or not (np.diff(ages) > 0).all():
            raise InvalidValueError(f"ages must rise from one to the next, got {self.ages!r}")
        object.__setattr__(self, "ages", tuple(Duration.of(age) for age in ages.tolist()))
        object.__setattr__(self, "shares", _shares("shares", self.shares, len(ages)))
        if (np.diff(self.shares) < 0).any():
            raise InvalidValueError(
                f"shares must not fall from one age to the next, got {self.shares!r}"
            )
        for name in ("lower", "upper"):
            if getattr(self, name) is not None:
                shares = _shares(name, getattr(self, name), len(ages))
                object.__setattr__(self, name, shares)

    @classmethod
    def of(cls, delays: Any, never: float = 0.0) -> Curve:
        """Return the law of observed delays.

        Parameters
        ----------
        delays : sequence of Duration, str or float
            The delays, in any order; plain numbers are seconds.
        never : float
            The share of all conversions that never comes.

        Examples
        --------
        >>> Curve.of([60, 120, 120, 240], never=0.5)
        Curve(ages=(Duration('1m'), Duration('2m'), Duration('4m')), shares=(0.125, 0.375, 0.5))
        """
        never = checks.number("never", never, least=0, most=1)
        ages, counts = np.unique(_ages("delays", delays), return_counts=True)
        if not len(ages):
            raise InvalidValueError("delays must not be empty")
        shares = (1.0 - never) * (np.cumsum(counts) / counts.sum())
        return cls(tuple(ages.tolist()), tuple(shares.tolist()))

    @property
    def in_time(self) -> bool:
        """Always."""
        return True

    @property
    def never(self) -> float:
        """1 - the last share."""
        return 1.0 - self.shares[-1]

    @property
    def _top(self) -> float:
        return self.shares[-1]  # 1 - never may be a little less

    @property
    def support(self) -> float:
        """The age at which the last conversion has come."""
        return float(self.ages[self.shares.index(self.shares[-1])])

    @property
    def mean(self) -> float:
        """E[D]: the middles of the stretches, each by the share that comes in it."""
        if self.never > 0:
            return math.inf
        ages, shares = self._points()
        return float(np.dot((ages[1:] + ages[:-1]) / 2, np.diff(shares)))

    def cdf(self, t: ArrayLike) -> Any:
        """The share that has come by an age."""
        t = ages_of(self, t)
        return _like(t, np.interp(t, *self._points()))

    def invert(self, q: Floats) -> Floats:
        """The age on the stretch in which the share reaches q first."""
        ages, shares = self._points()
        after = np.clip(np.searchsorted(shares, q), 1, len(shares) - 1)
        rise = shares[after] - shares[after - 1]
        part = np.divide(q - shares[after - 1], rise, out=np.zeros(q.shape), where=rise > 0)
        found = ages[after - 1] + part * (ages[after] - ages[after - 1])
        return np.minimum(found, ages[after])  # rounding may lead past the end

    def _points(self) -> tuple[Floats, Floats]:
        return np.array((0.0, *self.ages)), np.array((0.0, *self.shares))

    def __repr__(self) -> str:
        if len(self.ages) > _MAX_PRINTED:
            return f"Curve({self._in_brief()})"
        return f"Curve(ages={self.ages!r}, shares={self.shares!r})"

    def __str__(self) -> str:
        """Its text form; for many points a summary with a digest, as `Empirical` has it."""
        return f"curve:{self._in_brief()}" if len(self.ages) > _MAX_PRINTED else super().__str__()

    def _in_brief(self) -> str:
        share = 1.0 - self.never
        median = f"median {duration.in_brief(self.quantile(share / 2))}; " if share > 0 else ""
        never = f"{100 * self.never:.3g} % never; " if self.never else ""
        digest = hashlib.sha256(np.array((self.ages, self.shares)).tobytes()).hexdigest()[:8]
        return f"<{len(self.ages)} ages; {median}{never}{digest}>"


def _ages(name: str, values: Any) -> Floats:
    """Return ages in seconds, all above 0."""
    ages = np.atleast_1d(duration.seconds(name, values))
    if ages.ndim != 1 or not (np.isfinite(ages) & (ages > 0)).all():
        raise InvalidValueError(f"{name} must be durations or seconds, all above 0, got {values!r}")
    return ages


def _shares(name: str, values: Sequence[float] | float, n: int) -> tuple[float, ...]:
    """Return n shares, each from 0 to 1."""
    try:
        shares = np.atleast_1d(np.asarray(values, dtype=np.float64))
    except (TypeError, ValueError):
        raise InvalidValueError(f"{name} must be a share for each age, got {values!r}") from None
    if shares.shape != (n,):
        raise InvalidValueError(f"{name} must be {n}, one for each age, got {values!r}")
    if not ((shares >= 0) & (shares <= 1)).all():
        raise InvalidValueError(f"{name} must be at least 0 and at most 1, got {values!r}")
    return tuple(shares.tolist())
