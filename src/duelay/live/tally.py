"""Tallies: counts by time, so that a chart of a million duels reads a few rows.

Bucket b of an experiment covers `width` microseconds from created + b width on. There are at most
128. Where a moment lies beyond, the width doubles until it does not, and buckets merge: so the
width follows from the latest time known alone.

A duel is counted in the bucket in which it was asked, an answer in the one in which it was told.
An arm against itself is shown twice: the arms of a bucket add up to twice its duels.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, delete, func, insert, literal_column, select, update

from duelay.live import schema, statements

MOST = 128  # buckets
ALL = -1  # in the place of an arm: all of them
PAIR_COUNTS = ("plays", "conversions", "answers", "given")
TIME_COUNTS = ("asked", "answered", "heard")


def wide_enough(created: int, width: int, moment: int) -> int:
    """Return the width, doubled until the bucket of a moment is one of 128."""
    while (moment - created) // width >= MOST:
        width *= 2
    return width


class Tally:
    """Counts by bucket, to be added to the store's; or the store's own."""

    def __init__(self, created: int, width: int) -> None:
        self.created, self.width = created, width
        self.pairs: dict[tuple[int, int, int], list[Any]] = {}  # of bucket, first, second
        self.times: dict[tuple[int, int], list[int]] = {}  # of bucket, arm

    @classmethod
    def read(cls, connection: Connection, experiment: int, head: Any) -> Tally:
        """Return what the store has."""
        tally, pairs, times = cls(head["created"], head["width"]), schema.pair_times, schema.times
        for row in connection.execute(select(pairs).where(pairs.c.experiment == experiment)):
            key = (row.bucket, row.first, row.second)
            tally.pairs[key] = [getattr(row, name) for name in PAIR_COUNTS]
        for row in connection.execute(select(times).where(times.c.experiment == experiment)):
            tally.times[row.bucket, row.arm] = [getattr(row, name) for name in TIME_COUNTS]
        return tally

    def ask(self, row: Any) -> None:
        """Count a duel."""
        i, j, bucket = row["first"], row["second"], (row["asked"] - self.created) // self.width
        self._of_pair(bucket, i, j)[0] += 1
        for arm in (ALL, i, j):
            self._of_time(bucket, arm)[0] += 1

    def hear(self, row: Any) -> None:
        """Count its answer; what a repeat gives is not counted, as in `pairs`."""
        asked, told = ((row[name] - self.created) // self.width for name in ("asked", "told"))
        counts = self._of_pair(told, row["first"], row["second"])
        counts[1] += int(row["first_won"] == 1.0)
        counts[2] += 1
        if row["enters"]:
            counts[3] += row["first_won"] or 0.0
        self._of_time(asked, ALL)[1] += 1
        self._of_time(told, ALL)[2] += 1

    def _of_pair(self, bucket: int, i: int, j: int) -> list[Any]:
        return self.pairs.setdefault((bucket, i, j), [0, 0, 0, 0.0])

    def _of_time(self, bucket: int, arm: int) -> list[int]:
        return self.times.setdefault((bucket, arm), [0, 0, 0])

    def save(self, connection: Connection, experiment: int) -> None:
        """Add the counts to the store's, and begin anew."""
        for table, keys, names, counted in (
            (schema.pair_times, ("bucket", "first", "second"), PAIR_COUNTS, self.pairs),
            (schema.times, ("bucket", "arm"), TIME_COUNTS, self.times),
        ):
            columns = ("experiment", *keys, *names)
            statements.add(connection, table, [
                dict(zip(columns, (experiment, *key, *counts), strict=True))
                for key, counts in counted.items()
            ])  # fmt: skip
        self.pairs, self.times = {}, {}


def merge(connection: Connection, experiment: int, n: int) -> None:
    """Let n buckets that follow each other become one, without leaving the database."""
    aside: Any = literal_column(f"-1 - bucket / {n:d}")  # where no bucket is
    for table in (schema.pair_times, schema.times):
        own, bucket = table.c.experiment == experiment, table.c.bucket
        keys = [aside if column is bucket else column for column in table.primary_key]
        counts = [column for column in table.c if not column.primary_key]
        names = [column.name for column in (*table.primary_key, *counts)]
        merged = select(*keys, *(func.sum(count) for count in counts)).where(own).group_by(*keys)
        connection.execute(insert(table).from_select(names, merged))
        connection.execute(delete(table).where(own, bucket >= 0))
        connection.execute(update(table).where(own).values(bucket=-1 - bucket))
