"""Tests of the order in which arms are shown: is it even, and does being first help?"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from duelay.assumptions.finding import MIN_SAMPLE, Finding, check_level, silent
from duelay.assumptions.score_tests import chi_squared, cut, one_hot, pairs_of, tail
from duelay.logs.history import History

_MIN_DUELS = 20  # of a pair in one half of all duels: its lead is then nearly normal


def order_balance(history: History, *, level: float = 0.05) -> Finding:
    """Test whether both arms of a pair are shown first equally often.

    Parameters
    ----------
    history : History
        The duels and their answers.
    level : float
        The p-value below which the finding is an alarm.

    Notes
    -----
    An arm's lead is how often it was first, less how often second; self-duels are left out. All
    leads are compared with a fair coin's: chi-squared with K - 1 degrees of freedom, or fewer where
    arms never met. The leads within each pair are compared, too, in each half of the duels:
    chi-squared with a degree of freedom for each pair and half with enough duels. The p-value is
    twice the smaller of the two. The coin is tossed after the pair is chosen, so adaptive choice
    does no harm. Alternating is more even than a coin: the p-value is then near 1.

    Power above 90 %: one arm of three first in 60 % of its duels, 600 duels.
    """
    name, level = "order balance", check_level(level)
    duels = history.first != history.second
    n = int(duels.sum())
    if n < MIN_SAMPLE:
        return silent(name, n, f"needs {MIN_SAMPLE} duels of two arms, has {n}.")
    lead = one_hot(history.first[duels], history.n_arms)
    lead -= one_hot(history.second[duels], history.n_arms)
    total = lead.sum(axis=0)
    statistic, p = chi_squared(total, lead.T @ lead)
    worst = _worst_pair(history, duels)
    is_pair = worst.p < p
    statistic, p = worst.statistic if is_pair else statistic, min(1.0, 2.0 * min(p, worst.p))
    shown = np.abs(lead).sum(axis=0)
    share = np.where(shown > 0, 0.5 + 0.5 * total / np.maximum(shown, 1), 0.5)
    arm = int(np.argmax(np.abs(total) / np.sqrt(np.maximum(shown, 1))))
    lopsided = f"Arm {history.arms[arm]} is shown first in {share[arm]:.0%} of its duels"
    lopsided = worst.words if is_pair else lopsided
    if p >= level:
        words = "No sign of a lopsided order."
    elif history.order == "champion":
        words = (
            f"{lopsided}, by design: this policy shows its champion first. No alarm; but use "
            "order='coin' unless the delay law is known."
        )
    else:
        words = (
            f"{lopsided}. If the order should be even, something between ask and show changes it, "
            "or loses duels: find it, and until then trust no result that rests on the coin."
        )
    return Finding(name, statistic, p, n, p < level and history.order != "champion", words)


class _Worst(NamedTuple):
    """The pairs in each half of the duels, and which is the most lopsided."""

    statistic: float
    p: float
    words: str


def _worst_pair(history: History, duels: NDArray[np.bool_]) -> _Worst:
    """Compare the leads within pairs, in each half of the duels, with a fair coin's."""
    k, low_first = history.n_arms, (history.first < history.second)[duels]
    half = (np.arange(low_first.size) * 2) // max(low_first.size, 1)
    cells, cell = np.unique(2 * pairs_of(history)[duels] + half, return_inverse=True)
    n = np.bincount(cell).astype(np.float64)
    lead = np.bincount(cell, weights=np.where(low_first, 1.0, -1.0))
    used = n >= _MIN_DUELS
    if not used.any():
        return _Worst(0.0, 1.0, "")
    size = np.where(used, lead**2 / n, 0.0)
    worst = int(np.argmax(size))
    i, j = divmod(int(cells[worst]) // 2, k)
    i, j = (i, j) if lead[worst] > 0 else (j, i)
    share = 0.5 + abs(lead[worst]) / n[worst] / 2
    words = (
        f"Arm {history.arms[i]} is shown first in {share:.0%} of its "
        f"duels with {history.arms[j]} in the {('first', 'second')[int(cells[worst]) % 2]} half"
    )
    return _Worst(float(size.sum()), tail(float(size.sum()), int(used.sum())), words)


def position_effect(history: History, *, level: float = 0.05) -> Finding:
    """Test whether being shown first helps or hurts, beyond preferences.

    Parameters
    ----------
    history : History
        The duels and their answers.
    level : float
        The p-value below which the finding is an alarm.

    Notes
    -----
    Votes: without an effect the first arm wins half of the votes, in duels whose order is a coin's
    or alternates, and in self-duels under any order. Ties are left out. A normal score.

    Conversions: a bonus for the first arm looks like a larger share of answers. Only where more
    than half of all duels convert must there be a bonus; otherwise the p-value is nan. If one arm
    was shown at a time, there is nothing to test.

    Power above 90 %: the first arm wins 56 % of 1000 votes.
    """
    name, level = "position effect", check_level(level)
    if history.display == "one":
        return silent(name, history.n, "one arm was shown at a time, so there is no first place.")
    even = is_even(history)
    usable = np.ones(history.n, dtype=bool) if even else history.first == history.second
    if history.feedback == "conversions":
        return _bonus(name, history, usable, level)
    votes = history.first_won[usable & history.is_heard]
    votes = votes[votes != 0.5]
    n = len(votes)
    if n < MIN_SAMPLE:
        which = "votes" if even else "votes on self-duels, as the order is not a coin's"
        return silent(name, n, f"needs {MIN_SAMPLE} {which}, has {n}.")
    z = float((votes - 0.5).sum() / math.sqrt(n / 4))
    p = math.erfc(abs(z) / math.sqrt(2))
    words = f"No sign of one: the first arm won {votes.mean():.0%} of {n} votes."
    if p < level:
        words = (
            f"Being shown first {'helps' if z > 0 else 'hurts'}: the first arm won "
            f"{votes.mean():.0%} of {n} votes. Keep the order by coin, which cancels it in who "
            "leads, or start with corrects_position=True, which takes it out."
        )
    return Finding(name, z, p, n, p < level, words)


def _bonus(name: str, history: History, usable: NDArray[np.bool_], level: float) -> Finding:
    """Test conversions for a position effect; nan unless more than half of the duels convert."""
    old, heard, _ = cut(history)
    n, won = int((old & usable).sum()), int((heard & usable).sum())
    if n < MIN_SAMPLE or 2 * won <= n:
        return silent(
            name,
            n,
            "Conversions alone cannot tell: a bonus for the first arm looks like a larger share "
            "of answers. The coin cancels it in who leads, but a learned law is off by its factor; "
            "collect votes to test it.",
        )
    z = (won - n / 2) / math.sqrt(n / 4)
    p = 0.5 * math.erfc(z / math.sqrt(2))
    words = f"No sign of one: {won} of {n} duels converted, not clearly more than half."
    if p < level:
        words = (
            f"{won} of {n} duels converted, and at most half would without a position effect: "
            "being shown first helps, or wins of the second are told too (start with "
            "feedback='votes' then). Keep the order by coin, and do not trust a learned law."
        )
    return Finding(name, z, p, n, p < level, words)


def has_equal_shares(history: History) -> bool:
    """Whether the share of answers is the same for all pairs if they have one delay law.

    It is for votes, and for conversions if the order is even. If one arm was shown at a time, the
    share depends on the conversion rates of the pair.
    """
    return history.display == "pair" and (history.feedback == "votes" or is_even(history))


def is_even(history: History) -> bool:
    """Whether the order is a coin's or alternates; if not known, whether it looks so at 1 %."""
    if history.order is not None:
        return history.order != "champion"
    return not order_balance(history, level=0.01).is_alarm
