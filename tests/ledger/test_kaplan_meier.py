"""The learned law against its definition, and against the truth."""

import math

import numpy as np
import pytest

import duelay
import naive
from duelay import delays
from duelay.ledger import age_to, hear, open_ledger, record
from duelay.ledger.delay_models.base import epoch, final_age, is_known, next_look
from duelay.ledger.delay_models.kaplan_meier import estimate, recount, start_learned

PROBLEM = duelay.Problem([[0.5, 0.8, 0.6], [0.2, 0.5, 0.35], [0.4, 0.65, 0.5]])


def replay(n, law, window, from_self_duels=False, seed=0):
    """A random history, and the ledger of somebody who has watched it."""
    rng = np.random.default_rng(seed)
    ledger = open_ledger(start_learned(window, 3, from_self_duels=from_self_duels), 3)
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


@pytest.mark.parametrize("from_self_duels", [True, False])
@pytest.mark.parametrize("window", [7, 40, 500])
def test_the_law_is_kaplan_meiers_and_reaches_every_duel(window, from_self_duels):
    n = 260
    history, ledger = replay(n, delays.Never(0.2, delays.Geometric(0.1)), window, from_self_duels)
    assumed = ledger.assumed
    estimate(assumed, n)
    recount(assumed, n)

    def tells(past):
        return (past.first == past.second) == from_self_duels

    tau = naive.learned_law(history, n, window, tells)
    np.testing.assert_allclose(assumed.tau[0, : window + 1], tau, atol=1e-12)
    _, n_tilde, s, _ = naive.estimates(history, n, 3, lambda i, j, age: tau[int(age)], window)
    told = ledger.estimates()
    # The last duel was asked at tick n itself: its age is 0 and it has not been heard of.
    np.testing.assert_allclose(told.expected, n_tilde, atol=1e-9)
    np.testing.assert_allclose(told.wins, s, atol=1e-9)


@pytest.mark.parametrize("window", [7, 40])
def test_the_law_goes_on_as_at_the_window_until_the_next_look(window):
    """Duels beyond the window stay in the ring for a while, and gain no more."""
    n = 260  # looks are at 250 and at 300
    history, ledger = replay(n, delays.Geometric(0.05), window)
    assumed = ledger.assumed
    estimate(assumed, n)
    recount(assumed, n)
    tau = naive.learned_law(history, n, window, lambda past: past.first != past.second)
    for t in range(n + 1, n + 35):
        age_to(ledger, t)
        _, n_tilde, _, _ = naive.estimates(history, t, 3, lambda i, j, age: tau[int(age)], window)
        np.testing.assert_allclose(ledger.estimates().expected, n_tilde, atol=1e-9)


def test_the_law_is_looked_at_every_fifty_ticks_and_later_every_twentieth_of_the_time():
    ledger = open_ledger(start_learned(20, 2), 2)
    look, looks = 50, []
    for t in range(1, 3001):
        assert next_look(ledger.assumed) == look
        before = epoch(ledger.assumed)
        age_to(ledger, t)
        assert (epoch(ledger.assumed) != before) == (t == look)
        if t == look:
            looks.append(t)
            look = t + max(50, math.floor(t / 20))
    assert looks[:3] == [50, 100, 150] and looks[19:23] == [1000, 1050, 1102, 1157]


@pytest.mark.parametrize("heard, is_enough", [(99, False), (100, True)])
def test_a_hundred_conversions_of_two_arms_are_enough(heard, is_enough):
    """They come three ticks late; self-duels, and what comes after the window, do not count."""
    ledger = open_ledger(start_learned(20, 2), 2)
    for t in range(1, 401):
        if 3 < t <= heard + 3:
            hear(ledger, 0, 1, t - 3, t)
        if t > 250:
            hear(ledger, 1, 1, t - 3, t)
            hear(ledger, 0, 1, t - 21, t)
        age_to(ledger, t)
        record(ledger, *((0, 1) if t < 240 else (1, 1)), t)
    assert is_known(ledger.assumed) == is_enough
    assert ledger.assumed.tau[0, 2] == (0.0 if is_enough else 1.0)


def test_where_self_duels_teach_there_is_always_more_to_come():
    assert final_age(start_learned(30, 2)) == 30
    assert final_age(start_learned(30, 2, from_self_duels=True)) > 10**12


def test_before_enough_is_known_silence_is_defeat():
    history, ledger = replay(60, delays.Constant(50), 100)
    told = ledger.estimates()
    plain = naive.estimates(history, 60, 3, lambda i, j, age: 1.0, 100)
    np.testing.assert_allclose(told.expected, plain[1])


def test_between_two_looks_heard_follows_the_law_it_has():
    """Incremental steps and a recount give the same."""
    _, ledger = replay(700, delays.Geometric(0.05), 60)
    assumed = ledger.assumed
    kept = ledger.estimates().expected
    recount(assumed, 700)
    np.testing.assert_allclose(kept, ledger.estimates().expected, atol=1e-9)
    assert assumed.tau[0, 1] < 0.5  # it has learned


@pytest.mark.compiled
@pytest.mark.parametrize("law", [delays.Geometric(0.01), delays.Never(0.3, delays.Geometric(0.01))])
def test_the_law_is_learned_well_by_20_000_ticks(law):
    """Largest error over ages up to 1000, mean over runs: below 0.015 where every duel teaches."""
    from duelay.simulation import streams
    from duelay.simulation.loops.recorder import new_recorder
    from duelay.simulation.loops.ticks import run_ticks
    from duelay.simulation.world import make_world

    problem = duelay.datasets.load("six-rankers")
    policy = duelay.DoubleThompson(delay="learn", window=1000, self_duels=False)
    errors = []
    for number in range(20):
        world_rng, policy_rng = streams(11, number)
        rule, ledger = policy.rule(6), policy.ledger(6)
        recorder = new_recorder(problem.gaps, np.array([20_000]))
        world = make_world(problem, law, 1000, 20_000)
        run_ticks(rule, ledger, False, world, recorder, 20_000, world_rng, policy_rng)
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


@pytest.mark.long
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
    with pytest.raises(ValueError, match="^learned_law "):
        duelay.RUCBDelay().start(3).learned_law()


def play_live(policy, law, n, shows_self_duels, seed=0):
    """A live program with late answers; it shows an arm that duels itself twice, or not at all."""
    player = policy.start(3, seed=seed)
    chances = np.array([[0.5, 0.55, 0.56], [0.45, 0.5, 0.52], [0.44, 0.48, 0.5]])
    rng = np.random.default_rng(seed + 1)
    late = law.sample(size=n, seed=rng)
    due = {}
    for tick in range(1, n + 1):
        for duel in due.pop(tick, []):
            player.tell(duel)
        duel = player.ask()
        is_shown = duel.first != duel.second or shows_self_duels
        if is_shown and rng.random() < chances[duel.first, duel.second]:
            due.setdefault(tick + int(min(late[tick - 1], 10**9)), []).append(duel)
    return player


@pytest.mark.compiled
@pytest.mark.parametrize("share", [0.0, 0.3])
def test_self_duels_that_nobody_shows_teach_nothing(share):
    law = delays.Never(share, delays.Geometric(0.05)) if share else delays.Geometric(0.05)
    policy = duelay.DoubleThompson(delay="learn")
    player = play_live(policy, law, 20_000, shows_self_duels=False)
    standing = player.standing()
    assert standing.plays.diagonal().sum() > 10_000
    assert player.learned_law().never == pytest.approx(share, abs=0.12)
    assert standing.leader == 0 and not standing.warnings
    assert (standing.mean[0] > 0.4).all() and (standing.mean[0] < 1).all()


@pytest.mark.compiled
def test_a_law_from_self_duels_needs_them_shown_and_the_standing_warns_where_they_are_not():
    policy = duelay.DoubleThompson(delay="learn-from-self-duels", order="champion")
    law = delays.Geometric(0.05)
    shown = play_live(policy, law, 20_000, shows_self_duels=True)
    assert shown.learned_law().cdf(20) == pytest.approx(law.cdf(20), abs=0.03)
    assert not shown.standing().warnings
    silent = None
    for seed in range(20):  # a few hundred duels of two arms, then only ones that nobody shows
        player = policy.start(2, seed=seed)
        for tick in range(4000):
            duel = player.ask()
            if tick < 300 or (duel.first != duel.second and duel.first == 0):
                player.tell(duel)
        standing = player.standing()
        if standing.lower[0, 1] > 1:
            silent = standing
            break
    assert silent is not None
    (words,) = silent.warnings
    assert (
        words.startswith("0 is estimated to beat 1 with") and "no more than 1 is possible" in words
    )
    assert f"{silent.mean[0, 1]:.3f}" in str(silent) and "warning: 0 is estimated" in str(silent)
    assert "warning: 0 is estimated" in silent._repr_html_()


@pytest.mark.long
def test_the_standing_says_that_the_law_is_not_learned_yet():
    player = duelay.DoubleThompson(delay="learn").start(3, seed=0)
    for tick in range(60):
        duel = player.ask()
        if tick % 2:
            player.tell(duel)
    standing = player.standing()
    assert standing.is_learning and standing.guarantee.kind == "proved"  # by the coin
    assert standing.warnings[0].startswith("the delay law is not learned yet")
    for tick in range(3000):
        duel = player.ask()
        if tick % 2:
            player.tell(duel)
    assert not player.standing().is_learning and not player.standing().warnings


@pytest.mark.compiled
@pytest.mark.parametrize("mean", [10_000, 100_000])
def test_delays_beyond_the_ages_that_are_learned_do_not_bias_the_estimates(mean):
    from duelay.simulation import streams
    from duelay.simulation.loops.recorder import new_recorder
    from duelay.simulation.loops.ticks import run_ticks
    from duelay.simulation.world import make_world

    problem = duelay.Problem([[0.5, 0.6], [0.4, 0.5]])
    policy = duelay.DoubleThompson(delay="learn", self_duels=False)
    assert policy.window == 10_000
    estimates = []
    for number in range(6):
        rule, ledger = policy.rule(2), policy.ledger(2)
        recorder = new_recorder(problem.gaps, np.array([100_000]))
        world = make_world(problem, delays.Geometric(1 / mean), policy.window, 100_000)
        run_ticks(rule, ledger, False, world, recorder, 100_000, *streams(5, number))
        estimates.append(ledger.estimates().mean[0, 1])
    error = np.std(estimates, ddof=1) / math.sqrt(6)
    assert np.mean(estimates) == pytest.approx(0.6, abs=4 * error)
    assert error < 0.03


def test_a_longer_window_is_learned_to_its_end():
    assert duelay.RMED(delay="learn").window == 10_000
    assert duelay.RMED(delay="learn", window=30_000).start(2).learned_law().pmf(1) == 1
    assert len(duelay.RMED(delay="learn", window=30_000).ledger(2).assumed.tells) == 30_000
    with pytest.raises(ValueError, match="window must"):
        duelay.RMED(delay="learn", window=10**8).start(2)


@pytest.mark.parametrize("policy", [duelay.DoubleThompson, duelay.RMED])
def test_what_cannot_be_learned_is_refused(policy):
    with pytest.raises(ValueError, match="learn-from-self-duels"):
        policy(delay="learn", order="champion")
    with pytest.raises(ValueError, match="needs self_duels=True"):
        policy(delay="learn-from-self-duels", self_duels=False)
