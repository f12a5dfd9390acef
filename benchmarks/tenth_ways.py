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
from duelay._core.jit.decorators import kernel
from duelay.ledger import Ledger
from duelay.ledger.delay_models.base import (
    advance,
    convert,
    enter,
    epoch,
    expected,
    final_age,
    pair_counts,
)
from duelay.policies import maillard
from duelay.policies.turn import select

# --- the rule of Maillard sampling, with something else in one place ----------------------------


class VariantRule(NamedTuple):
    """Maillard sampling, and what is done in another way."""

    base: maillard.MaillardRule
    share: float  # of its holder's evidence that the leader needs to be a challenger's opponent
    slow: float  # exp(-D) / (1 + slow D)
    is_shy: bool  # whether chances are over the sum of all, the leader's included
    is_sum: bool  # whether evidence adds up over opponents
    forced: float  # every arm challenges with the chance forced / t, at the least
    is_kind: bool  # whether the runner-up challenges with exp(-D)
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
    least, runner = against(rule, base.leader[0]), maillard.runner_up(base)
    for i in range(base.weight.size):
        d = against(rule, i)
        base.weight[i] = math.exp(least - d) * (1.0 + rule.slow * least)
        if base.lowest[i] != runner or not rule.is_kind:
            base.weight[i] /= 1.0 + rule.slow * d
        base.weight[i] = max(base.weight[i], rule.forced / rule.since[0])
        if i != base.leader[0]:
            total += base.weight[i]
    return min(total / (1.0 + total) if rule.is_shy else total, 1.0 - 1e-15)


@select.register(VariantRule)
def _select(rule: VariantRule, ledger: Ledger, t: int, rng: np.random.Generator) -> Any:
    base = rule.base
    before = base.seen_news[0]
    if maillard.believe(base, ledger, t):
        if base.seen_news[0] != before:
            rule.since[0] = t
        find_holders(rule)
        maillard.find_leader(base, rng)
        maillard.set_chance(base, weigh(rule))
    if not maillard.is_challenged(base, rng):
        return base.leader[0], base.leader[0]
    base.asked[0] = t
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
    is_kind: bool = True

    def rule(self, n_arms: int) -> Any:
        return VariantRule(
            maillard.maillard_rule(self.spread, self.noise, self.beyond, n_arms),
            self.share,
            self.slow,
            self.is_shy,
            self.is_sum,
            self.forced,
            self.is_kind,
            np.zeros(n_arms, dtype=np.int64),
            np.ones(1, dtype=np.int64),
        )


# --- double Thompson sampling on a ledger that says something else ------------------------------


class Weighed(NamedTuple):
    """A learned ledger whose counts are scaled, and that begins with some of a ranking's."""

    inner: Any
    scale: float  # of all counts
    begin: float  # duels that every pair is taken to have had before, at the ranking's odds
    plays: Any  # (K, K): of the ledger
    conversions: Any  # (K, K)
    base: maillard.MaillardRule  # whose strengths are the ranking


@advance.register(Weighed)
def _advance(assumed: Weighed, t: int) -> None:
    advance(assumed.inner, t)
    if assumed.begin > 0.0:
        k = assumed.plays.shape[0]
        i = t % k  # the pairs of one arm a tick, and one sweep over all in as many ticks as arms
        for j in range(k):
            if j != i:
                read(assumed, i, j)
        if i == 0:
            maillard.rate(assumed.base)


@kernel
def read(assumed: Any, i: int, j: int) -> None:
    """Take what a pair tells of the strengths."""
    base = assumed.base
    _, n, s = pair_counts(assumed.inner, assumed.plays, assumed.conversions, i, j)
    pull = 4.0 * n / (1.0 + base.noise * base.noise * 4.0 * n)
    lift = pull * (min(max(s / n, 0.0), 1.0) - 0.5) if n > 0.0 else 0.0
    base.pull[i, j] = base.pull[j, i] = pull
    base.lift[i, j] = lift
    base.lift[j, i] = -lift


@enter.register(Weighed)
def _enter(assumed: Weighed, i: int, j: int, t: int) -> None:
    enter(assumed.inner, i, j, t)


@convert.register(Weighed)
def _convert(assumed: Weighed, born: int, t: int) -> None:
    convert(assumed.inner, born, t)


@expected.register(Weighed)
def _expected(assumed: Weighed, plays: Any, i: int, j: int) -> float:
    return expected(assumed.inner, plays, i, j)


@final_age.register(Weighed)
def _final_age(assumed: Weighed) -> int:
    return final_age(assumed.inner)


@epoch.register(Weighed)
def _epoch(assumed: Weighed) -> int:
    return epoch(assumed.inner)


@pair_counts.register(Weighed)
def _evidence(assumed: Weighed, plays: Any, conversions: Any, i: int, j: int) -> Any:
    n, n_tilde, s = pair_counts(assumed.inner, plays, conversions, i, j)
    theta = assumed.base.strength
    odds = min(max(0.5 + theta[i] - theta[j], 0.0), 1.0)
    s = assumed.scale * min(max(s, 0.0), n_tilde) + assumed.begin * odds
    return n, assumed.scale * n_tilde + assumed.begin, s


@dataclass(frozen=True)
class WeighedThompson(duelay.DoubleThompson):
    """Double Thompson sampling with scaled counts, or with those of a ranking to begin with."""

    scale: float = 1.0
    begin: float = 0.0

    def ledger(self, n_arms: int, *, by_clock: bool = False) -> Ledger:
        ledger = super().ledger(n_arms, by_clock=by_clock)
        base = maillard.maillard_rule(0.15, 0.1, 0.5, n_arms)
        assumed = Weighed(
            ledger.assumed, self.scale, self.begin, ledger.plays, ledger.conversions, base
        )
        return ledger._replace(assumed=assumed)


LEARNED = {"delay": "learn", "order": "coin"}
TODAY, BEST, THEIRS = "recommended", "Maillard sampling", "RUCB-Delay"
WAYS: dict[str, Any] = {
    TODAY: duelay.recommend().policy,
    "the same, in turns": duelay.DoubleThompson(delay="learn", order="alternate"),
    "the same, counts times 1.5": WeighedThompson(**LEARNED, scale=1.5),
    "the same, counts times 2": WeighedThompson(**LEARNED, scale=2.0),
    "the same, beginning with a ranking": WeighedThompson(**LEARNED, begin=4.0),
    BEST: duelay.MaillardSampling(),
    "the same, the ranking unbounded": Variant(beyond=1e9),
    "the same, no ranking": Variant(spread=1.0, noise=1.0),
    "the same, evidence adds up": Variant(is_sum=True),
    "the same, chances over their sum": Variant(is_shy=True),
    "the same, against the holder": Variant(share=1.0),
    "the same, against the holder unless the leader has half of its evidence": Variant(share=0.5),
    "the same, exp(-D) / (1 + D) for the runner-up too": Variant(is_kind=False),
    "the same, exp(-D) for all": Variant(slow=0.0),
    "the same, a challenge of each arm by 1 / t at least": Variant(forced=1.0),
    THEIRS: duelay.RUCBDelay(delay="geometric:0.01", window=1000),
}
TUNED = [way for way in WAYS if way != THEIRS]
