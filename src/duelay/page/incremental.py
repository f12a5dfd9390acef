"""Incremental reads of an experiment for its page: only what has changed since the last one."""

from __future__ import annotations

import contextlib
import threading
import weakref
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, select

from duelay.assumptions import Finding
from duelay.live import Experiment
from duelay.live.arrivals import read_last_asked
from duelay.live.guardrails import read_guardrails
from duelay.live.standing import LiveStanding, stand
from duelay.live.state import ExperimentState
from duelay.live.storage import schema
from duelay.live.storage.schema import MICRO
from duelay.live.storage.store import Store
from duelay.live.writes.settlement import is_due, read_settled
from duelay.page import view_models

_EVERY = 1.0  # seconds: what was settled less long ago is shown as it is
_EVENTS = 50  # how many of the latest are shown
_MINUTE = 60.0  # seconds: the page says times to the minute, so it changes as often


@dataclass
class Reader:
    """What a process has read of an experiment; threads take turns."""

    lock: threading.RLock = field(default_factory=threading.RLock)
    state: ExperimentState | None = None
    standing: tuple[Any, LiveStanding] | None = None  # and the state of the store that it is of
    view: view_models.ExperimentView | None = None
    listed: tuple[str, view_models.ListEntry] | None = None  # and the version that it is of
    checked: view_models.Diagnostics | None = None  # the latest
    past: dict[Any, Any] = field(default_factory=dict)  # points of charts that do not change


_READERS: weakref.WeakKeyDictionary[Store, dict[tuple[int, int | None], Reader]] = (
    weakref.WeakKeyDictionary()
)
_READERS_LOCK = threading.Lock()


def reader_of(experiment: Experiment) -> Reader:
    """Return what this process has read of an experiment."""
    with _READERS_LOCK:
        there = _READERS.setdefault(experiment.store, {})
        return there.setdefault((experiment.id, experiment.created), Reader())


def forget_others(store: Store, kept: set[tuple[int, int | None]]) -> None:
    """Forget experiments that are in the store no longer."""
    with _READERS_LOCK:
        there = _READERS.setdefault(store, {})
        for place in there.keys() - kept:
            del there[place]


@dataclass(frozen=True)
class ExperimentSnapshot:
    """An experiment at one moment; good only while its reader is held."""

    connection: Connection
    state: ExperimentState
    reader: Reader
    standing: LiveStanding
    events: tuple[Any, ...]  # rows, the latest first
    now: float

    @property
    def id(self) -> int:
        """The id of the experiment in the store."""
        return self.state.settings.id

    @property
    def last_asked(self) -> int | None:
        """When the last duel was asked, in microseconds; None where its row is gone."""
        return read_last_asked(self.connection, self.state)

    @property
    def _of_guardrails(self) -> str:
        """A text that changes with the guard-rails; empty without them."""
        rails = self.standing.guardrails
        return f"{zlib.crc32(repr(rails).encode()):x}" if rails else ""

    @property
    def version(self) -> str:
        """A text that changes with anything that the page shows."""
        head, checked = self.state.head, self.reader.checked
        last = self.events[0]["id"] if self.events else 0
        seen = 0.0 if checked is None else checked.at
        return (
            f"{self.id}.{self.state.settings.created:x}.{head['version']}.{head['asked']}."
            f"{head['heard']}.{head['changes']}.{head['status'][0]}.{last}.{seen:.0f}."
            f"{head['matured']}.{head['closed']}.{head['winner']}.{head['verdict']}."
            f"{head['stopped']}.{head['chosen']}.{head['fallback']}.{self._of_guardrails}."
            f"{self.now // _MINUTE:.0f}"
        )


@contextlib.contextmanager
def look(experiment: Experiment) -> Iterator[ExperimentSnapshot]:
    """Give an experiment as it is now, with the silence that is due; nothing is written."""
    reader = reader_of(experiment)
    with reader.lock, experiment.reading() as (connection, head):
        state = reader.state
        if state is None:
            state = ExperimentState.load(connection, head)
        else:
            state = state.renew(connection, head)
        reader.state = state
        moment = experiment.writer.read_time(connection, head)
        if moment - head["settled"] >= _EVERY * MICRO and is_due(connection, head, moment):
            state = read_settled(connection, head, moment)  # until somebody writes it
        now = moment / MICRO
        events = _read_events(connection, experiment.id)
        alarms = _alarms(reader.checked, events)
        rails = read_guardrails(connection, state, moment)
        place = (dict(state.head), rails, [(alarm.name, alarm.sentence) for alarm in alarms])
        if reader.standing is None or reader.standing[0] != place:
            standing = stand(state, experiment.policy, experiment.latest)
            standing = standing.with_guardrails(rails)
            reader.standing = (place, standing.with_alarms(alarms))
        yield ExperimentSnapshot(connection, state, reader, reader.standing[1], events, now)


def _read_events(connection: Connection, experiment: int) -> tuple[Any, ...]:
    events = schema.events
    rows = connection.execute(
        select(events)
        .where(events.c.experiment == experiment)
        .order_by(events.c.id.desc())
        .limit(_EVENTS)
    )
    return tuple(rows.mappings())


def known_alarms(experiment: Experiment) -> tuple[Finding, ...]:
    """Return the alarms of the last check; no test is run now."""
    with experiment.store.reading() as connection:
        events = _read_events(connection, experiment.id)
    return _alarms(reader_of(experiment).checked, events)


def _alarms(
    checked: view_models.Diagnostics | None, events: tuple[Any, ...]
) -> tuple[Finding, ...]:
    """Return the alarms of the latest check; before any check, those among the latest events."""
    nan = float("nan")
    if checked is not None:
        return tuple(
            Finding(test.name, nan, test.p_value or 0.0, test.n, True, test.sentence)
            for test in checked.tests
            if test.is_alarm
        )
    noted = {row["about"]: row["words"] for row in events if row["kind"] == "alarm"}
    return tuple(Finding(name, nan, nan, 0, True, words) for name, words in noted.items())
