"""The time of a player that goes by the clock."""

from __future__ import annotations

import math
import time
import warnings
from typing import Any

from duelay._core import timestamps
from duelay._core.duration import DAY, in_brief
from duelay.errors import InvalidValueError

CLOCKS = ("wall",)
_MAX_AHEAD = 1.0  # seconds by which the clocks of two machines may differ
_MIN_PLAUSIBLE = 1e8  # seconds: March 1973; a smaller number is hardly a time since the epoch
OLD = "old"
_UNITS = {1: "milliseconds: divide by 1000", 2: "microseconds: divide by 1e6"}


class Clock:
    """Seconds since the epoch, in whole microseconds.

    The clock never runs backwards, and counts the times that were before the latest one.
    """

    def __init__(self) -> None:
        self.now = -math.inf  # the latest time known
        self.is_own = False  # whether that was read here, since none was given
        self.backwards = 0
        self.furthest = 0.0  # seconds: the largest distance of such a time
        self.warned: tuple[str, ...] = ()  # what has been warned of

    def read(self, at: Any) -> float:
        """Return a time: seconds since the epoch, an aware datetime, or None for now.

        A time before the latest one known is taken for the latest one.
        """
        wall = time.time()
        seconds = round(wall, 6) if at is None else timestamps.seconds("at", at)
        if seconds > wall + _MAX_AHEAD:
            _refuse(at, seconds, wall)
        if seconds < _MIN_PLAUSIBLE:
            self._doubt(
                OLD,
                f"at={at!r} is in {timestamps.iso(seconds)[:4]}, as seconds since the epoch: give "
                "time.time() or an aware datetime; for ticks, start the player without a clock",
            )
        if seconds < self.now:
            self.backwards += 1
            self.furthest = max(self.furthest, self.now - seconds)
            if self.is_own and self.now - seconds > DAY:
                self._doubt(
                    "behind",
                    f"at={at!r} is {in_brief(self.now - seconds)} before the latest time known, "
                    f"and taken for that: {what_froze(self.now)}",
                )
        elif seconds > self.now:
            self.now, self.is_own = seconds, at is None
        return self.now

    def _doubt(self, what: str, words: str) -> None:
        """Warn once."""
        if what not in self.warned:
            self.warned += (what,)
            warnings.warn(words, stacklevel=5)


def what_froze(now: float) -> str:
    """Say why a time is taken for now, and what to do."""
    return (
        "a call without `at`, which is then now, has set the clock to "
        f"{timestamps.iso(now)}; to fill in the past start anew and give `at` in every call"
    )


def _refuse(at: Any, seconds: float, wall: float) -> None:
    unit = _UNITS.get(round(math.log(seconds / wall, 1000)))
    if unit is not None and seconds > 100 * wall:
        raise InvalidValueError(
            f"at must be seconds since the epoch, got {at!r}, which looks like {unit}"
        )
    raise InvalidValueError(
        f"at must not lie in the future, got {at!r}, {seconds - wall:,.1f} seconds from now: it is "
        f"seconds since the epoch, by a clock that is at most {_MAX_AHEAD:g} second ahead"
    )
