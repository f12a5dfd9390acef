"""A tick's bookkeeping, shared by all loops: hear what is due, count the duel, note the regret.

State that changes is an array of one number, ``(1,)``: kernels write into it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from duelay._core.jit import kernel
from duelay.engine.world import NOBODY, World, take_due
from duelay.ledger import Ledger, hear, hear_vote
from duelay.ledger.assumption import FOREVER
from duelay.policies.turn import declared


class Tally(NamedTuple):
    """What is recorded of a run, and where it stands."""

    gaps: NDArray[np.float64]  # (K,): Delta_i
    checkpoints: NDArray[np.int64]  # (C,): the ticks at which regret is recorded
    regret: NDArray[np.float64]  # (C,): R(t), filled in as ticks pass
    pairs: NDArray[np.int64]  # (C, K, K): plays by then; (0, K, K) to leave them out
    shown: NDArray[np.int64]  # (K,): how often each arm has been in a duel, a self-duel twice
    tick: NDArray[np.int64]  # (1,): ticks played
    passed: NDArray[np.int64]  # (1,): checkpoints passed
    first: NDArray[np.int64]  # (1,): the pair in play
    second: NDArray[np.int64]  # (1,)
    last_of_two: NDArray[np.int64]  # (1,): the tick of the last duel of two different arms
    stops: bool  # whether the run ends when a winner is declared
    stopped: NDArray[np.int64]  # (1,): the duels asked by then; 0 before


def new_tally(
    gaps: NDArray[np.float64],
    checkpoints: NDArray[np.int64],
    with_pairs: bool = False,
    stops: bool = False,
) -> Tally:
    """Return the tally of a run that has not begun."""
    n, k = len(checkpoints), len(gaps)
    return Tally(
        gaps=gaps,
        checkpoints=checkpoints,
        regret=np.zeros(n),
        pairs=np.zeros((n if with_pairs else 0, k, k), dtype=np.int64),
        shown=np.zeros(k, dtype=np.int64),
        tick=np.zeros(1, dtype=np.int64),
        passed=np.zeros(1, dtype=np.int64),
        first=np.zeros(1, dtype=np.int64),
        second=np.zeros(1, dtype=np.int64),
        last_of_two=np.zeros(1, dtype=np.int64),
        stops=stops,
        stopped=np.zeros(1, dtype=np.int64),
    )


@kernel
def hear_due(
    ledger: Ledger,
    counts_only: bool,
    world: World,
    tally: Tally,
    due: int,
    now: int,
    window: int,
) -> None:
    """Hear at tick `now` the answers due at tick `due`; one older than the window does not count.

    Aggregated answers are a number alone, and are credited to the pair in play.
    """
    entry = take_due(world, due)
    while entry != NOBODY:
        i, j, born = world.first[entry], world.second[entry], world.born[entry]
        if counts_only:
            ledger.conversions[tally.first[0], tally.second[0]] += 1
        elif now - born <= window:
            if world.is_vote:
                hear_vote(ledger, i, j, 1.0 if world.won[entry] else 0.0, born, now)
            else:
                hear(ledger, i, j, born, now)
        entry = take_due(world, due)


@kernel
def show(tally: Tally, i: int, j: int, n: int) -> None:
    """Count that i and j were shown together n times."""
    tally.first[0] = i
    tally.second[0] = j
    tally.shown[i] += n
    tally.shown[j] += n


@kernel
def pass_to(tally: Tally, t: int, plays: NDArray[np.int64]) -> None:
    """Let time pass to tick t, not beyond the next checkpoint; there regret is recorded."""
    tally.tick[0] = t
    if t == next_checkpoint(tally):
        passed = tally.passed[0]
        tally.regret[passed] = regret_so_far(tally)
        if tally.pairs.shape[0] > 0:
            for i in range(tally.gaps.size):
                for j in range(tally.gaps.size):
                    tally.pairs[passed, i, j] = plays[i, j]
        tally.passed[0] = passed + 1


@kernel
def is_over(tally: Tally, rule: Any, ledger: Ledger, t: int) -> bool:
    """Whether a winner is declared before the duel of tick t, and ends the run."""
    if not tally.stops or declared(rule, ledger) < 0:
        return False
    tally.stopped[0] = t - 1
    return True


@kernel
def stand_still(tally: Tally, plays: NDArray[np.int64]) -> None:
    """Fill in the checkpoints after the end of a run: nothing changes any more."""
    while tally.passed[0] < tally.checkpoints.size:
        pass_to(tally, next_checkpoint(tally), plays)


@kernel
def repeat(tally: Tally, plays: NDArray[np.int64], i: int, j: int, n: int) -> None:
    """Let i and j duel for n ticks at once, stopping only at checkpoints."""
    end = tally.tick[0] + n
    while tally.tick[0] < end:
        stop = min(end, next_checkpoint(tally))
        plays[i, j] += stop - tally.tick[0]
        show(tally, i, j, stop - tally.tick[0])
        pass_to(tally, stop, plays)


@kernel
def next_checkpoint(tally: Tally) -> Any:
    """Return the tick of the next checkpoint, FOREVER after the last."""
    passed = tally.passed[0]
    return tally.checkpoints[passed] if passed < tally.checkpoints.size else FOREVER


@kernel
def regret_so_far(tally: Tally) -> float:
    """R(t) = sum of (Delta_i + Delta_j) / 2 over the duels so far (Equation 1), arm by arm."""
    total = 0.0
    for i in range(tally.gaps.size):
        total += tally.gaps[i] * tally.shown[i]
    return total / 2
