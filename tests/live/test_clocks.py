"""Clocks that are wrong, clocks of an experiment's own, and readers, who never write."""

import time
from types import SimpleNamespace

import pytest
from sqlalchemy import select

from duelay.errors import ClockError, InvalidValueError, StoreError
from duelay.live import Experiment, clock, verify
from duelay.live.maintenance import Upkeep
from duelay.live.storage import schema
from duelay.page.build import build_experiment, build_list, build_pair
from live.hours import Hours

DAY = 86_400.0
ARMS = ["red", "green", "blue"]


@pytest.fixture
def machine(monkeypatch):
    """The clock of this machine, as far as live experiments read it: `ahead` of the right time."""
    own = SimpleNamespace(ahead=0.0)
    own.time = lambda: time.time() + own.ahead
    own.monotonic = time.monotonic
    monkeypatch.setattr(clock, "time", own)
    return own


def rows(store):
    """Return all that is in the tables of a store."""
    with store.reading() as connection:
        return {
            table.name: sorted(map(repr, connection.execute(select(table)).all()))
            for table in schema.metadata.sorted_tables
        }


def head_of(experiment):
    with experiment.reading() as (_, head):
        return dict(head)


def read_all(experiment, folder):
    experiment.standing()
    experiment.history()
    experiment.latest(10)
    experiment.export(folder / f"{time.time_ns()}.csv")
    build_experiment(experiment)
    build_list(experiment.store)
    build_pair(experiment, 0, 1)


@pytest.mark.parametrize("ahead", [0.0, 30 * DAY, -30 * DAY])
def test_a_reader_writes_nothing_whatever_its_clock_says(store, machine, tmp_path, ahead):
    experiment = Experiment.create(store, "x", ARMS, window="1h")
    duels = [experiment.ask() for _ in range(6)]
    experiment.tell(duels[0])
    before = rows(experiment.store)
    machine.ahead = ahead
    read_all(Experiment.open(store, "x"), tmp_path)
    machine.ahead = 0.0
    assert rows(experiment.store) == before
    assert [experiment.tell(duel) for duel in duels[1:]] == ["counted"] * 5
    assert verify(store) == ()
    experiment.close()


def test_a_standing_has_the_silence_that_is_due_and_the_next_call_writes_it(store):
    hours = Hours()
    experiment = Experiment.create(store, "x", ["a", "b"], clock=hours, window="1h")
    for _ in range(5):
        experiment.ask()
    hours.pass_by(7200)
    seen = experiment.standing()
    assert seen.pending.sum() == 0 and seen.now == hours.now
    assert head_of(experiment)["closed"] == 0
    experiment.ask()
    assert head_of(experiment)["closed"] == 5
    assert experiment.standing().plays.sum() == 6


def test_who_has_seen_a_winner_is_not_asked_for_more(store):
    hours = Hours()
    experiment = Experiment.create(store, "x", ["a", "b"], feedback="votes", clock=hours)
    while experiment.standing().winner is None:
        experiment.tell_all([(experiment.ask(), "a") for _ in range(20)])
    assert head_of(experiment)["winner"] is None
    assert experiment.ask().winner == "a"
    assert head_of(experiment)["winner"] == 0


def test_upkeep_settles_what_is_due_and_writes_nothing_where_nothing_is(store):
    hours = Hours()
    experiment = Experiment.create(store, "x", ["a", "b"], clock=hours, window="1h")
    Experiment.create(store, "y", ["a", "b"])
    duels = [experiment.ask() for _ in range(5)]
    upkeep = Upkeep(experiment.store, clock=hours)
    assert list(upkeep.settle()) == ["y"] or upkeep.settle() == {}
    before = rows(experiment.store)
    upkeep.settle()
    assert rows(experiment.store) == before
    hours.pass_by(7200)
    upkeep.settle()
    assert head_of(experiment)["closed"] == 5
    assert experiment.tell(duels[0]) == "late"


@pytest.mark.parametrize("ahead", [DAY, -DAY])
def test_who_differs_from_the_clock_of_the_database_does_not_write(postgresql, migrated, machine,
                                                                   ahead):  # fmt: skip
    with postgresql.database(migrated) as url:
        experiment = Experiment.create(url, "x", ARMS, window="1h")
        duel = experiment.ask()
        before = rows(experiment.store)
        machine.ahead = ahead
        for call in (experiment.ask, lambda: experiment.tell(duel), experiment.settle,
                     lambda: Experiment.create(url, "y", ARMS)):  # fmt: skip
            with pytest.raises(ClockError, match="1d (ahead of|behind) the clock of the database"):
                call()
        assert rows(experiment.store) == before
        machine.ahead = 0.0
        assert experiment.tell(duel) == "counted"
        experiment.close()


def test_times_are_those_of_the_database(postgresql, migrated, machine):
    with postgresql.database(migrated) as url:
        experiment = Experiment.create(url, "x", ARMS)
        machine.ahead = 40.0
        duel = experiment.ask()
        assert head_of(experiment)["moment"] <= experiment.store.now() * schema.MICRO
        assert experiment.tell(duel, at=experiment.now()) == "counted"
        machine.ahead = -40.0
        other = experiment.ask()
        assert experiment.tell(other, at=experiment.now()) == "counted"
        experiment.close()


def test_who_is_behind_a_file_does_not_write_and_recovers_at_once(url, machine):
    experiment = Experiment.create(url, "x", ARMS, window="1h")
    duel = experiment.ask()
    machine.ahead = -DAY
    late = Experiment.open(url, "x")
    with pytest.raises(ClockError, match="1d behind the latest time of the store"):
        late.ask()
    assert issubclass(ClockError, StoreError)  # which callers try again
    machine.ahead = 0.0
    with pytest.warns(UserWarning, match="jumped ahead by 1d"):
        assert late.tell(duel) == "counted"
    assert late.tell(late.ask(), at=late.now()) == "counted"
    experiment.close()


def test_a_time_that_is_right_is_not_in_the_future_once_the_clock_is_set_right(url, machine):
    machine.ahead = -3600.0
    experiment = Experiment.create(url, "x", ARMS)
    duel = experiment.ask()
    machine.ahead = 0.0
    with pytest.warns(UserWarning, match="jumped ahead by 1h"):
        assert experiment.tell(duel, at=time.time()) == "counted"
    with pytest.raises(InvalidValueError, match="at must not lie in the future"):
        experiment.make_tell(duel, at=time.time() + 100.0)


def test_without_its_clock_an_experiment_is_read_and_not_written(store, tmp_path):
    hours = Hours()
    experiment = Experiment.create(store, "x", ARMS, clock=hours, window="1h")
    duel = experiment.ask()
    before = rows(experiment.store)
    other = Experiment.open(store, "x")
    for call in (other.ask, lambda: other.tell(duel), other.settle, other.hold_booking):
        with pytest.raises(ClockError, match="clock="):
            call()
    read_all(other, tmp_path)
    assert other.standing().now == hours.now and other.standing().pending.sum() == 1
    assert rows(experiment.store) == before
    assert Experiment.open(store, "x", clock=hours).tell(duel) == "counted"
    experiment.close()


def test_without_its_clock_an_experiment_can_be_finished(store):
    """A shell has no function to give: what it changes is noted at the latest time of the store."""
    hours = Hours()
    experiment = Experiment.create(store, "x", ARMS, clock=hours, window="1h")
    experiment.ask()
    hours.pass_by(7200)
    other = Experiment.open(store, "x")
    other.pause(fallback=ARMS[1])
    assert experiment.ask().winner == ARMS[1]
    other.finish(ARMS[0])
    other.archive()
    with pytest.raises(ClockError):
        other.ask()
    assert experiment.ask().winner == ARMS[0]
    assert (other.status, other.standing().is_archived) == ("finished", True)
    hours.pass_by(60)
    other.reopen()
    assert experiment.ask().id is not None and verify(store) == ()
    experiment.close()


def test_a_clock_that_is_not_that_of_the_experiment_is_refused(url):
    Experiment.create(url, "plain", ARMS)
    Experiment.create(url, "fast", ARMS, clock="60x")
    for name, own in (("plain", Hours()), ("plain", "60x"), ("fast", Hours()), ("fast", "61x")):
        with pytest.raises(InvalidValueError, match="clock must be left out"):
            Experiment.open(url, name, clock=own)
    for wrong in ("fast", "0x", "-3x", "1e9x", 60, "9999999x"):
        with pytest.raises(InvalidValueError, match="clock must be"):
            Experiment.create(url, "other", ARMS, clock=wrong)


def test_a_fast_clock_is_known_to_all_processes(store, machine):
    experiment = Experiment.create(store, "x", ARMS, clock="1000x", window="1d")
    duels = [experiment.ask() for _ in range(3)]
    begun, ahead = head_of(experiment)["created"] / schema.MICRO, Experiment.open(store, "x")
    assert ahead.now() >= begun and ahead.tell(duels[0]) == "counted"
    real = time.time() - begun
    assert ahead.now() - begun >= 1000.0 * real
    assert head_of(experiment)["clock"] == "1000x"
    with pytest.raises(InvalidValueError, match=r"experiment\.now\(\)"):
        ahead.tell(duels[1], at=begun - 86_400.0)
    with pytest.raises(InvalidValueError, match=r"experiment\.now\(\)"):
        ahead.tell(duels[1], at=ahead.now() + 1e6)
    assert build_experiment(ahead).speed == "1000"
    assert verify(store) == ()
    experiment.close()
