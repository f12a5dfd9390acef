"""Read the duels of a store as a `History`, and write the file that `duelay estimate` reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import Connection, select

from duelay.errors import InvalidValueError
from duelay.live.state import ExperimentState
from duelay.live.storage import schema
from duelay.live.storage.schema import MICRO
from duelay.logs.arm_changes import Change, Declaration
from duelay.logs.history import History
from duelay.logs.unit_numbers import number_units

_ENDINGS = {".csv": History.to_csv, ".parquet": History.to_parquet}
_COLUMNS = ("number", "first", "second", "asked", "told", "first_won", "unit")


def read_history(
    connection: Connection, state: ExperimentState, latest: int | None = None
) -> History:
    """Return the duels that are kept; with `latest`, of so many those that enter the evidence.

    The ticks of changes and of a declaration are counted from the first duel that is returned. With
    `latest`, units are left out: each unit enters with one duel on a pair, so that none repeats.
    """
    duels, settings, head = schema.duels, state.settings, state.head
    after = head["forgotten"] if latest is None else max(head["asked"] - latest, head["forgotten"])
    query = select(*(duels.c[name] for name in _COLUMNS)).where(
        duels.c.experiment == settings.id, duels.c.number > after
    )
    if latest is not None:
        query = query.where(duels.c.enters)
    rows = connection.execute(query.order_by(duels.c.number)).all()
    numbers = np.array([row.number for row in rows], dtype=np.int64)
    asked = np.array([row.asked for row in rows], dtype=np.int64)
    told = np.array([row.asked - 1 if row.told is None else row.told for row in rows],
                    dtype=np.int64)  # fmt: skip
    is_heard = told >= asked
    won = np.array([row.first_won or 0.0 for row in rows])
    return History(
        n_arms=len(state.arms),
        first=np.array([row.first for row in rows], dtype=np.int64),
        second=np.array([row.second for row in rows], dtype=np.int64),
        delay=np.where(is_heard, (told - asked) / MICRO, np.nan),
        first_won=np.where(is_heard, won, np.nan),
        window=settings.window,
        feedback=settings.feedback,
        order="coin",
        display=settings.display,
        arms=state.arms,
        at=asked / MICRO,
        now=head["moment"] / MICRO if len(rows) else None,
        chosen_by=settings.policy,
        changes=_changes(state, numbers),
        declared=_declared(state, numbers, after),
        unit=number_units([row.unit for row in rows]) if latest is None else None,
        n_earlier=head["forgotten"] if latest is None else 0,
    )


def write_history(history: History, path: Path) -> Path:
    """Write a history in the form that the name's ending says."""
    write = _ENDINGS.get(path.suffix.lower())
    if write is None:
        raise InvalidValueError(f"path must end in .csv or .parquet, got {str(path)!r}")
    write(history, path)
    return path


def _tick(numbers: Any, tick: int) -> int:
    """How many of these duels are among the first `tick` of the experiment."""
    return int(np.searchsorted(numbers, tick, side="right"))


def _changes(state: ExperimentState, numbers: Any) -> tuple[Change, ...]:
    return tuple(change._replace(tick=_tick(numbers, change.tick)) for change in state.changes)


def _declared(state: ExperimentState, numbers: Any, after: int) -> Declaration | None:
    tick = int(state.eprocess.declared[0])
    if state.winner is None or tick < after:
        return None
    return Declaration(state.arms[state.winner], _tick(numbers, tick), state.settings.policy)
