"""Forgetting: rows of duels that were closed long ago are folded into the counters.

What these duels told stays: `pairs`, `ages` and the evidence do not change. `folded_pairs` and
`folded_ages` keep what the folded duels have added to these counts. So a recount, which starts from
them and adds the rows that are left, still gives the same numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sqlalchemy import Connection, delete, insert, select

from duelay._core.duration import Duration
from duelay.live.recount import Recount
from duelay.live.state import ExperimentState, to_bytes
from duelay.live.storage import schema
from duelay.live.storage.delay_histogram import read_ages, write_ages
from duelay.live.storage.schema import MICRO
from duelay.live.storage.statements import duels_after, upsert

_AT_ONCE = 1000  # duels in a transaction


def forget_due(
    connection: Connection, state: ExperimentState, moment: int, after: Duration | None = None
) -> int:
    """Fold duels that are old enough, up to 1000 of them; return how many.

    A duel is only forgotten when its window has closed, and when it has been settled.
    """
    after = after or state.settings.forget_after
    if after is None:
        return 0
    duels, head = schema.duels, state.head
    last, latest = min(head["closed"], head["matured"]), moment - float(after) * MICRO
    oldest = connection.execute(
        duels_after("number", "asked"),
        {"experiment": state.settings.id, "after": head["forgotten"], "n": 1},
    ).first()
    if oldest is None or oldest.number > last or oldest.asked >= latest:
        return 0
    rows = connection.execute(
        select(duels)
        .where(
            duels.c.experiment == state.settings.id,
            duels.c.number > head["forgotten"],
            duels.c.number <= last,
        )
        .order_by(duels.c.number)
        .limit(_AT_ONCE)
    ).mappings().all()  # fmt: skip
    old = [row for row in rows if row["asked"] < latest]
    _fold(connection, state, old)
    _keep_units(connection, state, old)
    connection.execute(
        delete(duels).where(
            duels.c.experiment == state.settings.id, duels.c.number <= old[-1]["number"]
        )
    )
    head["forgotten"] = old[-1]["number"]
    return len(old)


def _fold(connection: Connection, state: ExperimentState, rows: Sequence[Any]) -> None:
    experiment = state.settings.id
    recount = Recount(state)
    recount.add_folded(connection)
    changed = {(row["first"], row["second"]) for row in rows}
    changed |= {(j, i) for i, j in changed}
    for row in rows:
        recount.add(row)
    upsert(connection, schema.folded_pairs, [
        {"experiment": experiment, "first": i, "second": j,
         **{name: values[i, j].item() for name, values in recount.pairs.items()},
         "wealth": to_bytes(recount.wealth[i, j])}
        for i, j in sorted(changed)
    ])  # fmt: skip
    before = read_ages(connection, schema.folded_ages, experiment, len(recount.asked))
    buckets = np.flatnonzero((recount.asked != before[0]) | (recount.answered != before[1]))
    write_ages(connection, schema.folded_ages, experiment, buckets, recount.asked,
               recount.answered)  # fmt: skip


def _keep_units(connection: Connection, state: ExperimentState, rows: Sequence[Any]) -> None:
    """Remember which pairs a unit has had: a later duel on them does not enter either."""
    seen, experiment = schema.seen_units, state.settings.id
    had = {(row["unit"], min(row["first"], row["second"]), max(row["first"], row["second"]))
           for row in rows if row["unit"] is not None}  # fmt: skip
    if had:
        units = {unit for unit, _, _ in had}
        there = connection.execute(
            select(seen).where(seen.c.experiment == experiment, seen.c.unit.in_(units))
        )
        had -= {(row.unit, row.low, row.high) for row in there}
    if had:
        connection.execute(
            insert(seen),
            [{"experiment": experiment, "unit": unit, "low": low, "high": high}
             for unit, low, high in sorted(had)],
        )  # fmt: skip
