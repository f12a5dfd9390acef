"""Advice on an experiment: one sentence on the most urgent thing to do."""

from __future__ import annotations

from duelay._core.duration import Duration
from duelay.inference.alarms import REMARKS
from duelay.live.arrivals import UNITS, time_left
from duelay.live.summary import is_early, shown_to_all
from duelay.page.incremental import ExperimentSnapshot
from duelay.page.view_models import Advice

# With so many closed duels, or duels asked, and no answer at all, something is wrong.
_MIN_CLOSED_WITHOUT_ANSWER, _MIN_ASKED_WITHOUT_ANSWER = 30, 1000


def advise(look: ExperimentSnapshot, gap: float | None) -> Advice:
    """Return what to do next, in one sentence; `gap` is the time between two duels."""
    standing, head = look.standing, look.state.head
    shows_one = look.state.settings.shows_one
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
            f"Paused: no {'visitors are compared' if shows_one else 'duels are asked'}, but "
            "answers still count. Resume the experiment to go on.",
        )
    if standing.booking == "held":
        return Advice(
            "wait",
            f"Booking is held: answers are recorded, but no {'visitor' if shows_one else 'duel'} "
            "enters the evidence. Release it to go on.",
        )
    if head["asked"] == 0:
        none = "No visitor has come yet" if shows_one else "No duel has been asked yet"
        return Advice("wait", f"{none}: paste the code into your program.")
    if not standing.is_heard:
        what = "conversion" if shows_one else "answer"
        return Advice("wait", f"Wait: no {what} has come yet.")
    if look.state.settings.goal == "regret":
        return Advice(
            "go-on",
            "Go on: the better arms are shown more and more often.",
        )
    left = standing.duels_left
    if is_early(standing) or left is None:
        return Advice(
            "go-on",
            "Go on: it is too early to say which arm leads, and how long it will take.",
            "too early to say",
        )
    time, more = time_left(left, gap), str(left)
    more = more.replace("duels", "visitors") if shows_one else more
    words = f"Go on: {more}" + (f", {time} at this traffic." if time else ".")
    if gap is None:  # as the summary says in the place of the time that is left
        words += " None have come lately." if shows_one else " None have been asked lately."
    return Advice("go-on", words, more)


def _find_problem(look: ExperimentSnapshot) -> str:
    """Return what is wrong, and what to do about it; empty if nothing is."""
    standing, head = look.standing, look.state.head
    shows_one = look.state.settings.shows_one
    doubts = [alarm for alarm in standing.alarms if alarm.name not in REMARKS]
    if doubts:
        also = f" ({', '.join(doubt.name for doubt in doubts[1:])} alarm, too)" * (len(doubts) > 1)
        said = doubts[0].sentence.removesuffix(".")
        shown = shown_to_all(standing)
        return f"Something is off, {doubts[0].name}: {said}{also}.{' ' * bool(shown)}{shown}"
    if standing.warnings:
        return f"Something is off: {standing.warnings[0]}."
    if standing.verdict != "running" or standing.chosen is not None:
        return ""
    evidence = standing.evidence
    if evidence is not None and standing.is_heard and evidence.is_out.all():
        return (
            "No arm beats all others: each has lost to another one, so no winner will be declared. "
            f"{_choose_yourself(shows_one)}"
        )
    if not standing.is_heard and (
        head["closed"] >= _MIN_CLOSED_WITHOUT_ANSWER or head["asked"] >= _MIN_ASKED_WITHOUT_ANSWER
    ):
        if shows_one:
            return (
                f"None of {head['asked']:,} visitors has converted: check that your program tells "
                "the conversions, with the ids that it was given."
            )
        return (
            f"None of {head['asked']:,} duels has an answer: check that your program tells the "
            "answers, with the ids of the duels."
        )
    if head["status"] != "paused" and (silent := _find_silence(look)):
        return f"{silent[0].upper()}{silent[1:]}: check that your program still asks."
    is_lost = standing.duels_left is None and head["status"] != "paused"
    if is_lost and standing.heard >= len(standing.arms) and look.state.settings.goal == "decide":
        return (
            "No arm seems to beat all others, so a winner may never be declared. "
            f"{_choose_yourself(shows_one)}"
        )
    return ""


def _choose_yourself(shows_one: bool) -> str:
    """Return what to do where no winner is declared; the page of an A/B test has no matrix."""
    table = "lifts" if shows_one else "matrix"
    return f"Retire an arm that you do not need, or choose by the {table}."


def _find_silence(look: ExperimentSnapshot) -> str:
    """Return the event that traffic stopped, as text, if no duel has come since."""
    from_events = [row for row in look.events if row["kind"] == "silent"]
    if not from_events:
        return ""
    last = look.last_asked
    is_still = last is not None and from_events[0]["about"] == str(last)
    return str(from_events[0]["words"]) if is_still else ""


def format_window(window: str) -> str:
    """Return a window as text, exactly.

    >>> [format_window(text) for text in ("14d", "90m", "24h", "1m30s", "250ms")]
    ['14 days', '90 minutes', '1 day', '90 seconds', '250ms']
    """
    for size, name in (*UNITS[3:], (1.0, "second")):
        n = float(Duration(window)) / size
        if n == round(n) and n >= 1:
            return f"{n:,.0f} {name}{'s' if n != 1 else ''}"
    return window
