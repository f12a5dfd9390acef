"""The plain-Python loop: it plays a player through `ask` and `tell`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from duelay.simulation.loops.continuous_time import (
    NO_DUEL,
    TimedWorld,
    drop,
    first_won,
    let_answer,
    next_due,
)
from duelay.simulation.loops.recorder import Recorder, advance_to, record_shown
from duelay.simulation.world import NO_ENTRY, World, let_duel, take_due


def play_player(
    player: Any,
    counts_only: bool,
    world: World,
    recorder: Recorder,
    plays: NDArray[np.int64],
    until: int,
    world_rng: np.random.Generator,
    asked: list[Any],
    batch: int = 1,
) -> None:
    """Play from the recorder's tick to tick `until`; append every duel to `asked`.

    The duels are those of `duelay.simulation.loops.ticks`, if the player's generator is the same.
    """
    for t in range(int(recorder.tick[0]) + 1, until + 1):
        if (t - 1) % batch == 0:
            for due in range(max(1, t - batch + 1), t + 1):
                tell_due(player, counts_only, world, due, asked)
        asked.append(player.ask())
        i, j = asked[-1].first, asked[-1].second
        let_duel(world, i, j, t, world_rng)
        plays[i, j] += 1
        record_shown(recorder, i, j, 1)
        advance_to(recorder, t, plays)


def tell_due(player: Any, counts_only: bool, world: World, due: int, asked: list[Any]) -> None:
    """Tell the player the answers that are due at a tick."""
    n = 0
    entry = take_due(world, due)
    while entry != NO_ENTRY:
        n += 1
        duel = asked[world.born[entry] - 1]
        if world.is_vote:
            player.tell(duel, winner="first" if world.won[entry] else "second")
        elif not counts_only:
            player.tell(duel)
        entry = take_due(world, due)
    if counts_only:
        player.tell_count(n)


def play_player_by_clock(
    player: Any,
    by_clock: bool,
    world: TimedWorld,
    recorder: Recorder,
    plays: NDArray[np.int64],
    until: int,
    asked: list[Any],
) -> None:
    """Play to duel `until` with traffic; append every duel to `asked`.

    The duels are those of `duelay.simulation.loops.continuous_time`, if the player's generator is
    the same.
    """
    for t in range(int(recorder.tick[0]) + 1, until + 1):
        while (born := next_due(world, t)) != NO_DUEL:
            told: dict[str, Any] = {"at": float(world.due[0])} if by_clock else {}
            if world.is_vote:
                told["winner"] = "first" if first_won(world, born) else "second"
            player.tell(asked[born - 1], **told)
            drop(world)
        asked.append(player.ask(at=float(world.at[t - 1])) if by_clock else player.ask())
        i, j = asked[-1].first, asked[-1].second
        let_answer(world, i, j, t)
        plays[i, j] += 1
        record_shown(recorder, i, j, 1)
        advance_to(recorder, t, plays)
