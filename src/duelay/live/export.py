"""Read the duels of a store as a `History`, and write the file that `duelay estimate` reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import Connection, select

from duelay._core.records import read_record
from duelay.errors import InvalidValueError
from duelay.live.state import ExperimentState
from duelay.live.storage import schema
from duelay.live.storage.schema import MICRO
from duelay.logs.arm_changes import Change, Declaration
from duelay.logs.history import History
from duelay.logs.unit_numbers import number_units

_ENDINGS = {".csv": History.to_csv, ".parquet": History.to_parquet}
_COLUMNS = ("number", "first", "second", "asked", "told", "first_won", "unit")
_MAX_ROWS_PER_READ = 100_000


class ExportedSettings(NamedTuple):
    """What an export says of an experiment, beside its duels; a service sends it with its log.

    Ticks are counted from the first duel of the experiment.
    """

    arms: tuple[str, ...]
    feedback: str
    window: str | None
    policy: str
    now: float  # the latest time known, in seconds since the epoch
    forgotten: int  # duels whose rows are folded into the counters
    changes: tuple[Change, ...]
    declared: Declaration | None
    display: str = "pair"

    @classmethod
    def of(cls, state: ExperimentState) -> ExportedSettings:
        """Return those of an experiment."""
        settings, head = state.settings, state.head
        tick = int(state.eprocess.declared[0])
        return cls(
            arms=tuple(state.arms),
            feedback=settings.feedback,
            window=None if settings.window is None else str(settings.window),
            policy=settings.policy,
            now=head["moment"] / MICRO,
            forgotten=head["forgotten"],
            changes=tuple(state.changes),
            declared=None
            if state.verdict != "winner" or state.winner is None
            else Declaration(state.arms[state.winner], tick, settings.policy),
            display=settings.display,
        )

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON has them."""
        declared = None if self.declared is None else self.declared._asdict()
        changes = [change._asdict() for change in self.changes]
        return self._asdict() | {"changes": changes, "declared": declared}

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> ExportedSettings:
        """Return what a service has sent; fields of later versions are left out."""
        return read_record(cls, found)

    def changes_among(self, numbers: Any) -> tuple[Change, ...]:
        """Return the changes; their ticks count the duels with these numbers alone."""
        return tuple(change._replace(tick=_tick(numbers, change.tick)) for change in self.changes)

    def declared_among(self, numbers: Any, after: int) -> Declaration | None:
        """Return the declaration, if it was after so many duels, with a tick as above."""
        if self.declared is None or self.declared.tick < after:
            return None
        return self.declared._replace(tick=_tick(numbers, self.declared.tick))


def read_history(
    connection: Connection, state: ExperimentState, latest: int | None = None
) -> History:
    """Return the duels that are kept; with `latest`, of so many those that enter the evidence.

    The ticks of changes and of a declaration are counted from the first duel that is returned. With
    `latest`, units are left out: each unit enters with one duel on a pair, so that none repeats.
    """
    duels, settings, head = schema.duels, state.settings, state.head
    about = ExportedSettings.of(state)
    after = head["forgotten"] if latest is None else max(head["asked"] - latest, head["forgotten"])
    query = select(*(duels.c[name] for name in _COLUMNS)).where(duels.c.experiment == settings.id)
    if latest is not None:
        query = query.where(duels.c.enters)
    rows = list(_read_rows(connection, query.order_by(duels.c.number), after))
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
        changes=about.changes_among(numbers),
        declared=about.declared_among(numbers, after),
        unit=number_units([row.unit for row in rows]) if latest is None else None,
        n_earlier=head["forgotten"] if latest is None else 0,
    )


def _read_rows(connection: Connection, query: Any, after: int) -> Iterator[Any]:
    """Give the duels after a number, some at a time: a statement of all of them may take long."""
    query, n = query.limit(_MAX_ROWS_PER_READ), _MAX_ROWS_PER_READ
    while n == _MAX_ROWS_PER_READ:
        rows = connection.execute(query.where(schema.duels.c.number > after)).all()
        yield from rows
        n, after = len(rows), rows[-1].number if rows else after


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
