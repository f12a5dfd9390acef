"""How often duels come, and how long the duels that are left will take, in words."""

from __future__ import annotations

import numpy as np
from sqlalchemy import Connection, select

from duelay.inference.forecast import DuelsLeft
from duelay.live.state import ExperimentState
from duelay.live.storage import schema
from duelay.live.storage.schema import MICRO
from duelay.live.storage.time_series import Totals, asked_since, read_totals

DAY = 86_400.0
_YEAR = 365.25 * DAY
UNITS = ((_YEAR, "year"), (30.44 * DAY, "month"), (7 * DAY, "week"), (DAY, "day"),
         (3600.0, "hour"), (60.0, "minute"))  # fmt: skip
_MINUTE = 60.0
_MAX_SECONDS = 100 * _YEAR
_MAX_RATIO_OF_ONE_NUMBER = 3  # a wider interval of times is shown by its two ends
_MIN_GAPS_OF_PAUSE, _MIN_SECONDS_OF_PAUSE = 20, 600.0  # a pause is longer than both


def read_gap(connection: Connection, state: ExperimentState, now: float) -> float | None:
    """Return the mean time between two duels of an experiment, as `usual_gap` does."""
    id = state.settings.id
    if state.head["asked"] == 0:
        return None
    today = asked_since(connection, id, round((now - DAY) * MICRO))
    last = read_last_asked(connection, state)
    created = state.settings.created / MICRO
    return usual_gap(read_totals(connection, id), today, last, created=created, now=now)


def read_last_asked(connection: Connection, state: ExperimentState) -> int | None:
    """Return when the last duel was asked, in microseconds; None where its row is gone."""
    duels = schema.duels
    found = connection.execute(
        select(duels.c.asked).where(
            duels.c.experiment == state.settings.id, duels.c.number == state.head["asked"]
        )
    ).scalar()
    return None if found is None else int(found)


def usual_gap(
    totals: Totals, today: int, last: int | None, *, created: float, now: float
) -> float | None:
    """Return the mean time between two duels of the last 24 hours; None if no duels come now.

    Pauses do not count.

    Parameters
    ----------
    totals : counts by time since the experiment began.
    today : the number of duels of the last 24 hours.
    last : when the last duel was asked, in microseconds.
    created, now : seconds since the epoch.
    """
    since = max(now - DAY, created)
    whole = now - since
    if today == 0 or last is None or whole <= 0:
        return None
    longest = max(_MIN_GAPS_OF_PAUSE * whole / today, _MIN_SECONDS_OF_PAUSE)
    ends = np.minimum(totals.start + totals.width, now)
    lengths = np.maximum(ends - np.maximum(totals.start, since), 0.0)
    is_empty = totals.asked == 0
    for lasts in np.split(np.where(is_empty, lengths, 0.0), np.flatnonzero(~is_empty)):
        whole -= lasts.sum() if lasts.sum() > longest else 0.0
    gap = float(whole / today)
    is_over = now - last / MICRO > max(_MIN_GAPS_OF_PAUSE * gap, _MIN_SECONDS_OF_PAUSE)
    return None if is_over else gap


def time_left(left: DuelsLeft, gap: float | None) -> str:
    """Return how long the duels left take, at `gap` seconds a duel; empty without traffic.

    >>> time_left(DuelsLeft(1000, 1500, 2000), 60.0), time_left(DuelsLeft(1000, 9000, 900000), 60.0)
    ('about 1 day', '17 hours to more than a year')
    """
    if gap is None or left.high == 0:
        return ""
    low, middle, high = (n * gap for n in left)
    if high < _MINUTE:
        return "less than a minute"
    if high >= _YEAR:  # nobody plans for longer
        is_open = low >= _YEAR or low < _MINUTE
        return "more than a year" if is_open else f"{format_length(low)} to more than a year"
    if min(low, middle) < _MINUTE:
        return f"up to {format_length(high)}"
    return (
        f"about {format_length(middle)}"
        if high <= _MAX_RATIO_OF_ONE_NUMBER * low
        else format_range(low, high)
    )


def format_range(low: float, high: float) -> str:
    """Return a range of lengths of time as text.

    >>> format_range(7200, 5 * 3600), format_range(7200, 3 * 86400)
    ('2 to 5 hours', '2 hours to 3 days')
    """
    one, other = format_length(low), format_length(high)
    if one == other:
        return f"about {one}"
    unit = one.split(" ", 1)[1]
    if unit.rstrip("s") == other.split(" ", 1)[1].rstrip("s"):
        one = one.split(" ", 1)[0]
    return f"{one} to {other}"


def format_length(seconds: float) -> str:
    """Return a length of time as text, in one unit.

    >>> [format_length(seconds) for seconds in (30, 60, 5400, 86400, 3.2 * 86400, 1e12)]
    ['less than a minute', '1 minute', '90 minutes', '1 day', '3 days', 'more than 100 years']
    """
    if seconds >= _MAX_SECONDS:
        return "more than 100 years"
    for size, name in UNITS:
        n = round(seconds / size)
        is_one = abs(seconds / size - 1.0) <= 0.05 and name != "week"
        if is_one or seconds >= 1.95 * size or (name == "minute" and n > 0):
            return f"{n} {name}{'s' if n != 1 else ''}"
    return "less than a minute"
