"""One arm at a time: the bets on a coin where the first arm alone is shown, and converts or not."""

import itertools
import math
import pickle

import numpy as np
import pytest

import duelay
import naive
from duelay import Problem, delays
from duelay.errors import InvalidValueError
from duelay.ledger.evidence.eprocess import (
    GAPS,
    evidence_weights,
    planned_bets,
    start_eprocess,
)
from duelay.ledger.evidence.margin import bet_on_ties
from duelay.ledger.evidence.silence import fix_kappa, share_now
from duelay.simulation.world import let_duel, make_world, take_due
from helpers import play_beside

ONE = duelay.Decide(display="one")


@pytest.mark.parametrize("planned", [None, 0.15])
@pytest.mark.parametrize("law", ["geometric:0.3", "never:0.4,(uniform:1,15)"])
def test_the_evidence_is_the_product_of_the_bets_that_are_booked(law, planned):
    looks, problem = [], Problem.from_rates([0.5, 0.9, 0.3])
    gaps, weight = GAPS, evidence_weights(shows_one=True)
    if planned is not None:
        gaps, weight = naive.planned_bets(planned)

    def check(t, history, pair, player):
        if t % 59 == 0:
            eprocess, off = player._ledger.assumed, ~np.eye(3, dtype=bool)
            expected, wins, _ = naive.eprocess(
                history,
                t,
                3,
                None,
                gaps,
                weight,
                first_share=0.1,
                least=3,
            )
            np.testing.assert_allclose(np.exp(eprocess.log_evidence[off]), expected[off], rtol=1e-9)
            np.testing.assert_array_equal(eprocess.wins, wins)
            looks.append(expected.max())

    policy = duelay.Decide(display="one", planned=planned)
    play_beside(policy, delays.parse(law), 240, check, problem)
    assert max(looks) > 2


@pytest.mark.parametrize("rates", [(0.05, 0.05), (0.9, 0.9), (0.3, 0.34), (0.8, 0.95)])
@pytest.mark.parametrize("kappa, came", [(0.0, 1.0), (0.05, 0.4), (1.0, 1.0), (0.7, 0.9)])
def test_a_bet_is_fair_where_rates_are_equal_and_lost_on_the_worse_arm(rates, kappa, came):
    """The four outcomes of a visitor: each arm by coin, converted by age W or silent."""
    p, q = came * rates[0], came * rates[1]
    for g in GAPS:
        better = 0.5 * (q * (1 + 2 * g) + p * (1 - 2 * g))
        better += 0.5 * ((1 - q) * (1 - 2 * kappa * g) + (1 - p) * (1 + 2 * kappa * g))
        worse = 0.5 * (p * (1 + 2 * g) + q * (1 - 2 * g))
        worse += 0.5 * ((1 - p) * (1 - 2 * kappa * g) + (1 - q) * (1 + 2 * kappa * g))
        if p == q:
            assert better == pytest.approx(1.0) and worse == pytest.approx(1.0)
        else:
            assert worse < 1.0 < better


@pytest.mark.parametrize("planned", [1e-6, 0.01, 0.0455, 0.1125, 0.12, 0.2, 0.449, 0.45, 0.499])
def test_bets_that_are_planned_are_fair_and_of_one_in_all_and_large_at_the_plan(planned):
    gaps, weight = planned_bets(planned)
    expected = naive.planned_bets(planned)
    np.testing.assert_allclose(gaps, expected[0], rtol=1e-9)
    np.testing.assert_allclose(weight, expected[1], rtol=1e-6)
    assert (np.diff(gaps) > 0).all() and 0 < gaps[0] and gaps[-1] == GAPS[-1] < 0.5
    assert (weight > 0).all() and weight.sum() == pytest.approx(1.0)
    assert weight[np.abs(gaps - planned).argmin()] > 0.2


def test_a_margin_is_what_an_experiment_with_one_arm_at_a_time_is_planned_for():
    def gaps(**said):
        return duelay.Decide(**said).ledger(2).assumed.gaps

    near = planned_bets(0.03)[0]
    assert np.array_equal(gaps(display="one", margin=0.03), near)
    assert np.array_equal(gaps(display="one", margin=0.2, planned=0.03), near)
    assert np.array_equal(gaps(planned=0.03), near)
    assert np.array_equal(gaps(delay="geometric:0.1", planned=0.03), near)
    assert np.array_equal(gaps(margin=0.03), GAPS) and np.array_equal(gaps(display="one"), GAPS)


@pytest.mark.parametrize("planned", [0.0, -0.1, 0.5, 2, "20%", math.nan])
def test_a_plan_is_a_difference_from_one_half(planned):
    with pytest.raises(InvalidValueError, match="planned must be") as error:
        duelay.Decide(planned=planned)
    assert error.value.argument == "planned"


@pytest.mark.parametrize("margin", [0.02, 0.1])
@pytest.mark.parametrize("total", [0.1, 0.6, 1.5])
def test_the_bet_on_a_tie_is_fair_at_the_margin_also_where_both_rates_exceed_one(margin, total):
    for kappa, mu in itertools.product((0.05, 0.6, 0.9), (0.5 - margin, 0.5 - 2 * margin)):
        expected = np.zeros(2)
        for i_first, answered in itertools.product((True, False), (True, False)):
            eprocess = start_eprocess(0.05, None, 2, margin=margin, shows_one=True)
            rate = total * (mu if i_first else 1 - mu)
            pair = (0, 1) if i_first else (1, 0)
            bet_on_ties(eprocess, *pair, answered, 1.0 if answered else 0.0, kappa)
            chance = 0.5 * (rate if answered else 1 - rate)
            expected += chance * np.exp(eprocess.tie_wealth[0, 1])
        if mu == 0.5 - margin:
            np.testing.assert_allclose(expected, 1.0, rtol=1e-9)
        else:
            assert (expected < 1.0).all()


def test_the_stake_on_silence_begins_small_and_follows_the_share_that_converts():
    eprocess = start_eprocess(0.05, None, 2, shows_one=True)
    assert share_now(eprocess) == pytest.approx(0.1)
    assert eprocess.kappa[0] == pytest.approx(0.1 / 1.9)
    eprocess.n_booked[0], eprocess.n_answered[0] = 10_000, 550
    fix_kappa(eprocess)
    assert eprocess.kappa[0] == pytest.approx(0.11 / 1.89, rel=0.01)
    plain = start_eprocess(0.05, None, 2)
    assert share_now(plain) == 0.75 and plain.kappa[0] == pytest.approx(0.6)


def test_three_arms_need_less_evidence_than_where_circles_are_possible():
    for by_clock in (False, True):
        one = start_eprocess(0.05, None, 5, by_clock=by_clock, shows_one=True)
        assert one.level < start_eprocess(0.05, None, 5, by_clock=by_clock).level
    player = ONE.start(3, seed=0, clock="wall")
    player.ask(at=0.0)
    player.add_arm("new")
    assert math.exp(player.standing().evidence.level) == pytest.approx(67.0, abs=0.01)
    assert "the arm that is shown" in player.standing().guarantee.words


def test_a_problem_with_rates_says_what_a_conversion_means():
    problem = Problem.from_rates([0.05, 0.2, 0.9], ["a", "b", "c"])
    assert problem.winner == 2 and problem.arms == ("a", "b", "c")
    assert problem.matrix[0, 1] == pytest.approx(0.2)
    np.testing.assert_array_equal(problem.chances, np.repeat([[0.05], [0.2], [0.9]], 3, axis=1))
    again = pickle.loads(pickle.dumps(problem))
    assert again == problem and again.rates.tolist() == [0.05, 0.2, 0.9]
    assert (
        problem != Problem(problem.matrix, problem.arms) and Problem(problem.matrix).rates is None
    )


@pytest.mark.parametrize(
    "rates", [[0.1], [0.0, 0.1], [0.1, 1.2], [[0.1, 0.2]], ["x", 1], [0.1, math.nan]]
)
def test_wrong_rates_are_refused(rates):
    with pytest.raises(InvalidValueError, match="rates must be") as error:
        Problem.from_rates(rates)
    assert error.value.argument == "rates"


def test_rates_are_a_world_of_pairs_whose_answered_share_is_their_sum():
    """Below one: what comes by an age is mu_ij (p_i + p_j) tau, the same as p_i tau."""
    rates, law = [0.05, 0.2, 0.6], delays.Geometric(0.3)
    one = Problem.from_rates(rates)
    pairs = delays.ByPair.of(3, lambda i, j: delays.parse(
        f"never:{1 - min(rates[i] + rates[j], 1.0)},(geometric:0.3)"
    ))  # fmt: skip
    off = ~np.eye(3, dtype=bool)
    for age in (1, 4, 50):
        whole = one.matrix * pairs.cdf(age)
        np.testing.assert_allclose(whole[off], (one.chances * law.cdf(age))[off])


def test_the_world_lets_the_first_arm_convert_with_its_own_rate():
    problem, rng = Problem.from_rates([0.9, 0.3]), np.random.default_rng(0)
    world, heard = make_world(problem, delays.Constant(1), None, 10), np.zeros((2, 2))
    for t in range(1, 4001):
        pair = divmod(t % 4, 2)
        let_duel(world, *pair, t, rng)
        heard[pair] += take_due(world, t + 1) >= 0
    np.testing.assert_allclose(heard / 1000, [[0.9, 0.9], [0.3, 0.3]], atol=0.05)


def test_one_arm_at_a_time_needs_rates_conversions_and_no_law():
    with pytest.raises(InvalidValueError, match="needs a problem with conversion rates"):
        duelay.simulate(
            Problem([[0.5, 0.6], [0.4, 0.5]]), ONE, delay="constant:1", horizon=9, runs=1
        )
    with pytest.raises(InvalidValueError, match="feedback must be conversions"):
        ONE.start(2, feedback="votes")
    with pytest.raises(InvalidValueError, match="delay must be left out"):
        duelay.Decide(display="one", delay="geometric:0.1")
    with pytest.raises(InvalidValueError, match="display"):
        duelay.Decide(display="both")
    votes = duelay.Setting(feedback="votes")
    options = {"delay": "constant:1", "horizon": 9, "runs": 1, "setting": votes}
    with pytest.raises(InvalidValueError, match="feedback must be conversions"):
        duelay.simulate(Problem.from_rates([0.1, 0.2]), duelay.Decide(), **options)
    history = duelay.Decide().start(2, seed=0).history()
    with pytest.raises(InvalidValueError, match="display='one'"):
        ONE.start(2, seed=0).replay(history)


@pytest.mark.compiled
@pytest.mark.parametrize("rates", [[0.3, 0.3], [0.5, 0.5, 0.1]])
@pytest.mark.parametrize("planned", [None, 0.1])
def test_equal_rates_are_declared_no_more_often_than_promised(rates, planned):
    policy = duelay.Decide(display="one", error=0.2, planned=planned)
    result = duelay.simulate(
        Problem.from_rates(rates), policy, runs=150, seed=4,
        delay="never:0.2,(zipf:1.2,300)", horizon=10_000, stop=0.2,
    )  # fmt: skip
    assert result.is_declared.mean() <= 0.2 + 3 * math.sqrt(0.2 * 0.8 / 150)
    better = duelay.simulate(
        Problem.from_rates([0.1, 0.2, 0.05]), ONE, runs=20, seed=4, horizon=20_000, stop=0.05,
        delay="never:0.2,(zipf:1.2,300)",
    )  # fmt: skip
    assert better.is_declared.all() and not better.is_wrong.any()
