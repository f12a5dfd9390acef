"""MRR-DB-Delay's rule, Algorithm 2: rounds of round robin, elimination at the end of each."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from duelay._core.jit import kernel
from duelay.ledger import Ledger
from duelay.ledger.assumption import FOREVER, share_first
from duelay.rules.turn import calm_until, select


class MRRDBRule(NamedTuple):
    """What MRR-DB-Delay remembers."""

    schedule: NDArray[np.int64]  # (rounds,): n_m; the round after the last lasts to the horizon
    ordered: bool  # whether (i, j) and (j, i) are two pairs
    active: NDArray[np.bool_]  # (K,): A_m
    drop: NDArray[np.bool_]  # (K,): arms about to be dropped
    round: NDArray[np.int64]  # (1,): m - 1


def mrr_db_rule(schedule: NDArray[np.int64], ordered: bool, n_arms: int) -> MRRDBRule:
    """Return the rule at the start of round 1."""
    return MRRDBRule(
        schedule,
        ordered,
        np.ones(n_arms, dtype=np.bool_),
        np.zeros(n_arms, dtype=np.bool_),
        np.zeros(1, dtype=np.int64),
    )


@kernel
def observed_mean(rule: MRRDBRule, ledger: Ledger, i: int, j: int) -> float:
    """Y bar_ij(m), the share of conversions heard among the duels of (i, j)  (line 11).

    Unordered pairs are played with the smaller index first, and Y bar_ji = 1 - Y bar_ij: Y <= X
    gives the other side of Lemma 3 by Hoeffding's inequality alone.
    """
    if rule.ordered or i < j:
        return float(share_first(ledger.assumed, ledger.plays, ledger.conversions, i, j))
    return 1.0 - float(share_first(ledger.assumed, ledger.plays, ledger.conversions, j, i))


@kernel
def end_round(rule: MRRDBRule, ledger: Ledger) -> None:
    """Drop i when some active j has Y bar_ij + gamma_m < 1/2  (line 13); gamma_m = 2^-m."""
    k = ledger.plays.shape[0]
    gamma = 0.5 ** (rule.round[0] + 1)
    n_active, n_drop = 0, 0
    for i in range(k):
        rule.drop[i] = False
        if rule.active[i]:
            n_active += 1
            for j in range(k):
                if rule.active[j] and j != i and observed_mean(rule, ledger, i, j) + gamma < 0.5:
                    rule.drop[i] = True
                    n_drop += 1
                    break
    if n_drop < n_active:  # a round that would drop every arm drops none
        for i in range(k):
            if rule.drop[i]:
                rule.active[i] = False
    rule.round[0] += 1


@kernel
def next_pair(rule: MRRDBRule, ledger: Ledger) -> Any:
    """Return the active pair that duels next in this round, -1 where the round is over.

    Pairs come one after the other, each until it has been played n_m times; in the round that lasts
    to the horizon, the one played least.
    """
    k = ledger.plays.shape[0]
    n_rounds = rule.schedule.size
    endless = rule.round[0] >= n_rounds
    first, second, fewest = -1, -1, 0
    for i in range(k):
        if rule.active[i]:
            for j in range(0 if rule.ordered else i + 1, k):
                if rule.active[j] and j != i:
                    n = ledger.plays[i, j]
                    if endless:
                        if first < 0 or n < fewest:
                            first, second, fewest = i, j, n
                    elif n < rule.schedule[rule.round[0]]:  # line 5
                        return i, j
    return first, second


@select.register(MRRDBRule)
def _select(rule: MRRDBRule, ledger: Ledger, t: int, rng: np.random.Generator) -> Any:
    k = ledger.plays.shape[0]
    while True:
        n_active, last = 0, 0
        for i in range(k):
            if rule.active[i]:
                n_active += 1
                last = i
        if n_active == 1:
            return last, last
        first, second = next_pair(rule, ledger)
        if first >= 0:
            return first, second
        end_round(rule, ledger)


@calm_until.register(MRRDBRule)
def _calm_until(rule: MRRDBRule, ledger: Ledger, arm: int, t: int) -> int:
    """The arm that is left stays: it duels itself for ever."""
    return FOREVER
