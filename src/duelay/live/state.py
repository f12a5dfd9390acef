"""The state of one experiment in the memory of a process, read from the store and written back.

It holds the counters and the evidence of every ordered pair as arrays. The evidence is the same
`EProcess` that a player has, so that the same kernels update and evaluate it and choose pairs. Each
row of `pairs` has the version at which it was written; a process reads again what others have
written since. A process locks the row of the experiment before it changes the state. So it has the
latest version, and it writes its changes in the same transaction.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, delete, select

from duelay import text
from duelay._core.duration import Duration
from duelay.inference.leader import leader_by_bets
from duelay.ledger import Ledger, open_ledger
from duelay.ledger.arms import change_arm, reopen
from duelay.ledger.evidence.eprocess import PATH, EProcess, start_eprocess
from duelay.ledger.evidence.margin import VERDICTS
from duelay.ledger.evidence.stored_duels import doubt_anew, look_now, touch_all
from duelay.ledger.evidence.winner_threshold import NOBODY, needed
from duelay.live.storage import schema, statements
from duelay.live.storage.rows import ExperimentRow
from duelay.live.storage.schema import MICRO
from duelay.live.storage.time_buckets import TimeBuckets, merge, wide_enough
from duelay.logs.arm_changes import Change, joined_of, present_of

_OF_EPROCESS = ("wins", "lead", "n", "n_open", "log_evidence", "best", "seen", "log_bar",
                "best_bar")  # fmt: skip
_OF_TIES = ("tie_near", "tie_far")  # the last axis of `tie_wealth`
_AT_LOOKS = ("log_evidence", "best", "seen", "log_bar", "best_bar")  # what a look may change
_OF_LEDGER = ("plays", "conversions")
_SCALARS = {  # columns of `experiments`, and the fields of `EProcess` that they keep
    name: name
    for name in ("kappa", "refit", "n_answered", "n_heard", "delays", "declared", "stride")
} | {"n_matured": "n_booked"}


class PairCounts(NamedTuple):
    """Columns of `pairs` that neither the ledger nor the evidence has, (K, K) each."""

    answers: NDArray[np.int64]
    late: NDArray[np.int64]
    repeats: NDArray[np.int64]
    repeated_answers: NDArray[np.int64]
    repeated_conversions: NDArray[np.int64]
    closed: NDArray[np.int64]
    closed_conversions: NDArray[np.int64]
    closed_answers: NDArray[np.int64]
    passed: NDArray[np.int64]  # when the evidence first was enough; 0 if it never was
    given: NDArray[np.float64]
    closed_given: NDArray[np.float64]


_COLUMNS = (*PairCounts._fields, *_OF_EPROCESS, *_OF_TIES, *_OF_LEDGER)


@dataclasses.dataclass(frozen=True)
class Settings:
    """What `create` was told of an experiment; it does not change."""

    id: int
    name: str
    goal: str
    policy: str
    feedback: str
    display: str
    window: Duration | None
    error: float
    self_duels: bool
    share: float
    forget_after: Duration | None
    lag: int  # microseconds
    margin: float | None
    ends: str | None
    budget: int | None
    until: int | None  # microseconds
    created: int

    @property
    def is_vote(self) -> bool:
        """Whether both outcomes are told."""
        return self.feedback == "votes"

    @property
    def shows_one(self) -> bool:
        """Whether the first arm of a duel is shown alone."""
        return self.display == "one"

    @property
    def window_in_micro(self) -> int | None:
        """The window in microseconds."""
        return None if self.window is None else round(float(self.window) * MICRO)


class ExperimentState:
    """Counters and evidence of one experiment, as of one version."""

    def __init__(self, settings: Settings, head: ExperimentRow, arms: tuple[str, ...],
                 changes: tuple[Change, ...]) -> None:  # fmt: skip
        self.settings, self.arms, self.changes = settings, arms, changes
        self.head = cast(ExperimentRow, dict(head))
        self.version = -1
        self.ledger = _start(settings, arms, changes)
        self.counts = _start_counts(len(arms))
        self.dirty: set[tuple[int, int]] = set()  # ordered pairs that are to be written
        self.time_buckets = TimeBuckets(head["created"], head["width"])  # for the store
        self._written = 0  # how many moments of the path the store has ...
        self._stride = 0  # ... and their stride

    @property
    def eprocess(self) -> EProcess:
        """The evidence."""
        assumed: EProcess = self.ledger.assumed
        return assumed

    @property
    def winner(self) -> int | None:
        """The arm of the verdict: it is declared, or with a margin good enough or equivalent."""
        winner = int(self.eprocess.winner[0])
        return None if winner == NOBODY else winner

    @property
    def verdict(self) -> str:
        """The verdict, as `LiveStanding` has it."""
        if self.winner is not None:
            return VERDICTS[int(self.eprocess.verdict[0])]
        return "running" if self.head["stopped"] is None else "undecided"

    def arm_shown_alone(self, moment: int) -> int | None:
        """Return the arm that an ask gets alone; None if it gets a duel, or an error in a pause."""
        head = self.head
        if head["status"] == "finished":
            return head["chosen"]
        if self.winner is not None or head["stopped"] is not None or is_spent(head, moment):
            return leader_by_bets(self.ledger)
        return head["fallback"] if head["status"] == "paused" else None

    @property
    def present(self) -> NDArray[np.bool_]:
        """(K,): the arms that have not been retired."""
        return present_of(self.arms, self.changes)

    def array(self, name: str) -> NDArray[Any]:
        """Return a column of `pairs` as an array over all ordered pairs, (K, K)."""
        if name in _OF_TIES:
            return np.asarray(self.eprocess.tie_wealth[:, :, _OF_TIES.index(name)])
        if name in _OF_EPROCESS:
            return np.asarray(getattr(self.eprocess, name))
        return np.asarray(getattr(self.ledger if name in _OF_LEDGER else self.counts, name))

    # Reading.

    @classmethod
    def load(cls, connection: Connection, head: ExperimentRow) -> ExperimentState:
        """Read the state of an experiment."""
        experiment = head["id"]
        arms = read_arms(connection, experiment)
        state = cls(read_settings(head), head, arms, read_changes(connection, experiment, arms))
        state._read_path(connection)
        state._read_pairs(connection)
        state._take_head(head)
        return state

    def renew(self, connection: Connection, head: ExperimentRow) -> ExperimentState:
        """Bring it to the version of `head`; return it, or a new state if arms came or went."""
        if head["changes"] != len(self.changes) or self.version < 0:
            return ExperimentState.load(connection, head)
        if head["version"] != self.version:
            self._read_pairs(connection)
            self._read_path(connection)
        self._take_head(head)
        return self

    def _take_head(self, head: ExperimentRow) -> None:
        self.head, self.version = cast(ExperimentRow, dict(head)), head["version"]
        self.time_buckets = TimeBuckets(head["created"], head["width"])
        for name, field in _SCALARS.items():
            getattr(self.eprocess, field)[0] = head[name]  # type: ignore[literal-required]
        self.eprocess.winner[0] = NOBODY if head["winner"] is None else head["winner"]
        self.eprocess.verdict[0] = head["verdict"]

    def _read_pairs(self, connection: Connection) -> None:
        pairs = schema.pairs
        rows = connection.execute(
            select(pairs).where(
                pairs.c.experiment == self.settings.id, pairs.c.version > self.version
            )
        ).all()
        if rows:  # column by column: with 300 arms there may be 90,000 rows
            columns = dict(zip(pairs.c.keys(), zip(*rows, strict=True), strict=True))
            i, j = (np.array(columns[name], dtype=np.int64) for name in ("first", "second"))
            for name in _COLUMNS:
                self.array(name)[i, j] = [value or 0 for value in columns[name]]
            wealth = np.frombuffer(b"".join(columns["wealth"]), dtype="<f8")
            self.eprocess.wealth[i, j] = wealth.reshape(len(rows), -1)
            touch_all(self.eprocess, i, j)  # the next look takes in what others have written
        # Pairs are chosen, and a leader is named, by doubts: also before a look.
        doubt_anew(self.eprocess)

    def _read_path(self, connection: Connection) -> None:
        eprocess, paths = self.eprocess, schema.paths
        rows = connection.execute(
            select(paths.c.tick, paths.c.evidence)
            .where(paths.c.experiment == self.settings.id)
            .order_by(paths.c.tick)
        ).all()[-PATH:]
        for place, row in enumerate(rows):
            values = np.frombuffer(row.evidence, dtype="<f8")
            eprocess.path_tick[place] = row.tick
            eprocess.path[place] = 0.0
            eprocess.path[place, : len(values)] = values
        eprocess.path_size[0] = self._written = len(rows)
        self._stride = self.head["stride"]

    # Changing.

    def widen_time_buckets(self, connection: Connection, moment: int) -> None:
        """Let the buckets of time reach a moment, before anything is counted."""
        created, width = self.head["created"], self.head["width"]
        wide = wide_enough(created, width, moment)
        if wide != width:
            self.head |= {"width": wide, "swept": 0}
            self.time_buckets = TimeBuckets(created, wide)
            times = schema.times
            merge(
                connection, times, self.time_buckets.minutes, times.c.experiment == self.settings.id
            )

    def merge_time_buckets(self, connection: Connection) -> None:
        """Merge narrower buckets of the pairs of one more arm: all arms at once take too long."""
        arm, pairs = self.head["swept"], schema.pair_times
        if arm < len(self.arms):
            is_own = pairs.c.experiment == self.settings.id
            merge(connection, pairs, self.time_buckets.minutes, is_own, pairs.c.first == arm)
            self.head["swept"] += 1

    def touch(self, i: int, j: int) -> None:
        """Note that an ordered pair and its reverse must be written: a duel changes both."""
        self.dirty |= {(i, j), (j, i)}

    def look_at_evidence(self, moment: int) -> None:
        """Evaluate the evidence when all news of a moment is in; a winner may be declared."""
        eprocess = self.eprocess
        before = [getattr(eprocess, name).copy() for name in _AT_LOOKS]
        look_now(eprocess, self.head["asked"] + 1)
        changed = np.zeros(eprocess.best.shape, dtype=bool)
        for name, values in zip(_AT_LOOKS, before, strict=True):
            changed |= values != getattr(eprocess, name)
        for i, j in np.argwhere(changed).tolist():
            self.dirty.add((i, j))
            if not self.counts.passed[i, j] and eprocess.best[i, j] >= eprocess.level:
                if eprocess.best[i, j] >= needed(eprocess, i, j):
                    self.counts.passed[i, j] = moment
        self.head["verdict"] = int(eprocess.verdict[0])
        winner = self.winner
        if winner != self.head["winner"]:
            self.head |= {"winner": winner, "declared_at": None if winner is None else moment}
            # The declaration may have replaced the latest moment of the path: write it again.
            self._written = min(self._written, int(eprocess.path_size[0]) - 1)

    def stop_if_spent(self, moment: int) -> None:
        """Stop without a verdict once the budget is spent, or the date has come."""
        head = self.head
        if head["stopped"] is None and self.winner is None and is_spent(head, moment):
            head["stopped"] = moment

    def change(self, arm: str, kind: str, moment: int) -> None:
        """Add, bring back or retire an arm; a declaration is withdrawn."""
        change = Change(self.head["asked"], arm, kind, moment / MICRO)
        if arm not in self.arms:
            self.arms = (*self.arms, arm)
            self.counts = PairCounts._make(np.pad(values, (0, 1)) for values in self.counts)
        number, joins = self.arms.index(arm), kind == "joined"
        self.ledger = change_arm(self.ledger, number, joins=joins, error=self.settings.error)
        self.changes = (*self.changes, change)
        self.head |= {
            "winner": None, "verdict": 0, "declared_at": None, "changes": len(self.changes),
        }  # fmt: skip

    # Writing.

    def save(self, connection: Connection, moment: int) -> None:
        """Write what has changed; the caller holds the experiment's row."""
        self.head["moment"] = moment
        if self.dirty:
            self.head["version"] += 1
            statements.upsert(connection, schema.pairs, self._rows())
            self.dirty = set()
        self.time_buckets.save(connection, self.settings.id)
        for name, field in _SCALARS.items():
            value = getattr(self.eprocess, field)[0].item()
            self.head[name] = value  # type: ignore[literal-required]
        self._write_path(connection, moment)
        head: dict[str, Any] = {**self.head}
        values = {name: head[name] for name in statements.CHANGING}
        statements.run(connection, statements.WRITE_HEAD, values | {"b_id": self.settings.id})
        self.version = self.head["version"]

    def _rows(self) -> list[dict[str, Any]]:
        """Return the rows of the pairs that are to be written."""
        arrays = [(name, self.array(name)) for name in _COLUMNS]
        rows = []
        for i, j in sorted(self.dirty):
            row = {name: values[i, j].item() for name, values in arrays}
            row["passed"] = row["passed"] or None
            row["experiment"], row["first"], row["second"] = self.settings.id, i, j
            row["wealth"] = to_bytes(self.eprocess.wealth[i, j])
            row["version"] = self.head["version"]
            rows.append(row)
        return rows

    def _write_path(self, connection: Connection, moment: int) -> None:
        """Write the moments of the path that are new; drop those that the path has dropped."""
        eprocess, paths = self.eprocess, schema.paths
        size, stride = int(eprocess.path_size[0]), int(eprocess.stride[0])
        if size == self._written and stride == self._stride:
            return
        if stride != self._stride and self._written:
            kept = [int(tick) for tick in eprocess.path_tick[:size]]
            connection.execute(
                delete(paths).where(
                    paths.c.experiment == self.settings.id, paths.c.tick.not_in(kept)
                )
            )
            self._written = size - 1
        rows = [
            {
                "experiment": self.settings.id,
                "tick": int(eprocess.path_tick[place]),
                "at": moment,
                "evidence": to_bytes(eprocess.path[place]),
            }
            for place in range(self._written, size)
        ]
        statements.upsert(connection, paths, rows)
        self._written, self._stride = size, stride


def end_of(head: ExperimentRow) -> tuple[int | None, int, int | None]:
    """Return what has ended an experiment: the arm and kind of the verdict, or when it stopped."""
    return head["winner"], head["verdict"], head["stopped"]


def is_spent(head: ExperimentRow, moment: int) -> bool:
    """Whether no more duels are asked, by the row of an experiment."""
    budget, until = head["budget"], head["until"]
    return bool(
        (budget is not None and head["asked"] >= budget) or (until is not None and moment >= until)
    )


def read_arms(connection: Connection, experiment: int) -> tuple[str, ...]:
    """Return the names of all arms."""
    names = connection.execute(
        select(schema.arms.c.name)
        .where(schema.arms.c.experiment == experiment)
        .order_by(schema.arms.c.number)
    )
    return tuple(row.name for row in names)


def read_changes(
    connection: Connection, experiment: int, arms: tuple[str, ...]
) -> tuple[Change, ...]:
    """Return the arms that came and went."""
    rows = connection.execute(
        select(schema.changes)
        .where(schema.changes.c.experiment == experiment)
        .order_by(schema.changes.c.place)
    )
    return tuple(Change(row.tick, arms[row.arm], row.kind, row.at / MICRO) for row in rows)


def to_bytes(values: NDArray[np.float64]) -> bytes:
    """Return numbers as the store keeps them."""
    return np.asarray(values, dtype="<f8").tobytes()


def read_settings(head: ExperimentRow) -> Settings:
    """Return what `create` was told, from the row of an experiment."""
    row: dict[str, Any] = {**head}
    values = {field.name: row[field.name] for field in dataclasses.fields(Settings)}
    for name in ("window", "forget_after"):
        length = values[name]
        values[name] = None if length is None else Duration.of(length / MICRO)
    return Settings(**values)


def start_evidence(settings: Settings, n_arms: int) -> EProcess:
    """Return the evidence before the first duel."""
    window = None if settings.window is None else float(settings.window)
    policy: Any = None
    if settings.policy.startswith("decide"):
        policy = text.parse("policy", settings.policy)
    eprocess = start_eprocess(
        settings.error, window, n_arms, by_clock=True, first_wait=getattr(policy, "wait", None),
        margin=settings.margin, end=settings.ends or "equivalent",
        shows_one=settings.shows_one,
        # What is stored: experiments of earlier versions have a margin, and bets of all sizes.
        planned=getattr(policy, "planned", None),
    )  # fmt: skip
    return eprocess._replace(is_vote=settings.is_vote)


def _start(settings: Settings, arms: tuple[str, ...], changes: tuple[Change, ...]) -> Ledger:
    """Return an empty ledger with evidence, for these arms."""
    eprocess = start_evidence(settings, len(arms))
    if changes:
        joined, present = joined_of(arms, changes), present_of(arms, changes)
        eprocess = reopen(eprocess._replace(joined=joined, present=present), settings.error)
    return open_ledger(eprocess, len(arms), "coin", self_duels=settings.self_duels)


def _start_counts(k: int) -> PairCounts:
    kinds = {"given": np.float64, "closed_given": np.float64}
    return PairCounts._make(
        np.zeros((k, k), dtype=kinds.get(name, np.int64)) for name in PairCounts._fields
    )
