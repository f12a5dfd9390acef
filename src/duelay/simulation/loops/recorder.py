"""The recorder of a run and the steps of a tick that all loops share.

A step delivers the answers that are due, counts the duel or records regret. State that changes is
an array of one number, ``(1,)``, because kernels write into it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from duelay._core.jit.decorators import kernel
from duelay.ledger.delay_models.base import FOREVER
from duelay.ledger.ledger import Ledger, hear, hear_vote
from duelay.policies.turn import declared
from duelay.simulation.world import NO_ENTRY, World, take_due


class Recorder(NamedTuple):
    """The measurements of a run, and its current tick."""

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


def new_recorder(
    gaps: NDArray[np.float64],
    checkpoints: NDArray[np.int64],
    with_pairs: bool = False,
    stops: bool = False,
) -> Recorder:
    """Return the recorder of a run before its first tick."""
    n, k = len(checkpoints), len(gaps)
    return Recorder(
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
    recorder: Recorder,
    due: int,
    now: int,
    window: int,
) -> None:
    """Enter the answers due at tick `due` into the ledger at tick `now`.

    An answer that is older than the window does not count.
    """
    entry = take_due(world, due)
    while entry != NO_ENTRY:
        i, j, born = world.first[entry], world.second[entry], world.born[entry]
        if counts_only:
            # The policy hears how many conversions came, and not of which duels: each is credited
            # to the pair in play, as `Player.tell_count` does.
            ledger.conversions[recorder.first[0], recorder.second[0]] += 1
        elif now - born <= window:
            if world.is_vote:
                hear_vote(ledger, i, j, 1.0 if world.won[entry] else 0.0, born, now)
            else:
                hear(ledger, i, j, born, now)
        entry = take_due(world, due)


@kernel
def record_shown(recorder: Recorder, i: int, j: int, n: int) -> None:
    """Count that i and j were shown together n times."""
    recorder.first[0] = i
    recorder.second[0] = j
    recorder.shown[i] += n
    recorder.shown[j] += n


@kernel
def advance_to(recorder: Recorder, t: int, plays: NDArray[np.int64]) -> None:
    """Advance to tick t, at most to the next checkpoint, where regret is recorded."""
    recorder.tick[0] = t
    if t == next_checkpoint(recorder):
        passed = recorder.passed[0]
        recorder.regret[passed] = regret_so_far(recorder)
        if recorder.pairs.shape[0] > 0:
            for i in range(recorder.gaps.size):
                for j in range(recorder.gaps.size):
                    recorder.pairs[passed, i, j] = plays[i, j]
        recorder.passed[0] = passed + 1


@kernel
def is_over(recorder: Recorder, rule: Any, ledger: Ledger, t: int) -> bool:
    """Whether a winner is declared before the duel of tick t, and ends the run."""
    if not recorder.stops or declared(rule, ledger) < 0:
        return False
    recorder.stopped[0] = t - 1
    return True


@kernel
def fill_checkpoints(recorder: Recorder, plays: NDArray[np.int64]) -> None:
    """Fill in the checkpoints after the end of a run, whose regret no longer changes."""
    while recorder.passed[0] < recorder.checkpoints.size:
        advance_to(recorder, next_checkpoint(recorder), plays)


@kernel
def repeat(recorder: Recorder, plays: NDArray[np.int64], i: int, j: int, n: int) -> None:
    """Let i and j duel for n ticks in one step, interrupted only by checkpoints."""
    end = recorder.tick[0] + n
    while recorder.tick[0] < end:
        stop = min(end, next_checkpoint(recorder))
        plays[i, j] += stop - recorder.tick[0]
        record_shown(recorder, i, j, stop - recorder.tick[0])
        advance_to(recorder, stop, plays)


@kernel
def next_checkpoint(recorder: Recorder) -> Any:
    """Return the tick of the next checkpoint, FOREVER after the last."""
    passed = recorder.passed[0]
    return recorder.checkpoints[passed] if passed < recorder.checkpoints.size else FOREVER


@kernel
def regret_so_far(recorder: Recorder) -> float:
    """R(t) = sum of (Delta_i + Delta_j) / 2 over the duels so far (Equation 1), arm by arm."""
    total = 0.0
    for i in range(recorder.gaps.size):
        total += recorder.gaps[i] * recorder.shown[i]
    return total / 2
