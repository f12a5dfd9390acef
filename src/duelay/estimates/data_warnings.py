"""Warnings about the data of a log: oddities that a reader should check."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from duelay._core.duration import in_brief
from duelay.logs.history import History

# The end of a log is odd if it is later than nearly all of the log by this share and these seconds.
_FAR_SHARE = 0.5
_FAR_SECONDS = 30 * 86_400.0


def find_data_warnings(history: History) -> tuple[str, ...]:
    """Return a sentence for each oddity of a log."""
    return tuple(
        words for words in (_warn_of_similar_names(history), _warn_of_a_far_end(history)) if words
    )


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
