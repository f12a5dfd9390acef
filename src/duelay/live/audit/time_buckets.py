"""Retallying: the counts by time, compared with a recount of the duels.

While no duel is forgotten, every bucket must equal its recount. Once some duels are forgotten, a
bucket must have at least what the remaining rows give, and all buckets together must add up to the
counts of all duels.
"""

from __future__ import annotations

import collections
from collections.abc import Iterator

from sqlalchemy import Connection

from duelay.live.audit.recount import Recount
from duelay.live.state import ExperimentState
from duelay.live.storage.schema import MINUTE
from duelay.live.storage.time_buckets import ALL, PAIR_COUNTS, TimeBuckets, wide_enough

_Named = dict[tuple[tuple[int, ...], str, int], float]  # by arms, the name of a count, and a bucket
_SUM = -1  # in the place of a bucket: all of them


def differences_in_time(
    connection: Connection, state: ExperimentState, recount: Recount, time_buckets: TimeBuckets
) -> Iterator[str]:
    """Give a sentence for each count that is wrong; `time_buckets` has the rows that are left."""
    head = state.head
    width = wide_enough(head["created"], MINUTE, head["moment"])
    if head["width"] != width:
        yield f"a bucket of time has {head['width']} microseconds, and {width} by the latest time"
    kept, counted = (
        _named(TimeBuckets.read(connection, state.settings.id, head)),
        _named(time_buckets),
    )
    if head["forgotten"]:
        # A bucket may have more than the rows give: the rest is of duels that are forgotten.
        counted |= {key: n for key, n in kept.items() if n > counted.get(key, 0)}
        for (arms, name, _), n in list(kept.items()):
            kept[arms, name, _SUM] = kept.get((arms, name, _SUM), 0) + n
        counted |= _sums(recount)
    for key in sorted(kept.keys() | counted.keys()):
        is_there, should = kept.get(key, 0), counted.get(key, 0)
        if is_there != should:
            yield f"{_words(state, *key)} is {is_there:g}, and {should:g} by its duels"


def _named(time_buckets: TimeBuckets) -> _Named:
    return {
        (tuple(arms), name, bucket): n
        for (bucket, *arms), counts in (*time_buckets.pairs.items(), *time_buckets.times.items())
        for name, n in counts.items()
    }


def _sums(recount: Recount) -> _Named:
    """Return what all buckets must add up to."""
    found: collections.Counter[tuple[tuple[int, ...], str, int]] = collections.Counter()
    for name in PAIR_COUNTS:
        for i, row in enumerate(recount.pairs[name].tolist()):
            for j, n in enumerate(row):
                found[(i, j), name, _SUM] = n
    for i, row in enumerate(recount.pairs["plays"].tolist()):
        for j, n in enumerate(row):
            for arm in (ALL, i, j):
                found[(arm,), "asked", _SUM] += n
    for name in ("answered", "heard"):
        found[(ALL,), name, _SUM] = recount.pairs["answers"].sum().item()
    return dict(found)


def _words(state: ExperimentState, arms: tuple[int, ...], name: str, bucket: int) -> str:
    when = "in all buckets of time" if bucket == _SUM else f"in time bucket {bucket}"
    of = " over ".join(repr(state.arms[arm]) for arm in arms if arm != ALL)
    return f"{name} {when}{' of ' if of else ''}{of}"
