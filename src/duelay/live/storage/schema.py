"""The tables of a store. A change here needs a migration: `migrations/versions` has them all.

Times are whole microseconds since the epoch. Arms are numbers, from 0 on, in the order in which
they came. A row of an ordered pair is about `first` over `second`, shown in that order.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)

metadata = MetaData()
MICRO = 1_000_000  # in a second
MINUTE = 60_000_000  # microseconds


def _of_experiment(*, primary_key: bool = True) -> Column[Any]:
    return Column(
        "experiment", ForeignKey("experiments.id"), primary_key=primary_key, nullable=False
    )


def _number(name: str, **more: Any) -> Column[Any]:
    return Column(name, Integer, autoincrement=False, **more)


def _count(name: str) -> Column[Any]:
    return Column(name, BigInteger, nullable=False, default=0)


def _sum(name: str) -> Column[Any]:
    return Column(name, Double, nullable=False, default=0.0)


def _added(name: str) -> Column[Any]:
    return Column(name, Double, nullable=False, default=0.0, server_default=text("0"))


def _time(name: str, *, nullable: bool = True) -> Column[Any]:
    return Column(name, BigInteger, nullable=nullable)


experiments = Table(
    "experiments",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    # What was said when it was made.
    Column("goal", String(16), nullable=False),
    Column("policy", Text, nullable=False),
    Column("feedback", String(16), nullable=False),
    _time("window"),
    Column("error", Double, nullable=False),
    Column("self_duels", Boolean, nullable=False),
    Column("share", Double, nullable=False),  # of asks that get a duel once a winner is declared
    _time("forget_after"),
    # How much later than due duels are booked: answers may be told as long after they came.
    Column("lag", BigInteger, nullable=False, server_default=text("0")),
    _time("created", nullable=False),
    Column("margin", Double),  # the smallest difference that matters; NULL without one
    Column("ends", String(16)),  # with a margin, what ends it: "good_enough" or "equivalent"
    Column("budget", BigInteger),  # the duels after which it stops; NULL for no limit
    _time("until"),  # when it stops
    # Whether both arms of a duel are shown, or the first one alone: "pair" or "one".
    Column("display", String(8), nullable=False, server_default=text("'pair'")),
    # NULL for the clock of the store; "given" for a function of the programs; or "1000x".
    Column("clock", String(32)),
    Column("status", String(16), nullable=False),  # running, paused or finished
    _number("fallback"),  # the arm that is shown while it is paused
    _number("chosen"),  # the arm with which it was finished
    _time("archived"),  # since when lists leave it out
    # What has happened. Whoever writes holds this row.
    _time("moment", nullable=False),  # the latest time known; it never runs backwards
    _count("asked"),  # duels
    _count("heard"),  # answers, late ones apart
    _count("backwards"),  # how often a process was behind the latest time known ...
    _sum("furthest"),  # ... and by how many seconds, at the most
    _count("version"),  # of the counters and the evidence: one more at each change
    _count("changes"),  # arms that came or went
    _count("matured"),  # the number of the last duel that is booked
    _count("closed"),  # the number of the last duel whose window has closed
    _count("forgotten"),  # the number of the last duel whose row is gone
    _time("settled", nullable=False),  # when duels were last settled and the evidence looked at
    # The state of `duelay.ledger.evidence.eprocess` that belongs to no pair.
    _sum("kappa"),
    _count("refit"),
    _count("n_matured"),
    _count("n_answered"),
    _count("n_heard"),
    _sum("delays"),
    _number("winner"),  # the arm of the verdict
    # What is said of it: `duelay.ledger.evidence.margin` has the words.
    Column("verdict", SmallInteger, nullable=False, server_default=text("0")),
    _count("declared"),  # how many duels had been asked when it was declared
    _time("declared_at"),
    _count("stride"),  # of the path
    # The width of a bucket of time: a minute, doubled as often as needed. See
    # `duelay.live.storage.time_buckets`.
    Column("width", BigInteger, nullable=False, server_default=text(str(MINUTE))),
    # Arms with a number below this have their rows of `pair_times` at this width already.
    Column("swept", Integer, nullable=False, server_default=text("0")),
    _time("stopped"),  # when the budget was spent or the date had come, without a verdict
    _time("held"),  # since when booking is held; NULL while it is not
    # How many duels were asked before their `wait` and `stake` were kept.
    Column("earlier", BigInteger, nullable=False, server_default=text("0")),
)

arms = Table(
    "arms",
    metadata,
    _of_experiment(),
    _number("number", primary_key=True),
    Column("name", Text, nullable=False),
    UniqueConstraint("experiment", "name"),
)

changes = Table(  # arms that came and went
    "changes",
    metadata,
    _of_experiment(),
    _number("place", primary_key=True),
    _number("arm", nullable=False),
    Column("kind", String(16), nullable=False),
    _count("tick"),  # the duels asked by then
    _time("at"),
)

duels = Table(
    "duels",
    metadata,
    Column("id", String(40), primary_key=True),
    _of_experiment(primary_key=False),
    Column("number", BigInteger, nullable=False),  # 1, 2, ... in the order in which they were asked
    _number("first", nullable=False),
    _number("second", nullable=False),
    _time("asked", nullable=False),
    Column("unit", Text),
    Column("key", Text),
    Column("enters", Boolean, nullable=False),  # whether it counts: a repeat does not
    _time("told"),  # when it was answered, within the window
    Column("place", BigInteger),  # of the answer: 1, 2, ... in the order in which they were told
    Column("first_won", Double),  # 1, 0, or 1/2 for a tie
    _time("late"),  # when it was first answered after the window
    # W_s and kappa_s, fixed when it was asked; NULL for a duel that is no bet.
    Column("wait", BigInteger),
    Column("stake", Double),
    Column("settled_by", SmallInteger),  # 1 an answer by age `wait`, 2 silence, when it is booked
    Column("odds", Double),  # in the choice of pairs: 1 for an answer, kappa for a silence
    Index("duels_by_number", "experiment", "number", unique=True),
    sqlite_with_rowid=False,
)
Index("duels_by_place", duels.c.experiment, duels.c.place, unique=True,
      sqlite_where=duels.c.place.is_not(None),
      postgresql_where=duels.c.place.is_not(None))  # fmt: skip
Index("duels_by_unit", duels.c.experiment, duels.c.unit, duels.c.number,
      sqlite_where=duels.c.unit.is_not(None),
      postgresql_where=duels.c.unit.is_not(None))  # fmt: skip
Index("duels_by_key", duels.c.experiment, duels.c.key, unique=True,
      sqlite_where=duels.c.key.is_not(None),
      postgresql_where=duels.c.key.is_not(None))  # fmt: skip


def _of_pair() -> list[Column[Any]]:
    """What is counted and added up for an ordered pair."""
    return [
        _of_experiment(),
        _number("first", primary_key=True),
        _number("second", primary_key=True),
        _count("plays"),
        _count("conversions"),  # wins of the first, heard and counted
        _count("answers"),  # with votes, wins of the second and ties, too
        _count("late"),  # duels that were answered after the window
        _count("repeats"),  # of the plays, those that do not enter evidence and law
        _count("repeated_answers"),
        _count("repeated_conversions"),
        _sum("given"),  # wins of the first in the answers that enter; a tie is 1/2
        # Sums over booked duels, of a bettor on `first` over `second`; x is as in `audit.recount`.
        Column("wealth", LargeBinary, nullable=False),  # log (1 + 2 x g), for each g
        _sum("wins"),
        # With a margin, of a tie bettor on `first` over `second`, with h = epsilon and 2 epsilon.
        _added("tie_near"),
        _added("tie_far"),
        # Sums over all that is heard, by which pairs are chosen.
        _sum("lead"),
        _sum("n"),
    ]


pairs = Table(
    "pairs",
    metadata,
    *_of_pair(),
    _count("closed"),  # duels that enter and are closed, in this order ...
    _count("closed_conversions"),  # ... and those of them that converted
    _count("closed_answers"),
    _sum("closed_given"),
    _count("n_open"),  # duels that enter, not booked and not answered in time, in either order
    _sum("log_evidence"),  # at the last look
    _sum("best"),  # the most that it ever was at a look
    _sum("seen"),  # `wins` at the last look
    _added("log_bar"),  # with a margin, log Ebar at the last look ...
    _added("best_bar"),  # ... and the most that it ever was at a look
    _time("passed"),  # when `best` first reached what a declaration needs
    _count("version"),
)

# What duels whose rows are gone have added to `pairs`. `folded_ages` is the same for `ages`.
folded_pairs = Table("folded_pairs", metadata, *_of_pair())


def _of_age() -> list[Column[Any]]:
    """Duels whose window has closed, by the age of their answer."""
    return [
        _of_experiment(),
        _number("bucket", primary_key=True),  # of `duelay.ledger.delay_models.continuous_time`
        _count("asked"),  # duels that had no answer when the bucket began
        _count("answered"),  # duels that were answered in the bucket
    ]


ages = Table("ages", metadata, *_of_age())
folded_ages = Table("folded_ages", metadata, *_of_age())

times = Table(  # duels and answers by bucket of time
    "times",
    metadata,
    _of_experiment(),
    _number("minute", primary_key=True),  # the bucket begins so long after the creation
    _number("arm", primary_key=True),  # -1 for all
    _count("asked"),  # duels asked in the bucket; for an arm, how often it was shown
    _count("answered"),  # how many of them are answered by now; always 0 for an arm
    _count("heard"),  # answers told in the bucket; always 0 for an arm
    sqlite_with_rowid=False,
)

pair_times = Table(  # counts of `pairs`, by bucket of time: all buckets add up to them
    "pair_times",
    metadata,
    _of_experiment(),
    _number("first", primary_key=True),
    _number("second", primary_key=True),
    _number("minute", primary_key=True),  # of asking for plays, of telling for the rest
    _count("plays"),
    _count("conversions"),
    _count("answers"),
    _sum("given"),
    sqlite_with_rowid=False,
)

seen_units = Table(  # units whose duels are gone, and the pairs that they have had
    "seen_units",
    metadata,
    _of_experiment(),
    Column("unit", Text, primary_key=True),
    _number("low", primary_key=True),
    _number("high", primary_key=True),
    sqlite_with_rowid=False,
)

paths = Table(  # the evidence of each arm at moments of the past
    "paths",
    metadata,
    _of_experiment(),
    Column("tick", BigInteger, primary_key=True, autoincrement=False),
    _time("at"),
    Column("evidence", LargeBinary, nullable=False),
)

events = Table(  # what webhooks tell
    "events",
    metadata,
    Column("id", Integer, primary_key=True),
    _of_experiment(primary_key=False),
    Column("kind", String(16), nullable=False),  # one of `duelay.live.events.KINDS`
    _time("at", nullable=False),
    Column("about", Text, nullable=False),  # the arm, the name of the test, or how long
    Column("words", Text, nullable=False),
    Index("events_by_experiment", "experiment", "id"),
    sqlite_autoincrement=True,  # receivers know an event by its id: none is used again
)

webhooks = Table(
    "webhooks",
    metadata,
    Column("id", String(40), primary_key=True),
    _of_experiment(primary_key=False),
    Column("url", Text, nullable=False),
    Column("secret", Text, nullable=False),
    _time("created", nullable=False),
    _count("sent"),  # the last event that it has received
    _count("tries"),  # of the next one
    _time("due", nullable=False),  # nothing is sent before this time
    Column("trouble", Text),  # why the last try failed
)

keys = Table(
    "keys",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("name", Text, nullable=False),
    Column("hash", String(64), nullable=False),
    Column("scopes", Text, nullable=False),  # ask, tell, administer; with spaces between them
    Column("experiments", Text),  # names, as JSON; NULL for all
    _time("created", nullable=False),
    _time("revoked"),
)

leases = Table(  # which server does what only one at a time may do
    "leases",
    metadata,
    Column("name", String(40), primary_key=True),
    Column("holder", String(40), nullable=False),
    _time("until", nullable=False),
)

# Other events of a duel: `duelay.live.guardrails`.
metrics = Table(
    "metrics",
    metadata,
    _of_experiment(),
    _number("number", primary_key=True),
    Column("name", Text, nullable=False),
    _number("baseline", nullable=False),  # the arm that the others are compared with
    Column("bound", Double),  # the excess over the baseline that is allowed; NULL to measure only
    Column("within", BigInteger, nullable=False),  # the age by which an event counts
    Column("since", BigInteger, nullable=False),  # duels asked before it was declared
    Column("booked", BigInteger, nullable=False),  # the number of the last duel that is booked
    Column("alarms", Text, nullable=False),  # JSON: when each arm had its first alarm
    UniqueConstraint("experiment", "name"),
)

metric_events = Table(  # of duels whose rows are there
    "metric_events",
    metadata,
    _of_experiment(),
    _number("metric", primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),  # of the duel
    _number("place", primary_key=True),  # of the arm: 0 the first, 1 the second
    _time("at", nullable=False),
    Column("late", Boolean, nullable=False),  # it came after the age `within`, and does not count
    sqlite_with_rowid=False,
)


def _of_metric() -> list[Column[Any]]:
    """What booked duels of an ordered pair have given."""
    return [
        _of_experiment(),
        _number("metric", primary_key=True),
        _number("first", primary_key=True),
        _number("second", primary_key=True),
        _count("shown"),
        _count("of_first"),  # duels with an event about the first arm
        _count("of_second"),
    ]


metric_counts = Table("metric_counts", metadata, *_of_metric())
# The part of `metric_counts` that is of duels whose rows are gone.
folded_metric_counts = Table("folded_metric_counts", metadata, *_of_metric())

TABLES = (
    arms, changes, duels, pairs, folded_pairs, ages, folded_ages, times, pair_times, seen_units,
    paths, events, webhooks, metrics, metric_events, metric_counts, folded_metric_counts,
)  # fmt: skip
