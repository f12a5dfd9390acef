"""Settle duels: by their answers, by silence at age W, and at the end of their window.

One process at a time does it, while it holds the row of the experiment. In a transaction, due duels
are settled after the answers, so that a look at the evidence includes all news of the moment.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from sqlalchemy import Connection

from duelay.ledger.evidence.batch import (
    AFTERWARDS,
    ANSWERED,
    MATURED,
    SILENT,
    settle,
    wait,
)
from duelay.ledger.evidence.eprocess import EProcess
from duelay.live.state import ExperimentState, read_settings, start_evidence
from duelay.live.storage import statements
from duelay.live.storage.delay_histogram import DelayHistogram
from duelay.live.storage.schema import MICRO

BY_ANSWER, BY_SILENCE = 1, 2  # in the column `settled_by`
_MAX_DUELS_PER_READ = 2000
_NEEDED = ("id", "number", "first", "second", "asked", "enters", "told", "first_won",
           "settled_by")  # fmt: skip

News = Sequence[tuple[int, dict[str, Any]]]  # what happened to duels, and their rows


def settle_and_look(
    connection: Connection,
    state: ExperimentState,
    ages: DelayHistogram,
    moment: int,
    *,
    is_written: bool = True,
) -> None:
    """Settle all duels that are due at a moment, and look at the evidence.

    Without `is_written` the state alone changes, for somebody who reads.
    """
    _settle_silent(connection, state, moment, is_written=is_written)
    _close_due(connection, state, ages, moment)
    state.look_at_evidence(moment)
    state.head["settled"] = moment


def read_settled(connection: Connection, head: Any, moment: int) -> ExperimentState:
    """Return the state as it would be once settled at a moment; nothing is written."""
    state = ExperimentState.load(connection, head)
    settle_and_look(
        connection, state, DelayHistogram(state.settings.window), moment, is_written=False
    )
    state.head["moment"] = moment
    return state


def is_at_rest(head: Any) -> bool:
    """Whether there is nothing to settle before somebody asks or tells, by the experiment's row."""
    is_closed = head["window"] is None or head["closed"] == head["asked"]
    return bool(
        is_closed and head["matured"] == head["asked"] and head["moment"] <= head["settled"]
    )


def is_due(connection: Connection, head: Any, moment: int) -> bool:
    """Whether to settle at a moment would change anything: news to look at, or silent duels."""
    if is_at_rest(head):
        return False
    if head["moment"] > head["settled"]:
        return True
    settings = read_settings(head)
    eprocess = start_evidence(settings, 2)
    eprocess.n_heard[0], eprocess.delays[0] = head["n_heard"], head["delays"]
    ends = {"matured": moment - wait(eprocess) * MICRO}
    if settings.window_in_micro is not None:
        ends["closed"] = moment - settings.window_in_micro - 1
    for pointer, last in ends.items():
        found = statements.run(
            connection,
            statements.duels_after("asked"),
            {"experiment": settings.id, "after": head[pointer], "n": 1},
        ).first()
        if found is not None and found[0] <= last:
            return True
    return False


def _settle_silent(
    connection: Connection, state: ExperimentState, moment: int, *, is_written: bool
) -> None:
    """Let duels reach age W: those that are still silent are settled by their silence."""
    longest = wait(state.eprocess)
    for rows in _rows_until(connection, state, "matured", moment - longest * MICRO):
        due = [row for row in rows if row["enters"] and row["first"] != row["second"]]
        news = [(SILENT if row["settled_by"] is None else MATURED, row) for row in due]
        settle_duels(state, news, moment)
        silent = [row for kind, row in news if kind == SILENT]
        if silent and is_written:
            change_duels(connection, silent, ("settled_by", "settled", "odds"))


def _close_due(
    connection: Connection, state: ExperimentState, ages: DelayHistogram, moment: int
) -> None:
    """Close the duels whose window has passed."""
    window = state.settings.window_in_micro
    if window is not None:
        for rows in _rows_until(connection, state, "closed", moment - window - 1):
            for row in rows:
                ages.close(state, row)


def _rows_until(
    connection: Connection, state: ExperimentState, pointer: str, last: float
) -> Iterator[Sequence[dict[str, Any]]]:
    """Give the duels after a pointer that were asked until `last`, and move the pointer.

    A pointer is a column of the experiment with the number of a duel. Later duels have later times:
    all duels after one that is too young are too young as well.
    """
    n = 1  # mostly nothing is due: reading one duel shows that
    while last > 0:
        found = statements.run(
            connection,
            statements.duels_after(*_NEEDED),
            {"experiment": state.settings.id, "after": state.head[pointer], "n": n},
        )
        read = [dict(zip(_NEEDED, row, strict=True)) for row in found]
        rows = [row for row in read if row["asked"] <= last]
        if rows:
            state.head[pointer] = rows[-1]["number"]
            yield rows
        if len(rows) < n:
            return
        n = min(n * 50, _MAX_DUELS_PER_READ)


def settle_duels(state: ExperimentState, news: News, moment: int) -> None:
    """Settle duels in this order, and fill in what settled each, when, and at which odds."""
    for (kind, row), odds in zip(news, add_evidence(state.eprocess, news, moment), strict=True):
        if odds == odds:  # not nan: it is settled now
            by = BY_ANSWER if kind in (ANSWERED, AFTERWARDS) else BY_SILENCE
            row |= {"settled_by": by, "settled": moment, "odds": odds}
            state.touch(row["first"], row["second"])


def add_evidence(eprocess: EProcess, news: News, moment: int) -> list[float]:
    """Add the evidence of duels in this order; return the odds of each, nan if it has none."""
    rows = [row for _, row in news]
    if not rows:
        return []
    kind = np.array([kind for kind, _ in news], dtype=np.int8)
    first, second = (np.array([row[name] for row in rows], dtype=np.int64)
                     for name in ("first", "second"))  # fmt: skip
    won = np.array([row["first_won"] or 0.0 for row in rows])
    delay = np.array([(row["told"] or moment) - row["asked"] for row in rows]) / MICRO
    odds = np.full(len(rows), np.nan)
    settle(eprocess, kind, first, second, won, delay, odds)
    return odds.tolist()


def change_duels(
    connection: Connection, rows: Sequence[dict[str, Any]], columns: Sequence[str]
) -> None:
    """Write some columns of duels."""
    statements.run(
        connection,
        statements.write_duels(*columns),
        [{"b_id": row["id"], **{name: row[name] for name in columns}} for row in rows],
    )
