"""Checks of input: a bad value raises one sentence, with its name, what is needed and what came."""

from __future__ import annotations

import difflib
import math
import numbers
import sys
from collections.abc import Iterable
from typing import Any

from duelay._core.duration import Duration, is_duration, read
from duelay.errors import InvalidValueError

_MAX_EXACT_WHOLE = 2**53  # beyond it a float64 cannot hold every whole number


def whole(name: str, value: Any, *, least: int = 1, also: str = "") -> int:
    """Return `value` as an int of at least `least`; `also` names alternatives in the message."""
    good = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if isinstance(value, numbers.Real) and not isinstance(value, bool | numbers.Integral):
        good = math.isfinite(value) and float(value).is_integer()
    if not good or isinstance(value, Duration) or value < least:
        needs = f"{also}a whole number of at least {least}"
        raise InvalidValueError(f"{name} must be {needs}, got {value!r}", argument=name)
    if value > _MAX_EXACT_WHOLE:
        raise InvalidValueError(f"{name} must be at most 2^53, got {value!r}", argument=name)
    return int(value)


def window(value: Any) -> int | Duration | None:
    """Return a window: None, a whole number of ticks, or a duration."""
    if value is None or is_duration(value):
        return None if value is None else duration("window", value)
    return whole("window", value, also="None (wait for ever) or ")


def duration(name: str, value: Any) -> Duration:
    """Return a duration, given as one, as a timedelta or as its text."""
    return read(name, value)


def length(name: str, value: Any) -> float | Duration:
    """Return a length above 0: a plain number is one of ticks, anything else a duration."""
    return duration(name, value) if is_duration(value) else number(name, value, above=0)


def mean_delay(value: Any) -> float:
    """Return the mean delay, from which the rounds of MRR-DB-Delay are computed."""
    mean = number("mean_delay", value, least=1, why="the law's mean")
    if mean > _MAX_EXACT_WHOLE:
        raise InvalidValueError(
            f"mean_delay must be at most 2^53 (ticks), got {value!r}", argument="mean_delay"
        )
    return mean


def number(
    name: str,
    value: Any,
    *,
    above: float | None = None,
    least: float | None = None,
    most: float | None = None,
    below: float | None = None,
    why: str = "",
) -> float:
    """Return `value` as a finite float within the bounds given."""
    words = [
        f"greater than {above:g}" if above is not None else "",
        f"at least {least:g}" if least is not None else "",
        f"at most {most:g}" if most is not None else "",
        f"less than {below:g}" if below is not None else "",
    ]
    needs = " and ".join(word for word in words if word)
    reason = f" ({why})" if why else ""
    good = isinstance(value, numbers.Real) and not isinstance(value, bool)
    good = good and not isinstance(value, Duration)
    if not good or not abs(value) <= sys.float_info.max:  # also refuses nan
        bounds = f" {needs}" if needs else ""
        raise InvalidValueError(
            f"{name} must be a finite number{bounds}{reason}, got {value!r}", argument=name
        )
    if (
        (above is not None and not value > above)
        or (least is not None and not value >= least)
        or (most is not None and not value <= most)
        or (below is not None and not value < below)
    ):
        raise InvalidValueError(f"{name} must be {needs}{reason}, got {value!r}", argument=name)
    return float(value)


def share(name: str, value: Any) -> float:
    """Return a share between 0 and 1, also of a text such as "5%"."""
    if isinstance(value, str):
        word = value.strip()
        digits = word.removesuffix("%").strip()
        if not is_number(digits):
            raise InvalidValueError(
                f"{name} must be a number or a text such as '5%', got {value!r}", argument=name
            )
        value = float(digits) / (100.0 if word.endswith("%") else 1.0)
    return number(name, value, above=0, below=1)


def yes_or_no(name: str, value: Any) -> bool:
    """Return `value` if it is True or False."""
    if isinstance(value, bool):
        return value
    raise InvalidValueError(f"{name} must be True or False, got {value!r}", argument=name)


def one_of(name: str, value: Any, allowed: Iterable[str]) -> str:
    """Return `value` if it is among the allowed words; otherwise raise with the list of them."""
    words = list(allowed)
    if value in words:
        return str(value)
    listed = ", ".join(words)
    raise InvalidValueError(
        f"{name} must be one of {listed}{nearest(value, words)}, got {value!r}", argument=name
    )


def is_number(word: str) -> bool:
    """Whether a text is a number."""
    try:
        float(word)
    except ValueError:
        return False
    return True


def frozen(name: str, recipe: Any) -> None:
    """Refuse a dataclass that can be changed after it was given."""
    params = getattr(recipe, "__dataclass_params__", None)
    if params is not None and not params.frozen:
        raise InvalidValueError(
            f"{name} must be a frozen dataclass: write @dataclass(frozen=True) above "
            f"{type(recipe).__name__}",
            argument=name,
        )


def nearest(value: Any, words: Iterable[str]) -> str:
    """Return " (did you mean ...?)", or nothing where no word is near."""
    close = difflib.get_close_matches(str(value).lower(), list(words), n=1)
    return f" (did you mean {close[0]}?)" if close else ""
