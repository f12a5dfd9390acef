"""Live experiments: comparisons in your own program, shared by many processes.

Ask for a duel, show it, and tell whenever an answer comes, from any thread, process or host that
has the store. What `ask` and `tell` have returned is on the disk.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from duelay._core import checks, timestamps
from duelay._core.files import write_whole
from duelay.errors import InvalidValueError
from duelay.live import catalog
from duelay.live.arm_cost import ArmCostReport, report_cost
from duelay.live.arrivals import read_gap
from duelay.live.changes import make_change
from duelay.live.clock import meaning_of_at
from duelay.live.export import read_history, write_history
from duelay.live.guardrails import read_guardrails, write_events
from duelay.live.standing import LiveStanding, stand
from duelay.live.state import ExperimentState, end_of, read_arms
from duelay.live.storage.rows import ExperimentRow
from duelay.live.storage.schema import MICRO
from duelay.live.storage.store import Store, open_store
from duelay.live.validation import ERROR, WINDOW, check_word
from duelay.live.writes.group_commit import Batch, Request
from duelay.live.writes.metrics import TellMetric
from duelay.live.writes.requests import Ask, LiveDuel, Settle, Tell
from duelay.live.writes.settlement import is_due, read_settled
from duelay.live.writes.writer import Writer
from duelay.logs.history import History
from duelay.policies.policy import Policy

_SLACK = 1.0  # seconds that the clock of another machine may be ahead


class Experiment:
    """A comparison of arms that is kept in a store; `create` makes it, and `open` finds it again.

    Threads may share an experiment, and a process that forks may go on with it. Each process that
    opens it chooses pairs by the answers that all processes have received.

    Parameters
    ----------
    writer : Writer
        The writer of the experiment, which `create` and `open` make.

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
        display: str = "pair",
        error: float = ERROR,
        self_duels: bool = False,
        share: float = 0.0,
        forget_after: Any = None,
        lag: Any = None,
        margin: float | str | None = None,
        end: str | None = None,
        budget: int | None = None,
        until: Any = None,
        fallback: str | None = None,
        guardrails: Any = None,
        clock: Callable[[], float] | str | None = None,
        **opened: Any,
    ) -> Experiment:
        """Make an experiment, and the store where there is none yet.

        Parameters
        ----------
        store : Store, str or Path
            ``"sqlite:///duels.db"``, or ``"postgresql+psycopg://user@host/name"`` for several
            hosts.
        name : str
            The name of the experiment, which is unique in the store.
        arms : int or sequence of str
            The names of the arms, or their number.
        goal : str
            ``"decide"`` finds the winner in few duels and declares it; ``"regret"`` shows the
            better arms more and more.
        policy : Policy or str, optional
            By default the one that is recommended for the goal. The window and the error of another
            policy must not contradict `window` and `error`; its self-duels are set by `self_duels`.
        window : Duration, timedelta or str, optional
            The time after which a silent duel is closed and a later answer is not counted; None for
            no limit.
        feedback : str
            ``"conversions"``, where only a win of the first is ever told, or ``"votes"``.
        display : str
            ``"pair"``, where the two arms of a duel are shown together; or ``"one"``, an A/B test:
            show the `arm` that `ask` returns alone, and tell when the visitor converts. Arms are
            then compared by their conversion rates.
        error : float
            The probability with which a declared winner may be wrong.
        self_duels : bool
            Whether an arm may be shown against itself.
        share : float
            The share of asks that still get a duel once a winner is declared.
        forget_after : Duration, timedelta or str, optional
            The age from which the rows of closed duels are folded into the counters.
        lag : Duration, timedelta or str, optional
            How long after an answer came it may be told, such as ``"1d"`` for answers that come as
            a file every night. Each duel enters the evidence so much later.
        margin : float or str, optional
            The smallest difference that matters, in points of preference: with 0.05, two arms are
            equivalent if each wins more than 45 and less than 55 % of their duels. With
            ``display="one"`` also a lift, such as ``"5%"`` for rates of 10 and 10.5 %. The
            experiment then also ends when no difference matters.
        end : str, optional
            With a margin, what ends it if no arm wins: ``"equivalent"`` (the default) or
            ``"good_enough"``, as for `duelay.Decide`.
        budget : int, optional
            The number of duels after which it stops, whatever is known then.
        until : datetime, Duration, timedelta, str or float, optional
            When it stops: a time, or how long after its creation, such as ``"30d"``.
        fallback : str, optional
            The arm that `ask` returns while the experiment is paused.
        guardrails : mapping, optional
            Other events of a duel, which never choose pairs, by their names: the excess of an arm's
            rate over that of the baseline above which an alarm is raised, such as ``{"refund":
            0.02}``; None, to measure only; or ``{"bound": 0.02, "within": "2d"}``, where an event
            counts up to this age in place of the window. The baseline is the fallback, or else the
            first arm, and does not change.
        clock : callable or str, optional
            The clock of the experiment, in the place of that of the store: ``"1000x"`` goes a
            thousand times as fast as the world from now on, in all processes. A function that
            returns seconds since the epoch must be given to `open`, too.
        opened : object
            The keywords of `open`.
        """
        store = open_store(store)
        new = catalog.check_experiment(
            name, arms, goal=goal, policy=policy, window=window, feedback=feedback,
            display=display, error=error, self_duels=self_duels, share=share,
            forget_after=forget_after, lag=lag, margin=margin, end=end, budget=budget,
            fallback=fallback, guardrails=guardrails,
        )  # fmt: skip
        return cls(catalog.write_experiment(store, new, until, clock, **opened))

    @classmethod
    def open(cls, store: Store | str | Path, name: str, **opened: Any) -> Experiment:
        """Open an experiment of a store.

        Parameters
        ----------
        store : Store, str or Path
            The store, or its address.
        name : str
            The name of the experiment.
        **opened : object
            `freshness`, the largest age in seconds of the evidence by which a pair is chosen;
            `patience`, the seconds that a call waits for a store that is busy or away (to read, for
            each statement); `clock`, the
            function with which the experiment was made, and without which it can only be read.

        Returns
        -------
        Experiment
            The experiment.

        Raises
        ------
        UnknownExperimentError
            If the store has no experiment of this name.
        StoreError
            If the store cannot be read.
        """
        return cls(catalog.open_writer(open_store(store), name, **opened))

    @classmethod
    def names(cls, store: Store | str | Path, *, archived: bool = True) -> tuple[str, ...]:
        """Return the names of all experiments in a store.

        Parameters
        ----------
        store : Store, str or Path
            The store, or its address.
        archived : bool
            Whether those that are archived are among them.

        Returns
        -------
        tuple of str
            The names, oldest first.
        """
        return catalog.list_names(open_store(store), archived=archived)

    @classmethod
    def name_of(cls, store: Store | str | Path, id: str) -> str:
        """Return the name of the experiment to which a duel belongs.

        Parameters
        ----------
        store : Store, str or Path
            The store, or its address.
        id : str
            The id of the duel.

        Returns
        -------
        str
            The name.

        Raises
        ------
        UnknownDuelError
            If the store has no duel with this id.
        """
        return catalog.find_name(open_store(store), id)

    # Asking and telling.

    def ask(self, unit: str | int | None = None, key: str | int | None = None) -> LiveDuel:
        """Return a duel: show its `first` and `second` arm, in this order.

        Once the experiment has ended, `settled` is True, and `id`, `first` and `second` are None:
        show the `winner`. It is the arm with which the experiment was finished, or that of the
        verdict: a declared winner, with a margin one that is good enough or equivalent, or the
        leader when the budget is spent. So is the `fallback` in a pause. An experiment made with a
        `share` still gives that share of asks a duel after a verdict of the evidence.

        Where one arm is shown at a time, show `arm`: the first arm of the duel, or the `winner`.

        Parameters
        ----------
        unit : str or int, optional
            The visitor, prompt or judge that answers. While a duel of the unit is open, it gets the
            same duel again; where one arm is shown at a time, as long as no winner is declared.
            Repeated answers from one unit are correlated, so only its first duel
            on a pair enters the evidence.
        key : str or int, optional
            A key that makes the call idempotent: a call that is repeated with the same key, after a
            time-out for example, returns the same duel.

        Returns
        -------
        LiveDuel
            The duel, or the winner.

        Raises
        ------
        PausedError
            If the experiment is paused without a `fallback`, and has not ended.
        """
        request = Ask(check_word("unit", unit), check_word("key", key))
        duel: LiveDuel = self.submit(request)
        return duel

    def tell(
        self,
        duel: LiveDuel | str,
        winner: str | None = None,
        at: Any = None,
        *,
        metric: str | None = None,
        arm: str | None = None,
    ) -> str:
        """Record that the first arm of a duel won: now, later, in any order, or never.

        With `metric`, record that another event followed the duel.

        Parameters
        ----------
        duel : LiveDuel or str
            The duel, or its id.
        winner : str, optional
            With votes ``"first"``, ``"second"``, ``"tie"``, or the name of the arm that won. Leave
            it out for conversions.
        at : float or datetime, optional
            The time at which the answer came, if that was before now: seconds since the epoch or an
            aware datetime. The age at this time decides whether the answer counts as evidence.
        metric : str, optional
            The name of a guard-rail: its event is told, and no answer.
        arm : str, optional
            With `metric`, where two arms were shown: the one that the event is about, its name or
            ``"first"`` or ``"second"``.

        Returns
        -------
        str
            ``"counted"``; ``"repeated"`` if this duel was counted before; ``"late"`` if its window
            had closed.

        Raises
        ------
        UnknownDuelError
            If the duel was never asked.
        """
        request: Tell | TellMetric = self.make_tell(duel, winner, at)
        if metric is not None:
            request = self.make_metric(duel, metric, arm, at, winner)
        elif arm is not None:
            raise InvalidValueError(f"arm is said with a metric, got {arm!r} alone", argument="arm")
        answer: str = self.submit(request)
        return answer

    def make_metric(
        self, duel: Any, metric: str, arm: str | None = None, at: Any = None, winner: Any = None
    ) -> TellMetric:
        """Return the request that `tell` submits for a metric, with its arguments checked.

        Parameters
        ----------
        duel, metric, arm, at, winner : object
            As for `tell`; the winner must be left out.

        Returns
        -------
        TellMetric
            The request.
        """
        if winner is not None:
            raise InvalidValueError(
                f"winner must be left out with a metric, got {winner!r}", argument="winner"
            )
        told = self.make_tell(duel, None, at)
        return TellMetric(
            told.id, str(check_word("metric", metric)), check_word("arm", arm), told.at
        )

    def tell_all(self, answers: Iterable[Any]) -> list[str]:
        """Record several answers as the news of one moment.

        Use it for answers that come as a file, once a night: it is one transaction. No duel enters
        the evidence and no winner is declared until all answers are recorded.

        Parameters
        ----------
        answers : iterable of str or tuple
            An id for each answer, or a tuple of the arguments of `tell`.

        Returns
        -------
        list of str
            What `tell` returns, for each answer.

        Raises
        ------
        DuelayError
            If answers are refused: the error of the first of them. The others are recorded.
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
        duel : LiveDuel or str
            The duel, or its id.
        winner : str, optional
            The outcome, as for `tell`.
        at : float or datetime, optional
            The time of the answer, as for `tell`.

        Returns
        -------
        Tell
            The request.
        """
        id = duel.id if isinstance(duel, LiveDuel) else duel
        if not isinstance(id, str) or not id.isascii() or not 0 < len(id) <= 40 or "\0" in id:
            shown = duel if len(repr(duel)) < 100 else f"{repr(duel)[:100]}..."
            raise InvalidValueError(f"duel must be one that was asked, or its id, got {shown!r}")
        moment = None
        if at is not None:
            seconds, now = timestamps.seconds("at", at), self._writer.clock.latest()
            if seconds > now + _SLACK:
                raise InvalidValueError(
                    f"at must not lie in the future, got {at!r}, {seconds - now:,.1f} seconds from "
                    f"now: it is {meaning_of_at(self._writer.clock.noted)}"
                )
            moment = round(max(seconds, 0.0) * MICRO)  # a time before its duel is refused later
        return Tell(id, winner, moment)

    # Looking.

    def standing(self, confidence: float | None = None) -> LiveStanding:
        """Return the estimates, the leader and the declared winner, from what is in the store now.

        Silence that is due now is included, and nothing is written: the next `ask`, `tell` or
        `settle` writes it.

        Parameters
        ----------
        confidence : float, optional
            The probability with which the intervals hold.

        Returns
        -------
        LiveStanding
            The standing.
        """
        with self.reading() as (connection, head):
            moment = self._writer.read_time(connection, head)
            state = read_settled(connection, head, moment)
            self._writer.has_shown_winner |= end_of(state.head) != end_of(head)
            gap = read_gap(connection, state, moment / MICRO)
            found = stand(state, self.policy, self.latest, confidence, gap)
            return found.with_guardrails(read_guardrails(connection, state, moment))

    def history(self) -> History:
        """Return every duel that is kept, and its answer, for `duelay.assumptions`."""
        with self.reading() as (connection, head):
            return read_history(connection, ExperimentState.load(connection, head))

    def latest(self, n: int) -> History:
        """Return the latest duels and their answers.

        Parameters
        ----------
        n : int
            The largest number of duels.

        Returns
        -------
        History
            The duels.
        """
        with self.reading() as (connection, head):
            return read_history(connection, ExperimentState.load(connection, head), latest=n)

    def export(self, path: str | Path) -> Path:
        """Write every duel that the store still has as CSV or Parquet.

        Parameters
        ----------
        path : str or Path
            The path of the file, whose ending decides the format.

        Returns
        -------
        Path
            The path.
        """
        return write_history(self.history(), Path(path))

    @property
    def arms(self) -> tuple[str, ...]:
        """The names of all arms, those that are retired included."""
        with self.reading() as (connection, _):
            return read_arms(connection, self.id)

    @property
    def status(self) -> str:
        """``"running"``, ``"paused"`` or ``"finished"``."""
        with self.reading() as (_, head):
            return str(head["status"])

    @property
    def booking(self) -> str:
        """``"running"`` or ``"held"``."""
        with self.reading() as (_, head):
            return "running" if head["held"] is None else "held"

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
    def writer(self) -> Writer:
        """What writes the requests of this process, for callers that are not threads."""
        return self._writer

    def now(self) -> float:
        """Return the time by the clock of the experiment, in seconds since the epoch."""
        return float(self._writer.clock())

    @contextlib.contextmanager
    def reading(self) -> Iterator[tuple[Connection, ExperimentRow]]:
        """Give a connection to read with, and the row of the experiment.

        Raises
        ------
        UnknownExperimentError : if the experiment has been deleted.
        """
        with self.store.reading(self._writer.patience) as connection:
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
        request : Request
            An ask, a tell or another request.

        Returns
        -------
        object
            The result of the request.
        """
        return self._writer.submit(request)

    def submit_all(self, requests: Sequence[Request]) -> None:
        """Write requests in one transaction; answers among them are the news of one moment.

        Parameters
        ----------
        requests : sequence of Request
            Asks, tells and other requests. Each has its own `outcome()` afterwards.
        """
        self._writer.submit(Batch(requests))

    def settle(self) -> None:
        """Book and close duels that are due, and evaluate the evidence."""
        self.submit(Settle())

    def settle_due(self) -> bool:
        """Settle as above, unless it would change nothing; return whether it did."""
        with self.reading() as (connection, head):
            is_wanted = is_due(connection, head, self._writer.read_time(connection, head))
        if is_wanted:
            self.settle()
        return is_wanted

    # Changing.

    def pause(self, fallback: str | None = None) -> None:
        """Ask no more; answers are still heard.

        Parameters
        ----------
        fallback : str, optional
            The arm that `ask` returns meanwhile. By default that of `create`; if there is none,
            `ask` raises `PausedError`.
        """
        self.submit(make_change(status="paused", fallback=fallback))

    def resume(self) -> None:
        """Go on after a pause."""
        self.submit(make_change(status="running"))

    def finish(self, arm: str | None = None) -> None:
        """End the experiment: `ask` returns one arm from now on, and answers are still heard.

        Parameters
        ----------
        arm : str, optional
            The arm; by default that of the verdict, or the leader before there is one.

        Raises
        ------
        InvalidValueError
            If there is no such arm, or it is retired.
        """
        self.submit(make_change(status="finished", arm=arm))

    def reopen(self) -> None:
        """Go on with an experiment that was finished; its evidence is kept, and errors do not grow.

        A verdict still holds, and a budget that was spent is spent.
        """
        self.submit(make_change(status="running"))

    def archive(self, *, archived: bool = True) -> None:
        """Leave an experiment that is finished out of lists.

        Parameters
        ----------
        archived : bool
            False puts it on the lists again, as does `reopen`.
        """
        self.submit(make_change(archived=checks.yes_or_no("archived", archived)))

    def hold_booking(self) -> None:
        """Enter no duels into the evidence or a guard-rail until `release_booking` is called.

        Use it when answers cannot be told for a while: hold, tell what has waited in any order, and
        release. Until then an answer without a time of its own counts as if it had come when the
        hold began. Do not decide by who is ahead when to hold or to release.
        """
        self.submit(make_change(booking="held"))

    def release_booking(self) -> None:
        """Go on entering duels into the evidence."""
        self.submit(make_change(booking="running"))

    def add_arm(self, name: str) -> None:
        """Add an arm, or bring a retired arm back with its earlier duels.

        A declaration is withdrawn. For an arm that is there already, nothing changes.

        Parameters
        ----------
        name : str
            A new name, or the name of a retired arm.
        """
        self.submit(make_change(add_arms=[name]))

    def cost_of_arm(self, name: str | None = None) -> ArmCostReport:
        """Return a forecast of what a further arm costs until a verdict; nothing is changed.

        How good a new arm is, is not known. So the forecast draws its strength from what arms
        usually are like, and the strengths of the others from the answers so far, and compares the
        duels until a verdict with the arm and without it. The ends of a range hold in four
        experiments of five, without a guarantee.

        Parameters
        ----------
        name : str, optional
            The name of the arm. A retired arm would come back with its earlier duels.

        Returns
        -------
        ArmCostReport
            `duels`, `days` and `left`, and `words`, a sentence, which `print` shows.
        """
        return report_cost(self.standing(), self.policy, name)

    def retire_arm(self, name: str) -> None:
        """Stop asking an arm; answers to its open duels still count. At least two arms must remain.

        A declaration is withdrawn, and made again where the evidence over the arms that remain
        suffices. For an arm that is retired already, nothing changes.

        Parameters
        ----------
        name : str
            The name of an arm.

        Raises
        ------
        InvalidValueError
            If there is no such arm, or only two are left.
        """
        self.submit(make_change(retire_arms=[name]))

    def export_events(self, path: str | Path) -> Path:
        """Write the events of guard-rails whose duels are kept as CSV.

        Its columns are `duel` (its number, from 1 in the order of asking), `metric`, `arm`, `at`
        in seconds since the epoch, and `late`.

        Parameters
        ----------
        path : str or Path
            The file, which is replaced.

        Returns
        -------
        Path
            The path.
        """
        path = Path(path)
        with self.reading() as (connection, _):
            arms = read_arms(connection, self.id)
            write_whole(path, write_events(connection, self.id, arms).encode())
        return path

    def add_guardrail(self, metric: str, bound: float | None = None, within: Any = None) -> None:
        """Count another event of duels from now on; see `create`.

        Parameters
        ----------
        metric : str
            The name of the event.
        bound : float, optional
            The excess over the baseline above which an alarm is raised; None to measure only.
        within : Duration, timedelta or str, optional
            The age up to which an event counts; by default the window.
        """
        self.submit(make_change(add_guardrails={metric: {"bound": bound, "within": within}}))

    def delete(self) -> None:
        """Remove the experiment and all its duels from the store, for ever."""
        with self.writing() as connection:
            catalog.delete_experiment(connection, self.id)

    def close(self) -> None:
        """Close the connections of this process; nothing is lost without it."""
        self.store.close()

    def __enter__(self) -> Experiment:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Experiment({self.store.name!r}, {self.name!r}, {self.policy})"
