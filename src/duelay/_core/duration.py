"""A length of time, in seconds: read from text such as "14d" or "2h30m", and printed as such."""

from __future__ import annotations

import datetime
import math
import numbers
import re
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duelay.errors import InvalidValueError

MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0  # seconds
SUCH_AS = "a duration such as '14d', '2h30m' or '90s'"

_UNITS = {  # in milliseconds, the largest first
    "w": 604_800_000,
    "d": 86_400_000,
    "h": 3_600_000,
    "m": 60_000,
    "s": 1000,
    "ms": 1,
}
_AMOUNT = r"[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]{1,3})?"
_FORM = re.compile("".join(f"(?:({_AMOUNT}){unit})?" for unit in _UNITS))
_WORDS = {"week": "w", "day": "d", "hour": "h", "minute": "m", "second": "s"}
_SPOKEN = re.compile(f"({_AMOUNT}) ({'|'.join(_WORDS)})s?")
_MAX_TEXT_LENGTH = 100  # characters of a text


class Duration(float):
    """A positive length of time: a float of seconds that keeps its unit.

    Units are w, d, h, m, s and ms, the largest first; a single amount may have a word instead, as
    in ``"3 days"``. Arithmetic gives plain floats, in seconds. A duration equals only other
    durations: a window of 60 ticks is not one of 60 seconds.

    Parameters
    ----------
    length : str, datetime.timedelta or Duration
        The length, such as ``"2h30m"``.

    Examples
    --------
    >>> Duration("2h30m"), float(Duration("2h30m")), str(Duration("90s"))
    (Duration('2h30m'), 9000.0, '1m30s')
    """

    def __new__(cls, length: str | datetime.timedelta | Duration) -> Duration:
        """Read a duration; refuse what is none, or not longer than zero."""
        return read("length", length)

    @classmethod
    def of(cls, seconds: float) -> Duration:
        """Return the duration of a number of seconds.

        Parameters
        ----------
        seconds : float
            The seconds, above 0.
        """
        if not 0 < seconds < math.inf:  # also refuses nan
            raise InvalidValueError(f"seconds must be finite and longer than zero, got {seconds!r}")
        return float.__new__(cls, seconds)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Duration) and float.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = float.__hash__

    def __getnewargs__(self) -> tuple[str]:  # type: ignore[override]
        return (str(self),)  # what pickle and copy make it from

    def __str__(self) -> str:
        """Days, hours, minutes, seconds and milliseconds; seconds alone where these are not exact.

        The digits are those of the float's own shortest form, so `Duration` reads the same bits.
        """
        left = Fraction(float.__repr__(self)) * 1000
        if left.denominator > 1 or left >= 10**17:
            return f"{float.__repr__(self).removesuffix('.0')}s"
        parts, rest = [], int(left)
        for unit, size in list(_UNITS.items())[1:]:  # no weeks: two of them are written 14d
            amount, rest = divmod(rest, size)
            if amount:
                parts.append(f"{amount}{unit}")
        return "".join(parts)

    def __repr__(self) -> str:
        return f"Duration('{self}')"


def in_brief(length: float) -> str:
    """Seconds as a person says them, to about three digits.

    >>> in_brief(9019.9), in_brief(0.25), in_brief(12.34), in_brief(math.inf)
    ('2h30m', '250ms', '12.3s', '∞')
    """
    if not 0 < length < math.inf:
        return "∞" if length > 0 else "0s"
    if length < 1:
        return f"{1000 * length:.3g}ms"
    if length < 60:
        return f"{length:.3g}s"
    finer = 1.0 if length < HOUR else MINUTE if length < DAY else HOUR
    return str(Duration.of(finer * round(length / finer))) if length < 1e9 else f"{length:.3g}s"


def is_duration(value: Any) -> bool:
    """Whether a value is in time by its type: a duration, a timedelta or a text."""
    return isinstance(value, Duration | datetime.timedelta | str)


def read(name: str, value: Any) -> Duration:
    """Return a duration; the sentence that refuses anything else begins with the name."""
    if isinstance(value, Duration):
        return value
    length = _seconds(value)
    if length is None:
        raise InvalidValueError(f"{name} must be {SUCH_AS}, got {value!r}", argument=name)
    if not 0 < length < math.inf:
        raise InvalidValueError(
            f"{name} must be a duration that is finite and longer than zero, got {value!r}",
            argument=name,
        )
    return Duration.of(length)


def seconds(name: str, ages: Any) -> NDArray[np.float64]:
    """Return ages in seconds as an array: numbers are seconds; texts and timedeltas are read."""
    found = np.asarray(ages)
    if found.dtype.kind == "m":
        return np.asarray(found / np.timedelta64(1, "s"))
    if found.dtype.kind not in "UO":
        return found.astype(np.float64)
    each = [_seconds(age) if is_duration(age) else age for age in found.reshape(-1).tolist()]
    if not all(isinstance(age, numbers.Real) for age in each):
        raise InvalidValueError(f"{name} must be seconds or {SUCH_AS}, got {ages!r}", argument=name)
    return np.array(each, dtype=np.float64).reshape(found.shape)


def _seconds(value: Any) -> float | None:
    """The seconds of a text or a timedelta, rounded once; None for anything else."""
    if isinstance(value, Duration):
        return float(value)
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    text = value.strip() if isinstance(value, str) else ""
    if len(text) <= _MAX_TEXT_LENGTH and (spoken := _SPOKEN.fullmatch(text)):
        text = spoken[1] + _WORDS[spoken[2]]
    found = _FORM.fullmatch(text) if 0 < len(text) <= _MAX_TEXT_LENGTH else None
    if found is None:
        return None
    amounts = zip(found.groups(), _UNITS.values(), strict=True)
    length = sum((Fraction(amount) * size for amount, size in amounts if amount), Fraction(0))
    try:
        return float(length / 1000)
    except OverflowError:
        return math.inf
