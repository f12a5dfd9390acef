"""`recommend`: what it gives, that it runs, and that it is as good as we say."""

import math

import numpy as np
import pytest

import duelay
from duelay import delays

LAW = delays.Geometric(0.01)
SIX = ("six-rankers", "mslr", "tennis", "arithmetic", "car", "sushi")


def test_with_no_argument_it_is_the_policy_for_someone_who_knows_nothing():
    advice = duelay.recommend()
    assert advice.policy == duelay.DoubleThompson(delay="learn", order="coin")
    assert advice.reason.endswith(".") and str(advice.policy) in str(advice)


def test_what_is_known_is_used():
    assert duelay.recommend("geometric:0.01").policy.delay == LAW
    assert duelay.recommend(LAW, is_order_free=False).policy.order == "champion"
    assert duelay.recommend(100).policy == duelay.recommend().policy  # a mean is not a law
    advice = duelay.recommend(is_order_free=False)
    assert advice.policy.delay == "learn-from-self-duels"
    assert "each must really be shown" in advice.reason
    assert duelay.recommend(window=50).policy.window == 50
    assert duelay.recommend(LAW, is_anonymous=True).policy.mean_delay == 100
    by_pair = delays.ByPair.of(3, lambda i, j: delays.Constant(1 + i + j))
    assert duelay.recommend(by_pair, is_anonymous=True, n_arms=3).policy.mean_delay == 5


def test_other_winners():
    assert duelay.recommend(target="copeland").policy == duelay.recommend().policy
    advice = duelay.recommend(LAW, target="borda", window=30)
    assert advice.policy == duelay.Borda(delay=LAW, order="coin", window=30)
    advice = duelay.recommend(LAW, target="borda", is_order_free=False)
    assert advice.policy.order == "champion"
    with pytest.raises(ValueError, match="delay must be a law where Borda's winner is sought"):
        duelay.recommend(target="borda", is_order_free=False)
    with pytest.raises(ValueError, match="target borda needs conversions that say"):
        duelay.recommend(100, is_anonymous=True, target="borda")
    with pytest.raises(ValueError, match="target must be one of"):
        duelay.recommend(target="best")


def test_votes_need_no_law():
    advice = duelay.recommend(LAW, feedback="votes")
    assert advice.policy == duelay.DoubleThompson(delay=None, order="coin")
    assert "feedback='votes'" in advice.reason
    player = advice.policy.start(3, seed=0, feedback="votes")
    assert player.tell(player.ask(), winner="second") == "counted"
    borda = duelay.recommend(feedback="votes", target="borda", is_order_free=False).policy
    assert borda == duelay.Borda(delay=None, order="champion")
    with pytest.raises(ValueError, match="feedback must be conversions where they are anonymous"):
        duelay.recommend(100, is_anonymous=True, feedback="votes")
    with pytest.raises(ValueError, match="feedback must be one of"):
        duelay.recommend(feedback="likes")


@pytest.mark.parametrize("delay", [None, "never:0.3,geometric:0.1"])
def test_anonymous_conversions_need_a_finite_mean(delay):
    with pytest.raises(ValueError, match="finite mean"):
        duelay.recommend(delay, is_anonymous=True)


@pytest.mark.parametrize("delay", [0, -1, math.nan, math.inf, "geometrical:0.1"])
def test_what_makes_no_sense_is_refused(delay):
    with pytest.raises(ValueError, match="delay|law"):
        duelay.recommend(delay)
    with pytest.raises(ValueError, match="n_arms must be"):
        duelay.recommend(n_arms=1)


@pytest.mark.parametrize("n_arms", [2, 3, 20])
@pytest.mark.parametrize("is_order_free", [True, False])
def test_the_policy_starts_and_plays(n_arms, is_order_free):
    advice = duelay.recommend(is_order_free=is_order_free, n_arms=n_arms)
    player = advice.policy.start(n_arms, seed=0)
    for _ in range(30):
        player.tell(player.ask())


def regrets(dataset, policy, runs, law=LAW, horizon=200_000):
    problem = duelay.datasets.load(dataset)
    return duelay.simulate(problem, policy, delay=law, horizon=horizon, runs=runs, seed=7)


def check_bars(runs):
    """The bars: against RUCB-Delay, which knows the law, and against the lower bound."""
    policy = duelay.recommend(window=1000).policy
    times, over = [], []
    for dataset in SIX:
        ours = regrets(dataset, policy, runs)
        theirs = regrets(dataset, duelay.RUCBDelay(LAW, window=1000), max(4, runs // 4))
        bound = duelay.theory.asymptotic_lower_bound(ours.problem, 200_000)
        times.append(theirs.final.mean() / ours.final.mean())
        over.append(ours.final.mean() / bound)
        print(
            f"{dataset}: {ours.final.mean():.0f}, worst {ours.final.max():.0f}, "
            f"{times[-1]:.1f} times less than RUCB-Delay, {over[-1]:.2f} of the lower bound, "
            f"led by the winner in {100 * ours.led_by_winner:.0f} %"
        )
        assert ours.led_by_winner >= 0.99
    print(f"geometric mean {np.exp(np.mean(np.log(times))):.1f} times")
    assert np.exp(np.mean(np.log(times))) >= 7
    assert min(times) >= 3.5
    assert max(over) <= 2


def check_long_and_silent(runs):
    policy = duelay.recommend().policy
    silent = regrets("six-rankers", policy, runs, delays.Never(0.3, LAW), 100_000)
    late = regrets("tennis", policy, runs, delays.Geometric(0.001))
    for result in (silent, late):
        print(
            f"{result.delay}: {result.final.mean():.0f}, worst {result.final.max():.0f}, "
            f"led by the winner in {100 * result.led_by_winner:.0f} %"
        )
        assert result.led_by_winner >= 0.99
    assert silent.final.mean() <= 300
    assert late.final.mean() <= 260


@pytest.mark.slow
@pytest.mark.compiled
def test_it_has_a_seventh_of_the_regret_of_rucb_delay():
    check_bars(100)


@pytest.mark.compiled
def test_it_bears_long_delays_and_silence():
    check_long_and_silent(20)


@pytest.mark.slow
@pytest.mark.compiled
def test_it_bears_long_delays_and_silence_at_length():
    check_long_and_silent(100)


def test_anonymous_conversions_have_no_age():
    with pytest.raises(ValueError, match="window does not fit anonymous conversions"):
        duelay.recommend(100, is_anonymous=True, window=10)
