"""The compiled loop: one for every rule, every ledger and every law."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from duelay._jit import kernel
from duelay.assumed import settles
from duelay.engine.world import NOBODY, World, duel, take_due
from duelay.ledger import Ledger, hear
from duelay.rules.turn import calm_until, turn


class Tally(NamedTuple):
    """What is recorded of a run, and where it stands."""

    gaps: NDArray[np.float64]  # (K,): Delta_i
    t: NDArray[np.int64]  # (checkpoints,)
    regret: NDArray[np.float64]  # (checkpoints,): R(t), filled in as ticks pass
    pairs: NDArray[np.int64]  # (checkpoints, K, K): plays by then; (0, K, K) to leave them out
    total: NDArray[np.float64]  # (1,): R so far
    done: NDArray[np.int64]  # (2,): ticks played, checkpoints passed
    last: NDArray[np.int64]  # (3,): the pair in play, and the last tick of a duel of two arms


def new_tally(
    gaps: NDArray[np.float64], ticks: NDArray[np.int64], with_pairs: bool = False
) -> Tally:
    """Return the tally of a run that has not begun."""
    return Tally(
        gaps=gaps,
        t=ticks,
        regret=np.zeros(len(ticks)),
        pairs=np.zeros((len(ticks) if with_pairs else 0, len(gaps), len(gaps)), dtype=np.int64),
        total=np.zeros(1),
        done=np.zeros(2, dtype=np.int64),
        last=np.zeros(3, dtype=np.int64),
    )


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
    """Play from where the tally stands until tick `until`; go on later by calling it again.

    Where an arm duels itself and nothing is on its way, the rule says how long that will last, and
    the ticks until then pass without being looked at: they take the draws that they would have
    taken, so that the duels are the same.
    """
    gaps, ticks, regret, last = tally.gaps, tally.t, tally.regret, tally.last
    conversions = ledger.conversions
    total = tally.total[0]
    passed = tally.done[1]
    settled = settles(ledger.assumed)
    t = tally.done[0]
    while t < until:
        t += 1
        if is_aggregated:  # the policy learns their number, nothing else
            conversions[last[0], last[1]] += count_due(world, t)
        else:
            hear_due(ledger, world, t)
        i, j = turn(rule, ledger, t, policy_rng)
        duel(world, i, j, t, world_rng)
        last[0] = i
        last[1] = j
        total += (gaps[i] + gaps[j]) / 2  # Equation 1
        if passed < ticks.size and t == ticks[passed]:
            regret[passed] = total
            note_pairs(tally, ledger, passed)
            passed += 1
        if i != j:
            last[2] = t
        elif world.waiting[0] == 0 and t - last[2] >= settled:
            calm = min(calm_until(rule, ledger, i, t), until)
            if passed < ticks.size:  # be there to take it down
                calm = min(calm, ticks[passed] - 1)
            if calm > t:
                total = wait(ledger, is_aggregated, world, t, calm, i, gaps[i], total, world_rng)
                t = calm
    tally.total[0] = total
    tally.done[0] = until
    tally.done[1] = passed


@kernel
def wait(
    ledger: Ledger,
    is_aggregated: bool,
    world: World,
    t: int,
    calm: int,
    arm: int,
    gap: float,
    total: float,
    world_rng: np.random.Generator,
) -> float:
    """Let an arm duel itself from tick t + 1 to tick `calm`; return the regret by then."""
    for tick in range(t + 1, min(calm, t + world.wheel.size) + 1):  # self-duels on their way
        if is_aggregated:
            ledger.conversions[arm, arm] += count_due(world, tick)
        else:
            hear_due(ledger, world, tick)
    ledger.plays[arm, arm] += calm - t
    for _ in range(calm - t):
        world_rng.random()
        world_rng.random()
    if gap > 0.0:  # one by one, as it would have been added up
        for _ in range(calm - t):
            total += gap
    return total


@kernel
def note_pairs(tally: Tally, ledger: Ledger, passed: int) -> None:
    """Take down the plays by this checkpoint, where they are asked for."""
    if tally.pairs.shape[0] > 0:
        for i in range(tally.gaps.size):
            for j in range(tally.gaps.size):
                tally.pairs[passed, i, j] = ledger.plays[i, j]


@kernel
def hear_due(ledger: Ledger, world: World, t: int) -> None:
    """Write down each conversion due at tick t."""
    entry = take_due(world, t)
    while entry != NOBODY:
        hear(ledger, world.first[entry], world.second[entry], world.born[entry], t)
        entry = take_due(world, t)


@kernel
def count_due(world: World, t: int) -> int:
    """Return how many conversions are due at tick t, and forget whose they were."""
    n = 0
    while take_due(world, t) != NOBODY:
        n += 1
    return n
