"""Delete the rows of duels that were closed long ago, and keep their sums.

The counts in `pairs` and `ages`, and the evidence, do not change. `folded_pairs` and `folded_ages`
keep what the deleted rows have added to them. The audit starts from these sums, and adds the rows
that are left. It counts with code of its own; the sums are made with the code of the writer.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, delete, insert, select

from duelay._core.duration import Duration
from duelay.live.state import ExperimentState, start_evidence, to_bytes
from duelay.live.storage import schema
from duelay.live.storage.delay_histogram import DelayHistogram
from duelay.live.storage.rows import DuelRow, DuelRows
from duelay.live.storage.schema import MICRO
from duelay.live.storage.statements import VALUES, duels_after, find_rows, upsert
from duelay.live.writes.metrics import fold_metrics, last_booked
from duelay.live.writes.settlement import book_duels, count_answers, is_evidence

_MAX_DUELS_PER_TRANSACTION = 1000


def compact_due(
    connection: Connection, state: ExperimentState, moment: int, after: Duration | None = None
) -> int:
    """Fold duels that are old enough into the sums, up to 1000 of them; return how many.

    A duel is folded only when its window has closed, and when it has been booked.
    """
    after = after or state.settings.forget_after
    if after is None:
        return 0
    duels, head = schema.duels, state.head
    last, latest = min(head["closed"], head["matured"]), moment - float(after) * MICRO
    booked = last_booked(connection, state.settings.id)
    last = last if booked is None else min(last, booked)
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
        .limit(_MAX_DUELS_PER_TRANSACTION)
    ).mappings().all()  # fmt: skip
    old = [cast(DuelRow, dict(row)) for row in rows if row["asked"] < latest]
    _add_to_pairs(connection, state, old)
    _add_to_ages(connection, state, old)
    _keep_units(connection, state, old)
    fold_metrics(connection, state.settings.id, old)
    connection.execute(
        delete(duels).where(
            duels.c.experiment == state.settings.id, duels.c.number <= old[-1]["number"]
        )
    )
    head["forgotten"] = old[-1]["number"]
    return len(old)


def _add_to_pairs(connection: Connection, state: ExperimentState, rows: DuelRows) -> None:
    """Add the counts and the evidence of duels to `folded_pairs`."""
    experiment, folded = state.settings.id, schema.folded_pairs
    eprocess = start_evidence(state.settings, len(state.arms))
    own = [row for row in rows if is_evidence(row)]
    count_answers(eprocess, [row for row in own if row["told"] is not None])
    book_duels(eprocess, own)
    sums = _count(rows, len(state.arms)) | {
        name: getattr(eprocess, name) for name in ("wins", "lead", "n", "wealth")
    }
    sums |= {name: eprocess.tie_wealth[:, :, at] for at, name in enumerate(("tie_near", "tie_far"))}
    rows_before = connection.execute(select(folded).where(folded.c.experiment == experiment))
    for before in rows_before.mappings():
        old = dict(before) | {"wealth": np.frombuffer(before["wealth"], dtype="<f8")}
        for name, values in sums.items():
            values[old["first"], old["second"]] += old[name]
    changed = {(row["first"], row["second"]) for row in rows}
    upsert(connection, folded, [
        {"experiment": experiment, "first": i, "second": j,
         **{name: values[i, j].item() for name, values in sums.items() if name != "wealth"},
         "wealth": to_bytes(sums["wealth"][i, j])}
        for i, j in sorted(changed | {(j, i) for i, j in changed})
    ])  # fmt: skip


def _count(rows: DuelRows, n_arms: int) -> dict[str, NDArray[Any]]:
    """Count duels by ordered pair, (K, K)."""
    first, second = (np.array([row[name] for row in rows]) for name in ("first", "second"))
    is_told, is_late = (
        np.array([row[name] is not None for row in rows], dtype=np.int64)
        for name in ("told", "late")
    )
    won = np.array([row["first_won"] or 0.0 for row in rows])
    repeats = np.array([not row["enters"] for row in rows], dtype=np.int64)
    converts = (won == 1.0).astype(np.int64)
    counts = {
        "plays": np.ones(len(rows), dtype=np.int64),
        "conversions": converts,
        "answers": is_told,
        "late": is_late,
        "repeats": repeats,
        "repeated_answers": repeats * is_told,
        "repeated_conversions": repeats * converts,
        "given": (1 - repeats) * won,
    }
    found = {}
    for name, values in counts.items():
        found[name] = np.zeros((n_arms, n_arms), dtype=values.dtype)
        np.add.at(found[name], (first, second), values)
    return found


def _add_to_ages(connection: Connection, state: ExperimentState, rows: DuelRows) -> None:
    """Add the ages of the answers to `folded_ages`."""
    ages = DelayHistogram(state.settings.window)
    for row in rows:
        if is_evidence(row):
            ages.add(row)
    ages.save(connection, state.settings.id, schema.folded_ages)


def _keep_units(connection: Connection, state: ExperimentState, rows: DuelRows) -> None:
    """Remember which pairs a unit has had: a later duel on them does not enter either."""
    seen, experiment = schema.seen_units, state.settings.id
    had = {(row["unit"], min(row["first"], row["second"]), max(row["first"], row["second"]))
           for row in rows if row["unit"] is not None}  # fmt: skip
    if had:
        units = {unit for unit, _, _ in had}
        own = select(seen).where(seen.c.experiment == experiment, seen.c.unit.in_(VALUES))
        there = find_rows(connection, own, units)
        had -= {(row["unit"], row["low"], row["high"]) for row in there}
    if had:
        connection.execute(
            insert(seen),
            [{"experiment": experiment, "unit": unit, "low": low, "high": high}
             for unit, low, high in sorted(had)],
        )  # fmt: skip
