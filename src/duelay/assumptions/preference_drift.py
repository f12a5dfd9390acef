"""A test of whether preferences change over time."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from duelay._core.arrays import Floats
from duelay.assumptions.finding import MIN_SAMPLE, Finding, check_level, silent
from duelay.assumptions.order import is_even
from duelay.assumptions.score_tests import chi_squared, cut, one_hot, pairs_of, part_of_time, scores
from duelay.logs.history import History


def preference_drift(history: History, *, level: float = 0.05) -> Finding:
    """Test whether preferences change from the first half of the time to the second.

    Parameters
    ----------
    history : History
        The duels and their answers.
    level : float
        The p-value below which the finding is an alarm.

    Notes
    -----
    An arm's gain is its late wins less its early ones, within each ordered pair, added up over
    pairs. Votes say who won, ties count half. A conversion speaks for its first arm; its weight is
    such that a drift of the delay law cancels if the order is a coin's or alternates. In another
    order the drift does not cancel, and the sentence says so. Chi-squared with up to K - 1 degrees
    of freedom. The halves are cut at a fixed tick, so that the duels before the cut do not depend
    on the outcomes after it.

    Power above 90 %: mu of one pair goes from 0.6 to 0.4 at half-time, 500 answers.
    """
    name, level = "preference drift", check_level(level)
    old, heard, age = cut(history)
    used, n = heard if history.feedback == "votes" else old, int(heard.sum())
    is_late = part_of_time(history, age, 2) > 0
    late = int((heard & is_late).sum())
    if min(late, n - late) < MIN_SAMPLE:
        return silent(
            name,
            n,
            f"needs {MIN_SAMPLE} answers of two arms in each half of the time, has {n - late} and "
            f"{late}.",
        )
    low, high = np.divmod(pairs_of(history), history.n_arms)
    x = one_hot(low, history.n_arms) - one_hot(high, history.n_arms)
    x[~is_late] = 0.0
    y, ordered = _low_won(history, old, heard), history.first * history.n_arms + history.second
    gain, variance = scores(x[used], y[used], ordered[used])
    statistic, p = chi_squared(gain, variance)
    if math.isnan(p):
        return silent(name, n, "there is nothing to compare: no pair has answers early and late.")
    words = "No sign of it: who wins is the same late as early."
    if p < level:
        z = gain / np.sqrt(np.maximum(np.diag(variance), 1e-300))
        arm = int(np.argmax(np.abs(z)))
        rest = "A standing averages over all of it: judge by recent duels, or start anew."
        if history.display == "one":
            rest = (
                "Compare the conversions of each arm with your own records: were those of some arm "
                "lost for a time? If not, judge by recent visitors, or start anew."
            )
        if history.feedback == "conversions" and not is_even(history):
            rest = "Or fewer answers come: only votes, or order='coin', can tell the two apart."
        verb = "gains" if z[arm] > 0 else "loses"
        words = f"Preferences change: arm {history.arms[arm]} {verb} most clearly. {rest}"
    return Finding(name, statistic, p, n, p < level, words)


def _low_won(history: History, old: NDArray[np.bool_], heard: NDArray[np.bool_]) -> Floats:
    """Return each duel's score for the arm of lower number.

    For a vote, 1 if that arm won. For a conversion, 1 - mu if that arm was first and -mu if not:
    the expectations, (1 - mu) tau mu and -mu tau (1 - mu), cancel over both orders for any tau.
    """
    low_first = history.first < history.second
    if history.feedback == "votes":
        return np.where(low_first, history.first_won, 1.0 - history.first_won)
    k = history.n_arms
    code = history.first * k + history.second
    plays = np.bincount(code[old], minlength=k * k).reshape(k, k)
    rate = np.bincount(code[heard], minlength=k * k).reshape(k, k) / np.maximum(plays, 1)
    both = rate + rate.T
    mu = np.where(both > 0, rate / np.where(both > 0, both, 1.0), 0.5)
    loser = 1.0 - mu[history.first, history.second]  # the weight of a conversion
    return np.where(heard, np.where(low_first, loser, -loser), 0.0)
