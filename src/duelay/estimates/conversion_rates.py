"""Conversion rates and lifts of a log in which one arm was shown at a time.

They are those of a live standing (`duelay.inference.rates`), from the duels of the log. Rates have
the same intervals. Lifts have the same estimates: the conversions of a pair, in which a silence
that was booked counts a little for the other arm. Their intervals count every conversion of the
log, and may be narrower than those of the standing, which count booked conversions only.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from duelay.estimates.preferences import Preferences
from duelay.inference.evidence import Evidence
from duelay.inference.rates import Rates, find_rates
from duelay.logs.history import History


def share_by_evidence(preferences: Preferences, evidence: Evidence) -> Preferences:
    """Return the preferences with the estimates that the evidence has, within their intervals."""
    n = evidence.n
    share = np.divide(evidence.lead, n, out=np.full_like(n, np.nan), where=n > 0)
    mean = np.clip(0.5 + 0.5 * share, preferences.lower, preferences.upper)
    np.fill_diagonal(mean, 0.5)
    return preferences._replace(mean=mean)


def rates_of(history: History, pooled: History, found: Preferences, error: float) -> Rates:
    """Return the rates of a log; in `pooled` a unit that had a pair before does not count."""
    k, heard = history.n_arms, history.is_heard
    counts = pooled.first != pooled.second
    closed = np.zeros(pooled.n, dtype=bool)
    if pooled.window is not None:
        closed = counts & (pooled.ages > float(pooled.window))
    in_time = closed & pooled.is_heard

    def count(log: History, which: Any = slice(None)) -> Any:
        code = log.first[which] * k + log.second[which]
        return np.bincount(code, minlength=k * k).reshape(k, k)

    return find_rates(
        count(history), count(history, heard), count(pooled, closed), count(pooled, in_time),
        found.mean, (found.lower, found.upper), error, history.joined,
    )  # fmt: skip
