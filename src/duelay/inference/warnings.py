"""Warnings of a standing about problems and missing data."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from duelay._core.duration import DAY, in_brief
from duelay.inference.player_clock import what_froze
from duelay.ledger.delay_models.kaplan_meier import MIN_TAUGHT

if TYPE_CHECKING:
    from duelay.inference.standing import Standing

_MAX_CLOCK_DIFFERENCE = 10.0  # seconds between servers; more is a reason for a warning
_MAX_LATE_SHARE = 0.05  # of the answers; more is a reason for a warning


def find_doubts(standing: Standing) -> tuple[str, ...]:
    """Return a sentence for each problem."""
    found = (
        _is_learning(standing),
        _is_impossible(standing),
        _converts_too_often(standing),
        _is_late(standing),
        _leaves_nobody(standing),
        _runs_backwards(standing),
    )
    return tuple(words for words in found if words)


def _is_learning(standing: Standing) -> str:
    if not standing.is_learning:
        return ""
    so_far = f"the delay law is not learned yet: {standing.told} of {MIN_TAUGHT} conversions of "
    if standing.learns_from == "learn-from-self-duels":
        asked = int(standing.plays.trace())
        return (
            f"{so_far}self-duels have been heard, of {asked} asked; until then a silent duel "
            "counts as lost, and with the champion first that speaks against it. In a self-duel "
            "show the arm twice and tell its conversion, or tell the law"
        )
    return f"{so_far}two different arms have been heard; until then a silent duel counts as lost"


def _is_impossible(standing: Standing) -> str:
    """More than chance explains: a whole interval above 1."""
    ends = standing.one_look or (standing.lower, standing.upper)
    lower = np.where(np.eye(len(standing.arms), dtype=bool), -math.inf, ends[0])
    i, j = np.unravel_index(np.argmax(lower), lower.shape)
    if lower[i, j] <= 1.0:
        return ""
    return (
        f"{standing.arms[i]} is estimated to beat {standing.arms[j]} with "
        f"{standing.mean[i, j]:.2f} [{ends[0][i, j]:.2f}, {ends[1][i, j]:.2f}], and "
        "no more than 1 is possible: more conversions come than the assumed delay law allows; tell "
        "the true law, or learn it from duels that are shown as they were asked"
    )


def _converts_too_often(standing: Standing) -> str:
    """The first arm of a self-duel wins half of the time, so no more than half can convert.

    Where one arm is shown at a time, the rate of conversion may be any.
    """
    shows_one = standing.eprocess is not None and standing.eprocess.shows_one
    if standing.feedback == "votes" or shows_one:
        return ""
    n, heard = int(standing.plays.trace()), int(standing.conversions.trace())
    if standing.learns_from == "learn-from-self-duels" and heard > n / 2 + 2 * math.sqrt(n):
        return (
            f"{heard} of {n} self-duels convert, and half is the most where an arm is shown twice: "
            "the law that they teach is wrong, tell the true one"
        )
    n = int(standing.plays.sum()) - n
    heard = int(standing.conversions.sum()) - heard
    if standing.order not in (None, "champion") and heard > n / 2 + 2 * math.sqrt(n):
        return (
            f"{heard} of {n} duels of two arms convert, and half is the most where a coin decides "
            "who is shown first: if wins of the second are told too, start with feedback='votes'; "
            "or being shown first helps"
        )
    return ""


def _is_late(standing: Standing) -> str:
    counted = standing.heard
    if standing.late < 10 or standing.late < _MAX_LATE_SHARE * (counted + standing.late):
        return ""
    is_by_clock = standing.history is not None and standing.history.at is not None
    is_by_clock |= (
        standing.eprocess is not None and standing.eprocess.by_clock
    )  # live, with no history
    return (
        f"{standing.late} answers came after the window and were not counted ({counted} were): "
        "take a longer window"
        + ("" if is_by_clock else ", and remember that each ask is a tick, shown or not")
    )


def _runs_backwards(standing: Standing) -> str:
    history, is_frozen = standing.history, standing.is_frozen and standing.backwards_by > DAY
    if not is_frozen and (standing.backwards < 10 or standing.backwards_by < _MAX_CLOCK_DIFFERENCE):
        return ""
    often = "once" if standing.backwards == 1 else f"{standing.backwards} times"
    words = (
        f"a time before the latest one known was given {often}, up to "
        f"{in_brief(standing.backwards_by)} before it, and taken for that: "
    )
    if is_frozen and history is not None and history.now is not None:
        return words + what_froze(history.now)
    return words + "tell and ask in the order of time, by one clock"


def _leaves_nobody(standing: Standing) -> str:
    if not standing.is_heard or standing.candidates.any():
        return ""
    return (
        "every arm is beaten by another one beyond the intervals: there is no winner of the kind "
        "that is sought, or something that is assumed does not hold (duelay.assumptions tests it)"
    )
