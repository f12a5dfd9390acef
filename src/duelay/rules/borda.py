"""Successive elimination for Borda's winner, on any ledger.

Every arm is compared with all others alike, the dropped ones too, since a Borda score is a mean
over all opponents; an arm is dropped when its score is below another one's for certain.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from duelay._jit import kernel
from duelay.assumed import FOREVER, evidence
from duelay.ledger import Ledger
from duelay.rules.turn import calm_until, select


class BordaRule(NamedTuple):
    """What the elimination remembers."""

    alpha: float  # width of the bounds
    active: NDArray[np.bool_]  # (K,): arms that may still be the winner
    score: NDArray[np.float64]  # (K,): the estimated Borda scores
    width: NDArray[np.float64]  # (K,): how far each may be off


def borda_rule(alpha: float, n_arms: int) -> BordaRule:
    """Return the rule at its start: every arm is active."""
    return BordaRule(alpha, np.ones(n_arms, dtype=np.bool_), np.zeros(n_arms), np.zeros(n_arms))


@kernel
def estimate_score(rule: BordaRule, ledger: Ledger, i: int, width: float) -> None:
    """b_i = mean over j of mu^_ij, and its width: the pairs are independent, so squares add up.

    A pair of which nothing has been heard leaves the score anywhere in [0, 1].
    """
    k = ledger.plays.shape[0]
    total, square = 0.0, 0.0
    for j in range(k):
        if j != i:
            n, n_tilde, s = evidence(ledger.assumed, ledger.plays, ledger.conversions, i, j)
            if n_tilde <= 0.0:
                rule.score[i] = 0.5
                rule.width[i] = math.inf
                return
            total += s / n_tilde
            square += width * n / (n_tilde * n_tilde)
    rule.score[i] = total / (k - 1)
    rule.width[i] = math.sqrt(square) / (k - 1)


@select.register(BordaRule)
def _select(rule: BordaRule, ledger: Ledger, t: int, rng: np.random.Generator) -> Any:
    k = ledger.plays.shape[0]
    n_active, last = count_active(rule)
    if n_active == 1:
        return last, last
    lowest = -math.inf  # the best lower bound
    for i in range(k):
        if rule.active[i]:
            estimate_score(rule, ledger, i, rule.alpha * math.log(t))
            lowest = max(lowest, rule.score[i] - rule.width[i])
    for i in range(k):
        if rule.active[i] and rule.score[i] + rule.width[i] < lowest:
            rule.active[i] = False
    n_active, last = count_active(rule)
    if n_active == 1:
        return last, last
    first, second, fewest = -1, -1, 0  # the pair with an active arm that has been played least
    for i in range(k):
        for j in range(i + 1, k):
            if rule.active[i] or rule.active[j]:
                n = ledger.plays[i, j] + ledger.plays[j, i]
                if first < 0 or n < fewest:
                    first, second, fewest = i, j, n
    return first, second


@kernel
def count_active(rule: BordaRule) -> Any:
    """Return how many arms are active, and the last of them."""
    n, last = 0, 0
    for i in range(rule.active.size):
        if rule.active[i]:
            n += 1
            last = i
    return n, last


@calm_until.register(BordaRule)
def _calm_until(rule: BordaRule, ledger: Ledger, arm: int, t: int) -> int:
    """The arm that is left stays: it duels itself for ever."""
    return FOREVER
