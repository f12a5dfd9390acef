"""Events of an experiment, such as a declared winner, which webhooks report."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, insert, select

from duelay.live.state import ExperimentState
from duelay.live.storage import schema

KINDS = ("declared", "withdrawn", "alarm", "silent", "paused", "resumed",
         "held", "released", "guardrail")  # fmt: skip


def note(
    connection: Connection, experiment: int, kind: str, about: str, words: str, moment: int
) -> None:
    """Write an event down; webhooks tell it."""
    row = {"experiment": experiment, "kind": kind, "about": about, "words": words, "at": moment}
    connection.execute(insert(schema.events), row)


def note_winner(
    connection: Connection, state: ExperimentState, before: int | None, moment: int
) -> None:
    """Write down that a winner was declared, or that the declaration was withdrawn."""
    if state.winner == before:
        return
    if before is not None:
        words = f"{state.arms[before]} is no longer declared: an arm came or went"
        note(connection, state.settings.id, "withdrawn", state.arms[before], words, moment)
    if state.winner is not None:
        arm, duels = state.arms[state.winner], int(state.eprocess.declared[0])
        words = f"{arm} wins: declared after {duels:,} duels"
        note(connection, state.settings.id, "declared", arm, words, moment)


def read_events(connection: Connection, experiment: int, after: int = 0, n: int = 100) -> Any:
    """Return the events after one, in their order."""
    events = schema.events
    return connection.execute(
        select(events)
        .where(events.c.experiment == experiment, events.c.id > after)
        .order_by(events.c.id)
        .limit(n)
    ).mappings().all()  # fmt: skip
