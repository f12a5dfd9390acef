"""The loop with stale or batched evidence.

With a **batch** of b, answers are delivered only after every b duels. With **stale** evidence, a
policy chooses from a ledger that is r ticks old: it knows neither the answers nor the duels of the
last r ticks. No tick is skipped.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from duelay._core.jit.decorators import entry, kernel
from duelay.ledger.delay_models.base import FOREVER
from duelay.ledger.ledger import Ledger, age_to, record
from duelay.policies.turn import pick
from duelay.simulation.loops.recorder import Recorder, advance_to, hear_due, is_over, record_shown
from duelay.simulation.world import World, duel


class Held(NamedTuple):
    """The duels that the policy does not know of yet."""

    stale: int  # ticks by which the ledger is old
    batch: int  # duels between two deliveries of answers
    window: int  # ticks after which an answer is not counted
    first: NDArray[np.int64]  # (stale + 1,): the last duels, by tick modulo their number
    second: NDArray[np.int64]  # (stale + 1,)
    heard: NDArray[np.int64]  # (1,): the tick up to which answers were delivered
    plays: NDArray[np.int64]  # (K, K): all duels, including those that the policy does not know


def hold(stale: int, batch: int, window: int | None, n_arms: int) -> Held:
    """Return the state before the first tick."""
    return Held(
        stale,
        batch,
        FOREVER if window is None else window,
        np.zeros(stale + 1, dtype=np.int64),
        np.zeros(stale + 1, dtype=np.int64),
        np.zeros(1, dtype=np.int64),
        np.zeros((n_arms, n_arms), dtype=np.int64),
    )


@entry
def play_batches_entry(
    rule: Any,
    ledger: Ledger,
    counts_only: bool,
    world: World,
    held: Held,
    recorder: Recorder,
    until: int,
    world_rng: np.random.Generator,
    policy_rng: np.random.Generator,
) -> None:
    """`play_batches`, for Python to call."""
    play_batches(rule, ledger, counts_only, world, held, recorder, until, world_rng, policy_rng)


@kernel
def play_batches(
    rule: Any,
    ledger: Ledger,
    counts_only: bool,
    world: World,
    held: Held,
    recorder: Recorder,
    until: int,
    world_rng: np.random.Generator,
    policy_rng: np.random.Generator,
) -> None:
    """Play from the recorder's tick to tick `until`; another call continues the run."""
    n = held.first.size
    for t in range(recorder.tick[0] + 1, until + 1):
        seen = t - held.stale  # the tick at which the policy's ledger stands
        if seen >= 1:
            if (seen - 1) % held.batch == 0:
                for due in range(held.heard[0] + 1, seen + 1):
                    hear_due(ledger, counts_only, world, recorder, due, seen, held.window)
                held.heard[0] = seen
            age_to(ledger, seen)
        i, j = pick(rule, ledger, t, policy_rng)
        if is_over(recorder, rule, ledger, t):
            break
        duel(world, i, j, t, world_rng)
        held.first[t % n] = i
        held.second[t % n] = j
        held.plays[i, j] += 1
        if seen >= 1:
            record(ledger, held.first[seen % n], held.second[seen % n], seen)
        record_shown(recorder, i, j, 1)
        advance_to(recorder, t, held.plays)
