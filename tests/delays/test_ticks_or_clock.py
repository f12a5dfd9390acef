"""What is in time needs a clock: whoever counts ticks refuses it."""

from dataclasses import dataclass

import numpy as np
import pytest

import duelay
from duelay import delays, theory
from duelay.delays.ticks_or_clock import check_clock
from duelay.simulation.world import make_world

PROBLEM = duelay.Problem([[0.5, 0.6], [0.4, 0.5]])
LAW = delays.Exponential("2h")
WINDOW = r"^window 14d is in time, .* a window in time needs a player whose clock is"
DELAY = r"^delay .*exponential:2h.* is in time, .* a delay in time needs a player"

IN_TIME = [
    (duelay.DoubleThompson(window="14d"), WINDOW),
    (duelay.DoubleThompson(delay="learn", window="14d"), WINDOW),
    (duelay.Decide(window="14d"), WINDOW),
    (duelay.RUCB(window="14d"), WINDOW),
    (duelay.RRDBDelay(window="14d"), WINDOW),
    (duelay.DoubleThompson(delay=LAW), DELAY),
    (duelay.Decide(delay=LAW), DELAY),
    (duelay.RUCBDelay(delay=delays.Never(0.3, LAW)), DELAY),
    (duelay.RUCBDelay(delay=delays.ByPair.of(2, lambda i, j: LAW)), DELAY),
]


@pytest.mark.parametrize("policy, message", IN_TIME, ids=lambda x: str(x)[:40])
def test_a_policy_in_time_is_made_but_not_started_or_simulated_in_ticks(policy, message):
    with pytest.raises(ValueError, match=message):
        policy.start(2, seed=0)
    with pytest.raises(ValueError, match=message):
        duelay.simulate(PROBLEM, policy, delay="geometric:0.1", horizon=10)
    with pytest.raises(ValueError, match=message):
        policy.ledger(2)
    with pytest.raises(ValueError, match=message):
        check_clock(policy, has_clock=False)


def test_a_policy_of_ones_own_in_time_is_refused_too():
    @dataclass(frozen=True)
    class Mine(duelay.Policy):
        window: str | None = None
        delay: str | None = None

        def choose(self):
            return 0, 1

    with pytest.raises(ValueError, match=WINDOW):
        Mine(window="14d").start(2)
    with pytest.raises(ValueError, match=DELAY):
        Mine(delay="exponential:2h").start(2)
    assert Mine(delay="exponential:20").start(2).ask().first == 0


@pytest.mark.parametrize("delay", [LAW, "exponential:2h", delays.ByPair.of(2, lambda i, j: LAW)])
def test_delays_in_time_are_not_simulated(delay):
    with pytest.raises(ValueError, match=DELAY):
        duelay.simulate(PROBLEM, duelay.RUCB(), delay=delay, horizon=10)


@pytest.mark.parametrize(
    "count, message",
    [
        (lambda: delays.tables(LAW, 2, 100), DELAY),
        (lambda: make_world(PROBLEM, LAW, None, 10), DELAY),
        (lambda: make_world(PROBLEM, delays.Geometric(0.1), delays.Duration("14d"), 10), WINDOW),
        (lambda: theory.comparisons_bound(PROBLEM, delay=LAW, window=10, t=100), DELAY),
        (lambda: duelay.recommend(LAW, feedback="counts"), DELAY),
        (
            lambda: duelay.History(2, [0], [1], [np.nan], [np.nan], window="14d"),
            WINDOW,
        ),
    ],
)
def test_what_counts_ticks_refuses_what_is_in_time(count, message):
    with pytest.raises(ValueError, match=message):
        count()


def test_new_laws_in_ticks_are_simulated_and_assumed():
    for law in (delays.Exponential(20), delays.Gamma(2, 10.0)):
        policy = duelay.RUCBDelay(delay=law, window=100)
        result = duelay.simulate(PROBLEM, policy, delay=law, horizon=50)
        assert result.final.shape == (1,)
