"""Answer the asks of a group: choose their duels, and write these to the database."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, func, select

from duelay.ledger.evidence.booking import NO_STAKE
from duelay.ledger.evidence.stored_duels import stake_now
from duelay.live.selection import PairSelector
from duelay.live.state import ExperimentState, is_spent
from duelay.live.storage import schema, statements
from duelay.live.storage.rows import DuelRow
from duelay.live.storage.schema import MICRO
from duelay.live.storage.statements import VALUES, find_rows
from duelay.live.writes.requests import Ask, LiveDuel, OneArmDuel

_NO_BET: DuelRow = {"wait": None, "stake": None}


def assign_duels(
    connection: Connection,
    state: ExperimentState,
    selector: PairSelector,
    asks: Sequence[Ask],
    moment: int,
    *,
    is_retry: bool,
) -> None:
    """Choose a duel for each ask, or find the one that it has already; write the new ones."""
    if not asks:
        return
    asked = _find_asked(connection, state, asks, moment)
    kept: dict[str, DuelRow] = {}
    if is_retry:
        found = find_rows(connection, statements.DUELS_BY_ID, [ask.id for ask in asks])
        kept = {row["id"]: row for row in found}
    new: list[DuelRow] = []
    pairs = iter(selector.choose(state, len(asks)))
    bet = _bet_now(state)
    goes_on = functools.partial(selector.goes_on, state.settings.share)
    for ask in asks:
        again = kept.get(ask.id) or asked.by_key.get(ask.key or "")
        if again is None and ask.unit is not None:
            again = asked.open_of.get(ask.unit)
        if again is not None:
            ask.result = _shown(state, again)
            continue
        arm = state.arm_shown_alone(moment)
        if arm is not None and (is_spent(state.head, moment) or not goes_on()):
            ask.result = show_arm(state, arm)
            continue
        row = _record(state, next(pairs), ask, asked.had, moment, bet)
        new.append(row)
        ask.result = _shown(state, row)
        if ask.key is not None:
            asked.by_key[ask.key] = row
        if ask.unit is not None:
            asked.open_of[ask.unit] = row
    if new:
        statements.run(connection, statements.INSERT_DUELS, new)


def show_arm(state: ExperimentState, arm: int) -> LiveDuel:
    """Return what an ask gets when an arm is to be shown alone."""
    return _kind(state)(None, None, None, True, state.arms[arm])


class _Asked(NamedTuple):
    """What the store knows of the units and keys in a group of asks."""

    by_key: dict[str, DuelRow]
    open_of: dict[str, DuelRow]  # the duel that each unit goes on with
    had: set[tuple[str, int, int]]  # a unit, and a pair that it has had


def _find_asked(
    connection: Connection, state: ExperimentState, asks: Sequence[Ask], moment: int
) -> _Asked:
    """Look up the duels that the units and keys of a group have already."""
    duels, experiment = schema.duels, state.settings.id
    keys = {ask.key for ask in asks if ask.key is not None}
    units = {ask.unit for ask in asks if ask.unit is not None}
    by_key: dict[str, DuelRow] = {}
    open_of: dict[str, DuelRow] = {}
    had: set[tuple[str, int, int]] = set()
    if not keys and not units:
        return _Asked(by_key, open_of, had)
    own = select(duels).where(duels.c.experiment == experiment)
    if keys:
        found = find_rows(connection, own.where(duels.c.key.in_(VALUES)), keys)
        by_key = {row["key"]: row for row in found}
    if units:
        latest = (
            select(duels.c.unit, duels.c.first, duels.c.second,
                   func.max(duels.c.number).label("number"))
            .where(duels.c.experiment == experiment, duels.c.unit.in_(VALUES))
            .group_by(duels.c.unit, duels.c.first, duels.c.second)
        )  # fmt: skip
        last: dict[str, int] = {}
        for row in find_rows(connection, latest, units):
            had.add((row["unit"], *sorted((row["first"], row["second"]))))
            last[row["unit"]] = max(row["number"], last.get(row["unit"], 0))
        rows = find_rows(connection, own.where(duels.c.number.in_(VALUES)), last.values())
        open_of = {row["unit"]: row for row in rows if _is_open(state, row, moment)}
        seen = schema.seen_units
        folded = select(seen).where(seen.c.experiment == experiment, seen.c.unit.in_(VALUES))
        gone = find_rows(connection, folded, units)
        had |= {(row["unit"], row["low"], row["high"]) for row in gone}
    return _Asked(by_key, open_of, had)


def _is_open(state: ExperimentState, row: DuelRow, moment: int) -> bool:
    """Whether a unit goes on with its latest duel: it is not answered, and may still be.

    Where one arm is shown at a time, a visitor sees the same arm until a winner is declared. After
    another end, in which conversions may still decide, an arm is kept until its window closes.
    """
    window, is_there = state.settings.window_in_micro, bool(state.present[row["first"]])
    if state.settings.shows_one and state.verdict == "winner":
        return False
    if state.settings.shows_one and state.arm_shown_alone(moment) is None:
        return is_there
    is_there = is_there and bool(state.present[row["second"]])
    is_silent = row["told"] is None and (window is None or moment - row["asked"] <= window)
    return is_there and is_silent


def _bet_now(state: ExperimentState) -> DuelRow:
    """Return `wait` and `stake` of duels that are asked now."""
    wait, stake = stake_now(state.eprocess)
    if stake == NO_STAKE:
        return _NO_BET
    return {"wait": round(wait * MICRO), "stake": stake}


def _record(
    state: ExperimentState,
    pair: tuple[int, int],
    ask: Ask,
    had: set[tuple[str, int, int]],
    moment: int,
    bet: DuelRow,
) -> DuelRow:
    """Count a duel that was chosen, and return its row."""
    first, second = pair
    state.head["asked"] += 1
    enters = True
    if ask.unit is not None:
        unit_pair = (ask.unit, min(first, second), max(first, second))
        enters = unit_pair not in had
        had.add(unit_pair)
    state.ledger.plays[first, second] += 1
    if not enters:
        state.counts.repeats[first, second] += 1
    elif first != second:
        state.eprocess.n_open[first, second] += 1
        state.eprocess.n_open[second, first] += 1
    state.touch(first, second)
    row: DuelRow = {
        "id": ask.id,
        "experiment": state.settings.id,
        "number": state.head["asked"],
        "first": first,
        "second": second,
        "asked": moment,
        "unit": ask.unit,
        "key": ask.key,
        "enters": enters,
        **(bet if enters and first != second else _NO_BET),
    }
    state.time_buckets.ask(row)
    return row


def _shown(state: ExperimentState, row: DuelRow) -> LiveDuel:
    """Return a duel as the caller sees it."""
    winner = None if state.winner is None else state.arms[state.winner]
    first, second = state.arms[row["first"]], state.arms[row["second"]]
    return _kind(state)(row["id"], first, second, winner is not None, winner)


def _kind(state: ExperimentState) -> type[LiveDuel]:
    return OneArmDuel if state.settings.shows_one else LiveDuel
