"""Points in time: seconds since the epoch, in whole microseconds, and as ISO 8601 in UTC.

A float of seconds tells microseconds apart, and not much less. So times are kept in whole ones:
differences, sums and texts of them are then exact.
"""

from __future__ import annotations

import datetime
import math
import numbers
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duelay.errors import InvalidValueError

SUCH_AS = "a time with its time zone, such as 2026-11-16T12:00:00Z"
FURTHEST = 1e11  # seconds: the year 5138, and in milliseconds 1973
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_TICK = datetime.timedelta(microseconds=1)


def seconds(name: str, at: Any) -> float:
    """Return a time that is given as seconds since the epoch, or as an aware datetime."""
    if isinstance(at, datetime.datetime):
        if at.tzinfo is None:
            raise InvalidValueError(
                f"{name} must be a datetime with its time zone, such as "
                f"datetime.now(timezone.utc), got {at!r}",
                argument=name,
            )
        return (at - _EPOCH) // _TICK / 1e6
    is_number = isinstance(at, numbers.Real) and not isinstance(at, bool)
    if not is_number or not math.isfinite(at):
        raise InvalidValueError(
            f"{name} must be seconds since the epoch, an aware datetime, or None for now, got "
            f"{at!r}",
            argument=name,
        )
    return round(float(at), 6)


def microseconds(at: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return seconds as whole microseconds; there must be no nan among them."""
    full = np.floor(at)
    parts = np.rint((at - full) * 1e6).astype(np.int64)
    return np.asarray(full.astype(np.int64) * 1_000_000 + parts)


def whole(at: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return seconds, or differences of them, in whole microseconds; nan stays nan."""
    known = ~np.isnan(at)
    return np.where(known, microseconds(np.where(known, at, 0.0)) / 1e6, np.nan)


def read(name: str, text: str) -> int:
    """Return the microseconds since the epoch of a text; the sentence of a refusal has the name."""
    try:
        at = datetime.datetime.fromisoformat(text.strip())
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        raise InvalidValueError(f"{name} must be {SUCH_AS}, got {text!r}", argument=name)
    return (at - _EPOCH) // _TICK


def iso(at: float) -> str:
    """Return a time as text, to the second."""
    return str(np.datetime_as_string(np.datetime64(math.floor(at), "s"), timezone="UTC"))


def write(at: NDArray[np.float64]) -> list[str]:
    """Return seconds as texts, and nan as an empty one."""
    known = ~np.isnan(at)
    stamps = microseconds(np.where(known, at, 0.0)).astype("datetime64[us]")
    texts = np.datetime_as_string(stamps, unit="us", timezone="UTC")
    return list(np.where(known, texts, "").tolist())
