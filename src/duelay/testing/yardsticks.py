"""SAVAGE, a stopping rule to compare `Decide` with; text forms know it once this is imported."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

import duelay
from duelay.ledger import Ledger
from duelay.policies.pair_statistics import only_one, upper_bound
from duelay.policies.turn import declared, select
from duelay.text import named


class SAVAGERule(NamedTuple):
    """What SAVAGE remembers."""

    error: float
    active: Any  # (K,): arms still in play


@select.register(SAVAGERule)
def _savage(rule: SAVAGERule, ledger: Ledger, t: int, rng: np.random.Generator) -> Any:
    k = ledger.plays.shape[0]
    for i in range(k):
        for j in range(k):
            if i != j and rule.active[i] and rule.active[j]:
                n = ledger.plays[i, j] + ledger.plays[j, i]
                if n > 0:  # sum over pairs and n of 2 exp(-2 n c^2) is the error, at most
                    width = 0.5 * math.log(math.pi**2 * k * k * n * n / (3.0 * rule.error))
                    if upper_bound(ledger, i, j, width) < 0.5:
                        rule.active[i] = False
    first = second = only_one(rule.active)
    least = 1 << 62
    for i in range(k):
        for j in range(i + 1, k):
            n = ledger.plays[i, j] + ledger.plays[j, i]
            if rule.active[i] and rule.active[j] and n < least:
                first, second, least = i, j, n
    return first, second


@declared.register(SAVAGERule)
def _savage_declared(rule: SAVAGERule, ledger: Ledger) -> int:
    return only_one(rule.active)


@named("policy", "savage")
@dataclass(frozen=True)
class SAVAGE(duelay.RRDBDelay):
    """SAVAGE with corrected bounds.

    All pairs take turns. The bounds hold for all pairs and all numbers of duels together. It must
    be given the delay law.

    References
    ----------
    Urvoy, Clerot, Féraud, Naamane. Generic Exploration and K-armed Voting Bandits. ICML 2013.
    """

    def rule(self, n_arms: int) -> Any:
        """Return SAVAGE's rule."""
        return SAVAGERule(self.delta, np.ones(n_arms, dtype=np.bool_))
