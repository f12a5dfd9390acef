"""Double Thompson sampling (Wu and Liu, NIPS 2016, Algorithm 1) and D-TS+, on any ledger."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from duelay._jit import kernel
from duelay.assumed import evidence
from duelay.ledger import Ledger
from duelay.rules.turn import select


class DoubleThompsonRule(NamedTuple):
    """What double Thompson sampling needs: room to work in, and the width of its bounds."""

    alpha: float
    is_plus: bool  # D-TS+: ties for the first arm go to the one that promises the least regret
    score: NDArray[np.int64]  # (K,): how many arms each one may beat, then how many it beats
    theta: NDArray[np.float64]  # (K, K): the first sample; (0, 0) where D-TS+ does not ask for it


def double_thompson_rule(alpha: float, is_plus: bool, n_arms: int) -> DoubleThompsonRule:
    """Return the rule at its start."""
    k = n_arms if is_plus else 0
    return DoubleThompsonRule(alpha, is_plus, np.zeros(n_arms, dtype=np.int64), np.zeros((k, k)))


@kernel
def wins_and_count(ledger: Ledger, i: int, j: int) -> Any:
    """Return S_ij, clipped to [0, N~_ij], and N~_ij: the Beta's wins and their number."""
    _, n_tilde, s = evidence(ledger.assumed, ledger.plays, ledger.conversions, i, j)
    return min(max(s, 0.0), n_tilde), n_tilde


@kernel
def draw(ledger: Ledger, i: int, j: int, rng: np.random.Generator) -> float:
    """theta_ij ~ Beta(S_ij + 1, N~_ij - S_ij + 1)."""
    s, n = wins_and_count(ledger, i, j)
    return float(rng.beta(s + 1.0, n - s + 1.0))


@kernel
def divergence(p: float) -> float:
    """d(p, 1/2), the relative entropy of two coins."""
    total = math.log(2.0)
    if p > 0.0:
        total += p * math.log(p)
    if p < 1.0:
        total += (1.0 - p) * math.log(1.0 - p)
    return max(total, 0.0)


@kernel
def beats(rule: DoubleThompsonRule, i: int) -> Any:
    """Return how many arms i beats in the sample; outside C its score stands K lower."""
    return rule.score[i] if rule.score[i] >= 0 else rule.score[i] + rule.score.size


@kernel
def promised_regret(rule: DoubleThompsonRule, i: int, most: int) -> float:
    """Sum r_ij / d(theta_ij, 1/2) over the others j: what telling i from them would cost (D-TS+).

    r_ij is the regret of the duel in normalised Copeland scores of the sample.
    """
    k = rule.score.size
    total = 0.0
    for j in range(k):
        if j != i:
            regret = (most - 0.5 * (beats(rule, i) + beats(rule, j))) / (k - 1)
            total += regret / max(divergence(rule.theta[i, j]), 1e-12)
    return total


@kernel
def least_regret(rule: DoubleThompsonRule, top: int) -> int:
    """Return the arm with the top score that promises the least regret."""
    most = 0
    for i in range(rule.score.size):
        most = max(most, beats(rule, i))
    best, least = -1, math.inf
    for i in range(rule.score.size):
        if rule.score[i] == top:
            cost = promised_regret(rule, i, most)
            if best < 0 or cost < least:
                best, least = i, cost
    return best


@select.register(DoubleThompsonRule)
def _select(rule: DoubleThompsonRule, ledger: Ledger, t: int, rng: np.random.Generator) -> Any:
    k = ledger.plays.shape[0]
    score = rule.score
    width = rule.alpha * math.log(t)

    # Lines 4 to 7: C, the arms that may beat the most others (the largest upper Copeland score).
    best = -1
    for i in range(k):
        score[i] = 0
        for j in range(k):
            if j != i:
                s, n = wins_and_count(ledger, i, j)
                if n <= 0.0 or s / n + math.sqrt(width / n) > 0.5:
                    score[i] += 1
        best = max(best, score[i])
    for i in range(k):
        score[i] = 0 if score[i] == best else -k  # outside C nobody can win phase 1

    # Lines 8 to 11: sample all preferences; first is the arm of C that beats the most in it.
    for i in range(k):
        for j in range(i + 1, k):
            theta = draw(ledger, i, j, rng)
            if rule.is_plus:
                rule.theta[i, j], rule.theta[j, i] = theta, 1.0 - theta
            if theta > 0.5:
                score[i] += 1
            else:
                score[j] += 1
    first, ties = 0, 0
    for i in range(k):
        if ties == 0 or score[i] > score[first]:
            first, ties = i, 1
        elif score[i] == score[first]:
            ties += 1
            if not rule.is_plus and rng.random() * ties < 1.0:
                first = i
    if rule.is_plus and ties > 1:
        first = least_regret(rule, score[first])

    # Lines 12 to 14: sample again who beats first; only arms not beaten by it for certain may.
    second, strongest = first, 0.5
    for i in range(k):
        if i != first:
            s, n = wins_and_count(ledger, i, first)
            if n <= 0.0 or s / n - math.sqrt(width / n) <= 0.5:
                theta = draw(ledger, i, first, rng)
                if theta > strongest:
                    second, strongest = i, theta
    return first, second
