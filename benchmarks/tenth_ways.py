"""The candidates of `tenth.py`: policies of one's own, beside those of the library.

Two kinds: the rule of `MaillardSampling` with something else in one place, and double Thompson
sampling on a ledger that says something else.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

import duelay
from duelay._core.jit import kernel
from duelay.ledger import Ledger
from duelay.ledger.assumption import advance, convert, enter, epoch, evidence, expected, settles
from duelay.rules import maillard
from duelay.rules.turn import select

# --- the rule of Maillard sampling, with something else in one place ----------------------------


class VariantRule(NamedTuple):
    """Maillard sampling, and what is done in another way."""

    base: maillard.MaillardRule
    share: float  # of its holder's evidence that the leader needs to be a challenger's opponent
    slow: float  # exp(-D) / (1 + slow D)
    is_shy: bool  # whether chances are over the sum of all, the leader's included
    is_sum: bool  # whether evidence adds up over opponents
    forced: float  # every arm challenges with the chance forced / t, at the least
    holder: Any  # (K,): who beats each arm most surely
    since: Any  # (1,): the tick of the last news


@kernel
def find_holders(rule: Any) -> None:
    """Find for each arm who beats it most surely; where evidence adds up, its sum is the lowest."""
    base = rule.base
    k = base.strength.size
    for i in range(k):
        lowest, total = math.inf, 0.0
        for j in range(k):
            if j != i:
                z = maillard.ratio(base, i, j)
                total += maillard.doubt(z)
                if z < lowest:
                    lowest = z
                    rule.holder[i] = j
        base.lowest[i] = -total if rule.is_sum else lowest


@kernel
def against(rule: Any, i: int) -> float:
    """D_i."""
    return -rule.base.lowest[i] if rule.is_sum else maillard.doubt(rule.base.lowest[i])


@kernel
def weigh(rule: Any) -> float:
    """Weigh all arms, and return the chance that one challenges the leader."""
    base, total = rule.base, 0.0
    least = against(rule, base.leader[0])
    for i in range(base.weight.size):
        d = against(rule, i)
        base.weight[i] = math.exp(least - d) * (1.0 + rule.slow * least) / (1.0 + rule.slow * d)
        base.weight[i] = max(base.weight[i], rule.forced / rule.since[0])
        if i != base.leader[0]:
            total += base.weight[i]
    return min(total / (1.0 + total) if rule.is_shy else total, 1.0 - 1e-15)


@select.register(VariantRule)
def _select(rule: VariantRule, ledger: Ledger, t: int, rng: np.random.Generator) -> Any:
    base = rule.base
    before = base.heard[0]
    if maillard.believe(base, ledger, t):
        if base.heard[0] != before:
            rule.since[0] = t
        find_holders(rule)
        maillard.find_leader(base, rng)
        maillard.set_chance(base, weigh(rule))
    if not maillard.is_challenged(base, rng):
        return base.leader[0], base.leader[0]
    arm = maillard.challenger(base, rng)
    other = base.leader[0]
    if maillard.doubt(maillard.ratio(base, arm, other)) < rule.share * against(rule, arm):
        other = rule.holder[arm]
    return other, arm


@dataclass(frozen=True, kw_only=True)
class Variant(duelay.MaillardSampling):
    """Maillard sampling, with something else in one place."""

    spread: float = 0.15
    noise: float = 0.1
    beyond: float = 0.5
    share: float = 0.0
    slow: float = 1.0
    is_shy: bool = False
    is_sum: bool = False
    forced: float = 0.0

    def rule(self, n_arms: int) -> Any:
        return VariantRule(
            maillard.maillard_rule(self.spread, self.noise, self.beyond, n_arms),
            self.share,
            self.slow,
            self.is_shy,
            self.is_sum,
            self.forced,
            np.zeros(n_arms, dtype=np.int64),
            np.ones(1, dtype=np.int64),
        )
