"""The loop by the clock: duels come as traffic brings them, and answers after a time.

All draws of a run are made before it begins: when its duels come, who would win them, and how long
each answer would take. Run r therefore meets the same world under every policy. Answers on their
way stand in a binary heap, by the time at which they are due.

A policy that counts ticks can be played in the same traffic, too. Its tick is the number of the
duel. At each duel it hears the answers that have come since the last duel.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from duelay._core.jit import entry, kernel
from duelay.delays import Delay, laws_of
from duelay.delays.units import in_ticks, in_time
from duelay.engine.tick import Tally, is_over, pass_to, show
from duelay.ledger import Ledger, age_to, clock_to, hear, hear_vote, record
from duelay.ledger.assumption import FOREVER
from duelay.policies.turn import pick
from duelay.problems import Problem
from duelay.traffic import Traffic, draw_times

NOBODY = 0  # duels have numbers from 1 on
_MICRO = 1e6  # microseconds in a second


class Hours(NamedTuple):
    """The world of one run, in time: what was drawn for each duel, and what is on its way."""

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
    due: NDArray[np.float64]  # (T,): a heap: when answers are due ...
    number: NDArray[np.int64]  # (T,): ... and to which duels
    size: NDArray[np.int64]  # (1,): how many there are


def draw_hours(
    problem: Problem,
    delay: Delay,
    traffic: Traffic,
    horizon: int,
    rng: np.random.Generator,
    *,
    policy: Any,
    by_clock: bool,
    is_vote: bool,
) -> Hours:
    """Return the world of one run, before its first duel."""
    laws, which = laws_of(delay, problem.n_arms)
    at = _in_whole(draw_times(traffic, horizon, rng))
    longest = in_time(policy) if by_clock else None
    ticks = None if by_clock else in_ticks(getattr(policy, "window", None))
    return Hours(
        mu=problem.chances,
        law=which,
        at=at,
        uniform=rng.random(horizon),
        delay=np.stack([_in_whole(law.sample(horizon, seed=rng)) for law in laws]),
        window=math.inf if longest is None else float(longest),
        ticks=FOREVER if ticks is None else ticks,
        is_vote=is_vote,
        first=np.zeros(horizon, dtype=np.int32),
        second=np.zeros(horizon, dtype=np.int32),
        due=np.zeros(horizon),
        number=np.zeros(horizon, dtype=np.int64),
        size=np.zeros(1, dtype=np.int64),
    )


def _in_whole(seconds: Any) -> NDArray[np.float64]:
    """Return seconds in whole microseconds, as players keep them; infinite ones stay."""
    return np.asarray(np.rint(np.asarray(seconds) * _MICRO) / _MICRO)


@entry
def run_by_clock(
    rule: Any, ledger: Ledger, hours: Hours, tally: Tally, until: int, rng: np.random.Generator
) -> None:
    """Play from where the tally stands until duel `until`; go on later by calling it again."""
    play_by_clock(rule, ledger, hours, tally, until, rng)


@kernel
def play_by_clock(
    rule: Any, ledger: Ledger, hours: Hours, tally: Tally, until: int, rng: np.random.Generator
) -> None:
    """Play to duel `until`: what a live player is asked and told, each at its time."""
    for t in range(tally.tick[0] + 1, until + 1):
        hear_until(ledger, hours, t)
        clock_to(ledger, hours.at[t - 1])
        age_to(ledger, t)
        i, j = pick(rule, ledger, t, rng)
        if is_over(tally, rule, ledger, t):
            break
        record(ledger, i, j, t)
        let_answer(hours, i, j, t)
        show(tally, i, j, 1)
        pass_to(tally, t, ledger.plays)


@kernel
def hear_until(ledger: Ledger, hours: Hours, t: int) -> None:
    """Hear all answers due by duel t, in the order of time; a late one does not count."""
    born = next_due(hours, t)
    while born != NOBODY:
        if t - born <= hours.ticks:
            i, j = hours.first[born - 1], hours.second[born - 1]
            clock_to(ledger, hours.due[0])
            if hours.is_vote:
                hear_vote(ledger, i, j, 1.0 if first_won(hours, born) else 0.0, born, t)
            else:
                hear(ledger, i, j, born, t)
        drop(hours)
        born = next_due(hours, t)


@kernel
def first_won(hours: Hours, t: int) -> bool:
    """Whether the first arm of duel t won."""
    mu = hours.mu[hours.first[t - 1], hours.second[t - 1]]
    return bool(hours.uniform[t - 1] < mu)


@kernel
def let_answer(hours: Hours, i: int, j: int, t: int) -> None:
    """Let i and j duel as number t: put the answer, if one will be heard, on the heap."""
    hours.first[t - 1] = i
    hours.second[t - 1] = j
    if not (hours.is_vote or first_won(hours, t)):
        return
    at = hours.at[t - 1]
    due = np.rint((at + hours.delay[hours.law[i, j], t - 1]) * _MICRO) / _MICRO
    if due > hours.at[hours.at.size - 1] or due - at > hours.window:
        return  # after the last duel, too late, or never
    place = hours.size[0]
    hours.size[0] += 1
    while place > 0 and due < hours.due[(place - 1) // 2]:  # a later number loses a tie
        above = (place - 1) // 2
        hours.due[place] = hours.due[above]
        hours.number[place] = hours.number[above]
        place = above
    hours.due[place] = due
    hours.number[place] = t


@kernel
def next_due(hours: Hours, t: int) -> int:
    """Return the duel whose answer is due next, if it is due by duel t; NOBODY if none is."""
    if hours.size[0] == 0 or hours.due[0] > hours.at[t - 1]:
        return NOBODY
    return int(hours.number[0])


@kernel
def drop(hours: Hours) -> None:
    """Take the answer that is due next off the heap."""
    last = hours.size[0] - 1
    hours.size[0] = last
    due, number = hours.due[last], hours.number[last]
    place, below = 0, 1
    while below < last:
        if below + 1 < last and is_before(hours, below + 1, hours.due[below], hours.number[below]):
            below += 1
        if not is_before(hours, below, due, number):
            break
        hours.due[place] = hours.due[below]
        hours.number[place] = hours.number[below]
        place, below = below, 2 * below + 1
    hours.due[place] = due
    hours.number[place] = number


@kernel
def is_before(hours: Hours, place: int, due: float, number: int) -> bool:
    """Whether the answer at a place of the heap is due earlier; of two at one time, the older."""
    there = hours.due[place]
    return bool(there < due or (there == due and hours.number[place] < number))
