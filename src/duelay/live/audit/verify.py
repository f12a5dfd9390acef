"""Compare the counters and the evidence of a store with a recount of its duels."""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import Connection, func, select

from duelay.ledger.evidence.margin import RUNNING, WINNER, find_verdict
from duelay.ledger.evidence.winner_threshold import passes_all
from duelay.live.audit.metrics import MetricRecount
from duelay.live.audit.recount import (
    CLOSED,
    COUNTS,
    SUMS,
    Recount,
    duel_rows,
    most_bar,
    most_evidence,
)
from duelay.live.catalog import unknown_experiment
from duelay.live.state import ExperimentState
from duelay.live.storage import schema
from duelay.live.storage.delay_histogram import read_ages
from duelay.live.storage.rows import DuelRow, ExperimentRow
from duelay.live.storage.schema import MINUTE
from duelay.live.storage.statements import read_heads
from duelay.live.storage.store import Store, open_store
from duelay.live.storage.time_buckets import ALL, PAIR_COUNTS, TimeBuckets, wide_enough

_Counts = dict[tuple[tuple[int, ...], str, int], float]  # by arms, name of a count, bucket
_SUM = -1  # in the place of a bucket: all of them
_TOLERANCE = 1e-6  # of sums that were added up in another order: relative, and absolute near 0


def verify(
    store: Store | str | Path,
    name: str | None = None,
    progress: Callable[[int], None] = lambda n: None,
) -> tuple[str, ...]:
    """Recount the experiments of a store, and compare the result with the stored counts.

    The recount reads one moment of the store, while other processes go on writing.

    Parameters
    ----------
    store : Store, str or Path
        The store, or its address.
    name : str, optional
        The name of an experiment; None for all.
    progress : callable
        A function that is called with the number of duels that have been recounted.

    Returns
    -------
    tuple of str
        A sentence for each difference.

    Raises
    ------
    UnknownExperimentError
        If the store has no experiment of this name.
    """
    store = open_store(store)
    store.need()
    found: list[str] = []
    with store.reading() as connection:
        heads = read_heads(connection)
        if name is not None and name not in (names := [head["name"] for head in heads]):
            raise unknown_experiment(store, name, names)
        for head in heads:
            if name is None or head["name"] == name:
                found += [f"{head['name']}: {words}"
                          for words in differences(connection, head, progress)]  # fmt: skip
    return tuple(found)


def differences(
    connection: Connection, head: ExperimentRow, progress: Callable[[int], None] = lambda n: None
) -> Iterator[str]:
    """Give a sentence for each counter or sum of an experiment that is not as its duels say."""
    state = ExperimentState.load(connection, head)
    recount = Recount(state)
    recount.add_folded(connection)
    metrics = MetricRecount(connection, head)
    time_buckets = TimeBuckets(head["created"], head["width"])
    expected, had = head["forgotten"], _read_seen(connection, head["id"])
    for n, row in enumerate(duel_rows(connection, head["id"]), start=1):
        expected += 1
        if row["number"] != expected:
            yield f"duel {expected} is missing: the next one is {row['number']}"
            expected = row["number"]
        yield from _check_unit(row, had)
        recount.add(row)
        metrics.add(row)
        time_buckets.ask(row)
        if row["told"] is not None:
            time_buckets.hear(row)
        if n % 10_000 == 0:
            progress(n)
    if expected != head["asked"]:
        yield f"{head['asked']} duels are counted as asked, and {expected} are there"
    if recount.pairs["answers"].sum() != head["heard"]:
        yield f"{head['heard']} answers are counted, and {recount.pairs['answers'].sum()} are there"
    yield from _compare_totals(head, recount)
    yield from _compare_pairs(state, recount)
    asked, answered = read_ages(connection, schema.ages, head["id"], len(recount.asked))
    for words, kept, counted in (("asked", asked, recount.asked),
                                 ("answered", answered, recount.answered)):  # fmt: skip
        for place in np.flatnonzero(kept != counted).tolist():
            counts = f"is {kept[place]}, and {counted[place]} by its duels"
            yield f"{words} in age bucket {place} {counts}"
    yield from _compare_times(connection, state, recount, time_buckets)
    yield from metrics.compare(state.arms)
    duels = schema.duels
    twice = connection.execute(
        select(func.count(), func.count(duels.c.number.distinct())).where(
            duels.c.experiment == head["id"]
        )
    ).one()
    if twice[0] != twice[1]:
        yield f"{twice[0] - twice[1]} duels are two rows"


def _read_seen(connection: Connection, experiment: int) -> set[tuple[str, int, int]]:
    """Return the pairs that units have had in duels whose rows are folded."""
    seen = schema.seen_units
    rows = connection.execute(select(seen).where(seen.c.experiment == experiment))
    return {(row.unit, row.low, row.high) for row in rows}


def _check_unit(row: DuelRow, had: set[tuple[str, int, int]]) -> Iterator[str]:
    """Say that a duel enters the evidence and should not, or the other way round."""
    if row["unit"] is None:
        return
    i, j = row["first"], row["second"]
    unit_pair = (row["unit"], min(i, j), max(i, j))
    if bool(row["enters"]) == (unit_pair in had):
        kind = "enters the evidence" if row["enters"] else "does not enter the evidence"
        yield f"duel {row['number']} {kind}, and its unit says otherwise"
    had.add(unit_pair)


def _check_highest(state: ExperimentState, recount: Recount) -> Iterator[str]:
    """Say where the highest evidence noted is impossible, or too low for what was declared."""
    eprocess = state.eprocess
    bets = eprocess.gaps, eprocess.log_weight
    for i, j in zip(*np.nonzero(~np.eye(len(state.arms), dtype=bool)), strict=True):
        best, pair = float(eprocess.best[i, j]), f"{state.arms[i]!r} over {state.arms[j]!r}"
        steps = recount.steps.get((i, j), [(0.0, 0.0, 0.0)])
        kinds = [(best, eprocess.log_evidence, most_evidence([x for x, *_ in steps], *bets))]
        if eprocess.margin:
            kinds.append((float(eprocess.best_bar[i, j]), eprocess.log_bar, most_bar(steps, *bets)))
        for highest, now, most in kinds:
            if not state.head["forgotten"] and highest > most + _TOLERANCE:
                ever = f"the most that the evidence of {pair} ever was"
                yield f"{ever} is {highest:g}, and at most {most:g} by its duels"
            if highest < now[i, j] - _TOLERANCE:
                yield f"the evidence of {pair} is above the most that it ever was"
        if state.array("passed")[i, j] and best < eprocess.level:
            yield f"{pair} has passed, and its evidence was never enough for it"
    # What an earlier version declared stays, though the evidence has been computed anew.
    is_own = not state.head["earlier"] or state.head["declared"] > state.head["earlier"]
    if state.winner is not None and is_own and not _is_enough(state, state.winner):
        yield f"{state.arms[state.winner]!r} is declared, and its evidence is not enough for it"


def _is_enough(state: ExperimentState, arm: int) -> bool:
    """Whether the evidence of the arm of the verdict is enough for it."""
    eprocess, verdict = state.eprocess, state.head["verdict"]
    if not eprocess.margin:
        return bool(verdict == WINNER and passes_all(eprocess, arm))
    return int(find_verdict(eprocess, arm)) in (verdict, WINNER) and verdict != RUNNING


def _compare_totals(head: ExperimentRow, recount: Recount) -> Iterator[str]:
    """Say which sums over all booked duels and all answers are wrong.

    Of duels whose rows are folded it is known how many they are and how many were heard, but not
    how long the answers took. What an earlier version folded was not counted again when it was
    migrated.
    """
    kept: dict[str, Any] = {**head}
    for name, least in recount.totals.items():
        most = least + recount.folded_totals[name]
        if name in ("n_matured", "n_heard") and not head["earlier"]:
            least = most
        slack = _TOLERANCE * max(least, 1.0)
        if not least - slack <= kept[name] <= most + slack:
            counted = f"{least:g}" if least == most else f"between {least:g} and {most:g}"
            yield f"{name} is {kept[name]:g}, and {counted} by its duels"


def _compare_pairs(state: ExperimentState, recount: Recount) -> Iterator[str]:
    for name in (*COUNTS, *SUMS, *CLOSED):
        counted = recount.pairs[name] if name in recount.pairs else recount.closed[name]
        yield from _compare(state, name, state.array(name), counted)
    for place in range(recount.wealth.shape[2]):
        words = f"evidence at gap {state.eprocess.gaps[place]:g}"
        yield from _compare(
            state, words, state.eprocess.wealth[:, :, place], recount.wealth[:, :, place]
        )
    yield from _check_highest(state, recount)


def _compare(state: ExperimentState, name: str, kept: Any, counted: Any) -> Iterator[str]:
    is_off = np.abs(kept - counted) > _TOLERANCE * np.maximum(np.abs(counted), 1.0)
    for i, j in np.argwhere(is_off).tolist():
        pair = f"{state.arms[i]!r} over {state.arms[j]!r}"
        yield f"{name} of {pair} is {kept[i, j]:g}, and {counted[i, j]:g} by its duels"


def _compare_times(
    connection: Connection, state: ExperimentState, recount: Recount, time_buckets: TimeBuckets
) -> Iterator[str]:
    """Give a sentence for each wrong count by time; `time_buckets` has the rows that are left.

    While all rows are there, every bucket must equal its recount. Once rows have been folded, a
    bucket must have at least what the other rows give, and all buckets together must add up to the
    counts of all duels.
    """
    head = state.head
    width = wide_enough(head["created"], MINUTE, head["moment"])
    if head["width"] != width:
        yield f"a bucket of time has {head['width']} microseconds, and {width} by the latest time"
    kept = _by_name(TimeBuckets.read(connection, state.settings.id, head))
    counted = _by_name(time_buckets)
    if head["forgotten"]:
        # A bucket may have more than the rows give: the rest is of duels whose rows are folded.
        counted |= {key: n for key, n in kept.items() if n > counted.get(key, 0)}
        for (arms, name, _), n in list(kept.items()):
            kept[arms, name, _SUM] = kept.get((arms, name, _SUM), 0) + n
        counted |= _sum_buckets(recount)
    for key in sorted(kept.keys() | counted.keys()):
        is_there, should = kept.get(key, 0), counted.get(key, 0)
        if is_there != should:
            yield f"{_describe(state, *key)} is {is_there:g}, and {should:g} by its duels"


def _by_name(time_buckets: TimeBuckets) -> _Counts:
    return {
        (tuple(arms), name, bucket): n
        for (bucket, *arms), counts in (*time_buckets.pairs.items(), *time_buckets.times.items())
        for name, n in counts.items()
    }


def _sum_buckets(recount: Recount) -> _Counts:
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


def _describe(state: ExperimentState, arms: tuple[int, ...], name: str, bucket: int) -> str:
    when = "in all buckets of time" if bucket == _SUM else f"in time bucket {bucket}"
    of = " over ".join(repr(state.arms[arm]) for arm in arms if arm != ALL)
    return f"{name} {when}{' of ' if of else ''}{of}"
