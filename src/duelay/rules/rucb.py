"""RUCB's rule (Zoghi et al., ICML 2014, Algorithm 1), on any ledger.

With the true law's ledger it is RUCB-Delay, Algorithm 1 of the paper.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from duelay.ledger import Ledger
from duelay.rules.turn import select, upper_bound


class RUCBRule(NamedTuple):
    """What RUCB remembers. Line numbers are those of Algorithm 1 in the ICML edition."""

    alpha: float  # width of the bounds
    champion: NDArray[np.int64]  # (1,), B: the hypothesised best arm, -1 for none
    pool: NDArray[np.int64]  # (K,), room for C: arms that no other one beats for certain


def rucb_rule(alpha: float, n_arms: int) -> RUCBRule:
    """Return the rule at its start."""
    return RUCBRule(alpha, np.full(1, -1, dtype=np.int64), np.zeros(n_arms, dtype=np.int64))


@select.register(RUCBRule)
def _select(rule: RUCBRule, ledger: Ledger, t: int, rng: np.random.Generator) -> Any:
    k = ledger.plays.shape[0]
    pool = rule.pool
    width = rule.alpha * math.log(t)  # Equation 5
    champion = rule.champion[0]

    n_pool = 0  # line 6: C, with U_ii = 1/2
    champion_stays = False
    for i in range(k):
        beaten = False
        for j in range(k):
            if j != i and upper_bound(ledger, i, j, width) < 0.5:
                beaten = True
                break
        if not beaten:
            pool[n_pool] = i
            n_pool += 1
            if i == champion:
                champion_stays = True

    if not champion_stays:  # line 8: B <- B intersected with C
        champion = -1
    if n_pool == 0:  # line 7: any arm
        c = int(rng.random() * k)
    elif n_pool == 1:  # line 9: B <- C
        c = pool[0]
        champion = c
    elif champion < 0:  # line 11 with B empty: all of C alike
        c = pool[int(rng.random() * n_pool)]
    elif rng.random() < 0.5:  # line 11: B with probability 1/2 ...
        c = champion
    else:  # ... otherwise the rest of C alike
        place = int(rng.random() * (n_pool - 1))
        c = pool[place]
        if c >= champion:  # C is in ascending order: step over B
            c = pool[place + 1]
    rule.champion[0] = champion

    # Line 13. The paper's text maximises U[u, v]; RUCB, and the paper's proof, take the arm most
    # able to beat c, U[v, c]. With ties at the top (U_cc = 1/2 included), it is not c.
    best = -math.inf
    ties = 0
    d = c
    for j in range(k):
        if j != c:
            bound = upper_bound(ledger, j, c, width)
            if bound > best:
                best, d, ties = bound, j, 1
            elif bound == best:
                ties += 1
                if rng.random() * ties < 1.0:
                    d = j
    if best < 0.5:
        d = c
    return c, d
