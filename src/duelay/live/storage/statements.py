"""Statements that every transaction runs, built and compiled once.

To build one takes longer than to run it. `run` hands the compiled text and the parameters straight
to the driver. SQLAlchemy would convert each row; texts, numbers and bytes need no conversion.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

from sqlalchemy import (
    Connection,
    String,
    bindparam,
    func,
    insert,
    literal_column,
    select,
    true,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite

from duelay.live.storage.rows import ExperimentRow
from duelay.live.storage.schema import duels, experiments

_FIXED = {"id", "name", "goal", "policy", "feedback", "window", "error", "self_duels", "share",
          "forget_after", "lag", "display", "margin", "ends", "budget", "until", "created", "clock",
          "earlier"}  # fmt: skip
CHANGING = tuple(column.name for column in experiments.c if column.name not in _FIXED)

_INSERT: dict[str, Any] = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}
MAX_VALUES = 1000  # that a statement looks up
HEAD = select(experiments).where(experiments.c.id == bindparam("experiment"))
HEAD_TO_WRITE = HEAD.with_for_update()
DATABASE_TIME = "extract(epoch FROM clock_timestamp())"  # of PostgreSQL; SQLite has no clock
# Also limits what the server does of a transaction, should its client have given up meanwhile.
HEAD_AND_TIME = HEAD.add_columns(
    literal_column(f"CAST({DATABASE_TIME} AS double precision)").label("shared_time"),
    *(
        func.set_config(name, bindparam("limit", type_=String), true())
        for name in ("lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout")
    ),
).with_for_update(of=experiments)
WRITE_HEAD = (
    update(experiments)
    .where(experiments.c.id == bindparam("b_id"))
    .values({name: bindparam(name) for name in CHANGING})
)
_ASKED = ("id", "experiment", "number", "first", "second", "asked", "unit", "key", "enters",
          "wait", "stake")  # fmt: skip
INSERT_DUELS = insert(duels).values({name: bindparam(name) for name in _ASKED})
VALUES: Any = bindparam("values", expanding=True)
DUELS_BY_ID = select(duels).where(duels.c.id.in_(VALUES))


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


def read_heads(connection: Connection) -> Sequence[ExperimentRow]:
    """Return the rows of all experiments, oldest first."""
    rows = connection.execute(select(experiments).order_by(experiments.c.id)).mappings().all()
    return cast(Sequence[ExperimentRow], rows)


def find_rows(connection: Connection, query: Any, values: Iterable[Any]) -> Iterator[Any]:
    """Give the rows of a query with `in_(VALUES)`, as mappings.

    The values are looked up in parts, as databases limit the parameters of a statement.
    """
    every = list(values)
    for start in range(0, len(every), MAX_VALUES):
        part = every[start : start + MAX_VALUES]
        yield from connection.execute(query, {"values": part}).mappings().all()


def run(connection: Connection, statement: Any, rows: Any) -> Any:
    """Run a statement with one row of parameters, or with many; each row has every parameter."""
    sql, names, fixed = _compiled(statement, cast(Any, type(connection.dialect)))
    if isinstance(rows, dict):
        values = fixed | rows
        return connection.exec_driver_sql(
            sql, values if names is None else tuple([values[name] for name in names])
        )
    if names is not None:
        rows = [tuple([row[name] for name in names]) for row in rows]
    return connection.exec_driver_sql(sql, rows)


@functools.cache
def _compiled(statement: Any, dialect: Any) -> tuple[str, tuple[str, ...] | None, dict[str, Any]]:
    """Return a statement's text, its parameters in order (None if by name), and the fixed ones."""
    compiled = statement.compile(dialect=dialect())
    names = compiled.positiontup
    fixed = {name: value for name, value in compiled.params.items() if value is not None}
    return str(compiled), None if names is None else tuple(names), fixed


def upsert(connection: Connection, table: Any, rows: list[dict[str, Any]]) -> None:
    """Write rows, each in the place of the one with the same key, if there is one."""
    if rows:
        run(connection, _upsert(table, connection.dialect.name, tuple(rows[0])), rows)


def add(connection: Connection, table: Any, rows: list[dict[str, Any]]) -> None:
    """Write rows, each added to the one with the same key, if there is one."""
    if rows:
        statement = _upsert(table, connection.dialect.name, tuple(rows[0]), adds=True)
        run(connection, statement, rows)


def insert_missing(connection: Connection, table: Any, row: dict[str, Any]) -> None:
    """Write a row, unless there is one with the same key."""
    connection.execute(_INSERT[connection.dialect.name](table).on_conflict_do_nothing(), row)


def add_from(connection: Connection, table: Any, rows: Any) -> Any:
    """Return a statement that adds selected rows, key columns first, to those with the same key."""
    names = [*(column.name for column in table.primary_key),
             *(column.name for column in table.c if not column.primary_key)]  # fmt: skip
    make = _INSERT[connection.dialect.name]
    return _on_conflict(table, make(table).from_select(names, rows), names, adds=True)


@functools.cache
def _upsert(table: Any, dialect: str, names: tuple[str, ...], *, adds: bool = False) -> Any:
    insert = _INSERT[dialect](table).values({name: bindparam(name) for name in names})
    return _on_conflict(table, insert, names, adds=adds)


def _on_conflict(table: Any, insert: Any, names: Sequence[str], *, adds: bool) -> Any:
    """Let what is inserted replace what is there, or be added to it."""
    keys = [column.name for column in table.primary_key]
    values = {name: insert.excluded[name] for name in names if name not in keys}
    if adds:
        values = {name: table.c[name] + value for name, value in values.items()}
    return insert.on_conflict_do_update(index_elements=keys, set_=values)
