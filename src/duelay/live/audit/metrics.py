"""Recount the metrics of an experiment from their events and the duels that are left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import Connection, select

from duelay.live.storage import schema
from duelay.live.storage.rows import DuelRow, ExperimentRow

_NAMES = ("shown", "of_first", "of_second")
_Counts = Counter[tuple[int, int, int, str]]  # by metric, first, second and name


class MetricRecount:
    """Counts of the duels that are added, which are compared with those of the store."""

    def __init__(self, connection: Connection, head: ExperimentRow) -> None:
        self._arms_of: dict[int, tuple[int, int, bool]] = {}
        self._connection, self._head = connection, head
        table = schema.metrics
        self._metrics = connection.execute(
            select(table).where(table.c.experiment == head["id"]).order_by(table.c.number)
        ).all()
        self._counts: _Counts = Counter()
        self._add_stored(self._counts, schema.folded_metric_counts)

    def _add_stored(self, counts: _Counts, table: Any) -> None:
        rows = self._connection.execute(select(table).where(table.c.experiment == self._head["id"]))
        for row in rows:
            for name in _NAMES:
                counts[row.metric, row.first, row.second, name] += getattr(row, name)

    def add(self, row: DuelRow) -> None:
        """Add a duel."""
        if not self._metrics:
            return
        self._arms_of[row["number"]] = (row["first"], row["second"], bool(row["enters"]))
        for metric in self._metrics:
            if metric.since < row["number"] <= metric.booked and row["enters"]:
                self._counts[metric.number, row["first"], row["second"], "shown"] += 1

    def compare(self, arms: Sequence[str]) -> Iterator[str]:
        """Give a sentence for each count that is not as the duels and events say."""
        if not self._metrics:
            return
        names = {metric.number: metric for metric in self._metrics}
        events = schema.metric_events
        told = self._connection.execute(
            select(events).where(events.c.experiment == self._head["id"])
        )
        for event in told:
            metric, place = names[event.metric], ("of_first", "of_second")[event.place]
            if event.number not in self._arms_of:
                yield f"an event of {metric.name!r} is about duel {event.number}, which is missing"
                continue
            first, second, enters = self._arms_of[event.number]
            if metric.since < event.number <= metric.booked and enters and not event.late:
                self._counts[event.metric, first, second, place] += 1
        kept: _Counts = Counter()
        self._add_stored(kept, schema.metric_counts)
        for key in sorted(kept.keys() | self._counts.keys()):
            if kept[key] != self._counts[key]:
                number, i, j, name = key
                pair = f"{arms[i]!r} over {arms[j]!r}"
                yield (
                    f"{name} of {names[number].name!r} of {pair} is {kept[key]}, and "
                    f"{self._counts[key]} by its duels"
                )
