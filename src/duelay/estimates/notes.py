"""What somebody should look at in a log, beside the tests of assumptions."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from duelay._core.duration import in_brief
from duelay.logs.history import History

_FAR = 0.5  # of the whole time: the last moment of a log is so far from the others
_DAYS = 30 * 86_400.0  # ... and so many seconds


def find_notes(history: History) -> tuple[str, ...]:
    """Return a sentence for each oddity; none where all is well."""
    return tuple(words for words in (_alike(history), _far_away(history)) if words)


def _alike(history: History) -> str:
    """Arms whose names differ in case or blanks alone."""
    by_name = defaultdict(list)
    for arm in history.arms:
        by_name[" ".join(arm.split()).casefold()].append(arm)
    twins = [names for names in by_name.values() if len(names) > 1]
    if not twins:
        return ""
    some = "; ".join(", ".join(map(repr, names)) for names in twins[:3])
    return f"names of arms differ in case or blanks alone: {some}. Are they the same?"


def _far_away(history: History) -> str:
    """A log that ends long after nearly all of it."""
    if history.at is None or history.now is None or history.n < 3:
        return ""
    times = np.sort(np.append(history.at, history.answered[history.is_heard]))
    most = float(times[int(0.999 * (times.size - 1))])
    gap, whole = history.now - most, history.now - float(times[0])
    if gap < max(_FAR * whole, _DAYS):
        return ""
    day = np.datetime64(int(history.now), "s")
    return (
        f"the time of the log is {day} (UTC), {in_brief(gap)} after nearly all that is in it: all "
        "that is open counts as silent until then; `now` says when the log ends"
    )
