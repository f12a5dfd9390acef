"""Booking: what asks and tells do to the store, in the transaction of their group."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import Connection, func, select

from duelay._core.duration import in_brief
from duelay._core.feedback import OUTCOMES
from duelay.errors import InvalidValueError, UnknownDuelError
from duelay.ledger.evidence.batch import AFTERWARDS, ANSWERED, settle
from duelay.live.state import ExperimentState
from duelay.live.storage import schema, statements
from duelay.live.storage.delay_histogram import DelayHistogram
from duelay.live.storage.schema import MICRO
from duelay.live.writes.group_commit import Request

_SLACK = MICRO  # the clocks of two machines may differ by so many microseconds
_BY_ANSWER, _BY_SILENCE = 1, 2


class LiveDuel(NamedTuple):
    """Two arms to show together, by their names; or the declared winner alone.

    If `id` is None, there is nothing to tell: show the winner.

    Attributes
    ----------
    id : str or None
        The id of the duel.
    first, second : str or None
        The names of the two arms.
    settled : bool
        Whether a winner is declared.
    winner : str or None
        The name of the winner.
    """

    id: str | None
    first: str | None
    second: str | None
    settled: bool = False
    winner: str | None = None


class Ask(Request):
    """A question for a duel."""

    def __init__(self, unit: str | None, key: str | None) -> None:
        super().__init__()
        self.unit, self.key = unit, key
        self.id = make_id()


class Tell(Request):
    """An answer to a duel; `at` is in microseconds."""

    def __init__(self, id: str, winner: str | None, at: int | None) -> None:
        super().__init__()
        self.id, self.winner, self.at = id, winner, at
        self.tried: list[int] = []  # its time in each try: a commit may succeed unheard


def make_id() -> str:
    """Return an id that grows with time and cannot be guessed: 80 of its 128 bits are random."""
    return f"{time.time_ns() >> 16:012x}{secrets.token_hex(10)}"


def book_tells(
    connection: Connection,
    state: ExperimentState,
    ages: DelayHistogram,
    tells: Sequence[Tell],
    moment: int,
) -> None:
    """Write answers down, count them, and bet on those that settle a duel."""
    if not tells:
        return
    experiment = state.settings.id
    rows = {
        row["id"]: dict(row)
        for row in connection.execute(
            statements.DUELS_BY_ID, {"ids": list({tell.id for tell in tells})}
        ).mappings()
    }
    told, late, eprocess = [], [], []
    for tell in tells:
        row = rows.get(tell.id)
        if row is None or row["experiment"] != experiment:
            tell.error = UnknownDuelError(f"no duel {tell.id!r} has been asked here")
            continue
        try:
            first_won = outcome(state, row, tell.winner)
        except ValueError as error:
            tell.error = error
            continue
        if tell.at is not None and tell.at < row["asked"] - _SLACK:
            early = in_brief((row["asked"] - tell.at) / MICRO)
            tell.error = ValueError(
                f"at must not be before the duel was asked, got a time {early} before: it is "
                "seconds since the epoch"
            )
            continue
        at = moment if tell.at is None else min(max(tell.at, row["asked"]), moment)
        if row["told"] is not None:
            is_own = row["told"] in tell.tried and row["first_won"] == first_won
            tell.result = "counted" if is_own else "repeated"
            continue
        window = state.settings.window_in_micro
        if window is not None and at - row["asked"] > window:
            tell.result = "late"
            if row["late"] is None:
                row["late"] = at
                late.append({"b_id": row["id"], "late": at})
                state.array("late")[row["first"], row["second"]] += 1
                state.touch(row["first"], row["second"])
            continue
        tell.result = "counted"
        tell.tried.append(at)
        row |= {"told": at, "first_won": first_won}
        told.append(row)
        count_answer(state, ages, row)
        if row["enters"] and row["first"] != row["second"]:
            if row["settled_by"] is None:
                eprocess.append((ANSWERED, row))
            elif state.settings.is_vote:
                eprocess.append((AFTERWARDS, row))
    bet(state, eprocess, moment)
    if told:
        for row in told:
            state.head["heard"] += 1
            row["place"] = state.head["heard"]
        columns = ("told", "place", "first_won", "settled_by", "settled", "odds")
        change_duels(connection, told, columns)
    if late:
        statements.run(connection, statements.write_duels("late"), late)


def count_answer(state: ExperimentState, ages: DelayHistogram, row: dict[str, Any]) -> None:
    """Count an answer of an ordered pair."""
    i, j, won = row["first"], row["second"], int(row["first_won"] == 1.0)
    state.array("answers")[i, j] += 1
    state.array("conversions")[i, j] += won
    if not row["enters"]:
        state.array("repeated_answers")[i, j] += 1
        state.array("repeated_conversions")[i, j] += won
    else:
        state.array("given")[i, j] += row["first_won"]
        if row["number"] <= state.head["closed"] and i != j:  # heard in time, told once closed
            ages.answer_after_all(state, row)
    state.time_buckets.hear(row)
    state.touch(i, j)


def outcome(state: ExperimentState, row: dict[str, Any], winner: Any) -> float:
    """Return what an answer gives the first arm: 1, 0, or 1/2 for a tie."""
    first, second = state.arms[row["first"]], state.arms[row["second"]]
    if not state.settings.is_vote:
        if winner in (None, "first", first) and not (winner == first == second != "first"):
            return 1.0
        raise InvalidValueError(
            f"winner must be left out, since only a win of the first is told here: create the "
            f"experiment with feedback='votes' to tell both outcomes, got {winner!r}"
        )
    words = {first: 1.0, second: 0.0} | ({first: 0.5} if first == second else {}) | OUTCOMES
    if isinstance(winner, str) and winner in words:
        return words[winner]
    raise InvalidValueError(
        f"winner must be 'first', 'second' or 'tie', or the name of an arm, {first!r} or "
        f"{second!r}, got {winner!r}"
    )


def bet(state: ExperimentState, news: Sequence[tuple[int, dict[str, Any]]], moment: int) -> None:
    """Settle duels, in this order, and fill in what settled each, when, and at which odds."""
    if not news:
        return
    rows = [row for _, row in news]
    kind = np.array([kind for kind, _ in news], dtype=np.int8)
    first, second = (np.array([row[name] for row in rows], dtype=np.int64)
                     for name in ("first", "second"))  # fmt: skip
    won = np.array([row["first_won"] or 0.0 for row in rows])
    delay = np.array([(row["told"] or moment) - row["asked"] for row in rows]) / MICRO
    odds = np.full(len(rows), np.nan)
    settle(state.eprocess, kind, first, second, won, delay, odds)
    for (what, row), at in zip(news, odds.tolist(), strict=True):
        if at == at:  # not nan: it is settled now
            by = _BY_ANSWER if what in (ANSWERED, AFTERWARDS) else _BY_SILENCE
            row |= {"settled_by": by, "settled": moment, "odds": at}
            state.touch(row["first"], row["second"])


def change_duels(
    connection: Connection, rows: Sequence[dict[str, Any]], columns: Sequence[str]
) -> None:
    """Write some columns of duels."""
    statements.run(
        connection,
        statements.write_duels(*columns),
        [{"b_id": row["id"], **{name: row[name] for name in columns}} for row in rows],
    )


class Asked(NamedTuple):
    """What the store knows of the units and keys in a group of asks."""

    by_key: dict[str, Any]
    open_of: dict[str, Any]  # the open duel of each unit
    had: set[tuple[str, int, int]]  # a unit, and a pair that it has had


def find_asked(
    connection: Connection, state: ExperimentState, asks: Sequence[Ask], moment: int
) -> Asked:
    """Look up the duels that the units and keys of a group have already."""
    duels, experiment = schema.duels, state.settings.id
    keys = {ask.key for ask in asks if ask.key is not None}
    units = {ask.unit for ask in asks if ask.unit is not None}
    by_key: dict[str, Any] = {}
    open_of: dict[str, Any] = {}
    had: set[tuple[str, int, int]] = set()
    if keys:
        found = connection.execute(
            select(duels).where(duels.c.experiment == experiment, duels.c.key.in_(keys))
        ).mappings()
        by_key = {row["key"]: row for row in found}
    if units:
        pairs = connection.execute(
            select(duels.c.unit, duels.c.first, duels.c.second,
                   func.max(duels.c.number).label("number"))
            .where(duels.c.experiment == experiment, duels.c.unit.in_(units))
            .group_by(duels.c.unit, duels.c.first, duels.c.second)
        ).all()  # fmt: skip
        had = {(row.unit, min(row.first, row.second), max(row.first, row.second)) for row in pairs}
        last: dict[str, int] = {}
        for row in pairs:
            last[row.unit] = max(row.number, last.get(row.unit, 0))
        rows = connection.execute(
            select(duels).where(
                duels.c.experiment == experiment,
                duels.c.number.in_(last.values()),
                duels.c.told.is_(None),
            )
        ).mappings()
        open_of = {row["unit"]: row for row in rows if _is_open(state, row, moment)}
        seen = schema.seen_units
        gone = connection.execute(
            select(seen).where(seen.c.experiment == experiment, seen.c.unit.in_(units))
        )
        had |= {(row.unit, row.low, row.high) for row in gone}
    return Asked(by_key, open_of, had)


def _is_open(state: ExperimentState, row: Any, moment: int) -> bool:
    """Whether a duel that is not answered may still be shown, and answered."""
    window = state.settings.window_in_micro
    is_there = state.present[row["first"]] and state.present[row["second"]]
    return bool(is_there and (window is None or moment - row["asked"] <= window))


def book_asks(
    connection: Connection, state: ExperimentState, selector: Any, asks: Sequence[Ask], moment: int,
    *, is_retry: bool,
) -> None:  # fmt: skip
    """Choose a duel for each ask, or find the one that it has already; write new ones down."""
    if not asks:
        return
    asked = find_asked(connection, state, asks, moment)
    kept: dict[str, Any] = {}
    if is_retry:
        found = connection.execute(statements.DUELS_BY_ID, {"ids": [ask.id for ask in asks]})
        kept = {row["id"]: row for row in found.mappings()}
    new: list[dict[str, Any]] = []
    pairs = iter(selector.choose(state, len(asks)))
    for ask in asks:
        again = kept.get(ask.id) or asked.by_key.get(ask.key or "")
        if again is None and ask.unit is not None:
            again = asked.open_of.get(ask.unit)
        if again is not None:
            ask.result = shown(state, again)
            continue
        if state.winner is not None and not selector.goes_on(state.settings.share):
            ask.result = LiveDuel(None, None, None, True, state.arms[state.winner])
            continue
        row = _record(state, next(pairs), ask, asked.had, moment)
        new.append(row)
        ask.result = shown(state, row)
        if ask.key is not None:
            asked.by_key[ask.key] = row
        if ask.unit is not None:
            asked.open_of[ask.unit] = row
    if new:
        statements.run(connection, statements.INSERT_DUELS, new)


def _record(
    state: ExperimentState,
    pair: tuple[int, int],
    ask: Ask,
    had: set[tuple[str, int, int]],
    moment: int,
) -> dict[str, Any]:
    """Count a duel that was chosen, and return its row."""
    first, second = pair
    state.head["asked"] += 1
    enters = True
    if ask.unit is not None:
        taste = (ask.unit, min(first, second), max(first, second))
        enters = taste not in had
        had.add(taste)
    state.array("plays")[first, second] += 1
    if not enters:
        state.array("repeats")[first, second] += 1
    elif first != second:
        state.eprocess.n_open[first, second] += 1
        state.eprocess.n_open[second, first] += 1
    state.touch(first, second)
    row = {
        "id": ask.id,
        "experiment": state.settings.id,
        "number": state.head["asked"],
        "first": first,
        "second": second,
        "asked": moment,
        "unit": ask.unit,
        "key": ask.key,
        "enters": enters,
    }
    state.time_buckets.ask(row)
    return row


def shown(state: ExperimentState, row: Any) -> LiveDuel:
    """Return a duel as the caller sees it."""
    winner = None if state.winner is None else state.arms[state.winner]
    return LiveDuel(row["id"], state.arms[row["first"]], state.arms[row["second"]],
                    winner is not None, winner)  # fmt: skip


def how_far_behind(state: ExperimentState, now: int) -> str:
    """Say how far this process is behind the latest time known; empty for a second or less."""
    behind = (state.head["moment"] - now) / MICRO
    if behind <= 1.0:
        return ""
    return (
        f"the clock of this process is {in_brief(behind)} behind the latest time of the store, "
        "which is taken instead: set the clocks of all machines that use it"
    )


__all__ = ["Ask", "LiveDuel", "Tell", "book_asks", "book_tells"]
