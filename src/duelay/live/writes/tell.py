"""Record the answers of a group: write them to their duels, and count them.

An answer counts as evidence if it came by the age W_s of its duel, and if the duel is not booked
yet. Without a time of its own it came when it was told: then it may be told `lag` later, and while
booking is held it counts as told when the hold began.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from sqlalchemy import Connection

from duelay._core.duration import in_brief
from duelay._core.feedback import OUTCOMES
from duelay.errors import InvalidValueError, UnknownDuelError
from duelay.live.clock import GIVEN, MAX_DIFFERENCE, meaning_of_at
from duelay.live.state import ExperimentState
from duelay.live.storage import statements
from duelay.live.storage.delay_histogram import DelayHistogram
from duelay.live.storage.rows import DuelRow
from duelay.live.storage.schema import MICRO
from duelay.live.storage.statements import find_rows
from duelay.live.writes.requests import Tell
from duelay.live.writes.settlement import BY_ANSWER, change_duels, count_answers, is_evidence

_MAX_CLOCK_DIFFERENCE = MICRO  # microseconds, between two machines


def record_answers(
    connection: Connection,
    state: ExperimentState,
    ages: DelayHistogram,
    tells: Sequence[Tell],
    moment: int,
) -> None:
    """Write answers to their duels, and count them."""
    if not tells:
        return
    experiment = state.settings.id
    found = find_rows(connection, statements.DUELS_BY_ID, {tell.id for tell in tells})
    rows = {row["id"]: cast(DuelRow, dict(row)) for row in found}
    told: list[DuelRow] = []
    news: list[DuelRow] = []
    late = []
    for tell in tells:
        row = rows.get(tell.id)
        if row is None or row["experiment"] != experiment:
            tell.error = UnknownDuelError(f"no duel {tell.id!r} has been asked here")
            continue
        try:
            first_won = _outcome(state, row, tell.winner)
            at = time_of_answer(state, row, tell.at, moment)
        except InvalidValueError as error:
            tell.error = error
            continue
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
                state.counts.late[row["first"], row["second"]] += 1
                state.touch(row["first"], row["second"])
            continue
        tell.result = "counted"
        tell.tried.append(at)
        row |= {"told": at, "first_won": first_won}
        told.append(row)
        _count_answer(state, ages, row)
        if is_evidence(row):
            if _is_in_time(state, row, has_time=tell.at is not None):
                row |= {"settled_by": BY_ANSWER, "odds": 1.0}
            news.append(row)
    count_answers(state.eprocess, news)
    if told:
        for row in told:
            state.head["heard"] += 1
            row["place"] = state.head["heard"]
        columns = ("told", "place", "first_won", "settled_by", "odds")
        change_duels(connection, told, columns)
    if late:
        statements.run(connection, statements.write_duels("late"), late)


def time_of_answer(state: ExperimentState, row: DuelRow, at: int | None, moment: int) -> int:
    """Return when an answer or an event of a duel came; refuse a time before the duel."""
    if at is None:
        return moment
    # Who tells has a clock of its own, and may differ so much from that of the database.
    is_other = "shared_time" in state.head and state.head["clock"] != GIVEN
    most = round(MAX_DIFFERENCE * MICRO) if is_other else _MAX_CLOCK_DIFFERENCE
    if at < row["asked"] - most:
        early = in_brief((row["asked"] - at) / MICRO)
        raise InvalidValueError(
            f"at must not be before the duel was asked, got a time {early} before: it is "
            + meaning_of_at(state.head["clock"]),
            argument="at",
        )
    return min(max(at, row["asked"]), moment)


def _is_in_time(state: ExperimentState, row: DuelRow, *, has_time: bool) -> bool:
    """Whether an answer that was told now counts as evidence."""
    if row["number"] <= state.head["matured"]:
        return False
    if row["stake"] is None:  # no bet: it counts where pairs are chosen
        return True
    if has_time:
        return bool(row["told"] - row["asked"] <= row["wait"])
    held = state.head["held"]
    come = row["told"] if held is None else min(row["told"], held)
    return bool(come - row["asked"] <= row["wait"] + state.settings.lag)


def _count_answer(state: ExperimentState, ages: DelayHistogram, row: DuelRow) -> None:
    """Count an answer of an ordered pair."""
    i, j, won = row["first"], row["second"], int(row["first_won"] == 1.0)
    state.counts.answers[i, j] += 1
    state.ledger.conversions[i, j] += won
    if not row["enters"]:
        state.counts.repeated_answers[i, j] += 1
        state.counts.repeated_conversions[i, j] += won
    else:
        state.counts.given[i, j] += row["first_won"]
        if row["number"] <= state.head["closed"] and i != j:  # heard in time, told once closed
            ages.answer_after_all(state, row)
    state.time_buckets.hear(row)
    state.touch(i, j)


def _outcome(state: ExperimentState, row: DuelRow, winner: Any) -> float:
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
