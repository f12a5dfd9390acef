"""Ticks or time: what is in time needs a clock, and is refused where there is none."""

from __future__ import annotations

from typing import Any

from duelay import text
from duelay._core import checks
from duelay._core.duration import Duration
from duelay.delays._law import Law
from duelay.delays.by_pair import ByPair

_CLOCK = 'start(..., clock="wall")'


def check_clock(policy: Any, *, has_clock: bool) -> None:
    """Refuse a policy whose window or delay law is in time, unless there is a clock."""
    if has_clock:
        return
    refuse_time("window", checks.window(getattr(policy, "window", None)))
    refuse_time("delay", getattr(policy, "delay", None))


def in_ticks(window: int | Duration | None) -> int | None:
    """Return a window in ticks; refuse one in time."""
    refuse_time("window", window)
    return None if window is None else int(window)


def refuse_time(name: str, value: Any) -> None:
    """Refuse a window or a delay law that is in time, where ticks are counted."""
    if is_in_time(value):
        raise ValueError(
            f"{name} {value} is in time, and ticks are counted here: a {name} in time needs a "
            f"clock, {_CLOCK}"
        )


def is_in_time(value: Any) -> bool:
    """Whether a window, a law or the text of a law is in time."""
    if isinstance(value, str) and value.partition(":")[0].strip() in text.names("law"):
        value = text.parse("law", value)
    return isinstance(value, Duration) or (isinstance(value, Law | ByPair) and value.in_time)
