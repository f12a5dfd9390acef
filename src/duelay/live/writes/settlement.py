"""Settling: silence at age W, windows that close, and the look at the evidence.

One process at a time does it, while it holds the experiment's row. In a transaction it comes after
the answers, so that all news of the moment is booked when it looks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import Connection

from duelay.ledger.evidence.batch import MATURED, SILENT, look_now, wait
from duelay.live.state import Book
from duelay.live.storage.delay_histogram import Ages
from duelay.live.storage.schema import MICRO
from duelay.live.storage.statements import duels_after, run
from duelay.live.writes.requests import bet, change_duels

_CHUNK = 2000  # duels that are read at one time
_NEEDED = ("id", "number", "first", "second", "asked", "enters", "told", "first_won",
           "settled_by")  # fmt: skip


def settle_due(connection: Connection, book: Book, ages: Ages, moment: int) -> None:
    """Settle what is due at a moment, and look."""
    mature_due(connection, book, moment)
    close_due(connection, book, ages, moment)
    before = book.before_look()
    look_now(book.bets, book.head["asked"] + 1)
    book.looked(moment, before)
    book.head["settled"] = moment


def mature_due(connection: Connection, book: Book, moment: int) -> None:
    """Let duels reach age W: those that are still silent are settled by their silence."""
    longest = wait(book.bets)
    for rows in rows_until(connection, book, "matured", moment - longest * MICRO):
        due = [row for row in rows if row["enters"] and row["first"] != row["second"]]
        news = [(SILENT if row["settled_by"] is None else MATURED, row) for row in due]
        bet(book, news, moment)
        silent = [row for kind, row in news if kind == SILENT]
        if silent:
            change_duels(connection, silent, ("settled_by", "settled", "odds"))


def close_due(connection: Connection, book: Book, ages: Ages, moment: int) -> None:
    """Close the duels whose window has passed."""
    window = book.settings.window_in_micro
    if window is not None:
        for rows in rows_until(connection, book, "closed", moment - window - 1):
            for row in rows:
                ages.close(book, row)


def rows_until(
    connection: Connection, book: Book, pointer: str, last: float
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
            {"experiment": book.settings.id, "after": book.head[pointer], "n": n},
        )
        read = [dict(zip(_NEEDED, row, strict=True)) for row in found]
        rows = [row for row in read if row["asked"] <= last]
        if rows:
            book.head[pointer] = rows[-1]["number"]
            yield rows
        if len(rows) < n:
            return
        n = min(n * 50, _CHUNK)
