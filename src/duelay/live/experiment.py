"""Live experiments: comparisons in your own program, shared by many processes.

Ask for a duel, show it, and tell whenever an answer comes, from any thread, process or host that
has the store. What `ask` and `tell` have returned is on the disk.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, delete, insert, select
from sqlalchemy.exc import IntegrityError

from duelay import text
from duelay._core import checks, timestamps
from duelay._core.feedback import check_feedback
from duelay.delays.time_units import in_time
from duelay.errors import InvalidValueError, StoreError, UnknownDuelError
from duelay.live.events import note
from duelay.live.export import read_history, write_history
from duelay.live.standing import LiveStanding, stand
from duelay.live.state import ExperimentState, read_arms
from duelay.live.storage import schema
from duelay.live.storage.schema import MICRO
from duelay.live.storage.store import Store, open_store
from duelay.live.validation import (
    ERROR,
    WINDOW,
    check_arm,
    check_forgetting,
    check_length,
    check_name,
    check_votes,
    check_word,
    find_policy,
)
from duelay.live.writes.group_commit import Request
from duelay.live.writes.requests import Ask, LiveDuel, Tell
from duelay.live.writes.writer import Batch, Operation, Writer, unknown_experiment
from duelay.logs.history import History
from duelay.policies import Decide
from duelay.policies.policy import Policy
from duelay.problems import check_arms
from duelay.recommendation import GOALS

_SLACK = 1.0  # seconds that the clock of another machine may be ahead


class Experiment:
    """A comparison of arms that lives in a store; made by `create`, found again by `open`.

    Threads may share one. A process that forks may go on with it. Each process that opens it
    chooses pairs by what all of them have heard.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> store = f"sqlite:///{folder.name}/duels.db"
    >>> experiment = Experiment.create(store, "buttons", ["red", "green", "blue"])
    >>> duel = experiment.ask(unit="visitor-17")
    >>> {duel.first, duel.second} < {"red", "green", "blue"}
    True
    >>> experiment.tell(duel.id), experiment.tell(duel.id)
    ('counted', 'repeated')
    >>> int(Experiment.open(store, "buttons").standing().conversions.sum())
    1
    >>> folder.cleanup()
    """

    def __init__(self, writer: Writer) -> None:
        """Use `create` or `open`."""
        self.store, self.name, self.policy = writer.store, writer.name, writer.policy
        self._writer = writer

    # Making and finding.

    @classmethod
    def create(
        cls,
        store: Store | str | Path,
        name: str,
        arms: Any,
        *,
        goal: str = "decide",
        policy: Policy | str | None = None,
        window: Any = WINDOW,
        feedback: str = "conversions",
        error: float = ERROR,
        self_duels: bool = False,
        share: float = 0.0,
        forget_after: Any = None,
        **opened: Any,
    ) -> Experiment:
        """Make an experiment, and the store where there is none yet.

        Parameters
        ----------
        store : ``"sqlite:///duels.db"``, or ``"postgresql+psycopg://user@host/name"`` for several
            hosts.
        name : of the experiment; no other in the store may have it.
        arms : their names.
        goal : ``"decide"`` finds the winner in few duels and declares it; ``"regret"`` shows the
            better arms more and more.
        policy : by default the one that is recommended for the goal. The window and the error of
            another policy must not contradict `window` and `error`; its self-duels are set by
            `self_duels`.
        window : after it a silent duel is closed, and a later answer is not counted; None for
            never.
        feedback : ``"conversions"``, where only a win of the first is ever told, or ``"votes"``.
        error : the probability with which a declared winner may be wrong.
        self_duels : whether an arm may be shown against itself.
        share : the share of asks that still get a duel once a winner is declared.
        forget_after : after that long the rows of closed duels are folded into the counters.
        opened : what `open` takes.
        """
        store = open_store(store)
        name, arms = check_name(name), tuple(check_arm(arm) for arm in check_arms(arms))
        checks.one_of("goal", goal, GOALS)
        if check_feedback(feedback, counts="each answer must say of which duel it is") == "votes":
            check_votes(arms)
        length = None if window is None else check_length("window", window)
        error = checks.number("error", error, above=0, below=1)
        checks.yes_or_no("self_duels", self_duels)
        chosen = find_policy(policy, goal, length, error, feedback, self_duels=self_duels)
        if policy is not None:
            goal = "decide" if isinstance(chosen, Decide) else "regret"
            error = chosen.error if isinstance(chosen, Decide) else error
            length = in_time(chosen)
            length = None if length is None else check_length("window", length)
        forget = None if forget_after is None else check_length("forget_after", forget_after)
        check_forgetting(forget, length)
        row = {
            "name": name,
            "goal": goal,
            "policy": str(chosen),
            "feedback": feedback,
            "window": None if length is None else round(float(length) * MICRO),
            "error": error,
            "self_duels": self_duels,
            "share": checks.number("share", share, least=0, most=1),
            "forget_after": None if forget is None else round(float(forget) * MICRO),
            "status": "running",
            "stride": 1,
        }
        writer = Writer(store, 0, name, chosen, **opened)
        writer.created = round(writer.clock() * MICRO)
        row["created"] = row["moment"] = row["settled"] = writer.created
        store.need(makes=True)
        try:
            with store.explained(), store.writing() as connection:
                writer.id = connection.execute(
                    insert(schema.experiments).returning(schema.experiments.c.id), row
                ).scalar_one()
                connection.execute(
                    insert(schema.arms),
                    [{"experiment": writer.id, "number": number, "name": arm}
                     for number, arm in enumerate(arms)],
                )  # fmt: skip
        except StoreError as error_of_store:
            if isinstance(error_of_store.__cause__, IntegrityError):
                raise InvalidValueError(
                    f"name must be new, and there is an experiment {name!r} in {store.name}: "
                    "Experiment.open(...) goes on with it"
                ) from None
            raise
        return cls(writer)

    @classmethod
    def open(cls, store: Store | str | Path, name: str, **opened: Any) -> Experiment:
        """Go on with an experiment.

        Keywords: `freshness`, how old, in seconds, the evidence for choosing a pair may be;
        `patience`, the seconds that a call waits for a store that is busy or away; `clock`, a
        function that returns seconds since the epoch, for tests.
        """
        store = open_store(store)
        store.need()
        with store.reading() as connection:
            rows = connection.execute(
                select(
                    *(
                        schema.experiments.c[column]
                        for column in ("id", "name", "policy", "created")
                    )
                )  # fmt: skip
            ).all()
        found = {row.name: row for row in rows}
        if name not in found:
            raise unknown_experiment(store, name, tuple(found))
        policy = text.parse("policy", found[name].policy)
        row = found[name]
        return cls(Writer(store, row.id, name, policy, created=row.created, **opened))

    @classmethod
    def names(cls, store: Store | str | Path) -> tuple[str, ...]:
        """Return the names of all experiments in a store."""
        store = open_store(store)
        store.need()
        with store.reading() as connection:
            rows = connection.execute(
                select(schema.experiments.c.name).order_by(schema.experiments.c.id)
            )
            return tuple(row.name for row in rows)

    @classmethod
    def name_of(cls, store: Store | str | Path, id: str) -> str:
        """Return the name of the experiment to which a duel belongs."""
        store, duels = open_store(store), schema.duels
        store.need()
        with store.reading() as connection:
            name = connection.execute(
                select(schema.experiments.c.name)
                .join(duels, duels.c.experiment == schema.experiments.c.id)
                .where(duels.c.id == id)
            ).scalar()
        if name is None:
            raise UnknownDuelError(f"no duel {id!r} has been asked here")
        return str(name)

    # Asking and telling.

    def ask(self, unit: str | int | None = None, key: str | int | None = None) -> LiveDuel:
        """Return a duel: show its `first` and `second` arm, in this order.

        `unit` is who or what answers, a visitor or a prompt. While its duel is open it gets the
        same one again. Only its first duel on a pair enters the evidence: several answers of one
        taste are not independent. `key` names the question: asked again with the same key, after a
        time-out perhaps, it gets the same duel.

        Once a winner is declared, `settled` is True, and `id`, `first` and `second` are None: show
        the `winner`. An experiment made with a `share` still gives that share of asks a duel.
        """
        request = Ask(check_word("unit", unit), check_word("key", key))
        duel: LiveDuel = self.submit(request)
        return duel

    def tell(self, duel: LiveDuel | str, winner: str | None = None, at: Any = None) -> str:
        """Say that the duel's first arm won: now, later, in any order, or never.

        With votes say who won: ``"first"``, ``"second"``, ``"tie"``, or the arm's name. `at` is
        when the answer was heard, where that was before now: seconds since the epoch or an aware
        datetime.

        Returns "counted"; "repeated" if this duel was counted before; "late" if its window had
        closed. A duel that was never asked raises `duelay.UnknownDuelError`.
        """
        answer: str = self.submit(self.make_tell(duel, winner, at))
        return answer

    def tell_all(self, answers: Iterable[Any]) -> list[str]:
        """Tell several answers as the news of one moment; nobody looks before all are booked.

        Each is an id, or a tuple of what `tell` takes. Use it for answers that come as a file, once
        a night. Told one by one, they would be booked in the order of the file. If the file is
        sorted by winner, whoever looks half-way sees wins of one arm alone.
        """
        if isinstance(answers, str):
            raise InvalidValueError(f"answers must be a list of ids or of tuples, got {answers!r}")
        tells = [self.make_tell(*(each if type(each) is tuple else (each,))) for each in answers]
        self.submit_all(tells)
        wrong = [tell for tell in tells if tell.error is not None]
        if wrong:
            raise type(wrong[0].error)(  # type: ignore[misc]
                f"{len(wrong)} of {len(tells)} answers are refused, the others are told; the "
                f"first: {wrong[0].error}"
            )
        return [str(tell.result) for tell in tells]

    def make_tell(self, duel: Any, winner: Any = None, at: Any = None) -> Tell:
        """Return the request that `tell` submits, with its arguments checked.

        Parameters
        ----------
        duel, winner, at : as for `tell`.
        """
        id = duel.id if isinstance(duel, LiveDuel) else duel
        if not isinstance(id, str) or not id.isascii() or not 0 < len(id) <= 40 or "\0" in id:
            shown = duel if len(repr(duel)) < 100 else f"{repr(duel)[:100]}..."
            raise InvalidValueError(f"duel must be what ask() returned, or its id, got {shown!r}")
        moment = None
        if at is not None:
            seconds, now = timestamps.seconds("at", at), self.now()
            if seconds > now + _SLACK:
                raise InvalidValueError(
                    f"at must not lie in the future, got {at!r}, {seconds - now:,.1f} seconds from "
                    "now: it is seconds since the epoch"
                )
            moment = round(max(seconds, 0.0) * MICRO)  # a time before its duel is refused later
        return Tell(id, winner, moment)

    # Looking.

    def standing(self, confidence: float | None = None) -> LiveStanding:
        """Return who leads or is declared, from what is in the store now."""
        self.settle()
        with self.store.reading() as connection:
            return stand(self._writer.read_state(connection), self.policy, self.latest, confidence)

    def history(self) -> History:
        """Return every duel that is kept, and its answer, for `duelay.assumptions`."""
        with self.store.reading() as connection:
            return read_history(connection, self._writer.read_state(connection))

    def latest(self, n: int) -> History:
        """Return the latest duels and their answers.

        Parameters
        ----------
        n : how many, at the most.
        """
        with self.store.reading() as connection:
            return read_history(connection, self._writer.read_state(connection), latest=n)

    def export(self, path: str | Path) -> Path:
        """Write every duel that is kept as CSV or Parquet, by the name's ending.

        `duelay estimate` and `duelay check` read it.
        """
        return write_history(self.history(), Path(path))

    @property
    def arms(self) -> tuple[str, ...]:
        """The names of all arms, those that are retired included."""
        with self.reading() as (connection, _):
            return read_arms(connection, self.id)

    @property
    def status(self) -> str:
        """``"running"`` or ``"paused"``."""
        with self.reading() as (_, head):
            return str(head["status"])

    # For the page, the service and other programs that read tables of the store or group requests.

    @property
    def id(self) -> int:
        """The number of the experiment in the store."""
        return self._writer.id

    @property
    def created(self) -> int | None:
        """When it was made, in microseconds; with `id` it tells apart experiments of one name."""
        return self._writer.created

    @property
    def state(self) -> ExperimentState | None:
        """The counters and the evidence as of this process's latest write; None before one."""
        return self._writer._state

    def now(self) -> float:
        """Return the time by the clock of the experiment, in seconds since the epoch."""
        return float(self._writer.clock())

    @contextlib.contextmanager
    def reading(self) -> Iterator[tuple[Connection, Any]]:
        """Give a connection to read with, and the row of the experiment.

        Raises
        ------
        UnknownExperimentError : if the experiment has been deleted.
        """
        with self.store.reading() as connection:
            yield connection, self._writer.read_head(connection)

    @contextlib.contextmanager
    def writing(self) -> Iterator[Connection]:
        """Give a connection to write with, in a transaction that locks the experiment.

        Raises
        ------
        UnknownExperimentError : if the experiment has been deleted.
        """
        with self.store.explained(), self.store.writing() as connection:
            self._writer.read_head(connection, to_write=True)
            yield connection

    def submit(self, request: Request) -> Any:
        """Write a request, in one transaction with those of other threads; return its result.

        Parameters
        ----------
        request : an ask, a tell or another request.
        """
        return self._writer.submit(request)

    def submit_all(self, requests: Sequence[Request]) -> None:
        """Write requests in one transaction; answers among them are the news of one moment.

        Parameters
        ----------
        requests : asks, tells and other requests. Each has its own `outcome()` afterwards.
        """
        self._writer.submit(Batch(requests))

    def settle(self) -> None:
        """Settle duels that are due, and evaluate the evidence."""
        self.submit(Operation(lambda *_: None, settles=True))

    # Changing.

    def pause(self) -> None:
        """Ask no more; answers are still heard."""
        self._set_status("paused")

    def resume(self) -> None:
        """Go on after a pause."""
        self._set_status("running")

    def _set_status(self, status: str) -> None:
        def do(connection: Connection, state: ExperimentState, moment: int) -> None:
            if state.head["status"] != status:
                kind = "paused" if status == "paused" else "resumed"
                note(connection, state.settings.id, kind, "", f"it was {kind}", moment)
            state.head["status"] = status

        self.submit(Operation(do))

    def add_arm(self, name: str) -> None:
        """Let an arm join, or come back under its own name, with its past.

        A declaration is withdrawn. For an arm that is there already, nothing changes.
        """
        name = check_arm(name)

        def do(connection: Connection, state: ExperimentState, moment: int) -> None:
            if state.settings.is_vote:
                check_votes([name])
            if name not in state.arms:
                check_arms((*state.arms, name))
                row = {"experiment": state.settings.id, "number": len(state.arms), "name": name}
                connection.execute(insert(schema.arms), row)
            elif state.present[state.arms.index(name)]:
                return
            _change(connection, state, name, "joined", moment)

        self.submit(Operation(do))

    def retire_arm(self, name: str) -> None:
        """Ask an arm no more; its open duels are still heard. Two arms must stay.

        A declaration is withdrawn. For an arm that is retired already, nothing changes.
        """

        def do(connection: Connection, state: ExperimentState, moment: int) -> None:
            there = [
                arm for arm, is_there in zip(state.arms, state.present, strict=True) if is_there
            ]
            if name not in state.arms:
                raise InvalidValueError(
                    f"name must be that of an arm, {there} are there, got {name!r}"
                )
            if name not in there:
                return
            if len(there) == 2:
                raise InvalidValueError(f"two arms must stay, and {there} are all that is left")
            _change(connection, state, name, "retired", moment)

        self.submit(Operation(do))

    def delete(self) -> None:
        """Remove the experiment and all its duels from the store, for ever."""
        with self.writing() as connection:
            for table in schema.TABLES:
                connection.execute(delete(table).where(table.c.experiment == self.id))
            connection.execute(delete(schema.experiments).where(schema.experiments.c.id == self.id))

    def close(self) -> None:
        """Close the connections of this process; nothing is lost without it."""
        self.store.close()

    def __enter__(self) -> Experiment:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Experiment({self.store.name!r}, {self.name!r}, {self.policy})"


def _change(
    connection: Connection, state: ExperimentState, arm: str, kind: str, moment: int
) -> None:
    """Let an arm come or go."""
    state.change(arm, kind, moment)
    row = {
        "experiment": state.settings.id,
        "place": len(state.changes) - 1,
        "arm": state.arms.index(arm),
        "kind": kind,
        "tick": state.head["asked"],
        "at": moment,
    }
    connection.execute(insert(schema.changes), row)
