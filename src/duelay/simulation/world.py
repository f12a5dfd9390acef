"""The simulated world: it draws outcomes and delays, and delivers conversions when they are due.

Every duel takes two uniform draws: one for the outcome X ~ Bernoulli(mu), one for the delay D by
inversion. Worlds from the same generator therefore stay in step under every policy.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from duelay._core.duration import Duration
from duelay._core.jit.decorators import entry, kernel
from duelay.delays.delay import Delay, tables
from duelay.delays.ticks_or_clock import in_ticks
from duelay.problems.problem import Problem

NO_ENTRY = -1  # of the queue


class World(NamedTuple):
    """The preferences, the delay laws and the queue of pending conversions."""

    mu: NDArray[np.float64]  # (K, K): P(the first wins), a bonus for being first included
    tau: NDArray[np.float64]  # (laws, n + 1): P(D <= age)
    guide: NDArray[np.int32]  # (laws, n): where to begin the search in tau
    law: NDArray[np.int64]  # (K, K): which row of tau
    wheel: NDArray[np.int32]  # (R,), R a power of two above n: the first entry due at each tick
    after: NDArray[np.int32]  # (n,): the next entry due at the same tick, or free
    first: NDArray[np.int32]  # (n,): the arms of each entry
    second: NDArray[np.int32]  # (n,)
    born: NDArray[np.int64]  # (n,): the tick of its duel
    free: NDArray[np.int32]  # (1,): the first free entry
    waiting: NDArray[np.int64]  # (1,): how many entries are duels of two arms
    is_vote: bool  # whether a win of the second is reported, too
    won: NDArray[np.bool_]  # (n,): whether the first won


def make_world(
    problem: Problem,
    delay: Delay,
    window: int | Duration | None,
    horizon: int,
    *,
    is_vote: bool = False,
    hold: int = 0,
) -> World:
    """Return a world without pending answers.

    A conversion after the window or the horizon never counts, so the tables end there; with a
    window their size does not depend on the horizon. The queue has room for answers that are held
    back for at most `hold` ticks.
    """
    window = in_ticks(window)
    limit = horizon if window is None else min(window, horizon)
    tau, law = tables(delay, problem.n_arms, limit)
    n = tau.shape[1] - 1
    steps = np.arange(n) / n
    guide = np.stack([np.searchsorted(row, steps, side="right") for row in tau])
    return with_empty_queue(
        World(
            mu=problem.chances,
            tau=tau,
            guide=guide.astype(np.int32),
            law=law,
            wheel=np.empty(1 << int(n + hold).bit_length(), dtype=np.int32),
            after=np.empty(n + hold, dtype=np.int32),
            first=np.empty(n + hold, dtype=np.int32),
            second=np.empty(n + hold, dtype=np.int32),
            born=np.empty(n + hold, dtype=np.int64),
            free=np.empty(1, dtype=np.int32),
            waiting=np.empty(1, dtype=np.int64),
            is_vote=is_vote,
            won=np.empty(n + hold, dtype=np.bool_),
        )
    )


def with_empty_queue(world: World) -> World:
    """Return the world with an empty queue of its own, as each run needs one."""
    after = np.arange(1, world.after.size + 1, dtype=np.int32)
    after[-1] = NO_ENTRY
    return world._replace(
        wheel=np.full_like(world.wheel, NO_ENTRY),
        after=after,
        first=np.empty_like(world.first),
        second=np.empty_like(world.second),
        born=np.empty_like(world.born),
        free=np.zeros(1, dtype=np.int32),
        waiting=np.zeros(1, dtype=np.int64),
        won=np.empty_like(world.won),
    )


@kernel
def duel(world: World, i: int, j: int, t: int, rng: np.random.Generator) -> None:
    """Let i and j duel at tick t: X ~ Bernoulli(mu_ij), D ~ the law; queue the answer, if any."""
    won = rng.random() < world.mu[i, j]
    u = rng.random()
    if not (won or world.is_vote):
        return
    row = world.law[i, j]
    n = world.tau.shape[1] - 1
    if u >= world.tau[row, n]:
        return  # the answer comes after the window or the horizon, or never
    d = delay_at(world, row, u)
    entry = world.free[0]
    world.free[0] = world.after[entry]
    due = (t + d) & (world.wheel.size - 1)
    world.after[entry] = world.wheel[due]
    world.wheel[due] = entry
    world.first[entry] = i
    world.second[entry] = j
    world.born[entry] = t
    world.won[entry] = won
    if i != j:
        world.waiting[0] += 1


@entry
def let_duel(world: World, i: int, j: int, t: int, rng: np.random.Generator) -> None:
    """`duel`, for Python to call."""
    duel(world, i, j, t, rng)


@kernel
def delay_at(world: World, row: int, u: float) -> Any:
    """Return the smallest d with u < tau(d), for u below the largest tau: D by inversion."""
    d = world.guide[row, int(u * (world.tau.shape[1] - 1))]
    while u >= world.tau[row, d]:
        d += 1
    return d


@kernel
def take_due(world: World, t: int) -> Any:
    """Take one conversion due at tick t off the queue; NO_ENTRY if there is none.

    Its fields stay readable until the next duel.
    """
    due = t & (world.wheel.size - 1)
    entry = world.wheel[due]
    if entry != NO_ENTRY:
        world.wheel[due] = world.after[entry]
        world.after[entry] = world.free[0]
        world.free[0] = entry
        if world.first[entry] != world.second[entry]:
            world.waiting[0] -= 1
    return entry
