"""What is shown and told of a duel: displays, kinds of feedback, and outcomes."""

from __future__ import annotations

from typing import Any

from duelay._core import checks
from duelay.errors import InvalidValueError

OUTCOMES = {"first": 1.0, "second": 0.0, "tie": 0.5}  # what an outcome gives the first arm
DISPLAYS = ("pair", "one")  # both arms of a duel are shown, or the first one alone
FEEDBACKS = ("conversions", "votes", "counts")  # a win of the first; both outcomes; how many wins
_EARLIER = {
    "individual": "'conversions'",
    "aggregated": "'counts'",
    "corrected-votes": "'votes', with corrects_position=True",
}


def check_feedback(feedback: Any, **refused: str) -> str:
    """Return a kind of feedback; `refused` says which do not fit here, and why.

    >>> check_feedback("aggregated")
    Traceback (most recent call last):
    duelay.errors.InvalidValueError: feedback 'aggregated' is now written 'counts'
    """
    if isinstance(feedback, str) and feedback in _EARLIER:
        raise InvalidValueError(
            f"feedback {feedback!r} is now written {_EARLIER[feedback]}", argument="feedback"
        )
    if isinstance(feedback, str) and feedback in refused:
        fit = " or ".join(word for word in FEEDBACKS if word not in refused)
        raise InvalidValueError(
            f"feedback must be {fit} ({refused[feedback]}), got {feedback!r}", argument="feedback"
        )
    return checks.one_of("feedback", feedback, [f for f in FEEDBACKS if f not in refused])


def check_correction(corrects_position: Any, feedback: str) -> bool:
    """Return whether the bonus of being shown first is taken out; only votes can tell it."""
    if checks.yes_or_no("corrects_position", corrects_position) and feedback != "votes":
        raise InvalidValueError(
            f"corrects_position needs votes as feedback, since conversions do not reveal the "
            f"advantage of the first place, got {feedback!r}",
            argument="corrects_position",
        )
    return bool(corrects_position)


def check_display(display: Any, feedback: str) -> str:
    """Return a display; where one arm is shown, a visitor cannot vote."""
    if checks.one_of("display", display, DISPLAYS) == "one" and feedback != "conversions":
        raise InvalidValueError(
            f"feedback must be conversions where one arm is shown at a time: a visitor cannot "
            f"compare it with another, got {feedback!r}",
            argument="feedback",
        )
    return str(display)
