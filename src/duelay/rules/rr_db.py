"""RR-DB's rule (Saha and Gaillard, ICML 2022), on any ledger: round robin with elimination."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from duelay.assumed import FOREVER
from duelay.ledger import Ledger
from duelay.rules.turn import calm_until, is_beaten, select


class RRDBRule(NamedTuple):
    """What RR-DB remembers."""

    delta: float  # confidence of the bounds
    active: NDArray[np.bool_]  # (K,): arms still in play
    drop: NDArray[np.bool_]  # (K,): room for those about to leave


def rr_db_rule(delta: float, n_arms: int) -> RRDBRule:
    """Return the rule at its start: every arm is active."""
    return RRDBRule(delta, np.ones(n_arms, dtype=np.bool_), np.zeros(n_arms, dtype=np.bool_))


@select.register(RRDBRule)
def _select(rule: RRDBRule, ledger: Ledger, t: int, rng: np.random.Generator) -> Any:
    k = ledger.plays.shape[0]
    active, drop = rule.active, rule.drop
    width = math.log(k * t / rule.delta)  # Remark 1

    n_active = 0
    n_drop = 0
    last = 0
    for i in range(k):
        if active[i]:
            n_active += 1
            last = i
    if n_active == 1:
        return last, last

    for i in range(k):  # drop i when some active j has U_ij < 1/2
        drop[i] = False
        if active[i]:
            for j in range(k):
                if active[j] and j != i and is_beaten(ledger, i, j, width):
                    drop[i] = True
                    n_drop += 1
                    break
    if n_drop < n_active:  # bounds that drop every arm are wrong somewhere: drop none
        for i in range(k):
            if drop[i]:
                active[i] = False

    first, second, fewest = -1, -1, 0
    for i in range(k):
        if active[i]:
            for j in range(i + 1, k):
                if active[j]:
                    n = ledger.plays[i, j] + ledger.plays[j, i]
                    if first < 0 or n < fewest:
                        first, second, fewest = i, j, n
            last = i
    if first < 0:  # one arm is left: it duels itself
        return last, last
    return first, second


@calm_until.register(RRDBRule)
def _calm_until(rule: RRDBRule, ledger: Ledger, arm: int, t: int) -> int:
    """The arm that is left stays: it duels itself for ever."""
    return FOREVER
