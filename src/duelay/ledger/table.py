"""Any law: what open duels will have gained is added up a block of ticks ahead."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from duelay._core.jit import kernel
from duelay.delays import tables
from duelay.ledger.assumption import (
    LONGEST,
    Floats,
    Integers,
    advance,
    check_length,
    convert,
    convert_nothing,
    corrected_evidence,
    drifts,
    drifts_within_plays,
    enter,
    evidence,
    expected,
    is_settled,
    settles,
)

BLOCK = 32  # ticks


class AssumedTable(NamedTuple):
    """Any law, or one a pair: what open duels will have gained is added up a block ahead.

    Whatever happens, a duel has gained tau(age) at each of the next ticks: at the start of a block
    every open duel adds a stretch of tau to its pair's row, and within it every new one does.
    """

    tau: Floats  # (laws, n + 1 + BLOCK): P(D <= age), and beyond age n as at n
    law: Integers  # (K, K): which row of tau
    ahead: Floats  # (K, K, BLOCK): *expected* at each tick of the block
    laid: Integers  # (K, K): the tick at which the row was begun anew
    closed: Integers  # (K, K): duels of age n and more
    first: Integers  # (n + BLOCK,): the open duels, in a ring
    second: Integers  # (n + BLOCK,)
    born: Integers  # (n + BLOCK,)
    oldest: Integers  # (1,): where in the ring the oldest open duel stands
    n_open: Integers  # (1,): how many are open
    block: Integers  # (1,): the first tick of the block
    place: Integers  # (1,): where in the block this tick stands


def start_table(delay: Any, window: int | None, n_arms: int) -> AssumedTable:
    """Return the state for a law, or one a pair."""
    limit = LONGEST + 1 if window is None else window
    tau, law = tables(delay, n_arms, limit)
    n = tau.shape[1] - 1
    check_length(n)
    return AssumedTable(**blocks(tau, law))


def blocks(tau: Floats, law: Integers) -> dict[str, Any]:
    """Return what a block ahead is kept in, for tau up to age n, by law, and the law of a pair."""
    n = tau.shape[1] - 1
    return {
        "tau": np.concatenate([tau, np.repeat(tau[:, -1:], BLOCK, axis=1)], axis=1),
        "law": law,
        "ahead": np.zeros((*law.shape, BLOCK)),
        "laid": np.zeros_like(law),
        "closed": np.zeros_like(law),
        "first": np.zeros(n + BLOCK, dtype=np.int64),
        "second": np.zeros(n + BLOCK, dtype=np.int64),
        "born": np.zeros(n + BLOCK, dtype=np.int64),
        "oldest": np.zeros(1, dtype=np.int64),
        "n_open": np.zeros(1, dtype=np.int64),
        "block": np.zeros(1, dtype=np.int64),
        "place": np.zeros(1, dtype=np.int64),
    }


convert.register(AssumedTable)(convert_nothing)
drifts.register(AssumedTable)(drifts_within_plays)
evidence.register(AssumedTable)(corrected_evidence)


@settles.register(AssumedTable)
def _settles_table(assumed: AssumedTable) -> int:
    return last_age(assumed)


@kernel
def last_age(assumed: Any) -> int:
    """Return n, the age from which on a duel gains nothing."""
    return int(assumed.tau.shape[1] - 1 - BLOCK)


@is_settled.register(AssumedTable)
def all_closed(assumed: Any, plays: Integers, i: int, j: int) -> bool:
    """Whether no duel of the pair is open."""
    closed = assumed.closed[i, j] + assumed.closed[j, i]
    return bool(closed == plays[i, j] + plays[j, i])


@advance.register(AssumedTable)
def _advance_table(assumed: AssumedTable, t: int) -> None:
    age_open(assumed, t)


@kernel
def age_open(assumed: Any, t: int) -> None:
    """Step to tick t of the block, or begin a new one."""
    if t - assumed.block[0] >= BLOCK:
        close_old(assumed, t)
        look_ahead(assumed, t)
    assumed.place[0] = t - assumed.block[0]


@kernel
def close_old(assumed: Any, t: int) -> None:
    """Take the duels that gain no more out of the ring."""
    n = last_age(assumed)
    while assumed.n_open[0] > 0 and t - assumed.born[assumed.oldest[0]] >= n:
        i, j = assumed.first[assumed.oldest[0]], assumed.second[assumed.oldest[0]]
        assumed.closed[i, j] += 1
        begin_row(assumed, i, j, t)
        assumed.oldest[0] += 1
        if assumed.oldest[0] == assumed.born.size:
            assumed.oldest[0] = 0
        assumed.n_open[0] -= 1


@kernel
def look_ahead(assumed: Any, t: int) -> None:
    """Add up *expected* for the block that begins at tick t."""
    size = assumed.born.size
    start, stop = assumed.oldest[0], assumed.oldest[0] + assumed.n_open[0]
    gain(assumed, t, start, min(stop, size))
    gain(assumed, t, 0, stop - size)
    assumed.block[0] = t
    assumed.place[0] = 0


@kernel
def begin_row(assumed: Any, i: int, j: int, t: int) -> None:
    """Let a pair's row hold its closed duels only."""
    closed = assumed.closed[i, j] * assumed.tau[assumed.law[i, j], last_age(assumed)]
    for place in range(BLOCK):
        assumed.ahead[i, j, place] = closed
    assumed.laid[i, j] = t


@kernel
def gain(assumed: Any, t: int, start: int, stop: int) -> None:
    """Add what the duels from place `start` to place `stop` of the ring will have gained."""
    for entry in range(start, stop):
        i, j = assumed.first[entry], assumed.second[entry]
        age = np.uint64(t - assumed.born[entry])  # without a sign the loop below is vectorised
        if assumed.laid[i, j] != t:
            begin_row(assumed, i, j, t)
        row = assumed.law[i, j]
        for place in range(assumed.ahead.shape[2]):
            assumed.ahead[i, j, place] += assumed.tau[row, age + np.uint64(place)]


@enter.register(AssumedTable)
def _enter_table(assumed: AssumedTable, i: int, j: int, t: int) -> None:
    if i != j:
        push(assumed, i, j, t)


@kernel
def push(assumed: Any, i: int, j: int, t: int) -> None:
    """Put a duel of two arms at the end of the ring of open ones."""
    entry = assumed.oldest[0] + assumed.n_open[0]
    if entry >= assumed.born.size:
        entry -= assumed.born.size
    assumed.first[entry] = i
    assumed.second[entry] = j
    assumed.born[entry] = t
    assumed.n_open[0] += 1
    now, row = assumed.place[0], assumed.law[i, j]
    for age in range(BLOCK - now):
        assumed.ahead[i, j, now + age] += assumed.tau[row, age]


@expected.register(AssumedTable)
def read_expected(assumed: Any, plays: Integers, i: int, j: int) -> float:
    """*expected* where it is added up ahead."""
    return float(assumed.ahead[i, j, assumed.place[0]])
