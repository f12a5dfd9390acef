"""Count duels and answers by time, so that a chart of a million duels reads a few rows.

Bucket b of an experiment covers `width` microseconds from created + b width on. There are at most
128. Where a moment lies beyond the last bucket, the width doubles until it does not: so the width
depends on nothing but the latest time known. A row has the minute at which its bucket begins. So
rows of narrower buckets stay valid when the width doubles: readers add them up. The rows of pairs
are merged little by little, so that no caller waits.

A duel is counted in the bucket in which it was asked, an answer in the one in which it was told.
An arm against itself is shown twice: the arms of a bucket add up to twice its duels.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, delete, func, literal_column, select

from duelay.live.storage import schema, statements
from duelay.live.storage.rows import DuelRow, ExperimentRow

MAX_BUCKETS = 128
ALL = -1  # in the place of an arm: all of them
PAIR_COUNTS = ("plays", "conversions", "answers", "given")
TIME_COUNTS = ("asked", "answered", "heard")


def wide_enough(created: int, width: int, moment: int) -> int:
    """Return the width, doubled until the bucket of a moment is one of 128."""
    while (moment - created) // width >= MAX_BUCKETS:
        width *= 2
    return width


class TimeBuckets:
    """Counts by bucket: new ones, to be added to those of the store, or all that it has."""

    def __init__(self, created: int, width: int) -> None:
        self.created, self.width = created, width
        self.pairs: dict[tuple[int, int, int], dict[str, Any]] = {}  # of bucket, first, second
        self.times: dict[tuple[int, int], dict[str, int]] = {}  # of bucket, arm

    @classmethod
    def read(cls, connection: Connection, experiment: int, head: ExperimentRow) -> TimeBuckets:
        """Return what the store has."""
        found = cls(head["created"], head["width"])
        pairs, times = schema.pair_times, schema.times
        for row in connection.execute(select(pairs).where(pairs.c.experiment == experiment)):
            counts = found._of_pair(row.minute // found.minutes, row.first, row.second)
            for name in PAIR_COUNTS:
                counts[name] += getattr(row, name)
        for row in connection.execute(select(times).where(times.c.experiment == experiment)):
            counts = found._of_time(row.minute // found.minutes, row.arm)
            for name in TIME_COUNTS:
                counts[name] += getattr(row, name)
        return found

    @property
    def minutes(self) -> int:
        """The width of a bucket, in minutes."""
        return self.width // schema.MINUTE

    def ask(self, row: DuelRow) -> None:
        """Count a duel."""
        i, j, bucket = row["first"], row["second"], (row["asked"] - self.created) // self.width
        self._of_pair(bucket, i, j)["plays"] += 1
        for arm in (ALL, i, j):
            self._of_time(bucket, arm)["asked"] += 1

    def hear(self, row: DuelRow) -> None:
        """Count the answer of a duel; a repeat adds nothing to `given`, as in `pairs`."""
        asked, told = ((row[name] - self.created) // self.width for name in ("asked", "told"))
        counts = self._of_pair(told, row["first"], row["second"])
        counts["conversions"] += int(row["first_won"] == 1.0)
        counts["answers"] += 1
        if row["enters"]:
            counts["given"] += row["first_won"] or 0.0
        self._of_time(asked, ALL)["answered"] += 1
        self._of_time(told, ALL)["heard"] += 1

    def _of_pair(self, bucket: int, i: int, j: int) -> dict[str, Any]:
        return self.pairs.setdefault((bucket, i, j), dict.fromkeys(PAIR_COUNTS, 0))

    def _of_time(self, bucket: int, arm: int) -> dict[str, int]:
        return self.times.setdefault((bucket, arm), dict.fromkeys(TIME_COUNTS, 0))

    def save(self, connection: Connection, experiment: int) -> None:
        """Add the counts to the store's, and begin anew."""
        for table, keys, counted in (
            (schema.pair_times, ("first", "second"), self.pairs),
            (schema.times, ("arm",), self.times),
        ):
            statements.add(connection, table, [
                {"experiment": experiment, "minute": bucket * self.minutes,
                 **dict(zip(keys, arms, strict=True)), **counts}
                for (bucket, *arms), counts in counted.items()
            ])  # fmt: skip
        self.pairs, self.times = {}, {}


def merge(connection: Connection, table: Any, minutes: int, *those: Any) -> None:
    """Merge rows of narrower buckets into buckets of `minutes` minutes."""
    begins: Any = literal_column(f"minute / {minutes:d} * {minutes:d}")
    those = (*those, table.c.minute != begins)
    keys = [begins if column is table.c.minute else column for column in table.primary_key]
    counts = [column for column in table.c if not column.primary_key]
    rows = select(*keys, *(func.sum(count) for count in counts)).where(*those).group_by(*keys)
    connection.execute(statements.add_from(connection, table, rows))
    connection.execute(delete(table).where(*those))
