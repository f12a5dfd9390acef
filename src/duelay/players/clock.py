"""The time of a player that goes by the clock."""

from __future__ import annotations

import math
import time
from typing import Any

from duelay._core import times

CLOCKS = ("wall",)
_SLACK = 1.0  # seconds: two machines' clocks may differ by as much


class Clock:
    """Seconds since the epoch, in whole microseconds.

    It never runs backwards, and counts how often somebody tried.
    """

    def __init__(self) -> None:
        self.now = -math.inf  # the latest time known
        self.backwards = 0
        self.furthest = 0.0  # seconds: the most that somebody was behind

    def read(self, at: Any) -> float:
        """Return a time: seconds since the epoch, an aware datetime, or None for now.

        One before the latest time known is taken for that.
        """
        wall = time.time()
        seconds = round(wall, 6) if at is None else times.seconds("at", at)
        if seconds > wall + _SLACK:
            raise ValueError(
                f"at must not lie in the future, got {at!r}, {seconds - wall:,.1f} seconds from "
                "now: it is seconds since the epoch, and not milliseconds, by a clock that is at "
                f"most {_SLACK:g} second ahead"
            )
        if seconds < self.now:
            self.backwards += 1
            self.furthest = max(self.furthest, self.now - seconds)
        self.now = max(self.now, seconds)
        return self.now
