"""Events of an experiment, such as a declared winner, which webhooks report."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, insert, select

from duelay.inference.evidence import evidence_of
from duelay.inference.leader import leader_by_bets
from duelay.inference.verdicts import describe_verdict
from duelay.live.state import ExperimentState, end_of
from duelay.live.storage import schema
from duelay.live.storage.rows import ExperimentRow

KINDS = ("declared", "good_enough", "equivalent", "undecided", "withdrawn", "alarm", "silent",
         "paused", "resumed", "held", "released", "finished", "reopened", "archived",
         "listed", "joined", "retired", "guardrail")  # fmt: skip


def note(
    connection: Connection, experiment: int, kind: str, about: str, words: str, moment: int
) -> None:
    """Write an event down; webhooks tell it."""
    row = {"experiment": experiment, "kind": kind, "about": about, "words": words, "at": moment}
    connection.execute(insert(schema.events), row)


def note_end(
    connection: Connection, state: ExperimentState, before: ExperimentRow, moment: int
) -> None:
    """Write down a verdict, or that it was withdrawn; `before` is the row of the experiment."""
    arms, head, earlier = state.arms, state.head, before["winner"]
    if end_of(head) == end_of(before):
        return
    if earlier is not None and earlier != state.winner:
        words = f"{arms[earlier]} is no longer declared: an arm came or went"
        note(connection, state.settings.id, "withdrawn", arms[earlier], words, moment)
    verdict, best = state.verdict, leader_by_bets(state.ledger)
    if verdict == "running":
        return
    unit = "visitor" if state.settings.shows_one else "duel"
    if verdict == "undecided":
        words = f"undecided after {head['asked']:,} {unit}s: {arms[best]} is the best guess"
    elif verdict == "winner":
        words = f"{arms[best]} wins: declared after {int(state.eprocess.declared[0]):,} {unit}s"
    else:
        beats = evidence_of(state.eprocess).beats[best]
        others = [arm for arm in range(len(arms)) if arm != best and state.present[arm]]
        alike, worse = ([arms[arm] for arm in others if beats[arm] == is_beaten]
                        for is_beaten in (False, True))  # fmt: skip
        words = describe_verdict(verdict, arms[best], state.settings.margin, alike, worse,
                                 shows_one=state.settings.shows_one)  # fmt: skip
    kind = "declared" if verdict == "winner" else verdict
    note(connection, state.settings.id, kind, arms[best], words, moment)


def read_events(connection: Connection, experiment: int, after: int = 0, n: int = 100) -> Any:
    """Return the events after one, in their order."""
    events = schema.events
    return connection.execute(
        select(events)
        .where(events.c.experiment == experiment, events.c.id > after)
        .order_by(events.c.id)
        .limit(n)
    ).mappings().all()  # fmt: skip
