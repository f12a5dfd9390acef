"""The time of a player that goes by the clock."""

from __future__ import annotations

import datetime
import math
import numbers
import time
from typing import Any

from duelay.delays.units import check_clock
from duelay.ledger import Ledger
from duelay.rules.mrr_db import MRRDBRule

CLOCKS = ("wall",)
_SLACK = 1.0  # seconds: two machines' clocks may differ by as much


def ledger_by_clock(policy: Any, n_arms: int) -> Ledger:
    """Return an empty ledger in time; refuse a policy that cannot go by the clock."""
    check_clock(policy, has_clock=True)
    if isinstance(policy.rule(n_arms), MRRDBRule):
        raise ValueError(
            f"clock does not fit {policy}, whose rounds are counted in ticks: recommend() gives a "
            "policy that goes by the clock"
        )
    ledger: Ledger = policy.ledger(n_arms, by_clock=True)
    return ledger


class Clock:
    """Seconds since the epoch; it never runs backwards, and counts how often somebody tried."""

    def __init__(self) -> None:
        self.now = -math.inf  # the latest time known
        self.backwards = 0

    def read(self, at: Any) -> float:
        """Return a time: seconds since the epoch, an aware datetime, or None for now.

        One before the latest time known is taken for that.
        """
        wall = time.time()
        seconds = wall if at is None else _seconds(at)
        if seconds > wall + _SLACK:
            raise ValueError(
                f"at must not lie in the future, got {at!r}, {seconds - wall:,.0f} seconds from "
                "now: it is seconds since the epoch, and not milliseconds"
            )
        if seconds < self.now:
            self.backwards += 1
        self.now = max(self.now, seconds)
        return self.now


def _seconds(at: Any) -> float:
    if isinstance(at, datetime.datetime):
        if at.tzinfo is None:
            raise ValueError(
                f"at must be a datetime with its time zone, such as datetime.now(timezone.utc), "
                f"got {at!r}"
            )
        return at.timestamp()
    is_number = isinstance(at, numbers.Real) and not isinstance(at, bool)
    if not is_number or not math.isfinite(at):
        raise ValueError(
            f"at must be seconds since the epoch, an aware datetime, or None for now, got {at!r}"
        )
    return float(at)
