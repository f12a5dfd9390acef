"""Write the metrics of a group: events that were told, duels that are due, and sums of old ones."""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import Connection, insert, select, update

from duelay._core import checks
from duelay.errors import InvalidValueError, UnknownDuelError
from duelay.live.events import note
from duelay.live.guardrails import (
    MetricCounts,
    book_due,
    describe_alarm,
    read_counts,
    read_metrics,
    report_metric,
    shows_one,
)
from duelay.live.state import ExperimentState
from duelay.live.storage import schema, statements
from duelay.live.storage.rows import DuelRow, DuelRows
from duelay.live.writes.requests import Operation
from duelay.live.writes.tell import time_of_answer
from duelay.logs.arm_changes import joined_of

_MAX_READS = 10  # of 10,000 duels, in one transaction


class TellMetric(Operation):
    """Tell that the event of a metric followed a duel; `at` is in microseconds."""

    def __init__(self, id: str, metric: str, arm: str | None, at: int | None) -> None:
        super().__init__(self._record)
        self.id, self.metric, self.arm, self.at = id, metric, arm, at
        self.tried: list[int] = []  # its time in each try: a commit may succeed unheard

    def _record(self, connection: Connection, state: ExperimentState, moment: int) -> str:
        experiment, events = state.settings.id, schema.metric_events
        duel = next(iter(statements.find_rows(connection, statements.DUELS_BY_ID, {self.id})), None)
        if duel is None or duel["experiment"] != experiment:
            raise UnknownDuelError(f"no duel {self.id!r} has been asked here")
        metrics = {row.name: row for row in read_metrics(connection, experiment)}
        metric = metrics.get(self.metric)
        if metric is None:
            there = ", ".join(metrics) or "none"
            raise InvalidValueError(
                f"metric must be one of this experiment, {there}"
                f"{checks.nearest(self.metric, metrics)}, got {self.metric!r}",
                argument="metric",
            )
        place = _place(state, duel, self.arm)
        at = time_of_answer(state, duel, self.at, moment)
        key = {"experiment": experiment, "metric": metric.number, "number": duel["number"],
               "place": place}  # fmt: skip
        told = connection.execute(
            select(events.c.at, events.c.late).where(
                *(events.c[name] == value for name, value in key.items())
            )
        ).first()
        if told is not None:
            is_own = told.at in self.tried
            return ("late" if told.late else "counted") if is_own else "repeated"
        come, allowed = at, metric.within
        if self.at is None:
            held = state.head["held"]
            come = at if held is None else min(at, held)
            allowed += state.settings.lag
        is_late = come - duel["asked"] > allowed or duel["number"] <= metric.booked
        self.tried.append(at)
        connection.execute(insert(events), key | {"at": at, "late": is_late})
        return "late" if is_late else "counted"


def _place(state: ExperimentState, duel: DuelRow, arm: str | None) -> int:
    """Return the place of the arm that an event is about: 0 for the first, 1 for the second."""
    first, second = state.arms[duel["first"]], state.arms[duel["second"]]
    if shows_one(state.head) or first == second:
        if arm in (None, "first", first):
            return 0
        raise InvalidValueError(
            f"arm must be left out or the arm that was shown, {first!r}, got {arm!r}",
            argument="arm",
        )
    if arm in (first, second):
        return int(arm == second)
    if arm in ("first", "second"):
        return int(arm == "second")
    raise InvalidValueError(
        f"arm must say which of the two arms that were shown the event is about, {first!r} or "
        f"{second!r}, got {arm!r}",
        argument="arm",
    )


def book_metrics(connection: Connection, state: ExperimentState, moment: int) -> None:
    """Book the duels that are due for each metric, and raise alarms; not while this is held."""
    if state.head["held"] is not None:
        return
    experiment, k = state.settings.id, len(state.arms)
    for metric in read_metrics(connection, experiment):
        counts = MetricCounts(k)
        last = book_due(
            connection, experiment, metric, counts, moment, state.settings.lag, _MAX_READS
        )
        if last == metric.booked:
            continue
        statements.add(connection, schema.metric_counts, counts.rows(experiment, metric.number))
        alarms = _raise_alarms(connection, state, metric, moment)
        table = schema.metrics
        connection.execute(
            update(table)
            .where(table.c.experiment == experiment, table.c.number == metric.number)
            .values(booked=last, alarms=json.dumps(alarms))
        )


def _raise_alarms(
    connection: Connection, state: ExperimentState, metric: Any, moment: int
) -> dict[str, int]:
    """Note new alarms; return when each arm had its first one, by its number."""
    known: dict[str, int] = json.loads(metric.alarms)
    if metric.bound is None:
        return known
    kept = read_counts(connection, state.settings.id, len(state.arms))
    counts = kept.get(metric.number, MetricCounts(len(state.arms)))
    found = report_metric(
        metric, counts, state.head, state.arms, joined_of(state.arms, state.changes)
    )
    for number, arm in enumerate(found.arms):
        if arm.alarm and str(number) not in known:
            known[str(number)] = moment
            words = describe_alarm(found, arm)
            about = f"{metric.name}: {arm.arm}"
            note(connection, state.settings.id, "guardrail", about, words, moment)
    return known


# Compaction.


def last_booked(connection: Connection, experiment: int) -> int | None:
    """Return the last duel that is booked for every metric; None if there is no metric."""
    booked = [row.booked for row in read_metrics(connection, experiment)]
    return min(booked, default=None)


def fold_metrics(connection: Connection, experiment: int, rows: DuelRows) -> None:
    """Keep the sums of duels whose rows are deleted, and delete their events."""
    if not rows:
        return
    events, table = schema.metric_events, schema.folded_metric_counts
    numbers = [row["number"] for row in rows]
    is_own = (events.c.experiment == experiment, events.c.number >= min(numbers),
              events.c.number <= max(numbers))  # fmt: skip
    k = 1 + max(max(row["first"], row["second"]) for row in rows)
    told = connection.execute(select(events).where(*is_own, ~events.c.late)).all()
    for metric in read_metrics(connection, experiment):
        counts = MetricCounts(k)
        counts.add(
            [row for row in rows if row["number"] > metric.since],
            [event for event in told if event.metric == metric.number],
        )
        statements.add(connection, table, counts.rows(experiment, metric.number))
    connection.execute(events.delete().where(*is_own))
