"""The same simulation through a player's `ask` and `tell`, for policies in plain Python."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from duelay.engine.by_clock import NOBODY as NO_DUEL
from duelay.engine.by_clock import Hours, drop, first_won, let_answer, next_due
from duelay.engine.tick import Tally, pass_to, show
from duelay.engine.world import NOBODY, World, let_duel, take_due


def play(
    player: Any,
    counts_only: bool,
    world: World,
    tally: Tally,
    plays: NDArray[np.int64],
    until: int,
    world_rng: np.random.Generator,
    asked: list[Any],
    batch: int = 1,
) -> None:
    """Play from where the tally stands until tick `until`; every duel is appended to `asked`.

    The duels are those of `duelay.engine.loop.run`, if the player's generator is the same.
    """
    for t in range(int(tally.tick[0]) + 1, until + 1):
        if (t - 1) % batch == 0:
            for due in range(max(1, t - batch + 1), t + 1):
                tell_due(player, counts_only, world, due, asked)
        asked.append(player.ask())
        i, j = asked[-1].first, asked[-1].second
        let_duel(world, i, j, t, world_rng)
        plays[i, j] += 1
        show(tally, i, j, 1)
        pass_to(tally, t, plays)


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


def play_by_clock(
    player: Any,
    by_clock: bool,
    hours: Hours,
    tally: Tally,
    plays: NDArray[np.int64],
    until: int,
    asked: list[Any],
) -> None:
    """Play until duel `until` as traffic brings them; every duel is appended to `asked`.

    The duels are those of `duelay.engine.by_clock`, if the player's generator is the same.
    """
    for t in range(int(tally.tick[0]) + 1, until + 1):
        while (born := next_due(hours, t)) != NO_DUEL:
            told: dict[str, Any] = {"at": float(hours.due[0])} if by_clock else {}
            if hours.is_vote:
                told["winner"] = "first" if first_won(hours, born) else "second"
            player.tell(asked[born - 1], **told)
            drop(hours)
        asked.append(player.ask(at=float(hours.at[t - 1])) if by_clock else player.ask())
        i, j = asked[-1].first, asked[-1].second
        let_answer(hours, i, j, t)
        plays[i, j] += 1
        show(tally, i, j, 1)
        pass_to(tally, t, plays)
