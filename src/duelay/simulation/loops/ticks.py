"""The compiled loop in ticks, generic over rule, ledger and delay law."""

from __future__ import annotations

from typing import Any

import numpy as np

from duelay._core.jit.decorators import entry, kernel
from duelay.ledger.delay_models.base import FOREVER, final_age, next_look
from duelay.ledger.ledger import Ledger, age_to, record
from duelay.policies.turn import calm_until, pass_over, pick
from duelay.simulation.loops.recorder import (
    Recorder,
    advance_to,
    hear_due,
    is_over,
    record_shown,
    repeat,
)
from duelay.simulation.world import World, duel

_MAX_DRAWN_CALM_TICKS = 10_000  # of a longer calm, Python advances the generator in one step


def run_ticks(
    rule: Any,
    ledger: Ledger,
    counts_only: bool,
    world: World,
    recorder: Recorder,
    until: int,
    world_rng: np.random.Generator,
    policy_rng: np.random.Generator,
) -> None:
    """Play from the recorder's tick to tick `until`; another call continues the run.

    While an arm duels itself and no answer is pending, the rule says how long that will last. The
    ticks until then are skipped, together with the draws that they would have taken, so that all
    later duels are the same.
    """
    while True:
        passed = play_ticks_entry(
            rule, ledger, counts_only, world, recorder, until, world_rng, policy_rng
        )
        if passed > 0:
            world_rng.bit_generator.advance(2 * passed)  # type: ignore[attr-defined]
        if recorder.tick[0] >= until or recorder.stopped[0] > 0:
            return


@entry
def play_ticks_entry(
    rule: Any,
    ledger: Ledger,
    counts_only: bool,
    world: World,
    recorder: Recorder,
    until: int,
    world_rng: np.random.Generator,
    policy_rng: np.random.Generator,
) -> int:
    """`play_ticks`, for Python to call."""
    return play_ticks(rule, ledger, counts_only, world, recorder, until, world_rng, policy_rng)


@kernel
def play_ticks(
    rule: Any,
    ledger: Ledger,
    counts_only: bool,
    world: World,
    recorder: Recorder,
    until: int,
    world_rng: np.random.Generator,
    policy_rng: np.random.Generator,
) -> int:
    """Play until tick `until`, or to the end of a long calm; return the ticks that were skipped.

    Each tick has the steps of a live player's `turn`; a run may end before its duel.
    """
    last_age = final_age(ledger.assumed)
    t, skipped = recorder.tick[0], 0
    while t < until and skipped == 0:
        t += 1
        hear_due(ledger, counts_only, world, recorder, t, t, FOREVER)
        age_to(ledger, t)
        i, j = pick(rule, ledger, t, policy_rng)
        if is_over(recorder, rule, ledger, t):
            break
        record(ledger, i, j, t)
        duel(world, i, j, t, world_rng)
        record_shown(recorder, i, j, 1)
        advance_to(recorder, t, ledger.plays)
        if i != j:
            recorder.last_of_two[0] = t
        elif world.waiting[0] == 0 and t - recorder.last_of_two[0] >= last_age:
            calm = min(calm_until(rule, ledger, i, t), until, next_look(ledger.assumed) - 1)
            if calm > t:
                for due in range(t + 1, min(calm, t + world.wheel.size) + 1):
                    hear_due(ledger, counts_only, world, recorder, due, due, FOREVER)  # self-duels
                repeat(recorder, ledger.plays, i, i, calm - t)
                pass_over(rule, calm - t)
                if calm - t > _MAX_DRAWN_CALM_TICKS:
                    skipped = calm - t
                else:
                    for _ in range(2 * (calm - t)):
                        world_rng.random()
                t = calm
    return int(skipped)
