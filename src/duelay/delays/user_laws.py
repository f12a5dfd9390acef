"""Checks of a law that a user defines: it may be any class, and its cdf any function."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from duelay._core.arrays import Floats
from duelay.delays.base import Law
from duelay.delays.by_pair import ByPair
from duelay.delays.never import Never
from duelay.errors import InvalidValueError

_OURS = f"{__package__}."
# In ticks whole numbers, as everywhere; t³ has room in 64 bits up to the last of them.
_TICKS = np.unique(np.concatenate((np.arange(64), np.geomspace(64, 2**20, 43).astype(np.int64))))
_SECONDS = np.geomspace(1e-3, 1e9, 61)
_ROUNDING = 1e-12  # of a sum of exponentials, say
_TOP_ROUNDING = 1e-9  # of shares: a user may have typed both ends by hand
_FAR = 2.0 ** np.arange(40, 50)  # a heavy tail still rises here, and what stays has ended


def check_own(delay: Law | ByPair) -> None:
    """Refuse a user's law that cannot be used as a law, before the first duel.

    Laws of ours are not looked at, but what is within them is.
    """
    laws = {id(law): law for law in (delay.laws if isinstance(delay, ByPair) else [delay])}
    for law in laws.values():
        inner = law
        while isinstance(inner, Never):
            inner = inner.law
        if not type(inner).__module__.startswith(_OURS):
            _check(inner)


def check_rises(law: Law, ages: NDArray[Any], chances: NDArray[Any], rounding: float = 0.0) -> None:
    """Refuse a law whose chances, of rising ages, are none or fall; say at which age."""
    outside = ~((chances >= -rounding) & (chances <= 1 + rounding))  # also nan
    if not law.in_time:
        outside |= (ages == 0) & (chances != 0)
    falls = np.append(False, np.diff(chances) < -rounding)
    wrong = np.flatnonzero(outside | falls)
    if not wrong.size:
        return
    at = int(wrong[0])
    unit = " seconds" if law.in_time else ""
    here = f"at age {ages[at]:g}{unit}"
    if outside[at]:
        got = f"{chances[at]:g} {here}"
    else:
        before, after = _as_different(chances[at - 1], chances[at])
        got = f"a fall from {before} at age {ages[at - 1]:g}{unit} to {after} {here}"
    start = "rises from at least 0" if law.in_time else "is 0 at age 0 and rises"
    raise InvalidValueError(
        f"delay must have a cdf that {start} to at most 1, got {got} from {law}", argument="delay"
    )


def _check(law: Law) -> None:
    try:
        hash(law)
    except TypeError:
        raise InvalidValueError(
            f"delay must be hashable, as a frozen dataclass is: write @dataclass(frozen=True) "
            f"above {type(law).__name__}",
            argument="delay",
        ) from None
    _chances(law, np.arange(3))
    ages = _SECONDS if law.in_time else _TICKS
    try:
        chances = _chances(law, ages)
    except (IndexError, ArithmeticError):
        return  # it ends somewhere: a duel that gets there will say so
    check_rises(law, ages, chances, _ROUNDING)
    _check_top(law, ages, chances)


def _check_top(law: Law, ages: NDArray[Any], chances: Floats) -> None:
    """Refuse a law whose cdf ends elsewhere than at 1 - never, the share that ever comes."""
    try:
        far = _chances(law, _FAR)
    except (InvalidValueError, IndexError, ArithmeticError):  # a table has no such ages
        far = chances
    if far[0] < chances[-1]:  # its arithmetic has no room for them
        far = chances
    far = far[-10:]
    top, end = 1.0 - law.never, float(far[-1])
    stays = bool((far == end).all()) and end < top - _TOP_ROUNDING
    if stays or max(end, chances[-1]) > top + _TOP_ROUNDING:
        raise InvalidValueError(
            f"delay must have a cdf that rises to 1 - never, the share of answers that ever come: "
            f"it is {end:g} in the end, and never is {law.never:g}; give {type(law).__name__} a "
            f"property never that returns {max(1.0 - end, 0.0):g}, or let its cdf rise to {top:g}",
            argument="delay",
        )


def _chances(law: Law, ages: NDArray[Any]) -> Floats:
    needs = (
        f"delay must have a cdf that takes an array of ages and returns as many chances, as "
        f"np.where does: that of {type(law).__name__}"
    )
    try:
        with np.errstate(all="ignore"):
            chances = np.asarray(law.cdf(ages), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidValueError(f"{needs} does not, {error}") from error
    if chances.shape != ages.shape:
        few = {3: "three"}.get(len(ages), str(len(ages)))
        raise InvalidValueError(f"{needs} returns {chances} for {few}")
    return chances


def _as_different(before: float, after: float) -> tuple[str, str]:
    """Print two numbers with as many digits as it takes to see that they differ."""
    short = f"{before:g}", f"{after:g}"
    return short if short[0] != short[1] else (f"{before:.17g}", f"{after:.17g}")
