"""Find the experiments of a store by name and status, and read the rows of a few of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import select

from duelay.ledger.evidence.margin import VERDICTS, WINNER
from duelay.live.storage import schema
from duelay.live.storage.schema import MICRO
from duelay.live.storage.store import Store
from duelay.service.keys import Key

STATUSES = ("running", "paused", "declared", "finished", "archived")


class FoundExperiments(NamedTuple):
    """The names of experiments, in the order in which they were made."""

    names: tuple[str, ...]  # of those asked for
    n_found: int  # how many there are by this name and status
    n_all: int  # how many the key is for


def find_experiments(
    store: Store,
    key: Key,
    *,
    search: str = "",
    status: str = "",
    offset: int = 0,
    limit: int | None = None,
) -> FoundExperiments:
    """Find the experiments that a key is for.

    Parameters
    ----------
    store : Store
        The store.
    key : Key
        The key of who asks.
    search : str
        A part of the name, in upper or lower case.
    status : str
        One of `STATUSES`; an experiment with a verdict is declared, unless it is finished. Empty
        for all but those that are archived.
    offset, limit : int
        Leave out the first ones; return at most so many.
    """
    table = schema.experiments
    columns = (
        table.c.name, table.c.status, table.c.winner, table.c.stopped, table.c.archived
    )  # fmt: skip
    with store.reading() as connection:
        rows = connection.execute(select(*columns).order_by(table.c.id)).all()
    own = [row for row in rows if key.covers(row.name)]
    wanted = search.casefold()
    found = [
        row.name for row in own
        if wanted in row.name.casefold()
        and status in (("", _status_of(row)) if row.archived is None else ("archived",))
    ]  # fmt: skip
    end = None if limit is None else offset + limit
    return FoundExperiments(tuple(found[offset:end]), len(found), len(own))


def _status_of(row: Any) -> str:
    """Return the status of an experiment in lists."""
    has_verdict = row.winner is not None or row.stopped is not None
    return "declared" if has_verdict and row.status != "finished" else str(row.status)


def read_summaries(store: Store, names: Sequence[str]) -> list[dict[str, Any]]:
    """Return what `GET /experiments` says of some experiments."""
    table, arms = schema.experiments, schema.arms
    columns = ("id", "name", "goal", "status", "asked", "heard", "winner", "verdict", "stopped",
               "chosen", "archived", "created")  # fmt: skip
    rows: list[Any] = []
    arms_of: dict[int, list[str]] = {}
    with store.reading() as connection:
        for some in _in_chunks(names):
            query = select(*(table.c[name] for name in columns)).where(table.c.name.in_(some))
            rows += connection.execute(query.order_by(table.c.id)).all()
        for some in _in_chunks([row.id for row in rows]):
            query = select(arms.c.experiment, arms.c.name).where(arms.c.experiment.in_(some))
            for row in connection.execute(query.order_by(arms.c.experiment, arms.c.number)):
                arms_of.setdefault(row.experiment, []).append(row.name)

    def name_of(row: Any, arm: int | None) -> str | None:
        """Return the name of an arm; None also where the row of the arm is gone."""
        names = arms_of.get(row.id, [])
        return None if arm is None or arm >= len(names) else names[arm]

    return [
        {
            "name": row.name,
            "goal": row.goal,
            "status": row.status,
            "arms": arms_of.get(row.id, []),
            "duels": row.asked,
            "answers": row.heard,
            "winner": name_of(row, row.winner) if row.verdict == WINNER else None,
            "verdict": _verdict_of(row),
            "finished_with": name_of(row, row.chosen),
            "archived": row.archived is not None,
            "created_at": row.created / MICRO,
        }
        for row in rows
    ]


def _verdict_of(row: Any) -> str:
    if row.winner is not None and row.verdict in range(len(VERDICTS)):  # else it is damaged
        return VERDICTS[row.verdict]
    return "running" if row.stopped is None else "undecided"


def _in_chunks(values: Sequence[Any], size: int = 500) -> list[Sequence[Any]]:
    """Cut a sequence into parts: a database takes a limited number of parameters."""
    return [values[at : at + size] for at in range(0, len(values), size)]
