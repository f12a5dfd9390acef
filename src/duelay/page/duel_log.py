"""The log: the latest duels, and those before them."""

from __future__ import annotations

from typing import Any

from sqlalchemy import and_, false, or_, select

from duelay.live import Experiment, schema
from duelay.live.book import MICRO, read_arms
from duelay.page.view_models import Duel

OUTCOMES = ("first won", "second won", "tie", "pending", "silent", "late")
OF_CONVERSIONS = ("first won", "pending", "silent", "late")  # outcomes where conversions are told
_FURTHEST = 20_000  # duels that one call goes through
_WON = {1.0: "first won", 0.0: "second won", 0.5: "tie"}


def read_log(
    experiment: Experiment,
    before: int | None = None,
    limit: int = 100,
    arm: int | str | None = None,
    outcome: str | None = None,
) -> tuple[list[Duel], str]:
    """Return duels, the latest first, and the `before` of the next call; empty at the end.

    `before` is a duel's number. `arm` is the number or the name of an arm, in either place. A call
    goes through a limited number of duels: it may find none that fit, though older ones do.
    """
    duels = schema.duels
    with experiment.store.reading() as connection:
        head = experiment._desk.read_head(connection)
        arms = read_arms(connection, head["id"])
        now = max(round(experiment._desk.clock() * MICRO), head["moment"])
        end = head["asked"] + 1 if before is None else min(before, head["asked"] + 1)
        start = max(end - _FURTHEST, head["forgotten"] + 1)
        closes = None if head["window"] is None else now - head["window"]
        query = select(duels).where(
            duels.c.experiment == head["id"], duels.c.number < end, duels.c.number >= start
        )
        if arm is not None:
            number = _number(arms, arm)
            query = query.where(or_(duels.c.first == number, duels.c.second == number))
        if outcome is not None:
            query = query.where(_is(outcome, closes))
        rows = connection.execute(
            query.order_by(duels.c.number.desc()).limit(limit)
        ).mappings().all()  # fmt: skip
    following = rows[-1]["number"] if len(rows) == limit else start
    more = str(following) if following > head["forgotten"] + 1 else ""
    return [_duel(row, arms, closes) for row in rows], more


def _number(arms: tuple[str, ...], arm: int | str) -> int:
    """Return the number of an arm; for an unknown arm -1, which no duel has."""
    if isinstance(arm, str) and not (arm.isascii() and arm.isdigit() and len(arm) < 10):
        return arms.index(arm) if arm in arms else -1
    return int(arm) if int(arm) < len(arms) else -1


def _is(outcome: str, closes: int | None) -> Any:
    """Return the condition on rows that selects duels with an outcome."""
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
        raise ValueError(f"outcome must be one of {', '.join(OUTCOMES)}, got {outcome!r}")
    return duels.c.first_won == won[outcome]


def _duel(row: Any, arms: tuple[str, ...], closes: int | None) -> Duel:
    outcome = "pending" if closes is None or row["asked"] >= closes else "silent"
    if row["told"] is not None:
        outcome = _WON.get(row["first_won"], "tie")
    return Duel(
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
