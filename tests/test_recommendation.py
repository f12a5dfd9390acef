"""`recommend`: what it gives, that it runs, and that it is as good as we say."""

import math

import pytest

import duelay
import recommended
from duelay import delays

LAW = delays.Geometric(0.01)


def test_with_no_argument_it_is_the_policy_for_someone_who_knows_nothing():
    advice = duelay.recommend()
    assert advice.policy == duelay.DoubleThompson(delay="learn", order="coin")
    assert advice.reason.endswith(".") and str(advice.policy) in str(advice)


def test_what_is_known_is_used():
    assert duelay.recommend("geometric:0.01").policy.delay == LAW
    assert duelay.recommend(LAW, order_free=False).policy.order == "champion"
    assert duelay.recommend(100).policy == duelay.recommend().policy  # a mean is not a law
    advice = duelay.recommend(order_free=False)
    assert advice.policy.delay == "learn-from-self-duels"
    assert "self-duels" in advice.reason
    assert duelay.recommend(window=50).policy.window == 50
    assert duelay.recommend(LAW, feedback="counts").policy.mean_delay == 100
    by_pair = delays.ByPair.of(3, lambda i, j: delays.Constant(1 + i + j))
    assert duelay.recommend(by_pair, feedback="counts", n_arms=3).policy.mean_delay == 5


def test_other_winners():
    assert duelay.recommend(target="copeland").policy == duelay.recommend().policy
    advice = duelay.recommend(LAW, target="borda", window=30)
    assert advice.policy == duelay.Borda(delay=LAW, order="coin", window=30)
    advice = duelay.recommend(LAW, target="borda", order_free=False)
    assert advice.policy.order == "champion"
    with pytest.raises(ValueError, match="^delay"):
        duelay.recommend(target="borda", order_free=False)
    with pytest.raises(ValueError, match="^target"):
        duelay.recommend(100, feedback="counts", target="borda")
    with pytest.raises(ValueError, match="target"):
        duelay.recommend(target="best")


def test_a_margin_is_for_the_goal_decide():
    advice = duelay.recommend(goal="decide", margin=0.05, error=0.1)
    assert advice.policy == duelay.Decide(margin=0.05, error=0.1) and "margin" in advice.reason
    told = duelay.recommend(LAW, goal="decide", margin=0.05)
    assert told.policy.delay is None and "law" in told.reason.rpartition(".")[0]
    for wrong in ({"margin": 0.05}, {"margin": 0.5, "goal": "decide"}):
        with pytest.raises(ValueError, match="margin"):
            duelay.recommend(**wrong)


def test_votes_need_no_law():
    advice = duelay.recommend(LAW, feedback="votes")
    assert advice.policy == duelay.DoubleThompson(delay=None, order="coin")
    assert "feedback='votes'" in advice.reason
    player = advice.policy.start(3, seed=0, feedback="votes")
    assert player.tell(player.ask(), winner="second") == "counted"
    borda = duelay.recommend(feedback="votes", target="borda", order_free=False).policy
    assert borda == duelay.Borda(delay=None, order="champion")
    with pytest.raises(ValueError, match="feedback"):
        duelay.recommend(feedback="likes")


@pytest.mark.parametrize("delay", [None, "never:0.3,geometric:0.1"])
def test_counts_need_a_finite_mean(delay):
    with pytest.raises(ValueError, match="finite mean"):
        duelay.recommend(delay, feedback="counts")


@pytest.mark.parametrize("delay", [0, -1, math.nan, math.inf, "geometrical:0.1"])
def test_what_makes_no_sense_is_refused(delay):
    with pytest.raises(ValueError, match="delay|law"):
        duelay.recommend(delay)
    with pytest.raises(ValueError, match="n_arms must be"):
        duelay.recommend(n_arms=1)


@pytest.mark.parametrize("n_arms", [2, 3, 20])
@pytest.mark.parametrize("order_free", [True, False])
def test_the_policy_starts_and_plays(n_arms, order_free):
    advice = duelay.recommend(order_free=order_free, n_arms=n_arms)
    player = advice.policy.start(n_arms, seed=0)
    assert [player.tell(player.ask()) for _ in range(30)] == ["counted"] * 30
    assert player.standing().conversions.sum() == 30


@pytest.mark.slow
@pytest.mark.compiled
def test_it_has_a_seventh_of_the_regret_of_rucb_delay():
    """The bars: against RUCB-Delay, which knows the law, and against the lower bound."""
    found = recommended.in_the_papers_setting(100)
    assert recommended.mean_times(found) >= 7
    assert min(one.times for one in found) >= 3.5
    assert max(one.of_bound for one in found) <= 2
    assert min(one.led for one in found) >= 0.99


@pytest.mark.compiled
@pytest.mark.parametrize("runs", [20, pytest.param(100, marks=pytest.mark.slow)])
def test_it_bears_long_delays_and_silence(runs):
    silent, late = recommended.long_and_silent(runs)
    assert silent.led >= 0.99 and late.led >= 0.99
    assert silent.regret <= 300
    assert late.regret <= 260


def test_counts_have_no_age():
    with pytest.raises(ValueError, match="^window"):
        duelay.recommend(100, feedback="counts", window=10)


def test_who_wants_to_decide_is_given_the_policy_that_does():
    advice = duelay.recommend(goal="decide", error=0.01, window=500, feedback="votes")
    assert advice.policy == duelay.Decide(error=0.01, window=500)
    told = duelay.recommend("geometric:0.01", goal="decide")
    assert told.policy == duelay.Decide(delay="geometric:0.01") and told.reason != advice.reason
    assert duelay.recommend(100, goal="decide").policy == duelay.Decide()  # a mean is no law
    for told, words in (
        ({"target": "borda"}, "^target"),
        ({"order_free": False}, "^goal .*order_free"),
        ({"feedback": "counts", "delay": 100}, "^goal .* feedback"),
        ({"goal": "win"}, "^goal"),
        ({"goal": "regret", "error": 0.1}, "^error"),
    ):
        with pytest.raises(ValueError, match=words):
            duelay.recommend(**{"goal": "decide", **told})


def test_the_old_name_of_order_free_works_with_a_warning():
    with pytest.warns(DeprecationWarning, match="order_free") as told:
        advice = duelay.recommend(LAW, is_order_free=False)
    assert advice.policy == duelay.recommend(LAW, order_free=False).policy
    assert told[0].filename == __file__
