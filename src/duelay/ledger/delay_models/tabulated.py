"""Any law: *expected* is added up a block of ticks ahead."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from duelay._core.arrays import Floats, Integers
from duelay._core.jit.decorators import kernel
from duelay.delays.delay import tables
from duelay.ledger.delay_models.base import (
    MAX_OPEN_AGES,
    advance,
    check_length,
    convert,
    convert_nothing,
    corrected_counts,
    does_not_drift,
    drifts,
    enter,
    expected,
    expected_at_last,
    final_age,
    pair_counts,
    stands_still,
)

BLOCK = 32  # ticks


class AssumedTable(NamedTuple):
    """One law, or one law of each pair: *expected* is added up a block of ticks ahead.

    Whatever is heard, an open duel counts tau(age) at each of the next ticks. So at the start of a
    block every open duel adds a stretch of tau to its pair's row; a new duel adds the rest of one.
    Only pairs with open duels have a row: with many arms these are few.
    """

    tau: Floats  # (laws, n + 1 + BLOCK): P(D <= age), and beyond age n as at n
    law: Integers  # (K, K): which row of tau
    ahead: Floats  # (R, BLOCK): *expected* of a pair with open duels at each tick of the block
    row: Integers  # (K, K): which row is the pair's, -1 for none
    owner: Integers  # (R,): i K + j of the pair that has each row
    n_rows: Integers  # (1,): rows in use
    closed: Integers  # (K, K): duels of age n and more
    first: Integers  # (n + BLOCK,): the open duels, in a ring
    second: Integers  # (n + BLOCK,)
    born: Integers  # (n + BLOCK,)
    oldest: Integers  # (1,): where in the ring the oldest open duel stands
    n_open: Integers  # (1,): how many are open
    block: Integers  # (1,): the first tick of the block
    place: Integers  # (1,): where in the block this tick stands


def start_table(delay: Any, window: int | None, n_arms: int) -> AssumedTable:
    """Return the state for one law, or for one law of each pair."""
    limit = MAX_OPEN_AGES + 1 if window is None else window
    tau, law = tables(delay, n_arms, limit)
    n = tau.shape[1] - 1
    check_length(n)
    return AssumedTable(**blocks(tau, law))


def blocks(tau: Floats, law: Integers) -> dict[str, Any]:
    """Return the fields of `AssumedTable`, from tau, (laws, n + 1), and its row for each pair."""
    n = tau.shape[1] - 1
    n_rows = min(n + BLOCK, law.size)  # one for each pair with open duels
    return {
        "tau": np.concatenate([tau, np.repeat(tau[:, -1:], BLOCK, axis=1)], axis=1),
        "law": law,
        "ahead": np.zeros((n_rows, BLOCK)),
        "row": np.full_like(law, -1),
        "owner": np.zeros(n_rows, dtype=np.int64),
        "n_rows": np.zeros(1, dtype=np.int64),
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
drifts.register(AssumedTable)(does_not_drift)
pair_counts.register(AssumedTable)(corrected_counts)


@final_age.register(AssumedTable)
def _final_age(assumed: AssumedTable) -> int:
    return last_age(assumed)


@kernel
def last_age(assumed: Any) -> int:
    """Return n, the age from which on a duel gains nothing."""
    return int(assumed.tau.shape[1] - 1 - BLOCK)


@stands_still.register(AssumedTable)
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
        assumed.oldest[0] += 1
        if assumed.oldest[0] == assumed.born.size:
            assumed.oldest[0] = 0
        assumed.n_open[0] -= 1


@kernel
def look_ahead(assumed: Any, t: int) -> None:
    """Add up *expected* for the block that begins at tick t."""
    size = assumed.born.size
    start, stop = assumed.oldest[0], assumed.oldest[0] + assumed.n_open[0]
    give_rows_back(assumed)
    gain(assumed, t, start, min(stop, size))
    gain(assumed, t, 0, stop - size)
    assumed.block[0] = t
    assumed.place[0] = 0


@kernel
def gained_by_closed(assumed: Any, i: int, j: int) -> Any:
    """Return what the closed duels of a pair add to *expected*."""
    return assumed.closed[i, j] * assumed.tau[assumed.law[i, j], last_age(assumed)]


@kernel
def give_rows_back(assumed: Any) -> None:
    """Take the rows of all pairs back."""
    k = assumed.row.shape[0]
    for row in range(assumed.n_rows[0]):
        i = assumed.owner[row] // k
        assumed.row[i, assumed.owner[row] - i * k] = -1
    assumed.n_rows[0] = 0


@kernel
def row_of(assumed: Any, i: int, j: int) -> Any:
    """Return the row of a pair; a new row starts with what the pair's closed duels add."""
    row = assumed.row[i, j]
    if row < 0:
        row = assumed.n_rows[0]
        assumed.n_rows[0] = row + 1
        assumed.row[i, j] = row
        assumed.owner[row] = i * assumed.row.shape[0] + j
        closed = gained_by_closed(assumed, i, j)
        for place in range(BLOCK):
            assumed.ahead[row, place] = closed
    return row


@kernel
def gain(assumed: Any, t: int, start: int, stop: int) -> None:
    """Add what the duels from place `start` to place `stop` of the ring will have gained."""
    for entry in range(start, stop):
        i, j = assumed.first[entry], assumed.second[entry]
        age = np.uint64(t - assumed.born[entry])  # without a sign the loop below is vectorised
        row, law = row_of(assumed, i, j), assumed.law[i, j]
        for place in range(assumed.ahead.shape[1]):
            assumed.ahead[row, place] += assumed.tau[law, age + np.uint64(place)]


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
    now, row, law = assumed.place[0], row_of(assumed, i, j), assumed.law[i, j]
    for age in range(BLOCK - now):
        assumed.ahead[row, now + age] += assumed.tau[law, age]


@expected.register(AssumedTable)
def read_expected(assumed: Any, plays: Integers, i: int, j: int) -> float:
    """*expected* where it is added up ahead."""
    row = assumed.row[i, j]
    if row >= 0:
        return float(assumed.ahead[row, assumed.place[0]])
    return float(gained_by_closed(assumed, i, j))


@expected_at_last.register(AssumedTable)
def all_gained(assumed: Any, plays: Integers, i: int, j: int) -> float:
    """*expected* once no duel is open."""
    return float(plays[i, j] * assumed.tau[assumed.law[i, j], last_age(assumed)])
