"""Decide: ask where evidence is missing, until the ledger's bets declare a winner.

The leader is the arm with the least against it: the sum of N d(mu^, 1/2) over the opponents that
seem to beat it, as in RMED. Its rival is the opponent with the least 2 N g^2, among those that it
has not passed yet. 2 N g^2 is the evidence that N duels give in expectation, where g is the gap. N
also counts open duels, each for what it will tell. g is drawn from its posterior, so that no near
tie is left alone for long. Leader and rival depend on settled duels and on the number of open ones,
never on the order of an open duel.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from duelay._core.jit import kernel
from duelay.ledger import Ledger
from duelay.ledger.assumption import FOREVER
from duelay.ledger.declare import NOBODY, is_passed
from duelay.ledger.patience import worth
from duelay.rules.turn import calm_until, declared, select


class DecideRule(NamedTuple):
    """Nothing: all is in the ledger."""

    unused: int  # a record needs a field


@select.register(DecideRule)
def _select(rule: DecideRule, ledger: Ledger, t: int, rng: np.random.Generator) -> Any:
    bets = ledger.assumed
    if bets.winner[0] != NOBODY:
        return bets.winner[0], bets.winner[0]
    leader = find_leader(bets, rng)
    bets.leader[0] = leader
    return leader, find_rival(bets, leader, rng)


@kernel
def find_leader(bets: Any, rng: np.random.Generator) -> int:
    """Return the arm with the least doubts; of several, any. A rejected arm leads no more."""
    leader, least, n_ties = 0, math.inf, 0
    for i in range(bets.doubts.size):
        doubts = bets.doubts[i]
        if not bets.present[i]:
            continue
        if bets.winner_exists and bets.against[i] >= bets.level:
            doubts = 1e300
        if doubts < least:
            leader, least, n_ties = i, doubts, 1
        elif doubts == least:
            n_ties += 1
            if rng.random() * n_ties < 1.0:
                leader = i
    return leader


@kernel
def find_rival(bets: Any, leader: int, rng: np.random.Generator) -> int:
    """Return, of the opponents not passed yet, the one with the least 2 N g^2."""
    rival, least, n_ties = leader, math.inf, 0
    each = worth(bets)
    for j in range(bets.doubts.size):
        if j == leader or not bets.present[j]:
            continue
        if rival == leader:
            rival = j  # where all are passed
        if is_passed(bets, leader, j):
            continue
        n, still_open = bets.n[leader, j], each * bets.n_open[leader, j]
        cost = still_open - 1.0  # before anything is heard: the rival with the fewest open duels
        if n > 0.0:
            gap = 0.5 * bets.lead[leader, j] / n + 0.5 * rng.standard_normal() / math.sqrt(n)
            cost = 2.0 * (n + still_open) * max(gap, 0.0) ** 2
        if cost < least:
            rival, least, n_ties = j, cost, 1
        elif cost == least:
            n_ties += 1
            if rng.random() * n_ties < 1.0:
                rival = j
    return rival


@declared.register(DecideRule)
def _declared(rule: DecideRule, ledger: Ledger) -> Any:
    return ledger.assumed.winner[0]


@calm_until.register(DecideRule)
def _calm_until(rule: DecideRule, ledger: Ledger, arm: int, t: int) -> int:
    """A declared winner stays declared."""
    return FOREVER if ledger.assumed.winner[0] != NOBODY else t
