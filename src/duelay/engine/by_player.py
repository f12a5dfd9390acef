"""The same simulation through a player's `ask` and `tell`, for policies in plain Python."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from duelay.engine.loop import Tally, regret_so_far
from duelay.engine.world import NOBODY, World, let_duel, take_due


def play(
    player: Any,
    counts_only: bool,
    world: World,
    tally: Tally,
    until: int,
    world_rng: np.random.Generator,
    asked: list[Any],
    batch: int = 1,
) -> None:
    """Play from where the tally stands until tick `until`; every duel is appended to `asked`.

    Duel for duel what `duelay.engine.loop.run` does, if the player's generator is the same.
    """
    for t in range(int(tally.done[0]) + 1, until + 1):
        if (t - 1) % batch == 0:
            for due in range(max(1, t - batch + 1), t + 1):
                tell_due(player, counts_only, world, due, asked)
        asked.append(player.ask())
        i, j = asked[-1].first, asked[-1].second
        let_duel(world, i, j, t, world_rng)
        tally.shown[i] += 1
        tally.shown[j] += 1
        tally.done[0] = t
        passed = tally.done[1]
        if passed < tally.t.size and t == tally.t[passed]:
            tally.regret[passed] = regret_so_far(tally)
            if len(tally.pairs):
                tally.pairs[passed] = count_plays(asked, len(tally.gaps))
            tally.done[1] += 1


def tell_due(player: Any, counts_only: bool, world: World, due: int, asked: list[Any]) -> None:
    """Tell the player what was due at a tick."""
    n = 0
    entry = take_due(world, due)
    while entry != NOBODY:
        n += 1
        duel = asked[world.born[entry] - 1]
        if world.is_vote:
            player.tell(duel, winner="first" if world.won[entry] else "second")
        elif not counts_only:
            player.tell(duel)
        entry = take_due(world, due)
    if counts_only:
        player.tell_count(n)


def count_plays(asked: list[Any], n_arms: int) -> NDArray[np.int64]:
    """Return how often each arm was first and second together with each other one."""
    plays = np.zeros((n_arms, n_arms), dtype=np.int64)
    np.add.at(plays, ([duel.first for duel in asked], [duel.second for duel in asked]), 1)
    return plays
