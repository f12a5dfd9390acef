"""MRR-DB-Delay's rounds drawn in bulk: the same law as duel by duel, from other draws.

The policy looks at nothing before a round is over. What matters then is one number for each pair:
the conversions that have been heard. A few duels near the end of the round have answers that come
after it. Whether an answer is that late does not depend on who wins. So these duels are found
first, their outcomes are drawn one by one, and their conversions are kept for a later round. All
other duels of a pair are one binomial draw.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from duelay._core.jit import entry, kernel
from duelay.engine.tick import Tally, next_checkpoint, pass_to, repeat, show
from duelay.engine.world import World, delay_at
from duelay.ledger import Ledger
from duelay.policies.mrr_db_delay import MRRDBRule
from duelay.policies.turn import select


class Late(NamedTuple):
    """Conversions that come after the round of their duel."""

    first: NDArray[np.int64]  # (2 n,): room enough, as no answer takes longer than n ticks
    second: NDArray[np.int64]  # (2 n,)
    due: NDArray[np.int64]  # (2 n,): the tick at which each is heard
    kept: NDArray[np.int64]  # (1,): the number of late conversions


def nothing_late(world: World) -> Late:
    """Return an empty list of late conversions."""
    n = 2 * world.after.size
    return Late(
        np.zeros(n, dtype=np.int64),
        np.zeros(n, dtype=np.int64),
        np.zeros(n, dtype=np.int64),
        np.zeros(1, dtype=np.int64),
    )


@entry
def run_rounds(
    rule: MRRDBRule,
    ledger: Ledger,
    world: World,
    late: Late,
    tally: Tally,
    horizon: int,
    world_rng: np.random.Generator,
    policy_rng: np.random.Generator,
) -> None:
    """Play all rounds, to the horizon."""
    play_rounds(rule, ledger, world, late, tally, horizon, world_rng, policy_rng)


@kernel
def play_rounds(
    rule: MRRDBRule,
    ledger: Ledger,
    world: World,
    late: Late,
    tally: Tally,
    horizon: int,
    world_rng: np.random.Generator,
    policy_rng: np.random.Generator,
) -> None:
    """`run_rounds`, for a kernel to call."""
    while tally.tick[0] < horizon:
        t = tally.tick[0]
        hear_late(ledger, late, t + 1)
        i, j = select(rule, ledger, t + 1, policy_rng)  # ends the round where it is over
        if i == j:
            repeat(tally, ledger.plays, i, i, horizon - t)
        elif rule.round[0] >= rule.schedule.size:
            run_last(rule, ledger, world, late, tally, horizon, world_rng)
        else:
            n = min(rule.schedule[rule.round[0]] - ledger.plays[i, j], horizon - t)
            look = min(t + ticks_left(rule, ledger) + 1, horizon)
            ledger.conversions[i, j] += draw_duels(world, late, i, j, t + 1, 1, n, look, world_rng)
            repeat(tally, ledger.plays, i, j, n)
    hear_late(ledger, late, horizon)


@kernel
def is_in_play(rule: MRRDBRule, i: int, j: int) -> bool:
    """Whether i and j, in this order, are a pair of the round."""
    return bool(rule.active[i] and rule.active[j] and (i < j or (rule.ordered and i != j)))


@kernel
def ticks_left(rule: MRRDBRule, ledger: Ledger) -> int:
    """Return how many duels the round still has."""
    k = ledger.plays.shape[0]
    n = 0
    for i in range(k):
        for j in range(k):
            if is_in_play(rule, i, j):
                n += rule.schedule[rule.round[0]] - ledger.plays[i, j]
    return int(n)


@kernel
def run_last(
    rule: MRRDBRule,
    ledger: Ledger,
    world: World,
    late: Late,
    tally: Tally,
    horizon: int,
    world_rng: np.random.Generator,
) -> None:
    """Play the round that lasts to the horizon.

    At its start all pairs have been played equally often. They take turns in the order of
    `next_pair`; at a checkpoint within a turn, the pairs that come first are one duel ahead.
    """
    k = ledger.plays.shape[0]
    begin, n_pairs = tally.tick[0], 0
    for i in range(k):
        for j in range(k):
            n_pairs += is_in_play(rule, i, j)
    turn = 0
    for i in range(k):
        for j in range(k):
            if is_in_play(rule, i, j):
                n = (horizon - begin - turn + n_pairs - 1) // n_pairs
                ledger.conversions[i, j] += draw_duels(
                    world, late, i, j, begin + 1 + turn, n_pairs, n, horizon, world_rng
                )
                turn += 1
    while tally.tick[0] < horizon:
        before, stop = tally.tick[0] - begin, min(horizon, next_checkpoint(tally)) - begin
        turn = 0
        for i in range(k):
            for j in range(k):
                if is_in_play(rule, i, j):
                    n = (stop - turn + n_pairs - 1) // n_pairs
                    n -= (before - turn + n_pairs - 1) // n_pairs
                    ledger.plays[i, j] += n
                    show(tally, i, j, n)
                    turn += 1
        pass_to(tally, begin + stop, ledger.plays)


@kernel
def draw_duels(
    world: World,
    late: Late,
    i: int,
    j: int,
    start: int,
    step: int,
    n: int,
    look: int,
    rng: np.random.Generator,
) -> Any:
    """Let i and j duel n times from tick `start`, `step` ticks apart; count conversions by `look`.

    The answers that come after `look` are drawn by thinning. The later a duel, the likelier it has
    such an answer. So go backwards from the last duel: the chance of the present one is a bound for
    all before it. A geometric leap with this bound finds the next candidate, which is accepted with
    probability (its own chance / the bound).
    """
    tau, row = world.tau, world.law[i, j]
    last = tau.shape[1] - 1
    ever = tau[row, last]  # the share of answers that ever come
    if ever <= 0.0:
        return 0
    n_outlast = 0
    place = n - 1
    while place >= 0:
        bound = 1.0 - tau[row, min(last, look - start - step * place)] / ever
        if bound <= 0.0:
            break
        if bound < 1.0:
            leap = math.log(1.0 - rng.random()) / math.log1p(-bound)
            if leap >= place + 1:  # its whole part is above `place`: no candidate is left
                break
            place -= int(leap)
        born = start + step * place
        by_look = tau[row, min(last, look - born)] / ever
        if rng.random() * bound < 1.0 - by_look:
            n_outlast += 1
            if rng.random() < world.mu[i, j] * ever:
                u = (1.0 - (1.0 - by_look) * (1.0 - rng.random())) * ever
                entry = late.kept[0]
                late.first[entry] = i
                late.second[entry] = j
                late.due[entry] = born + delay_at(world, row, min(u, np.nextafter(ever, 0.0)))
                late.kept[0] = entry + 1
        place -= 1
    return rng.binomial(n - n_outlast, world.mu[i, j] * ever)


@kernel
def hear_late(ledger: Ledger, late: Late, t: int) -> None:
    """Count what is due by tick t."""
    entry = 0
    while entry < late.kept[0]:
        if late.due[entry] <= t:
            ledger.conversions[late.first[entry], late.second[entry]] += 1
            rest = late.kept[0] - 1
            late.first[entry] = late.first[rest]
            late.second[entry] = late.second[rest]
            late.due[entry] = late.due[rest]
            late.kept[0] = rest
        else:
            entry += 1
