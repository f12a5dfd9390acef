"""Count closed duels by the age of their answer: the delay law is learned from these counts.

An age bucket has two counts. `asked` is the number of closed duels that had no answer when the
bucket began. `answered` is how many of them were answered in the bucket. The buckets are those of
`duelay.ledger.delay_models.continuous_time`. A learned law needs nothing else of closed duels.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, select

from duelay.ledger.delay_models.continuous_time import learned_ages
from duelay.live.storage import schema
from duelay.live.storage.rows import DuelRow
from duelay.live.storage.schema import MICRO
from duelay.live.storage.statements import upsert

if TYPE_CHECKING:
    from duelay.live.state import ExperimentState

_ages = functools.cache(learned_ages)


class DelayHistogram:
    """New counts, to be added to those of the store, and the ages at which the buckets begin."""

    def __init__(self, window: float | None) -> None:
        self.ages = _ages(window)
        self.asked = np.zeros(len(self.ages), dtype=np.int64)
        self.answered = np.zeros(len(self.ages), dtype=np.int64)

    def bucket(self, row: DuelRow) -> int:
        """Return the bucket in which a duel was answered; the last bucket if it was not."""
        if row["told"] is None:
            return len(self.ages) - 1
        delay = (row["told"] - row["asked"]) / MICRO
        return int(np.searchsorted(self.ages, delay, side="right")) - 1

    def add(self, row: DuelRow) -> None:
        """Count a closed duel."""
        place = self.bucket(row)
        self.asked[: place + 1] += 1
        if row["told"] is not None:
            self.answered[place] += 1

    def close(self, state: ExperimentState, row: DuelRow) -> None:
        """Count a duel whose window has closed, here and in the state."""
        i, j = row["first"], row["second"]
        if not row["enters"] or i == j:
            return
        self.add(row)
        state.counts.closed[i, j] += 1
        if row["told"] is not None:
            _answer(state, row)
        state.dirty.add((i, j))

    def answer_after_all(self, state: ExperimentState, row: DuelRow) -> None:
        """Count the answer of a duel that was closed as a silent one."""
        place = self.bucket(row)
        self.asked[place + 1 :] -= 1
        self.answered[place] += 1
        _answer(state, row)

    def save(self, connection: Connection, experiment: int, table: Any = schema.ages) -> None:
        """Add the counts to the store's, and begin anew."""
        if not (self.asked.any() or self.answered.any()):
            return
        asked, answered = read_ages(connection, table, experiment, len(self.ages))
        changed = np.flatnonzero((self.asked != 0) | (self.answered != 0))
        write_ages(connection, table, experiment, changed, asked + self.asked,
                   answered + self.answered)  # fmt: skip
        self.asked[:] = 0
        self.answered[:] = 0


def _answer(state: ExperimentState, row: DuelRow) -> None:
    i, j = row["first"], row["second"]
    state.counts.closed_answers[i, j] += 1
    state.counts.closed_conversions[i, j] += int(row["first_won"] == 1.0)
    state.counts.closed_given[i, j] += row["first_won"]


def read_ages(
    connection: Connection, table: Any, experiment: int, n: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return `asked` and `answered` of the n buckets."""
    asked, answered = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    for row in connection.execute(select(table).where(table.c.experiment == experiment)):
        asked[row.bucket], answered[row.bucket] = row.asked, row.answered
    return asked, answered


def write_ages(
    connection: Connection,
    table: Any,
    experiment: int,
    buckets: NDArray[Any],
    asked: NDArray[np.int64],
    answered: NDArray[np.int64],
) -> None:
    """Write some of the buckets."""
    rows = [{"experiment": experiment, "bucket": place, "asked": int(asked[place]),
             "answered": int(answered[place])} for place in buckets.tolist()]  # fmt: skip
    upsert(connection, table, rows)
