"""A commit that was not heard of, and one that failed: nothing is lost, and nothing done twice."""

import sqlite3
from contextlib import contextmanager

import pytest
from sqlalchemy import select, text
from sqlalchemy.exc import OperationalError

from duelay.live import Experiment, Store, StoreError, verify
from duelay.live.state import ExperimentState
from duelay.live.storage import schema
from duelay.live.writes.requests import Ask, Tell


class GoneError(Exception):
    """What a driver raises when its server is gone, by another name."""


@pytest.fixture
def experiment(store):
    with Experiment.create(store, "buttons", ["red", "green", "blue"]) as made:
        yield made


@pytest.fixture
def break_after(monkeypatch, experiment):
    """Let the connection break right after the next commits."""
    writing, left = Store.writing, [0]

    @contextmanager
    def broken(self, *words):
        with writing(self, *words) as connection:
            yield connection
        if left[0]:
            left[0] -= 1
            raise OperationalError("COMMIT", {}, GoneError(), connection_invalidated=True)

    def set_up(n):
        left[0] = n

    monkeypatch.setattr(Store, "writing", broken)
    monkeypatch.setattr("duelay.live.writes.writer._PAUSE", 0.01)
    return set_up


def count(experiment):
    """Return how many rows there are, and how many of them are answered."""
    with experiment.store.reading() as connection:
        told = connection.execute(select(schema.duels.c.told)).scalars().all()
    return len(told), sum(at is not None for at in told)


@pytest.mark.parametrize("n", [1, 3])
def test_a_call_whose_commit_was_not_heard_of_is_done_once(store, experiment, break_after, n):
    break_after(n)
    duel = experiment.ask()
    assert count(experiment) == (1, 0)
    break_after(n)
    assert experiment.tell(duel) == "counted"
    assert count(experiment) == (1, 1)
    break_after(n)
    assert experiment.tell(duel) == "repeated"
    assert int(experiment.standing().conversions.sum()) == 1
    assert verify(store) == ()


def test_a_group_whose_commit_was_not_heard_of_is_done_once(store, experiment, break_after):
    duels = [experiment.ask(unit=n, key=n) for n in range(5)]
    break_after(1)
    assert experiment.tell_all(duels) == ["counted"] * 5
    break_after(1)
    assert experiment.ask(unit="new") == experiment.ask(unit="new")
    assert count(experiment) == (6, 5)
    assert verify(store) == ()


def test_who_has_no_patience_left_calls_again_and_nothing_is_done_twice(store, break_after):
    experiment = Experiment.open(store, "buttons", patience=0.0)
    break_after(1)
    with pytest.raises(StoreError, match="does not answer"):
        experiment.ask(key="question")
    duel = experiment.ask(key="question")
    break_after(1)
    with pytest.raises(StoreError, match="does not answer"):
        experiment.tell(duel)
    assert experiment.tell(duel) == "repeated"
    assert count(experiment) == (1, 1)
    assert verify(store) == ()
    experiment.close()


@pytest.fixture
def failing(monkeypatch):
    """Let every commit fail, as long as it is entered, when all of it has been written."""
    save = ExperimentState.save

    def fail(self, connection, moment):
        save(self, connection, moment)
        raise OperationalError("COMMIT", {}, sqlite3.OperationalError("disk I/O error"))

    @contextmanager
    def fails():
        with monkeypatch.context() as patched:
            patched.setattr(ExperimentState, "save", fail)
            with pytest.raises(StoreError, match="does not answer.*: free some space"):
                yield

    return fails


def test_after_a_failed_commit_the_book_is_read_again(store, experiment, failing):
    duel = experiment.ask()
    with failing():
        experiment.ask()
    with failing():
        experiment.tell(duel)
    assert count(experiment) == (1, 0)
    assert experiment.tell(duel) == "counted"
    experiment.ask()
    assert count(experiment) == (2, 1)
    assert verify(store) == ()


def test_after_a_failed_commit_a_policy_has_not_heard_what_was_not_kept(store, failing):
    arms = ["red", "green", "blue"]
    with Experiment.create(store, "links", arms, goal="regret", freshness=0.0) as experiment:
        duels, writer = [experiment.ask() for _ in range(20)], experiment._writer
        other = next(duel for duel in duels if duel[1:3] != duels[0][1:3])
        with failing():  # an answer and a question that come together
            writer.commit([Tell(duels[0].id, None, None), Ask(None, None)])
        experiment.tell(other)
        experiment.ask()
        heard = writer._selector.replica._ledger.conversions
        assert heard.sum() == heard[arms.index(other.first), arms.index(other.second)] == 1


def test_every_connection_of_sqlite_waits_for_the_disk(tmp_path):
    store = Store(tmp_path / "duels.db")
    with store.reading() as one, store.reading() as other:
        for connection in (one, other):
            assert connection.execute(text("PRAGMA journal_mode")).scalar_one() == "wal"
            assert connection.execute(text("PRAGMA synchronous")).scalar_one() == 2  # FULL
    store.close()
