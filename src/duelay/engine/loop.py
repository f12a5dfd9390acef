"""The compiled loop: one for every rule, every ledger and every law."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from duelay._core.jit import entry, kernel
from duelay.engine.world import NOBODY, World, duel, take_due
from duelay.ledger import Ledger, hear, hear_vote
from duelay.ledger.assumption import FOREVER, next_look, settles
from duelay.rules.turn import calm_until, turn

_LONG = 10_000  # ticks: to take their draws one by one costs more than to come back for it


class Tally(NamedTuple):
    """What is recorded of a run, and where it stands."""

    gaps: NDArray[np.float64]  # (K,): Delta_i
    t: NDArray[np.int64]  # (checkpoints,)
    regret: NDArray[np.float64]  # (checkpoints,): R(t), filled in as ticks pass
    pairs: NDArray[np.int64]  # (checkpoints, K, K): plays by then; (0, K, K) to leave them out
    shown: NDArray[np.int64]  # (K,): how often each arm has been in a duel, a self-duel twice
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
        shown=np.zeros(len(gaps), dtype=np.int64),
        done=np.zeros(2, dtype=np.int64),
        last=np.zeros(3, dtype=np.int64),
    )


def run(
    rule: Any,
    ledger: Ledger,
    counts_only: bool,
    world: World,
    tally: Tally,
    until: int,
    world_rng: np.random.Generator,
    policy_rng: np.random.Generator,
) -> None:
    """Play from where the tally stands until tick `until`; go on later by calling it again.

    Where an arm duels itself and nothing is on its way, the rule says how long that will last, and
    the ticks until then pass without being looked at. The draws that they would have taken are
    stepped over, so that the duels are the same.
    """
    while True:
        passed = play(rule, ledger, counts_only, world, tally, until, world_rng, policy_rng)
        if passed > 0:
            world_rng.bit_generator.advance(2 * passed)  # type: ignore[attr-defined]
        if tally.done[0] >= until:
            return


@entry
def play(
    rule: Any,
    ledger: Ledger,
    counts_only: bool,
    world: World,
    tally: Tally,
    until: int,
    world_rng: np.random.Generator,
    policy_rng: np.random.Generator,
) -> int:
    """`play_ticks`, for Python to call."""
    return play_ticks(rule, ledger, counts_only, world, tally, until, world_rng, policy_rng)


@kernel
def play_ticks(
    rule: Any,
    ledger: Ledger,
    counts_only: bool,
    world: World,
    tally: Tally,
    until: int,
    world_rng: np.random.Generator,
    policy_rng: np.random.Generator,
) -> int:
    """Play until tick `until`, or until a long calm has passed; return the ticks without draws."""
    last, shown = tally.last, tally.shown
    conversions = ledger.conversions
    settled = settles(ledger.assumed)
    t, skipped = tally.done[0], 0
    while t < until and skipped == 0:
        t += 1
        if counts_only:  # the policy learns their number, nothing else
            conversions[last[0], last[1]] += count_due(world, t)
        else:
            hear_due(ledger, world, t)
        i, j = turn(rule, ledger, t, policy_rng)
        duel(world, i, j, t, world_rng)
        last[0] = i
        last[1] = j
        shown[i] += 1
        shown[j] += 1
        tally.done[0] = t
        if t == next_checkpoint(tally):
            take_down(tally, ledger.plays)
        if i != j:
            last[2] = t
        elif world.waiting[0] == 0 and t - last[2] >= settled:
            calm = min(calm_until(rule, ledger, i, t), until, next_look(ledger.assumed) - 1)
            if calm > t:
                hear_until(ledger, counts_only, world, t, calm, i)
                repeat(ledger, tally, i, i, calm - t)
                if calm - t > _LONG:
                    skipped = calm - t
                else:
                    for _ in range(2 * (calm - t)):
                        world_rng.random()
                t = calm
    return int(skipped)


@kernel
def hear_until(
    ledger: Ledger, counts_only: bool, world: World, t: int, calm: int, arm: int
) -> None:
    """Hear of the self-duels that are on their way."""
    for tick in range(t + 1, min(calm, t + world.wheel.size) + 1):
        if counts_only:
            ledger.conversions[arm, arm] += count_due(world, tick)
        else:
            hear_due(ledger, world, tick)


@kernel
def repeat(ledger: Ledger, tally: Tally, i: int, j: int, n: int) -> None:
    """Let i and j duel for n ticks at once, stopping only where something is to be taken down."""
    end = tally.done[0] + n
    while tally.done[0] < end:
        stop = min(end, next_checkpoint(tally))
        ticks = stop - tally.done[0]
        ledger.plays[i, j] += ticks
        tally.shown[i] += ticks
        tally.shown[j] += ticks
        tally.done[0] = stop
        if stop == next_checkpoint(tally):
            take_down(tally, ledger.plays)


@kernel
def next_checkpoint(tally: Tally) -> Any:
    """Return the tick of the next checkpoint, FOREVER after the last."""
    return tally.t[tally.done[1]] if tally.done[1] < tally.t.size else FOREVER


@kernel
def take_down(tally: Tally, plays: NDArray[np.int64]) -> None:
    """Take down the regret by this checkpoint, and the plays where they are asked for."""
    passed = tally.done[1]
    tally.regret[passed] = regret_so_far(tally)
    if tally.pairs.shape[0] > 0:
        for i in range(tally.gaps.size):
            for j in range(tally.gaps.size):
                tally.pairs[passed, i, j] = plays[i, j]
    tally.done[1] = passed + 1


@kernel
def regret_so_far(tally: Tally) -> float:
    """R(t) = sum of (Delta_i + Delta_j) / 2 over the duels so far (Equation 1), arm by arm."""
    total = 0.0
    for i in range(tally.gaps.size):
        total += tally.gaps[i] * tally.shown[i]
    return total / 2


@kernel
def hear_due(ledger: Ledger, world: World, t: int) -> None:
    """Write down each answer due at tick t."""
    entry = take_due(world, t)
    while entry != NOBODY:
        hear_entry(ledger, world, entry, t)
        entry = take_due(world, t)


@kernel
def hear_entry(ledger: Ledger, world: World, entry: int, t: int) -> None:
    """Write down one answer, heard at tick t."""
    i, j = world.first[entry], world.second[entry]
    if world.is_vote:
        hear_vote(ledger, i, j, 1.0 if world.won[entry] else 0.0)
    else:
        hear(ledger, i, j, world.born[entry], t)


@kernel
def count_due(world: World, t: int) -> int:
    """Return how many conversions are due at tick t, and forget whose they were."""
    n = 0
    while take_due(world, t) != NOBODY:
        n += 1
    return n
