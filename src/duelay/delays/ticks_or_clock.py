"""Ticks or time: a window or a law in time needs a clock, and is refused where there is none."""

from __future__ import annotations

from typing import Any

from duelay import text
from duelay._core import checks
from duelay._core.duration import Duration
from duelay.delays.base import Law
from duelay.delays.by_pair import ByPair
from duelay.errors import InvalidValueError

WAYS = ("learn", "learn-from-self-duels")  # to know a law without being told
LEARNING_WINDOW = 10_000  # ticks: the window where a law is learned and none is given


def check_clock(policy: Any, *, has_clock: bool) -> None:
    """Refuse a policy whose window or delay law is in time, unless there is a clock.

    With a clock, refuse a window or a law in ticks.
    """
    window, delay = checks.window(getattr(policy, "window", None)), getattr(policy, "delay", None)
    if not has_clock:
        refuse_time("window", window)
        refuse_time("delay", delay)
        return
    refuse_rounds("clock", policy)
    if window is not None and not is_in_time(window) and not _is_default(policy):
        raise InvalidValueError(
            f"window {window} is in ticks, and there is a clock: write a duration, such as "
            "'14d', or None for no limit",
            argument="window",
        )
    if isinstance(delay, Law | ByPair) and not delay.in_time:
        raise InvalidValueError(
            f"delay {delay} is in ticks, and there is a clock: write a law in time, such as "
            "'exponential:2h' or 'never:0.2,(log-normal:10m,1)'",
            argument="delay",
        )


def refuse_rounds(name: str, policy: Any) -> None:
    """Refuse a policy that counts ticks whatever happens, where there is a clock or traffic."""
    if not getattr(policy, "goes_by_clock", True):
        raise InvalidValueError(
            f"{name} does not fit {policy}, whose rounds are counted in ticks: `recommend` gives a "
            "policy that goes by the clock",
            argument=name,
        )


def in_time(policy: Any) -> Duration | None:
    """Return the window of a policy that goes by the clock; None to wait for ever."""
    window = policy.window
    return window if isinstance(window, Duration) else None


def _is_default(policy: Any) -> bool:
    """Whether a window in ticks is the default of a policy that learns its law."""
    return policy.delay in WAYS and policy.window == LEARNING_WINDOW


def in_ticks(window: int | Duration | None) -> int | None:
    """Return a window in ticks; refuse one in time."""
    refuse_time("window", window)
    return None if window is None else int(window)


def refuse_time(name: str, value: Any) -> None:
    """Refuse a window or a delay law that is in time, where ticks are counted."""
    if is_in_time(value):
        raise InvalidValueError(
            f"{name} {value} is in time, and ticks are counted here: a {name} in time needs a "
            "player whose clock is 'wall', or a simulation with traffic such as poisson:10s",
            argument=name,
        )


def is_in_time(value: Any) -> bool:
    """Whether a window, a law or the text of a law is in time."""
    if isinstance(value, str) and value.partition(":")[0].strip() in text.names("law"):
        value = text.parse("law", value)
    return isinstance(value, Duration) or (isinstance(value, Law | ByPair) and value.in_time)
