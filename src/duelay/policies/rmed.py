"""RMED1 (Komiyama, Honda, Kashima and Nakagawa, COLT 2015, Algorithms 1 and 2) on any ledger."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from duelay._core.jit.decorators import kernel
from duelay.ledger.evidence.winner_threshold import divergence
from duelay.ledger.ledger import Ledger
from duelay.policies.pair_statistics import wins_and_count
from duelay.policies.policy import AnyLedgerPolicy
from duelay.policies.turn import select
from duelay.text import named


@named("policy", "rmed")
@dataclass(frozen=True, kw_only=True)
class RMED(AnyLedgerPolicy):
    """Relative Minimum Empirical Divergence: duel every arm that may still be the winner.

    I_i says how unlikely arm i is to be the winner: the sum of N~_ij d(mu^_ij, 1/2) over the arms j
    that seem to beat it. The arms whose I_i is within log t + 0.3 K^1.01 of the least take turns.
    Each duels the arm of least I if that arm seems to beat it, else the arm that beats it most
    clearly. An arm that no other seems to beat duels the arm of least I, mostly itself.

    Parameters
    ----------
    delay : Law, ByPair or str, optional
        The law that is assumed; None, the default, takes a silent duel for a lost one; ``"learn"``
        learns it from duels of two arms, by coin or in turns.
    order : str
        ``"coin"``, ``"alternate"`` or ``"champion"`` (the arm whose turn it is first).
    window : int, optional
        Ticks after which a conversion is no longer counted; None for no limit, or, where the law is
        learned, 10,000 ticks.
    self_duels : bool
        Whether the two arms of a duel may be the same; see `DoubleThompson`.

    Examples
    --------
    >>> RMED().start(3, seed=0).ask().id
    0

    References
    ----------
    Komiyama, Honda, Kashima, Nakagawa. Regret Lower Bound and Optimal Algorithm in Dueling Bandit
    Problem. COLT 2015, RMED1.
    """

    self_duels: bool = True

    def rule(self, n_arms: int) -> RMEDRule:
        """Return RMED1's rule."""
        return rmed_rule(n_arms)


class RMEDRule(NamedTuple):
    """The memory of RMED1."""

    slack: float  # f(K) = 0.3 K^1.01, the authors' choice
    turn: NDArray[np.bool_]  # (K,): L_R, arms whose turn in this loop is still to come
    next: NDArray[np.bool_]  # (K,): L_N, arms of the next loop
    place: NDArray[np.int64]  # (1,): where in the loop we are
    evidence: NDArray[np.float64]  # (K,): I_i
    wins: NDArray[np.float64]  # (K, K): wins and their number when each pair was last seen
    number: NDArray[np.float64]  # (K, K)
    term: NDArray[np.float64]  # (K, K): their evidence against i


def rmed_rule(n_arms: int) -> RMEDRule:
    """Return the rule at its start: every arm has its turn."""
    return RMEDRule(
        0.3 * n_arms**1.01,
        np.ones(n_arms, dtype=np.bool_),
        np.zeros(n_arms, dtype=np.bool_),
        np.zeros(1, dtype=np.int64),
        np.zeros(n_arms),
        np.zeros((n_arms, n_arms)),
        np.full((n_arms, n_arms), -1.0),
        np.zeros((n_arms, n_arms)),
    )


@kernel
def against(rule: RMEDRule, ledger: Ledger, i: int, j: int) -> float:
    """N_ij d(mu^_ij, 1/2) if j seems to beat i, else 0; computed anew only when it changes."""
    s, n = wins_and_count(ledger, i, j)
    if s != rule.wins[i, j] or n != rule.number[i, j]:
        rule.wins[i, j] = s
        rule.number[i, j] = n
        rule.term[i, j] = n * divergence(s / n) if n > 0.0 and s / n <= 0.5 else 0.0
    return float(rule.term[i, j])


@select.register(RMEDRule)
def _select(rule: RMEDRule, ledger: Ledger, t: int, rng: np.random.Generator) -> Any:
    k = ledger.plays.shape[0]
    for i in range(k):  # each pair once, first of all
        for j in range(i + 1, k):
            if ledger.plays[i, j] + ledger.plays[j, i] == 0:
                return i, j

    # I_i = sum over the arms that seem to beat i of N_ij d(mu^_ij, 1/2)  (Equation 4)
    best = 0
    for i in range(k):
        rule.evidence[i] = 0.0
        for j in range(k):
            if j != i:
                rule.evidence[i] += against(rule, ledger, i, j)
        if rule.evidence[i] < rule.evidence[best]:
            best = i

    while rule.place[0] < k and not rule.turn[rule.place[0]]:  # the next of this loop
        rule.place[0] += 1
    if rule.place[0] == k:  # a new loop: L_C, L_R <- L_N
        for i in range(k):
            rule.turn[i] = rule.next[i]
            rule.next[i] = False
        rule.place[0] = 0
        while rule.place[0] < k - 1 and not rule.turn[rule.place[0]]:
            rule.place[0] += 1
    arm = rule.place[0]

    # Its opponent: the best arm if that one, or none, seems to beat it; else its worst enemy.
    opponent, worst, n_enemies = best, 2.0, 0
    best_is_enemy = False
    for j in range(k):
        if j != arm:
            s, n = wins_and_count(ledger, arm, j)
            mean = s / n if n > 0.0 else 0.5
            if mean <= 0.5:
                n_enemies += 1
                best_is_enemy = best_is_enemy or j == best
            if mean < worst:
                worst = mean
                enemy = j
    if n_enemies > 0 and not best_is_enemy:
        opponent = enemy

    rule.turn[arm] = False
    limit = rule.evidence[best] + math.log(t) + rule.slack
    for j in range(k):  # J_j: arms that may still win have a turn in the next loop
        if not rule.turn[j] and rule.evidence[j] <= limit:
            rule.next[j] = True
    return arm, opponent
