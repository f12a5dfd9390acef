"""A clock that is set, by hours or by a day: no duel has become older by that."""

import pytest
from sqlalchemy import select

from duelay.live import Experiment, verify
from duelay.live.clock import SteadyClock
from duelay.live.storage import schema

NOW = 1_800_000_000.0
HOUR, DAY = 3600.0, 86_400.0
WINDOW = 1800.0  # seconds, of all that is asked here
SLOWLY = 0.05  # seconds a second, towards the machine's clock


class Machine:
    """A machine with a clock that somebody sets, and time that passes."""

    def __init__(self):
        self.wall, self.passed = NOW, 50.0
        self.clock = SteadyClock(lambda: self.wall, lambda: self.passed)

    def go_on(self, seconds):
        self.wall += seconds
        self.passed += seconds

    def set_by(self, seconds):
        self.wall += seconds


@pytest.fixture
def machine():
    return Machine()


def look(experiment):
    """Settle; return how many duels are closed and how many are settled, now."""
    experiment.settle()
    with experiment.store.reading() as connection:
        closed = connection.execute(select(schema.experiments.c.closed)).scalar_one()
        settled = connection.execute(select(schema.duels.c.settled_by)).scalars().all()
    return closed, sum(by is not None for by in settled)


@pytest.mark.parametrize("jump", [HOUR, -HOUR, DAY, -DAY])
def test_duels_are_not_closed_or_settled_early_when_the_clock_jumps(store, machine, jump):
    experiment = Experiment.create(
        store, "buttons", ["red", "green", "blue"], window="30m", clock=machine.clock
    )
    duels = [experiment.ask() for _ in range(8)]
    machine.go_on(60)
    machine.set_by(jump)
    words = f"jumped {'ahead' if jump > 0 else 'back'} by {'1h' if abs(jump) == HOUR else '1d'}"
    with pytest.warns(UserWarning, match=words):
        assert look(experiment) == (0, 0)
    assert experiment.tell(duels[0]) == "counted"
    machine.go_on(WINDOW * (1 - SLOWLY) - 70)
    assert look(experiment) == (0, 1)
    assert experiment.tell(duels[1]) == "counted"
    machine.go_on(WINDOW * 3 * SLOWLY)
    assert look(experiment) == (8, 8)
    assert experiment.tell(duels[2]) == "late"
    assert verify(store) == ()
    experiment.close()


@pytest.mark.parametrize("jump", [HOUR, -HOUR, DAY, -DAY])
def test_after_a_jump_the_time_comes_back_to_the_clock_slowly(machine, jump):
    clock = machine.clock
    machine.set_by(jump)
    with pytest.warns(UserWarning, match="jumped"):
        last = clock()
    assert last == NOW
    steps, step = 0, 600.0
    while clock.off:
        machine.go_on(step)
        now = clock()
        assert now - last == pytest.approx(step, rel=1.01 * SLOWLY)
        last, steps = now, steps + 1
    assert clock() == machine.wall
    assert steps * step == pytest.approx(abs(jump) / SLOWLY, rel=0.02)
    machine.set_by(jump)
    with pytest.warns(UserWarning, match="jumped"):  # it is said again of another one
        clock()


def test_a_clock_that_is_set_right_again_is_followed_at_once(machine):
    clock = machine.clock
    machine.set_by(HOUR)
    with pytest.warns(UserWarning, match="jumped ahead by 1h"):
        clock()
    machine.go_on(10.0)
    assert clock() == pytest.approx(NOW + 10.0 * (1 + SLOWLY))
    machine.set_by(-HOUR)
    assert clock() == NOW + 10.0
    assert clock.off == 0.0


@pytest.mark.parametrize("stops", [1, 4])
def test_who_is_stopped_between_looks_at_two_clocks_sees_no_jump(stops):
    """As on a machine that is very busy: it looks again."""
    machine = Machine()
    left = 0

    def read():
        nonlocal left
        found = machine.wall
        if left:
            left -= 1
            machine.go_on(7.0)
        return found

    left = stops
    clock = SteadyClock(read, lambda: machine.passed)
    assert clock() == machine.wall == NOW + 7.0 * stops
    left = stops
    assert clock() == machine.wall == NOW + 14.0 * stops
    assert clock.off == 0.0


def test_small_steps_of_a_clock_and_a_machine_that_slept_are_no_jumps(machine):
    machine.set_by(0.9)
    assert machine.clock() == NOW + 0.9
    machine.set_by(-0.9)
    assert machine.clock() == NOW
    machine.go_on(3 * DAY)
    assert machine.clock() == NOW + 3 * DAY


def test_a_process_that_is_a_little_behind_takes_the_time_of_the_store(store):
    first = Experiment.create(
        store, "buttons", ["red", "green", "blue"], window="30m", clock=lambda: NOW
    )
    duel = first.ask()
    late = Experiment.open(store, "buttons", clock=lambda: NOW - 50.0)
    late.ask()
    assert late.tell(duel) == "counted"
    standing = first.standing()
    assert (standing.now, standing.backwards, standing.backwards_by) == (NOW, 2, 50.0)
    assert verify(store) == ()
    first.close()
    late.close()
