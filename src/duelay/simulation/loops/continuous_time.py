"""The continuous-time loop: traffic says when duels come, and answers arrive later.

All draws of a run are made before it begins: the times of its duels, their outcomes and the delays
of their answers. Run r therefore meets the same world under every policy. Pending answers are kept
in a binary heap, ordered by the time at which they are due.

A policy that counts ticks can also be simulated with traffic. Its tick is the number of the duel;
at each duel it receives the answers that have arrived since the previous duel.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from duelay._core.jit.decorators import entry, kernel
from duelay.delays.delay import Delay, laws_of
from duelay.delays.ticks_or_clock import in_ticks, in_time
from duelay.ledger.delay_models.base import FOREVER
from duelay.ledger.ledger import Ledger, age_to, clock_to, hear, hear_vote, record
from duelay.policies.turn import pick
from duelay.problems.problem import Problem
from duelay.simulation.loops.recorder import Recorder, advance_to, is_over, record_shown
from duelay.traffic import Traffic, draw_times

NO_DUEL = -1  # no answer is due: duels have numbers from 1 on
_MICROSECONDS = 1e6  # in a second


class TimedWorld(NamedTuple):
    """The world of one run in continuous time: the draws of every duel, and pending answers."""

    mu: NDArray[np.float64]  # (K, K): P(the first wins), a bonus for being first included
    law: NDArray[np.int64]  # (K, K): which row of `delay`
    at: NDArray[np.float64]  # (T,): when each duel comes, in seconds
    uniform: NDArray[np.float64]  # (T,): the first wins if it is below mu
    delay: NDArray[np.float64]  # (laws, T): how long its answer takes, in seconds
    window: float  # seconds after which an answer is not counted
    ticks: int  # the same in ticks, for a policy that counts them
    is_vote: bool  # whether a win of the second is reported, too
    first: NDArray[np.int32]  # (T,): its arms
    second: NDArray[np.int32]  # (T,)
    due: NDArray[np.float64]  # (T,): a heap: the times at which answers are due ...
    number: NDArray[np.int64]  # (T,): ... and the numbers of their duels
    size: NDArray[np.int64]  # (1,): the number of pending answers


def draw_timed_world(
    problem: Problem,
    delay: Delay,
    traffic: Traffic,
    horizon: int,
    rng: np.random.Generator,
    *,
    policy: Any,
    by_clock: bool,
    is_vote: bool,
) -> TimedWorld:
    """Return the world of one run, before its first duel."""
    laws, which = laws_of(delay, problem.n_arms)
    at = _round_times(draw_times(traffic, horizon, rng))
    longest = in_time(policy) if by_clock else None
    ticks = None if by_clock else in_ticks(getattr(policy, "window", None))
    return TimedWorld(
        mu=problem.chances,
        law=which,
        at=at,
        uniform=rng.random(horizon),
        delay=np.stack([_round_times(law.sample(horizon, seed=rng)) for law in laws]),
        window=math.inf if longest is None else float(longest),
        ticks=FOREVER if ticks is None else ticks,
        is_vote=is_vote,
        first=np.zeros(horizon, dtype=np.int32),
        second=np.zeros(horizon, dtype=np.int32),
        due=np.zeros(horizon),
        number=np.zeros(horizon, dtype=np.int64),
        size=np.zeros(1, dtype=np.int64),
    )


def _round_times(seconds: Any) -> NDArray[np.float64]:
    """Round seconds to whole microseconds, as players keep them; infinite ones stay infinite."""
    return np.asarray(np.rint(np.asarray(seconds) * _MICROSECONDS) / _MICROSECONDS)


@entry
def play_by_clock_entry(
    rule: Any,
    ledger: Ledger,
    world: TimedWorld,
    recorder: Recorder,
    until: int,
    rng: np.random.Generator,
) -> None:
    """Play from the recorder's tick to duel `until`; another call continues the run."""
    play_by_clock(rule, ledger, world, recorder, until, rng)


@kernel
def play_by_clock(
    rule: Any,
    ledger: Ledger,
    world: TimedWorld,
    recorder: Recorder,
    until: int,
    rng: np.random.Generator,
) -> None:
    """Play to duel `until` as a live player does: each duel and each answer at its time."""
    for t in range(recorder.tick[0] + 1, until + 1):
        hear_until(ledger, world, t)
        clock_to(ledger, world.at[t - 1])
        age_to(ledger, t)
        i, j = pick(rule, ledger, t, rng)
        if is_over(recorder, rule, ledger, t):
            break
        record(ledger, i, j, t)
        let_answer(world, i, j, t)
        record_shown(recorder, i, j, 1)
        advance_to(recorder, t, ledger.plays)


@kernel
def hear_until(ledger: Ledger, world: TimedWorld, t: int) -> None:
    """Enter all answers due by duel t into the ledger, oldest first; a late one does not count."""
    born = next_due(world, t)
    while born != NO_DUEL:
        if t - born <= world.ticks:
            i, j = world.first[born - 1], world.second[born - 1]
            clock_to(ledger, world.due[0])
            if world.is_vote:
                hear_vote(ledger, i, j, 1.0 if first_won(world, born) else 0.0, born, t)
            else:
                hear(ledger, i, j, born, t)
        drop(world)
        born = next_due(world, t)


@kernel
def first_won(world: TimedWorld, t: int) -> bool:
    """Whether the first arm of duel t won."""
    mu = world.mu[world.first[t - 1], world.second[t - 1]]
    return bool(world.uniform[t - 1] < mu)


@kernel
def let_answer(world: TimedWorld, i: int, j: int, t: int) -> None:
    """Let i and j duel as number t; queue the answer, if it comes within window and run."""
    world.first[t - 1] = i
    world.second[t - 1] = j
    if not (world.is_vote or first_won(world, t)):
        return
    at = world.at[t - 1]
    due = np.rint((at + world.delay[world.law[i, j], t - 1]) * _MICROSECONDS) / _MICROSECONDS
    if due > world.at[world.at.size - 1] or due - at > world.window:
        return  # after the last duel, too late, or never
    place = world.size[0]
    world.size[0] += 1
    while place > 0 and due < world.due[(place - 1) // 2]:  # a later number loses a tie
        above = (place - 1) // 2
        world.due[place] = world.due[above]
        world.number[place] = world.number[above]
        place = above
    world.due[place] = due
    world.number[place] = t


@kernel
def next_due(world: TimedWorld, t: int) -> int:
    """Return the duel whose answer is due next; NO_DUEL if none is due by duel t."""
    if world.size[0] == 0 or world.due[0] > world.at[t - 1]:
        return NO_DUEL
    return int(world.number[0])


@kernel
def drop(world: TimedWorld) -> None:
    """Take the answer that is due next off the heap."""
    last = world.size[0] - 1
    world.size[0] = last
    due, number = world.due[last], world.number[last]
    place, below = 0, 1
    while below < last:
        if below + 1 < last and is_before(world, below + 1, world.due[below], world.number[below]):
            below += 1
        if not is_before(world, below, due, number):
            break
        world.due[place] = world.due[below]
        world.number[place] = world.number[below]
        place, below = below, 2 * below + 1
    world.due[place] = due
    world.number[place] = number


@kernel
def is_before(world: TimedWorld, place: int, due: float, number: int) -> bool:
    """Whether the answer at a place of the heap is due earlier; the older duel wins a tie."""
    there = world.due[place]
    return bool(there < due or (there == due and world.number[place] < number))
