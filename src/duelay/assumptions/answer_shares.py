"""A test of whether pairs differ in how often they answer, where no coin decides the order."""

from __future__ import annotations

import numpy as np

from duelay.assumptions.finding import Finding, check_level, silent
from duelay.assumptions.score_tests import cut, tail
from duelay.logs.history import History

_MIN_DUELS_PER_ORDER = 20  # duels of a pair in each order


def share_by_pair(history: History, *, level: float = 0.05) -> Finding:
    """Test whether pairs differ in the share that answers; for conversions in any order.

    Parameters
    ----------
    history : History
        The duels and their answers.
    level : float
        The p-value below which the finding is an alarm.

    Notes
    -----
    With i first a share mu_ij tau(A) is heard by age A, with j first (1 - mu_ij) tau(A). Their sum
    is tau(A), for every pair, whatever the preferences: sums of pairs that were shown in both
    orders are compared. Chi-squared with one degree of freedom less than there are pairs.

    Power above 90 %: 60 % of one pair's answers of six never come, 10 % of the others', 4000 duels.
    """
    name, level = "share by pair", check_level(level)
    old, heard, _ = cut(history)
    k = history.n_arms
    code = history.first * k + history.second
    n = np.bincount(code[old], minlength=k * k).reshape(k, k).astype(np.float64)
    won = np.bincount(code[heard], minlength=k * k).reshape(k, k)
    both = np.triu((n >= _MIN_DUELS_PER_ORDER) & (n.T >= _MIN_DUELS_PER_ORDER), 1)
    total = int(n[both | both.T].sum())
    if history.feedback == "votes" or both.sum() < 2:
        return silent(name, total, "needs conversions, and two pairs in both orders.")
    rate = won / np.maximum(n, 1.0)
    smooth = (won + 1.0) / (n + 2.0)  # a rate of 0 has no variance of its own
    variance = smooth * (1.0 - smooth) / np.maximum(n, 1.0)
    sums, weight = (rate + rate.T)[both], 1.0 / (variance + variance.T)[both]
    mean = float((weight * sums).sum() / weight.sum())
    off = weight * (sums - mean) ** 2
    statistic, df = float(off.sum()), int(both.sum()) - 1
    p = tail(statistic, df)
    words = "No sign of it: every pair answers as often."
    if p < level:
        odd = int(np.argmax(off))
        one, other = (history.arms[arm] for arm in np.argwhere(both)[odd])
        words = (
            f"Pairs differ in how often they answer: {one} and {other} in {sums[odd]:.0%}, on the "
            f"whole it is {mean:.0%}. One delay law does not fit them all: tell one for each "
            "(delays.ByPair), or show by coin."
        )
    return Finding(name, statistic, p, total, p < level, words)
