"""Statements that every transaction runs, built once: to build one takes longer than to run it."""

from __future__ import annotations

import functools
from typing import Any

from sqlalchemy import Connection, bindparam, select, update
from sqlalchemy.dialects import postgresql, sqlite

from duelay.live.schema import duels, experiments

_FIXED = {"id", "name", "goal", "policy", "feedback", "window", "error", "self_duels", "share",
          "forget_after", "created"}  # fmt: skip
CHANGING = tuple(column.name for column in experiments.c if column.name not in _FIXED)

HEAD = select(experiments).where(experiments.c.id == bindparam("experiment"))
HEAD_TO_WRITE = HEAD.with_for_update()
WRITE_HEAD = (
    update(experiments)
    .where(experiments.c.id == bindparam("b_id"))
    .values({name: bindparam(name) for name in CHANGING})
)
DUELS_BY_ID = select(duels).where(duels.c.id.in_(bindparam("ids", expanding=True)))


@functools.cache
def duels_after(*names: str) -> Any:
    """Select columns of the next duels after a number, in their order."""
    return (
        select(*(duels.c[name] for name in names))
        .where(duels.c.experiment == bindparam("experiment"), duels.c.number > bindparam("after"))
        .order_by(duels.c.number)
        .limit(bindparam("n"))
    )


@functools.cache
def write_duels(*names: str) -> Any:
    """Update columns of duels, each found by `b_id`."""
    values: dict[str, Any] = {name: bindparam(name) for name in names}
    return update(duels).where(duels.c.id == bindparam("b_id")).values(values)


def upsert(connection: Connection, table: Any, rows: list[dict[str, Any]]) -> None:
    """Write rows, each in the place of the one with the same key, if there is one."""
    if rows:
        connection.execute(_upsert(table, connection.dialect.name, tuple(rows[0])), rows)


@functools.cache
def _upsert(table: Any, dialect: str, names: tuple[str, ...]) -> Any:
    make: Any = sqlite.insert if dialect == "sqlite" else postgresql.insert
    insert = make(table).values({name: bindparam(name) for name in names})
    keys = [column.name for column in table.primary_key]
    values = {name: insert.excluded[name] for name in names if name not in keys}
    return insert.on_conflict_do_update(index_elements=keys, set_=values)
