"""Warnings about the data of a log: oddities that a reader should check."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from duelay._core.duration import in_brief
from duelay.delays.survival import learn_curve, watch
from duelay.logs.history import History

# The end of a log is odd if it is later than nearly all of the log by this share and these seconds.
_FAR_SHARE = 0.5
_FAR_SECONDS = 30 * 86_400.0
_MIN_COPIES = 0.01  # of the answers: fewer may be alike by chance
# Answers are missing if so many were due in a time without any, and so many times more than in any
# other such time: people sleep every night, and an outage is an exception.
_MIN_DUE = 20.0
_MIN_TIMES_DUE = 3.0
_MAX_SILENCES = 20  # the longest times without an answer, which are compared


def find_data_warnings(history: History) -> tuple[str, ...]:
    """Return a sentence for each oddity of a log."""
    found = (
        _warn_of_similar_names(history),
        _warn_of_copies(history),
        _warn_of_an_outage(history),
        _warn_of_a_far_end(history),
    )
    return tuple(words for words in found if words)


def _warn_of_similar_names(history: History) -> str:
    """Report arms whose names differ only in case or blanks."""
    by_name = defaultdict(list)
    for arm in history.arms:
        by_name[" ".join(arm.split()).casefold()].append(arm)
    twins = [names for names in by_name.values() if len(names) > 1]
    if not twins:
        return ""
    some = "; ".join(", ".join(map(repr, names)) for names in twins[:3])
    return f"names of arms differ in case or blanks alone: {some}. Are they the same?"


def _warn_of_copies(history: History) -> str:
    """Report answers that repeat another row; with units, an estimate leaves repeats out itself."""
    heard = history.is_heard
    n = int(heard.sum())
    if history.at is None or history.unit is not None or n == 0:
        return ""
    code = (history.first * history.n_arms + history.second + 0.5 * history.first_won)[heard]
    rows = np.stack((code, history.delay[heard], history.asked[heard]))
    rows = rows[:, np.lexsort(rows)]
    copies = int((np.diff(rows, axis=1) == 0.0).all(axis=0).sum())
    if copies < max(2.0, _MIN_COPIES * n):
        return ""
    return (
        f"{copies:,} of {n:,} answers repeat another row in its times, arms and winner: leave "
        "copies out, or say which column is the unit"
    )


def _warn_of_an_outage(history: History) -> str:
    """Report a time in which no answer came, though many were due by the learned delays."""
    two = history.first != history.second
    if history.at is None or history.now is None or not (history.is_heard & two).any():
        return ""
    times = np.append(np.sort(history.answered[history.is_heard & two]), history.now)
    starts = np.argsort(-np.diff(times), kind="stable")[:_MAX_SILENCES]
    learned, asked = learn_curve(watch(history), 1.0), history.asked[two]
    most = np.inf if history.window is None else float(history.window)
    due = np.zeros(starts.size)
    for k, start in enumerate(starts):
        ends = [
            learned.at(np.clip(time - asked, 0.0, most))[0].sum()
            for time in times[start : start + 2]
        ]
        due[k] = ends[1] - ends[0]
    order = np.argsort(-due)
    if due[order[0]] < _MIN_DUE or due[order[0]] < _MIN_TIMES_DUE * due[order[1:2]].sum():
        return ""
    begin, end = (np.datetime64(int(time), "s") for time in times[starts[order[0]] :][:2])
    return (
        f"no answer came from {begin} to {end} (UTC), though about {due[order[0]]:,.0f} were due: "
        "were some lost, or written down later?"
    )


def _warn_of_a_far_end(history: History) -> str:
    """Report a log that ends long after nearly all of its duels and answers."""
    if history.at is None or history.now is None or history.n < 3:
        return ""
    times = np.sort(np.append(history.at, history.answered[history.is_heard]))
    most = float(times[int(0.999 * (times.size - 1))])
    gap, whole = history.now - most, history.now - float(times[0])
    if gap < max(_FAR_SHARE * whole, _FAR_SECONDS):
        return ""
    day = np.datetime64(int(history.now), "s")
    return (
        f"the time of the log is {day} (UTC), {in_brief(gap)} after nearly all that is in it: all "
        "that is open counts as silent until then; `now` says when the log ends"
    )
