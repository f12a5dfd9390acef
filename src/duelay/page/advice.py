"""Advice on an experiment: one sentence on the most urgent thing to do."""

from __future__ import annotations

import numpy as np

from duelay._core.duration import Duration
from duelay.inference.alarms import REMARKS
from duelay.inference.forecast import DuelsLeft
from duelay.live.storage.schema import MICRO
from duelay.live.storage.time_series import Totals
from duelay.page.incremental import ExperimentSnapshot
from duelay.page.view_models import Advice

DAY = 86_400.0
_UNITS = ((365.25 * DAY, "year"), (30.44 * DAY, "month"), (7 * DAY, "week"), (DAY, "day"),
          (3600.0, "hour"), (60.0, "minute"))  # fmt: skip
_MINUTE = 60.0
_MAX_SECONDS = 100 * 365.25 * DAY
# With so many closed duels, or duels asked, and no answer at all, something is wrong.
_MIN_CLOSED_WITHOUT_ANSWER, _MIN_ASKED_WITHOUT_ANSWER = 30, 1000
_MAX_RATIO_OF_ONE_NUMBER = 3  # a wider interval of times is shown by its two ends
_MIN_GAPS_OF_PAUSE, _MIN_SECONDS_OF_PAUSE = 20, 600.0  # a pause is longer than both


def advise(look: ExperimentSnapshot, today: int, totals: Totals) -> Advice:
    """Return what to do next, in one sentence.

    Parameters
    ----------
    look : the experiment at one moment.
    today : the number of duels of the last 24 hours.
    totals : counts by time since the experiment began.
    """
    standing, head = look.standing, look.state.head
    if wrong := _find_problem(look):
        return Advice("off", wrong)
    if standing.chosen is not None:
        return Advice("stop", f"Finished: {standing.chosen} is shown to all visitors.")
    if standing.winner is not None:
        name = standing.arms[standing.winner]
        return Advice("stop", f"Stop: {name} is declared the winner. Show it to all visitors.")
    if standing.verdict != "running":
        said, name = standing.verdict_words, standing.arms[standing.leader]
        return Advice("stop", f"Stop: {said}. {name} is shown to all visitors.")
    if head["status"] == "paused":
        return Advice(
            "paused",
            "Paused: no duels are asked, but answers still count. Resume the experiment to go on.",
        )
    if standing.booking == "held":
        return Advice(
            "wait",
            "Booking is held: answers are recorded, but no duel enters the evidence. Release it to "
            "go on.",
        )
    if head["asked"] == 0:
        return Advice("wait", "No duel has been asked yet: paste the code into your program.")
    if not standing.is_heard:
        return Advice("wait", "Wait: no answer has come yet.")
    if look.state.settings.goal == "regret":
        return Advice(
            "go-on",
            "Go on: the better arms are shown more and more often.",
        )
    left = standing.duels_left
    assert left is not None  # else it is off
    time = _time_left(left, _usual_gap(look, today, totals))
    more = str(left)
    words = f"Go on: {more}" + (f", {time} at this traffic." if time else ".")
    return Advice("go-on", words, more)


def _find_problem(look: ExperimentSnapshot) -> str:
    """Return what is wrong, and what to do about it; empty if nothing is."""
    standing, head = look.standing, look.state.head
    doubts = [alarm for alarm in standing.alarms if alarm.name not in REMARKS]
    if doubts:
        also = f" ({', '.join(doubt.name for doubt in doubts[1:])} alarm, too)" * (len(doubts) > 1)
        said = doubts[0].sentence.removesuffix(".")
        return f"Something is off, {doubts[0].name}: {said}{also}."
    if standing.warnings:
        return f"Something is off: {standing.warnings[0]}."
    if standing.verdict != "running" or standing.chosen is not None:
        return ""
    evidence = standing.evidence
    if evidence is not None and standing.is_heard and evidence.is_out.all():
        return (
            "No arm beats all others: each has lost to another one, so no winner will be declared. "
            "Retire an arm that you do not need, or choose by the matrix."
        )
    if not standing.is_heard and (
        head["closed"] >= _MIN_CLOSED_WITHOUT_ANSWER or head["asked"] >= _MIN_ASKED_WITHOUT_ANSWER
    ):
        return (
            f"None of {head['asked']:,} duels has an answer: check that your program tells the "
            "answers, with the ids of the duels."
        )
    if head["status"] != "paused" and (silent := _find_silence(look)):
        return f"{silent[0].upper()}{silent[1:]}: check that your program still asks."
    is_lost = standing.duels_left is None and head["status"] != "paused"
    if is_lost and standing.heard >= len(standing.arms) and look.state.settings.goal == "decide":
        return (
            "No arm seems to beat all others, so a winner may never be declared. Retire an arm "
            "that you do not need, or choose by the matrix."
        )
    return ""


def _find_silence(look: ExperimentSnapshot) -> str:
    """Return the event that traffic stopped, as text, if no duel has come since."""
    from_events = [row for row in look.events if row["kind"] == "silent"]
    if not from_events:
        return ""
    last = look.last_asked
    is_still = last is not None and from_events[0]["about"] == str(last)
    return str(from_events[0]["words"]) if is_still else ""


def _usual_gap(look: ExperimentSnapshot, today: int, totals: Totals) -> float | None:
    """Return the mean time between two duels of the last 24 hours; None if no duels come now.

    Pauses do not count.
    """
    since = max(look.now - DAY, look.state.settings.created / MICRO)
    last, whole = look.last_asked, look.now - since
    if today == 0 or last is None or whole <= 0:
        return None
    longest = max(_MIN_GAPS_OF_PAUSE * whole / today, _MIN_SECONDS_OF_PAUSE)
    ends = np.minimum(totals.start + totals.width, look.now)
    lengths = np.maximum(ends - np.maximum(totals.start, since), 0.0)
    is_empty = totals.asked == 0
    for lasts in np.split(np.where(is_empty, lengths, 0.0), np.flatnonzero(~is_empty)):
        whole -= lasts.sum() if lasts.sum() > longest else 0.0
    gap = float(whole / today)
    return (
        None
        if look.now - last / MICRO > max(_MIN_GAPS_OF_PAUSE * gap, _MIN_SECONDS_OF_PAUSE)
        else gap
    )


def _time_left(left: DuelsLeft, gap: float | None) -> str:
    """Return how long the duels left take, at `gap` seconds a duel; empty without traffic."""
    if gap is None or left.high == 0:
        return ""
    low, middle, high = (n * gap for n in left)
    if high < _MINUTE:
        return "less than a minute"
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
    for size, name in _UNITS:
        n = round(seconds / size)
        is_one = abs(seconds / size - 1.0) <= 0.05 and name != "week"
        if is_one or seconds >= 1.95 * size or (name == "minute" and n > 0):
            return f"{n} {name}{'s' if n != 1 else ''}"
    return "less than a minute"


def format_window(window: str) -> str:
    """Return a window as text, exactly.

    >>> [format_window(text) for text in ("14d", "90m", "24h", "1m30s", "250ms")]
    ['14 days', '90 minutes', '1 day', '90 seconds', '250ms']
    """
    for size, name in (*_UNITS[3:], (1.0, "second")):
        n = float(Duration(window)) / size
        if n == round(n) and n >= 1:
            return f"{n:,.0f} {name}{'s' if n != 1 else ''}"
    return window
