"""The log of an experiment: its duels, the latest first."""

from __future__ import annotations

from typing import Any

from sqlalchemy import and_, false, or_, select

from duelay.errors import InvalidValueError
from duelay.live import Experiment
from duelay.live.state import read_arms
from duelay.live.storage import schema
from duelay.live.storage.schema import MICRO
from duelay.page.view_models import LogEntry

OUTCOMES = ("first won", "second won", "tie", "pending", "silent", "late")
OUTCOMES_OF_CONVERSIONS = ("first won", "pending", "silent", "late")
_MAX_DUELS_PER_CALL = 20_000
_WON = {1.0: "first won", 0.0: "second won", 0.5: "tie"}


def read_log(
    experiment: Experiment,
    before: int | None = None,
    limit: int = 100,
    arm: int | str | None = None,
    outcome: str | None = None,
) -> tuple[list[LogEntry], str]:
    """Read a page of the log.

    A call goes through at most 20,000 duels, so it may find none that fit though older ones do.

    Parameters
    ----------
    experiment : the experiment to read.
    before : only duels with a smaller number.
    limit : the largest number of duels to return.
    arm : only duels with this arm, given by number or by name, in either place.
    outcome : only duels with this outcome, one of `OUTCOMES`.

    Returns
    -------
    The duels, the latest first, and the `before` of the next page as text; empty at the end.

    Raises
    ------
    ValueError : if `outcome` is unknown.
    """
    duels = schema.duels
    with experiment.reading() as (connection, head):
        arms = read_arms(connection, head["id"])
        now = experiment.writer.read_time(connection, head)
        end = head["asked"] + 1 if before is None else min(before, head["asked"] + 1)
        start = max(end - _MAX_DUELS_PER_CALL, head["forgotten"] + 1)
        closes = None if head["window"] is None else now - head["window"]
        query = select(duels).where(
            duels.c.experiment == head["id"], duels.c.number < end, duels.c.number >= start
        )
        if arm is not None:
            number = _find_arm(arms, arm)
            query = query.where(or_(duels.c.first == number, duels.c.second == number))
        if outcome is not None:
            query = query.where(_make_condition(outcome, closes))
        rows = connection.execute(
            query.order_by(duels.c.number.desc()).limit(limit)
        ).mappings().all()  # fmt: skip
    following = rows[-1]["number"] if len(rows) == limit else start
    more = str(following) if following > head["forgotten"] + 1 else ""
    return [_make_entry(row, arms, closes) for row in rows], more


def _find_arm(arms: tuple[str, ...], arm: int | str) -> int:
    """Return the number of an arm; for an unknown arm -1, which no duel has."""
    if isinstance(arm, str) and not (arm.isascii() and arm.isdigit() and len(arm) < 10):
        return arms.index(arm) if arm in arms else -1
    return int(arm) if int(arm) < len(arms) else -1


def _make_condition(outcome: str, closes: int | None) -> Any:
    """Return the SQL condition for duels with an outcome."""
    duels = schema.duels
    if outcome == "late":
        return duels.c.late.is_not(None)
    if outcome in ("pending", "silent"):
        if closes is None:
            return duels.c.told.is_(None) if outcome == "pending" else false()
        is_open = duels.c.asked >= closes
        return and_(duels.c.told.is_(None), is_open if outcome == "pending" else ~is_open)
    won = {word: value for value, word in _WON.items()}
    if outcome not in won:
        raise InvalidValueError(f"outcome must be one of {', '.join(OUTCOMES)}, got {outcome!r}")
    return duels.c.first_won == won[outcome]


def _make_entry(row: Any, arms: tuple[str, ...], closes: int | None) -> LogEntry:
    outcome = "pending" if closes is None or row["asked"] >= closes else "silent"
    if row["told"] is not None:
        outcome = _WON.get(row["first_won"], "tie")
    return LogEntry(
        number=row["number"],
        id=row["id"],
        first=arms[row["first"]],
        second=arms[row["second"]],
        asked=row["asked"] / MICRO,
        told=None if row["told"] is None else row["told"] / MICRO,
        late=None if row["late"] is None else row["late"] / MICRO,
        outcome=outcome,
        unit=row["unit"],
        enters=bool(row["enters"]),
    )
