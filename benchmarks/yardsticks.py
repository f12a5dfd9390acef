"""Policies written the plain way, for benchmarks and tests to compare the fast ones with.

They run in the same compiled loop, tick by tick, look at all K² pairs and draw all Betas. They
repeat code of the fast rules rather than call it, so that errors are not shared.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

import duelay
from duelay.ledger import Ledger
from duelay.policies.pair_statistics import upper_bound, wins_and_count
from duelay.policies.turn import select


class PlainRUCBRule(NamedTuple):
    """What the plain RUCB remembers."""

    alpha: float
    champion: Any
    upper: Any
    pool: Any


@select.register(PlainRUCBRule)
def _rucb(rule: PlainRUCBRule, ledger: Ledger, t: int, rng: np.random.Generator) -> Any:
    k = ledger.plays.shape[0]
    upper, pool = rule.upper, rule.pool
    for i in range(k):
        for j in range(k):
            upper[i, j] = 0.5
            if i != j:
                upper[i, j] = upper_bound(ledger, i, j, rule.alpha * math.log(t))
    n_pool, champion_stays = 0, False
    for i in range(k):
        is_in = True
        for j in range(k):
            is_in = is_in and upper[i, j] >= 0.5
        if is_in:
            pool[n_pool] = i
            n_pool += 1
            champion_stays = champion_stays or i == rule.champion[0]
    if not champion_stays:
        rule.champion[0] = -1
    if n_pool == 0:
        c = int(rng.random() * k)
    elif n_pool == 1:
        c = pool[0]
        rule.champion[0] = c
    elif rule.champion[0] < 0:
        c = pool[int(rng.random() * n_pool)]
    elif rng.random() < 0.5:
        c = rule.champion[0]
    else:
        place = int(rng.random() * (n_pool - 1))
        c = pool[place]
        if c >= rule.champion[0]:
            c = pool[place + 1]
    d, best, ties = c, 0.5, 0
    for j in range(k):
        if j != c and upper[j, c] >= best:
            ties = 1 if ties == 0 or upper[j, c] > best else ties + 1
            best = upper[j, c]
            if ties == 1 or rng.random() * ties < 1.0:
                d = j
    return c, d


@dataclass(frozen=True)
class PlainRUCBDelay(duelay.RUCBDelay):
    """RUCB-Delay by a K² loop."""

    def rule(self, n_arms: int) -> Any:
        """Return the plain rule."""
        return PlainRUCBRule(
            self.alpha,
            np.full(1, -1, dtype=np.int64),
            np.zeros((n_arms, n_arms)),
            np.zeros(n_arms, dtype=np.int64),
        )


class PlainThompsonRule(NamedTuple):
    """What the plain double Thompson sampling remembers."""

    alpha: float
    wins: Any


@select.register(PlainThompsonRule)
def _thompson(rule: PlainThompsonRule, ledger: Ledger, t: int, rng: np.random.Generator) -> Any:
    k = ledger.plays.shape[0]
    width = rule.alpha * math.log(t)
    wins = rule.wins
    best = -1
    for i in range(k):
        wins[i] = 0
        for j in range(k):
            if j != i:
                s, n = wins_and_count(ledger, i, j)
                if n <= 0.0 or s / n + math.sqrt(width / n) > 0.5:
                    wins[i] += 1
        best = max(best, wins[i])
    for i in range(k):
        wins[i] = 0 if wins[i] == best else -k
    for i in range(k):
        for j in range(i + 1, k):
            s, n = wins_and_count(ledger, i, j)
            if rng.beta(s + 1.0, n - s + 1.0) > 0.5:
                wins[i] += 1
            else:
                wins[j] += 1
    first, ties = 0, 0
    for i in range(k):
        if ties == 0 or wins[i] > wins[first]:
            first, ties = i, 1
        elif wins[i] == wins[first]:
            ties += 1
            if rng.random() * ties < 1.0:
                first = i
    second, strongest = first, 0.5
    for i in range(k):
        if i != first:
            s, n = wins_and_count(ledger, i, first)
            if n <= 0.0 or s / n - math.sqrt(width / n) <= 0.5:
                theta = rng.beta(s + 1.0, n - s + 1.0)
                if theta > strongest:
                    second, strongest = i, theta
    return first, second


@dataclass(frozen=True)
class PlainDoubleThompson(duelay.DoubleThompson):
    """Double Thompson sampling that draws every Beta."""

    def rule(self, n_arms: int) -> Any:
        """Return the plain rule."""
        return PlainThompsonRule(self.alpha, np.zeros(n_arms, dtype=np.int64))


class TickByTickRule(NamedTuple):
    """Any rule, wrapped so that the loop cannot skip calm ticks."""

    inner: Any  # the rule itself


@select.register(TickByTickRule)
def _tick_by_tick(rule: TickByTickRule, ledger: Ledger, t: int, rng: np.random.Generator) -> Any:
    return select(rule.inner, ledger, t, rng)


@dataclass(frozen=True)
class TickByTickRUCBDelay(duelay.RUCBDelay):
    """RUCB-Delay that looks at every tick."""

    def rule(self, n_arms: int) -> Any:
        """Return the rule, wrapped."""
        return TickByTickRule(super().rule(n_arms))


class SamePairRule(NamedTuple):
    """The same pair for ever."""

    second: int


@select.register(SamePairRule)
def _same_pair(rule: SamePairRule, ledger: Ledger, t: int, rng: np.random.Generator) -> Any:
    return 0, rule.second


@dataclass(frozen=True)
class SamePair(duelay.DoubleThompson):
    """The same pair at every tick: its cost is that of the world, the ledger and the loop."""

    second: int = 1

    def rule(self, n_arms: int) -> Any:
        """Return a rule that always gives the same pair."""
        return SamePairRule(self.second)
