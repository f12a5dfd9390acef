"""A test of whether duels are answered independently of each other."""

from __future__ import annotations

import math

import numpy as np

from duelay.assumptions.finding import MIN_SAMPLE, Finding, check_level, silent
from duelay.assumptions.order import is_even
from duelay.assumptions.score_tests import cut, pairs_of
from duelay.logs.history import History

_ROUNDING = 1e-9  # the same answer, as 0.1 and 1 - 0.9 are


def independence(history: History, *, level: float = 0.05) -> Finding:
    """Test whether an answer to a pair is like the answer before it, more often than by chance.

    Parameters
    ----------
    history : History
        The duels and their answers.
    level : float
        The p-value below which the finding is an alarm.

    Notes
    -----
    This happens if a visitor of fixed taste answers the same pair repeatedly, so that five answers
    are worth one. The answers of a pair are taken in the order in which they were asked, each
    less the pair's mean, and the products of neighbours are added up. The sum makes a normal score;
    ties are left out. Conversions need an order that is decided by a coin or alternates, since
    another order makes neighbours alike.

    Power above 90 %: every visitor answers a pair twice in a row, 400 answers.
    """
    name, level = "independence", check_level(level)
    _, heard, _ = cut(history)
    if history.feedback == "conversions" and not is_even(history):
        return silent(name, int(heard.sum()), "needs votes, or an order by coin or in turns.")
    low_won = np.where(history.first < history.second, history.first_won, 1 - history.first_won)
    used = heard & (low_won != 0.5)
    pair, won = pairs_of(history)[used], low_won[used]
    n, total, variance, alike, neighbours = int(used.sum()), 0.0, 0.0, 0, 0
    for which in np.unique(pair):
        mine = won[pair == which]
        if len(mine) < 3:
            continue
        rest = mine - mine.mean()
        rest[np.abs(rest) < _ROUNDING] = 0.0  # else equal means of several votes seem to vary
        products = rest[1:] * rest[:-1]
        total += products.sum() + rest.var()  # the mean is of these same answers: a bias of -var
        variance += (products**2).sum()
        alike += int((np.abs(np.diff(mine)) < _ROUNDING).sum())
        neighbours += len(mine) - 1
    if n < MIN_SAMPLE:
        return silent(name, n, f"needs {MIN_SAMPLE} answers of two arms that differ, has {n}.")
    if variance <= 0:
        words = "there is nothing to compare: no pair has 3 answers that are not all the same."
        return silent(name, n, words)
    score = total / math.sqrt(variance)
    p = 0.5 * math.erfc(score / math.sqrt(2))
    words = "No sign that an answer is like the one before it."
    if p < level:
        words = (
            f"Answers to a pair are too often like the one before, {alike / neighbours:.0%} of "
            "them: do the same visitors answer it again and again? Count each visitor once a pair."
        )
        if history.display == "one":
            words = (
                f"Too often, {alike / neighbours:.0%}, a conversion is of the same arm as the one "
                "before: do visitors convert again and again, or were conversions of some arm lost "
                "for a time? Pass the visitor as unit."
            )
    return Finding(name, score, p, n, p < level, words)
