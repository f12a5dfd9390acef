"""Read the counts by time that a store keeps, as arrays for charts.

All have the same n buckets, from when the experiment was made to the latest time known; at most
128. How much is read does not depend on how many duels there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, select

from duelay.live.storage.schema import MICRO, MINUTE, experiments, pair_times, times
from duelay.live.storage.statements import duels_after, run
from duelay.live.storage.time_buckets import ALL

Counts = NDArray[np.int64]


class Totals(NamedTuple):
    """Duels and answers in each bucket of time."""

    start: NDArray[np.float64]  # (n,): seconds since the epoch at which each bucket begins
    width: float  # seconds
    asked: Counts  # (n,): duels asked in it
    answered: Counts  # (n,): of those, answered by now, within the window
    heard: Counts  # (n,): answers told in it


class PairTimes(NamedTuple):
    """Counts of ordered pairs in each bucket of time, not cumulated.

    All buckets add up to the counts of the standing. `given` has the wins of the first in the
    answers that enter, a tie being 1/2. The other counts include repeats of units.
    """

    plays: Counts  # (n, k, k): duels asked in it
    conversions: Counts  # (n, k, k): wins of the first told in it
    answers: Counts  # (n, k, k): answers told in it
    given: NDArray[np.float64]  # (n, k, k)


def read_totals(connection: Connection, experiment: int) -> Totals:
    """Return what is counted of all arms together."""
    created, width, n = _span(connection, experiment)
    counts = np.zeros((3, n), dtype=np.int64)
    for row in _rows(connection, experiment, n, width, [ALL]):
        counts[:, row.minute * MINUTE // width] = row.asked, row.answered, row.heard
    return Totals((created + np.arange(n) * width) / MICRO, width / MICRO, *counts)


def read_shown(connection: Connection, experiment: int, arms: Sequence[int]) -> Counts:
    """Return how often arms were shown, in either place, (n, len(arms)).

    An arm against itself is shown twice: all arms of a bucket add up to twice its duels.
    """
    _, width, n = _span(connection, experiment)
    place = {arm: column for column, arm in enumerate(arms)}
    shown = np.zeros((n, len(arms)), dtype=np.int64)
    for row in _rows(connection, experiment, n, width, arms):
        shown[row.minute * MINUTE // width, place[row.arm]] = row.asked
    return shown


def read_pairs(connection: Connection, experiment: int, arms: Sequence[int]) -> PairTimes:
    """Return what is counted of the ordered pairs of some arms, in the order of `arms`."""
    _, width, n = _span(connection, experiment)
    k, own = len(arms), pair_times.c
    plays, conversions, answers = (np.zeros((n, k, k), dtype=np.int64) for _ in range(3))
    found = PairTimes(plays, conversions, answers, np.zeros((n, k, k)))
    rows = connection.execute(
        select(own.first, own.second, own.minute, *(own[name] for name in PairTimes._fields)).where(
            own.experiment == experiment, own.first.in_(arms), own.second.in_(arms)
        )
    ).all()
    if rows:
        first, second, minute, *values = (np.array(column) for column in zip(*rows, strict=True))
        place = np.zeros(max(arms) + 1, dtype=np.int64)
        place[list(arms)] = np.arange(k)
        where = minute * MINUTE // width, place[first], place[second]
        for array, column in zip(found, values, strict=True):
            np.add.at(array, where, column)  # adds up narrower buckets that are not merged yet
    return found


def asked_since(connection: Connection, experiment: int, moment: int) -> int:
    """Return how many duels were asked after a moment, in microseconds.

    Later duels have later times, so that a few look-ups find the first one. Where duels of that
    time are forgotten, the buckets of time are added up. The bucket that the moment divides counts
    by its share after the moment.
    """
    head = connection.execute(
        select(experiments.c.asked, experiments.c.forgotten).where(experiments.c.id == experiment)
    ).one()
    low, high = head.forgotten, head.asked  # the last duel before is between them
    while low < high:
        middle = (low + high + 1) // 2
        if _asked(connection, experiment, middle) > moment:
            high = middle - 1
        else:
            low = middle
    if low > head.forgotten or not low:
        return int(head.asked - low)
    totals = read_totals(connection, experiment)
    after = 1.0 - np.clip((moment / MICRO - totals.start) / totals.width, 0.0, 1.0)
    return max(round(float(totals.asked @ after)), int(head.asked - low))


def _asked(connection: Connection, experiment: int, number: int) -> int:
    """Return when a duel was asked."""
    values = {"experiment": experiment, "after": number - 1, "n": 1}
    return int(run(connection, duels_after("asked"), values).scalar_one())


def _span(connection: Connection, experiment: int) -> tuple[int, int, int]:
    """Return when an experiment was made, the width of its buckets, and how many there are."""
    head = connection.execute(
        select(experiments.c.created, experiments.c.width, experiments.c.moment)
        .where(experiments.c.id == experiment)
    ).one()  # fmt: skip
    return head.created, head.width, (head.moment - head.created) // head.width + 1


def _rows(
    connection: Connection, experiment: int, n: int, width: int, arms: Sequence[int]
) -> Any:  # fmt: skip
    """Return the counts of some arms; every bucket is looked up by its key, no table is scanned."""
    begins = range(0, n * width // MINUTE, width // MINUTE)
    return connection.execute(
        select(times).where(
            times.c.experiment == experiment, times.c.minute.in_(begins), times.c.arm.in_(arms)
        )
    )
