"""Settling: silence at age W, windows that close, and the look at the evidence.

One process at a time does it, while it holds the experiment's row. In a transaction it comes after
the answers, so that all news of the moment is booked when it looks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import Connection

from duelay.ledger.evidence.batch import MATURED, SILENT, look_now, wait
from duelay.live.state import ExperimentState
from duelay.live.storage.delay_histogram import DelayHistogram
from duelay.live.storage.schema import MICRO
from duelay.live.storage.statements import duels_after, run
from duelay.live.writes.requests import bet, change_duels

_CHUNK = 2000  # duels that are read at one time
_NEEDED = ("id", "number", "first", "second", "asked", "enters", "told", "first_won",
           "settled_by")  # fmt: skip


def settle_due(
    connection: Connection, state: ExperimentState, ages: DelayHistogram, moment: int
) -> None:
    """Settle what is due at a moment, and look."""
    mature_due(connection, state, moment)
    close_due(connection, state, ages, moment)
    before = state.before_look()
    look_now(state.eprocess, state.head["asked"] + 1)
    state.looked(moment, before)
    state.head["settled"] = moment


def mature_due(connection: Connection, state: ExperimentState, moment: int) -> None:
    """Let duels reach age W: those that are still silent are settled by their silence."""
    longest = wait(state.eprocess)
    for rows in rows_until(connection, state, "matured", moment - longest * MICRO):
        due = [row for row in rows if row["enters"] and row["first"] != row["second"]]
        news = [(SILENT if row["settled_by"] is None else MATURED, row) for row in due]
        bet(state, news, moment)
        silent = [row for kind, row in news if kind == SILENT]
        if silent:
            change_duels(connection, silent, ("settled_by", "settled", "odds"))


def close_due(
    connection: Connection, state: ExperimentState, ages: DelayHistogram, moment: int
) -> None:
    """Close the duels whose window has passed."""
    window = state.settings.window_in_micro
    if window is not None:
        for rows in rows_until(connection, state, "closed", moment - window - 1):
            for row in rows:
                ages.close(state, row)


def rows_until(
    connection: Connection, state: ExperimentState, pointer: str, last: float
) -> Iterator[Sequence[dict[str, Any]]]:
    """Give the duels after a pointer that were asked until `last`, and move the pointer.

    A pointer is a column of the experiment with the number of a duel. Later duels have later times:
    all duels after one that is too young are too young as well.
    """
    n = 1  # mostly nothing is due: reading one duel shows that
    while last > 0:
        found = run(
            connection,
            duels_after(*_NEEDED),
            {"experiment": state.settings.id, "after": state.head[pointer], "n": n},
        )
        read = [dict(zip(_NEEDED, row, strict=True)) for row in found]
        rows = [row for row in read if row["asked"] <= last]
        if rows:
            state.head[pointer] = rows[-1]["number"]
            yield rows
        if len(rows) < n:
            return
        n = min(n * 50, _CHUNK)
