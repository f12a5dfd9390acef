"""The learned law against its definition, and against the truth."""

import math

import numpy as np
import pytest

import duelay
import naive
from duelay import delays
from duelay.learned import estimate, learned, recount
from duelay.ledger import age_to, hear, open_ledger, record

PROBLEM = duelay.Problem([[0.5, 0.8, 0.6], [0.2, 0.5, 0.35], [0.4, 0.65, 0.5]])


def replay(n, law, window, by_coin, seed=0):
    """A random history, and the ledger of somebody who has watched it."""
    rng = np.random.default_rng(seed)
    ledger = open_ledger(learned(window, 3, by_coin), 3)
    history = []
    for t in range(1, n + 1):
        for s, past in enumerate(history, start=1):
            if past.won and past.delay == t - s and past.delay <= window:
                hear(ledger, past.first, past.second, s, t)
        age_to(ledger, t)
        i, j = (int(arm) for arm in rng.integers(3, size=2))
        record(ledger, i, j, t)
        won = rng.random() < PROBLEM.matrix[i, j]
        history.append(naive.Past(i, j, bool(won), float(law.sample(seed=rng))))
    return history, ledger


@pytest.mark.parametrize("by_coin", [True, False])
@pytest.mark.parametrize("window", [7, 40, 500])
def test_the_law_is_kaplan_meiers_and_reaches_every_duel(window, by_coin):
    n = 260
    history, ledger = replay(n, delays.Never(0.2, delays.Geometric(0.1)), window, by_coin)
    assumed = ledger.assumed
    estimate(assumed, n)
    recount(assumed, n)

    def tells(past):
        return by_coin or past.first == past.second

    tau = naive.learned_law(history, n, window, tells)
    np.testing.assert_allclose(assumed.tau[0, : window + 1], tau, atol=1e-12)
    _, n_tilde, s, _ = naive.estimates(history, n, 3, lambda i, j, age: tau[int(age)], window)
    told = ledger.estimates()
    # The last duel was asked at tick n itself: its age is 0 and it has not been heard of.
    np.testing.assert_allclose(told.heard, n_tilde, atol=1e-9)
    np.testing.assert_allclose(told.wins, s, atol=1e-9)


def test_before_enough_is_known_silence_is_defeat():
    history, ledger = replay(60, delays.Constant(50), 100, by_coin=True)
    told = ledger.estimates()
    plain = naive.estimates(history, 60, 3, lambda i, j, age: 1.0, 100)
    np.testing.assert_allclose(told.heard, plain[1])


def test_between_two_looks_heard_follows_the_law_it_has():
    """Incremental steps and a recount give the same."""
    _, ledger = replay(700, delays.Geometric(0.05), 60, by_coin=True)
    assumed = ledger.assumed
    kept = ledger.estimates().heard
    recount(assumed, 700)
    np.testing.assert_allclose(kept, ledger.estimates().heard, atol=1e-9)
    assert assumed.tau[0, 1] < 0.5  # it has learned


@pytest.mark.compiled
@pytest.mark.parametrize("law", [delays.Geometric(0.01), delays.Never(0.3, delays.Geometric(0.01))])
def test_the_law_is_learned_well_by_20_000_ticks(law):
    """Largest error over ages up to 1000, mean over runs: below 0.015."""
    from duelay.engine import streams
    from duelay.engine.loop import new_tally, run
    from duelay.engine.world import make_world

    problem = duelay.datasets.load("six-rankers")
    policy = duelay.DoubleThompson(delay="learn", window=1000)
    errors = []
    for number in range(20):
        world_rng, policy_rng = streams(11, number)
        rule, ledger = policy.rule(6), policy.ledger(6)
        tally = new_tally(problem.gaps, np.array([20_000]))
        world = make_world(problem, law, 1000, 20_000)
        run(rule, ledger, False, world, tally, 20_000, world_rng, policy_rng)
        estimate(ledger.assumed, 20_000)
        errors.append(np.abs(ledger.assumed.tau[0, :1001] - law.cdf(np.arange(1001))).max())
    assert np.mean(errors) < 0.015


@pytest.mark.compiled
@pytest.mark.parametrize(
    "dataset, law, horizon",
    [
        ("six-rankers", delays.Geometric(0.01), 200_000),
        ("six-rankers", delays.Never(0.3, delays.Geometric(0.01)), 100_000),
        ("tennis", delays.Geometric(0.001), 200_000),
        ("mslr", delays.Constant(1), 50_000),
    ],
    ids=str,
)
def test_learning_does_no_worse_than_going_without(dataset, law, horizon):
    problem = duelay.datasets.load(dataset)
    plain, learning = (
        duelay.simulate(
            problem, duelay.DoubleThompson(delay=delay), delay=law, horizon=horizon, runs=16, seed=1
        ).final
        for delay in (None, "learn")
    )
    error = math.sqrt((plain.var(ddof=1) + learning.var(ddof=1)) / 16)
    assert learning.mean() <= plain.mean() + 4 * error


def test_the_law_can_be_asked_for():
    player = duelay.DoubleThompson(delay="learn", window=50).start(3, seed=0)
    assert player.learned_law().cdf(1) == 1  # nothing is known: as if nothing were late
    rng = np.random.default_rng(0)
    due = {}
    for tick in range(1, 3000):
        duel = player.ask()
        if rng.random() < 0.5:
            due.setdefault(tick + rng.integers(1, 21), []).append(duel)
        for late in due.pop(tick + 1, []):
            player.tell(late)
    law = player.learned_law()
    assert law.cdf(10) == pytest.approx(0.5, abs=0.06)
    assert law.cdf(20) == pytest.approx(1.0, abs=0.06)
    with pytest.raises(ValueError, match="learned_law needs a policy with delay='learn'"):
        duelay.RUCBDelay().start(3).learned_law()
