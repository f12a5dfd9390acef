"""Write the requests of a process to one experiment, a group of them in each transaction.

In a transaction, answers are recorded first. Then arms are added or retired, due duels are settled,
the evidence is evaluated, and duels are chosen for those who ask. If the database is busy or away,
the transaction is tried again for a while; nothing is done twice by that.

As other processes wait for a transaction, it does no long work: the log is first replayed before it
begins, and where a call would wait for the compiler, it is rolled back, and done again afterwards.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable
from typing import cast

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from duelay._core import checks
from duelay._core.jit.background import CompilationError, refuse_to_wait
from duelay._core.patience import at_least
from duelay.errors import DuelayError, PausedError, StoreError, UnknownExperimentError
from duelay.live.clock import ExperimentClock, wall
from duelay.live.events import note_end
from duelay.live.selection import PairSelector
from duelay.live.state import ExperimentState
from duelay.live.storage import statements
from duelay.live.storage.delay_histogram import DelayHistogram
from duelay.live.storage.rows import ExperimentRow
from duelay.live.storage.schema import MICRO
from duelay.live.storage.store import Store, is_temporary
from duelay.live.writes.ask import assign_duels, show_arm
from duelay.live.writes.compaction import compact_due
from duelay.live.writes.group_commit import MAX_GROUP, Committer, Request
from duelay.live.writes.metrics import book_metrics
from duelay.live.writes.requests import Ask, Operation, Settle, Tell
from duelay.live.writes.settlement import settle
from duelay.live.writes.tell import record_answers
from duelay.policies.policy import Policy

FRESH = 1.0  # seconds: a pair is chosen by evidence that may be as old as this
PATIENCE = at_least(30.0)  # seconds that a call waits for a store that is busy or away
_MAX_PATIENCE = 86_400.0  # seconds, as databases and locks do not take infinity
_PAUSE = 0.25  # seconds between two tries
_MAX_SIZES = 10_000  # sizes of commits that are kept, as they may never be read


class Writer(Committer):
    """Writes the requests of a process to one experiment; `submit` takes them."""

    def __init__(
        self,
        store: Store,
        id: int,
        name: str,
        policy: Policy,
        *,
        created: int | None = None,
        freshness: float = FRESH,
        patience: float = PATIENCE,
        clock: Callable[[], float] | str | None = None,
        noted: str | None = None,
        group: int = MAX_GROUP,
    ) -> None:
        super().__init__(checks.whole("group", group))
        self.store, self.id, self.name, self.policy = store, id, name, policy
        self.created = created
        begins = 0.0 if created is None else created / MICRO
        self.clock = ExperimentClock(noted, clock, begins, is_shared=not store.is_sqlite)
        self.sizes: deque[int] = deque(maxlen=_MAX_SIZES)  # asks and answers in the latest commits
        self._fresh = round(checks.number("freshness", freshness, least=0) * MICRO)
        self.patience = min(checks.number("patience", patience, least=0), _MAX_PATIENCE)
        self.state: ExperimentState | None = None
        self.has_shown_winner = False  # to a reader, before it was written: the next call does that
        self._begin()

    def _begin(self) -> None:
        """Drop the state, to read it again, and start a selector with new random numbers."""
        self._pid, self.state = os.getpid(), None
        self._selector = PairSelector(self.policy)

    def read_head(self, connection: Connection, *, to_write: bool = False) -> ExperimentRow:
        """Return the experiment's row; where it is to be written, hold it."""
        query = statements.HEAD
        if to_write:
            sqlite = self.store.is_sqlite
            query = statements.HEAD_TO_WRITE if sqlite else statements.HEAD_AND_TIME
        limit = round(1000 * max(self.patience, 1.0))  # milliseconds
        values = {"experiment": self.id, "limit": f"{limit}ms"}
        row = statements.run(connection, query, values).mappings().first()
        # SQLite may give the id of a deleted experiment to the next one.
        if row is None or (row["name"], row["created"]) != (self.name, self.created):
            raise UnknownExperimentError(
                f"the experiment {self.name!r} has been deleted from {self.store.name}"
            )
        return cast(ExperimentRow, row)

    def read_time(self, connection: Connection, head: ExperimentRow) -> int:
        """Return the time for a caller that only reads, in microseconds; none before the latest."""
        shared = self.store.read_time(connection)
        latest = int(head["moment"])
        return max(round(self.clock.shown(latest / MICRO, shared) * MICRO), latest)

    def commit(self, group: list[Request]) -> None:
        """Write a group; try again where the store is busy or away."""
        if n := sum(isinstance(request, Ask | Tell) for request in group):
            self.sizes.append(n)
        until, is_retry = time.monotonic() + self.patience, False
        while True:
            try:
                self._prepare(group)
                self._write(group, until - time.monotonic(), is_retry=is_retry)
                return
            except SQLAlchemyError as error:
                self._begin()  # state and ledger may have changes that were not kept
                if not is_temporary(error) or time.monotonic() + _PAUSE > until:
                    raise StoreError(self.store.explain(error)) from error
                is_retry = True
                time.sleep(_PAUSE)
            except CompilationError as error:  # nothing was kept
                self._begin()
                begun = time.monotonic()
                error.compile()
                until += time.monotonic() - begun
            except BaseException:
                self._begin()
                raise

    def _prepare(self, group: list[Request]) -> None:
        """Replay the log of duels for those who ask, the first time."""
        if self._pid != os.getpid():
            self._begin()
        replica = self._selector.replica
        if replica is None or replica.read_at is not None:
            return
        if not any(isinstance(request, Ask) for request in group):
            return
        try:
            with self.store.reading(self.patience) as connection:
                head = self.read_head(connection)
                state = ExperimentState.load(connection, head)
                replica.read(connection, state, self.read_time(connection, head))
        except StoreError as error:
            if isinstance(error.__cause__, SQLAlchemyError):
                raise error.__cause__ from None  # it may pass, as any other
            raise

    def _write(self, group: list[Request], patience: float, *, is_retry: bool) -> None:
        with refuse_to_wait(), self.store.writing(patience) as connection:
            begun = wall()
            head = self.read_head(connection, to_write=True)
            state = ExperimentState.load(connection, head) if self.state is None else self.state
            state = state.renew(connection, head)
            ages = DelayHistogram(state.settings.window)
            moment = self._moment(state, head.get("shared_time"), begun)
            state.widen_time_buckets(connection, moment)
            for request in group:
                request.error = None
            if self.clock.is_missing:
                group = self._refuse_without_clock(group)
            tells = [request for request in group if isinstance(request, Tell)]
            record_answers(connection, state, ages, tells, moment)
            for request in group:
                if isinstance(request, Operation):
                    self._operate(request, connection, state, moment)
            is_wanted = self.has_shown_winner or any(isinstance(each, Settle) for each in group)
            if is_wanted or moment - head["settled"] >= self._fresh:
                settle(connection, state, ages, moment)
                book_metrics(connection, state, moment)
                compact_due(connection, state, moment)
                state.merge_time_buckets(connection)
            note_end(connection, state, head, moment)
            asks = [request for request in group if isinstance(request, Ask)]
            self._ask(connection, state, asks, moment, is_retry=is_retry)
            ages.save(connection, self.id)
            state.save(connection, moment)
        self.state, self.has_shown_winner = state, False

    def _refuse_without_clock(self, group: list[Request]) -> list[Request]:
        """Refuse what needs the clock of the experiment, which this process lacks."""
        kept: list[Request] = []
        for request in group:
            if isinstance(request, Operation) and not request.needs_clock:
                kept.append(request)
            else:
                request.error = self.clock.missing()
        return kept

    def _operate(
        self, act: Operation, connection: Connection, state: ExperimentState, moment: int
    ) -> None:
        try:
            act.result = act.do(connection, state, moment)
        except DuelayError as error:  # raised before anything is written
            act.error = error

    def _ask(
        self,
        connection: Connection,
        state: ExperimentState,
        asks: list[Ask],
        moment: int,
        *,
        is_retry: bool,
    ) -> None:
        if state.head["status"] != "running":
            arm = state.arm_shown_alone(moment)
            for ask in asks:
                if arm is not None:
                    ask.result = show_arm(state, arm)
                    continue
                ask.error = PausedError(
                    f"the experiment {self.name!r} is paused: resume() it, or show what you "
                    "would without it"
                )
            return
        replica = self._selector.replica
        if asks and replica is not None:
            is_old = replica.read_at is None or moment - replica.read_at >= self._fresh
            if is_old or replica.is_outdated(state):
                replica.read(connection, state, moment)
        assign_duels(connection, state, self._selector, asks, moment, is_retry=is_retry)

    def _moment(self, state: ExperimentState, shared: float | None, begun: float) -> int:
        """Return the time of a transaction: never before the latest one known."""
        latest = int(state.head["moment"])
        now = round(self.clock.of_write(latest / MICRO, shared, begun) * MICRO)
        behind = (latest - now) / MICRO
        if behind > 1.0:
            state.head["backwards"] += 1
            state.head["furthest"] = max(state.head["furthest"], behind)
        return max(now, latest)
