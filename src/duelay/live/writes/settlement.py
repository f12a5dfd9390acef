"""Book duels when they have reached their age W_s, and close them at the end of their window.

One process at a time does it, while it holds the row of the experiment. Duels are booked in the
order in which they were asked, after the answers of the transaction.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, cast

import numpy as np
from sqlalchemy import Connection

from duelay._core.arrays import Booleans, Floats, Integers
from duelay.ledger.evidence.booking import NO_STAKE
from duelay.ledger.evidence.eprocess import EProcess
from duelay.ledger.evidence.stored_duels import book_rows, count_news, wait_now
from duelay.live.guardrails import is_metric_due
from duelay.live.state import (
    ExperimentState,
    Settings,
    is_spent,
    read_settings,
    start_evidence,
)
from duelay.live.storage import statements
from duelay.live.storage.delay_histogram import DelayHistogram
from duelay.live.storage.rows import DuelRow, DuelRows, ExperimentRow
from duelay.live.storage.schema import MICRO

BY_ANSWER, BY_SILENCE = 1, 2  # in the column `settled_by`
_MAX_DUELS_PER_READ = 2000
_NEEDED = ("id", "number", "first", "second", "asked", "enters", "told", "first_won", "wait",
           "stake", "settled_by", "odds")  # fmt: skip

Pointer = Literal["matured", "closed"]  # a column with the number of the last duel
Test = Callable[[DuelRow], bool]


def settle(
    connection: Connection,
    state: ExperimentState,
    ages: DelayHistogram,
    moment: int,
    *,
    is_written: bool = True,
) -> None:
    """Book and close all duels that are due at a moment, and look at the evidence.

    Without `is_written` the state alone changes, for somebody who reads.
    """
    if state.head["held"] is None:
        _book_due(connection, state, moment, is_written=is_written)
    _close_due(connection, state, ages, moment)
    state.look_at_evidence(moment)
    state.stop_if_spent(moment)
    state.head["settled"] = moment


def read_settled(connection: Connection, head: ExperimentRow, moment: int) -> ExperimentState:
    """Return the state as it would be once settled at a moment; nothing is written."""
    state = ExperimentState.load(connection, head)
    settle(connection, state, DelayHistogram(state.settings.window), moment, is_written=False)
    state.head["moment"] = moment
    return state


def is_at_rest(head: ExperimentRow) -> bool:
    """Whether there is nothing to settle before somebody asks or tells, by the experiment's row."""
    is_closed = head["window"] is None or head["closed"] == head["asked"]
    is_dated = head["until"] is not None and _goes_on(head)
    is_settled = head["matured"] == head["asked"] and head["moment"] <= head["settled"]
    return bool(is_closed and is_settled and not is_dated)


def _goes_on(head: ExperimentRow) -> bool:
    """Whether there is no verdict yet."""
    return head["stopped"] is None and head["winner"] is None


def is_due(connection: Connection, head: ExperimentRow, moment: int) -> bool:
    """Whether to settle at a moment would change anything: news to look at, or duels to book."""
    if is_metric_due(connection, head, moment):
        return True
    if is_at_rest(head):
        return False
    if head["moment"] > head["settled"] or (_goes_on(head) and is_spent(head, moment)):
        return True
    settings = read_settings(head)
    eprocess = start_evidence(settings, 2)
    eprocess.n_heard[0], eprocess.delays[0] = head["n_heard"], head["delays"]
    tests: dict[Pointer, Test] = {"closed": _closing_test(settings, moment)}
    if head["held"] is None:
        tests["matured"] = _booking_test(settings, eprocess, moment)
    return any(
        test(row)
        for pointer, test in tests.items()
        for row in _read_next(connection, settings.id, head[pointer], 1)
    )


def _booking_test(settings: Settings, eprocess: EProcess, moment: int) -> Test:
    """Return a test whether a duel is to be booked, once all before it are."""
    usual = wait_now(eprocess) * MICRO  # what a duel without a stake waits for

    def test(row: DuelRow) -> bool:
        own = usual if row["stake"] is None else row["wait"]
        return not is_evidence(row) or moment - row["asked"] >= own + settings.lag

    return test


def _closing_test(settings: Settings, moment: int) -> Test:
    """Return a test whether the window of a duel has passed."""
    window = settings.window_in_micro
    return lambda row: window is not None and moment - row["asked"] > window


def is_evidence(row: DuelRow) -> bool:
    """Whether a duel is evidence: one of two arms that its unit had not had before."""
    return bool(row["enters"] and row["first"] != row["second"])


def _book_due(
    connection: Connection, state: ExperimentState, moment: int, *, is_written: bool
) -> None:
    """Book the duels that have reached age W_s, in the order in which they were asked."""
    test = _booking_test(state.settings, state.eprocess, moment)
    for rows in _next_rows(connection, state, "matured", test):
        due = [row for row in rows if is_evidence(row)]
        book_duels(state.eprocess, due)
        for row in due:
            state.touch(row["first"], row["second"])
        silent = [row for row in due if row["settled_by"] == BY_SILENCE]
        if silent and is_written:
            change_duels(connection, silent, ("settled_by", "odds"))


def _close_due(
    connection: Connection, state: ExperimentState, ages: DelayHistogram, moment: int
) -> None:
    """Close the duels whose window has passed."""
    for rows in _next_rows(connection, state, "closed", _closing_test(state.settings, moment)):
        for row in rows:
            ages.close(state, row)


def _next_rows(
    connection: Connection, state: ExperimentState, pointer: Pointer, test: Test
) -> Iterator[DuelRows]:
    """Give the duels after a pointer until the first that fails a test, and move the pointer."""
    n = 1  # mostly nothing is due: reading one duel shows that
    while True:
        read = _read_next(connection, state.settings.id, state.head[pointer], n)
        rows = list(itertools.takewhile(test, read))
        if rows:
            state.head[pointer] = rows[-1]["number"]
            yield rows
        if len(rows) < n:
            return
        n = min(n * 50, _MAX_DUELS_PER_READ)


def _read_next(connection: Connection, experiment: int, after: int, n: int) -> DuelRows:
    """Return the next n duels after a number."""
    found = statements.run(
        connection,
        statements.duels_after(*_NEEDED),
        {"experiment": experiment, "after": after, "n": n},
    )
    return [cast(DuelRow, dict(zip(_NEEDED, row, strict=True))) for row in found]


def count_answers(eprocess: EProcess, rows: DuelRows) -> None:
    """Count answers to duels of two arms, in this order, where pairs are chosen."""
    if rows:
        delay = np.array([row["told"] - row["asked"] for row in rows]) / MICRO
        count_news(eprocess, *_arms(rows), _first_won(rows), delay, _is_answered(rows))


def book_duels(eprocess: EProcess, rows: DuelRows) -> None:
    """Book duels of two arms, in the order in which they were asked.

    Where a silence has no odds yet, it is written what it is worth now.
    """
    if not rows:
        return
    is_answered = _is_answered(rows)
    stake = np.array([NO_STAKE if row["stake"] is None else row["stake"] for row in rows])
    odds = np.array([np.nan if row["odds"] is None else row["odds"] for row in rows])
    book_rows(eprocess, *_arms(rows), is_answered, _first_won(rows), stake, odds)
    for row, has_answer, kappa in zip(rows, is_answered.tolist(), odds.tolist(), strict=True):
        if not has_answer:
            row |= {"settled_by": BY_SILENCE, "odds": kappa}


def _arms(rows: DuelRows) -> tuple[Integers, Integers]:
    first, second = (np.array([row[name] for row in rows], dtype=np.int64)
                     for name in ("first", "second"))  # fmt: skip
    return first, second


def _first_won(rows: DuelRows) -> Floats:
    return np.array([row["first_won"] or 0.0 for row in rows])


def _is_answered(rows: DuelRows) -> Booleans:
    """Of each duel, whether it was answered by its age W_s."""
    return np.array([row["settled_by"] == BY_ANSWER for row in rows], dtype=np.bool_)


def change_duels(connection: Connection, rows: DuelRows, columns: Sequence[str]) -> None:
    """Write some columns of duels."""
    statements.run(
        connection,
        statements.write_duels(*columns),
        [{"b_id": row["id"], **{name: value for name, value in row.items() if name in columns}}
         for row in rows],
    )  # fmt: skip
