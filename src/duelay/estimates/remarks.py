"""Remarks on a log: its delays in words, and oddities that a reader should check."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from duelay._core.duration import in_brief
from duelay.delays.fitting import BAND, DelayEstimate, estimate_delays
from duelay.logs.history import History

# The end of a log is odd if it is later than nearly all of the log by this share and these seconds.
_FAR_SHARE = 0.5
_FAR_SECONDS = 30 * 86_400.0


def find_delays(history: History, error: float = 0.05) -> tuple[DelayEstimate | None, str]:
    """Estimate the delays of a log; return None and the reason where that is not possible."""
    try:
        found = estimate_delays(history, error)
    except ValueError as why:
        return None, str(why)
    at_once = 0.0 if history.at is not None else 1.0  # the next tick
    if not found.learned.ages.max(initial=0.0) > at_once:
        return None, "every answer was heard at once: there are no delays to learn"
    return found, ""


def describe_curve(found: DelayEstimate) -> str:
    """Describe the share of answers that do not come, by the learned curve."""
    known = found.learned
    tau, error = (float(x) for x in known.at(known.last))
    age = in_brief(known.last) if found.in_time else f"{known.last:,.0f} ticks"
    low, high = (min(max(1.0 - tau + s * BAND * error, 0.0), 1.0) for s in (-1, 1))
    return (
        f"{100 * min(max(1.0 - tau, 0.0), 1.0):.3g} % [{100 * low:.3g}, {100 * high:.3g}] of "
        f"the answers do not come within {age}"
    )


def describe(found: DelayEstimate) -> str:
    """Describe that share and the law that fits best."""
    words = describe_curve(found)
    if not found.fits:
        return words
    best = found.fits[0]
    if not best.fits:
        return f"{words}; no law fits the learned curve, the nearest is {best.law}"
    low, high = best.never_range or (best.never, best.never)
    never = f"{100 * best.never:.3g} % [{100 * low:.3g}, {100 * high:.3g}] never come"
    return f"{words}; {best.name} fits best, {best.law}: by it {never}"


def find_notes(history: History) -> tuple[str, ...]:
    """Return a sentence for each oddity of a log."""
    return tuple(words for words in (_alike(history), _far_away(history)) if words)


def _alike(history: History) -> str:
    """Report arms whose names differ only in case or blanks."""
    by_name = defaultdict(list)
    for arm in history.arms:
        by_name[" ".join(arm.split()).casefold()].append(arm)
    twins = [names for names in by_name.values() if len(names) > 1]
    if not twins:
        return ""
    some = "; ".join(", ".join(map(repr, names)) for names in twins[:3])
    return f"names of arms differ in case or blanks alone: {some}. Are they the same?"


def _far_away(history: History) -> str:
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
