"""The compiled loop: one for every rule, every ledger and every law."""

from __future__ import annotations

from typing import Any

import numpy as np

from duelay._core.jit import entry, kernel
from duelay.engine.tick import Tally, hear_due, is_over, pass_to, repeat, show
from duelay.engine.world import World, duel
from duelay.ledger import Ledger, age_to, record
from duelay.ledger.assumption import FOREVER, next_look, settles
from duelay.policies.turn import calm_until, pass_over, pick

_LONG = 10_000  # ticks: beyond, Python advances the generator instead of drawing one by one


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

    Where an arm duels itself and nothing is on its way, the rule says how long that will last. The
    ticks until then are skipped, and so are the draws that they would have taken. So all later
    duels are the same.
    """
    while True:
        passed = play(rule, ledger, counts_only, world, tally, until, world_rng, policy_rng)
        if passed > 0:
            world_rng.bit_generator.advance(2 * passed)  # type: ignore[attr-defined]
        if tally.tick[0] >= until or tally.stopped[0] > 0:
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
    """Play until tick `until`, or to the end of a long calm; return the ticks without draws.

    Each tick is the `turn` of a live player, written out: a run may end before its duel.
    """
    settled = settles(ledger.assumed)
    t, skipped = tally.tick[0], 0
    while t < until and skipped == 0:
        t += 1
        hear_due(ledger, counts_only, world, tally, t, t, FOREVER)
        age_to(ledger, t)
        i, j = pick(rule, ledger, t, policy_rng)
        if is_over(tally, rule, ledger, t):
            break
        record(ledger, i, j, t)
        duel(world, i, j, t, world_rng)
        show(tally, i, j, 1)
        pass_to(tally, t, ledger.plays)
        if i != j:
            tally.last_of_two[0] = t
        elif world.waiting[0] == 0 and t - tally.last_of_two[0] >= settled:
            calm = min(calm_until(rule, ledger, i, t), until, next_look(ledger.assumed) - 1)
            if calm > t:
                for due in range(t + 1, min(calm, t + world.wheel.size) + 1):
                    hear_due(ledger, counts_only, world, tally, due, due, FOREVER)  # self-duels
                repeat(tally, ledger.plays, i, i, calm - t)
                pass_over(rule, calm - t)
                if calm - t > _LONG:
                    skipped = calm - t
                else:
                    for _ in range(2 * (calm - t)):
                        world_rng.random()
                t = calm
    return int(skipped)
