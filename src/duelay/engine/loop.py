"""The compiled loop: one for every rule, every ledger and every law."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from duelay._jit import kernel
from duelay.engine.world import NOBODY, World, duel, take_due
from duelay.ledger import Ledger
from duelay.rules.turn import turn


class Tally(NamedTuple):
    """What is recorded of a run, and where it stands."""

    gaps: NDArray[np.float64]  # (K,): Delta_i
    t: NDArray[np.int64]  # (checkpoints,)
    regret: NDArray[np.float64]  # (checkpoints,): R(t), filled in as ticks pass
    total: NDArray[np.float64]  # (1,): R so far
    done: NDArray[np.int64]  # (2,): ticks played, checkpoints passed
    last: NDArray[np.int64]  # (2,): the pair in play


@kernel
def run(
    rule: Any,
    ledger: Ledger,
    is_aggregated: bool,
    world: World,
    tally: Tally,
    until: int,
    world_rng: np.random.Generator,
    policy_rng: np.random.Generator,
) -> None:
    """Play from where the tally stands until tick `until`; go on later by calling it again."""
    gaps, ticks, regret, last = tally.gaps, tally.t, tally.regret, tally.last
    conversions = ledger.conversions
    total = tally.total[0]
    passed = tally.done[1]
    for t in range(tally.done[0] + 1, until + 1):
        if is_aggregated:  # the policy learns their number, nothing else
            conversions[last[0], last[1]] += count_due(world, t)
        else:
            hear_due(conversions, world, t)
        i, j = turn(rule, ledger, t, policy_rng)
        duel(world, i, j, t, world_rng)
        last[0] = i
        last[1] = j
        total += (gaps[i] + gaps[j]) / 2  # Equation 1
        if passed < ticks.size and t == ticks[passed]:
            regret[passed] = total
            passed += 1
    tally.total[0] = total
    tally.done[0] = until
    tally.done[1] = passed


@kernel
def hear_due(conversions: NDArray[np.int64], world: World, t: int) -> None:
    """Write down each conversion due at tick t."""
    entry = take_due(world, t)
    while entry != NOBODY:
        conversions[world.first[entry], world.second[entry]] += 1
        entry = take_due(world, t)


@kernel
def count_due(world: World, t: int) -> int:
    """Return how many conversions are due at tick t, and forget whose they were."""
    n = 0
    while take_due(world, t) != NOBODY:
        n += 1
    return n
