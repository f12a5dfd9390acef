"""Visitors of a live experiment, on a clock that goes as fast as they do."""

import heapq

import numpy as np
from sqlalchemy import text

from duelay.live.state import ExperimentState
from duelay.live.storage.store import VERSIONS
from duelay.live.writes.requests import Settle


class Hours:
    """A clock that stands until somebody moves it."""

    def __init__(self, now=1_700_000_000.0):
        self.now = now

    def __call__(self):
        return self.now

    def pass_by(self, seconds):
        self.now = round(self.now + seconds, 6)


def settle(experiment):
    """Settle what is due now, and look."""
    experiment._writer.submit(Settle())


def browser(experiment, hours, n, mu, seed=0, *, every=10.0, mean=300.0, never=0.2, votes=False,
          before=lambda: None, units=lambda k: None):  # fmt: skip
    """Let n visitors come; each answers after a while, or never. Stop when a winner is declared.

    `before` is called before each visit, when all that was due has been told. Return how many duels
    were shown.
    """
    rng, due = np.random.default_rng(seed), []
    arms = list(experiment.arms)
    for k in range(n):
        arrives = hours.now + rng.exponential(every)
        while due and due[0][0] <= arrives:
            hours.now, id, winner = heapq.heappop(due)
            experiment.tell(id, winner)
        hours.now = round(arrives, 6)
        before()
        duel = experiment.ask(unit=units(k))
        if duel.settled:
            return k
        first_wins = rng.random() < mu[arms.index(duel.first)][arms.index(duel.second)]
        delay, comes = rng.exponential(mean), rng.random() >= never
        if comes and (votes or first_wins):
            winner = None if not votes else ("first" if first_wins else "second")
            heapq.heappush(due, (round(hours.now + delay, 6), duel.id, winner))
    return n


def book_of(experiment):
    """What the store has of it."""
    with experiment.store.reading() as connection:
        return ExperimentState.load(connection, experiment.writer.read_head(connection))


def to_schema_five(store):
    """Take away what the migrations after the fifth make."""
    of_pairs = ("tie_near", "tie_far", "log_bar", "best_bar")
    columns = {
        "experiments": ("margin", "ends", "budget", "until", "fallback", "chosen", "archived",
                        "stopped", "verdict", "display"),
        "pairs": of_pairs, "folded_pairs": of_pairs[:2],
    }  # fmt: skip
    with store.writing() as connection:
        for table, names in columns.items():
            for name in names:
                connection.execute(text(f"ALTER TABLE {table} DROP COLUMN {name}"))
        for table in ("metrics", "metric_events", "metric_counts", "folded_metric_counts"):
            connection.execute(text(f"DROP TABLE {table}"))
        connection.execute(text(f"UPDATE {VERSIONS} SET version_num = '0005'"))


def to_schema_four(store):
    """Take away what the fifth migration makes, and spoil the evidence that it computes."""
    to_schema_five(store)
    with store.writing() as connection:
        for column in ("wait", "stake"):
            connection.execute(text(f"ALTER TABLE duels DROP COLUMN {column}"))
        for column in ("lag", "held", "earlier"):
            connection.execute(text(f"ALTER TABLE experiments DROP COLUMN {column}"))
        connection.execute(text("ALTER TABLE duels ADD COLUMN settled BIGINT"))
        connection.execute(text("UPDATE duels SET settled_by = 1, odds = 0.5"))
        connection.execute(text(
            "UPDATE experiments SET matured = asked, n_matured = 0, n_answered = 0, n_heard = 0, "
            "delays = 0, kappa = 0.1, refit = 0"
        ))  # fmt: skip
        connection.execute(text(
            "UPDATE pairs SET wins = 0, lead = 0, n = 0, n_open = 0, best = 9, log_evidence = 9"
        ))  # fmt: skip
        connection.execute(text(f"UPDATE {VERSIONS} SET version_num = '0004'"))
