"""A law that is told, in numbers: how long silence is listened to, and what it is worth."""

import heapq
import math

import numpy as np
import pytest

import duelay
import naive
from duelay import delays
from duelay.ledger.evidence.eprocess import GAPS, evidence_weights
from duelay.ledger.evidence.known_law import (
    age_booked,
    kappa_at,
    last_age,
    start_known_law,
    start_known_law_in_time,
)
from duelay.problems import Problem
from helpers import PROBLEM

LONG = 1 << 16
TIED = Problem([[0.5, 0.5, 0.8], [0.5, 0.5, 0.7], [0.2, 0.3, 0.5]])
interpreted = pytest.mark.interpreted


@interpreted
@pytest.mark.parametrize(
    "law, last",
    [
        (delays.Constant(1), 1),
        (delays.Constant(50), 50),
        (delays.Never(0.3, delays.Constant(50)), 50),
        (delays.Uniform(1, 200), 198),
        (delays.Geometric(0.1), math.ceil(math.log(0.01) / math.log(0.9))),
        (delays.Empirical([0.5, 0.489, 0.001, 0.01]), 3),
        (delays.Empirical([0.995, 0.002, 0.003]), 1),
    ],
    ids=str,
)
def test_silence_is_listened_to_until_99_in_100_answers_have_come(law, last):
    told = start_known_law(law, LONG, 2, GAPS)
    assert last_age(told) == last
    np.testing.assert_allclose(told.tau[0], law.cdf(np.arange(last + 1)), rtol=1e-12)


@interpreted
def test_a_law_without_answers_is_listened_to_for_a_tick_and_tells_nothing():
    told = start_known_law(delays.Never(1.0, delays.Constant(1)), LONG, 2, GAPS)
    assert last_age(told) == 1 and told.worth == 0.0
    assert not told.kappa.any() and not told.won.any() and not told.lost.any()


@interpreted
def test_a_pair_that_never_answers_keeps_nobody_waiting():
    never, law = delays.Never(1.0, delays.Constant(1)), delays.Geometric(0.1)
    told = start_known_law(delays.ByPair.of(2, lambda i, j: never if i > j else law), LONG, 2, GAPS)
    assert last_age(told) == last_age(start_known_law(law, LONG, 2, GAPS))


@interpreted
@pytest.mark.parametrize("longest, last", [(64, 16), (9, 2), (4, 1), (3, 1)])
def test_the_laws_of_many_pairs_share_the_room(longest, last):
    law = delays.ByPair.of(2, lambda i, j: delays.Geometric(0.01 * (1 + i + 2 * j)))
    told = start_known_law(law, longest, 2, GAPS)
    assert told.tau.shape == (4, last + 1)
    assert len(np.unique(told.law)) == 4


@interpreted
@pytest.mark.parametrize("last, period", [(1, 1), (32, 1), (33, 2), (64, 2), (65, 3), (320, 10)])
def test_silences_are_brought_up_to_date_at_each_32nd_part(last, period):
    assert start_known_law(delays.Constant(last), LONG, 2, GAPS).period == period


@interpreted
def test_what_a_silence_is_worth_grows_with_the_answers_that_should_have_come():
    told = start_known_law(delays.Empirical([0.2, 0.3, 0.4]), LONG, 2, GAPS)
    kappa = [0.0, 0.2 / 1.8, 0.5 / 1.5, 0.9 / 1.1]
    np.testing.assert_allclose(told.kappa, [kappa], rtol=1e-12)
    np.testing.assert_allclose(np.exp(told.won[0, 2]), 1 + 2 * kappa[2] * GAPS, rtol=1e-12)
    np.testing.assert_allclose(np.exp(told.lost[0, 2]), 1 - 2 * kappa[2] * GAPS, rtol=1e-12)
    assert told.worth == pytest.approx(kappa[3])


@interpreted
def test_the_age_booked_is_that_of_the_last_refreshment():
    told = start_known_law(delays.Constant(9), LONG, 2, GAPS)
    assert age_booked(told, 1) == 0
    told.fresh[0] = 7
    assert [age_booked(told, born) for born in (3, 6, 7, 8)] == [4, 1, 0, 0]


LAWS_IN_TIME = {
    "exponential": delays.Exponential("20m"),
    "log-normal": delays.Never(0.2, delays.LogNormal("10m", 1.0)),
    "uniform": delays.Never(0.4, delays.Uniform("1m", "45m")),
    "constant": delays.Constant("2m"),
    "points": delays.Curve((60.0, 90.5, 1800.25), (0.3, 0.6, 0.9)),
}


@interpreted
@pytest.mark.parametrize("name", LAWS_IN_TIME)
def test_by_the_clock_a_silence_is_worth_what_the_law_says_at_its_age(name):
    law = LAWS_IN_TIME[name]
    told = start_known_law_in_time(law, math.inf, 2, GAPS)
    assert law.cdf(last_age(told)) >= 0.99 * (1 - law.never) - 1e-9
    assert told.period == last_age(told) / 32
    rng = np.random.default_rng(0)
    for age in [0.0, 59.999999, 60.0, 90.5, 119.999999, 120.0, *rng.uniform(0, 4000, 300)]:
        age = min(round(float(age), 6), last_age(told))
        tau = float(law.cdf(age))
        assert kappa_at(told, 0, age) == pytest.approx(tau / (2 - tau), abs=2.5e-4)
    now = 1.7e9 + 0.3  # far from 0 two times are apart but for a rounding error
    at_jump = (now + 120.0) - now
    assert kappa_at(told, 0, at_jump) == pytest.approx(kappa_at(told, 0, 120.0), abs=1e-6)


@interpreted
def test_by_the_clock_a_window_ends_what_is_listened_to_and_no_answer_is_worth_nothing():
    law = delays.Exponential("20m")
    assert last_age(start_known_law_in_time(law, 600.0, 2, GAPS)) == 600.0
    nobody = start_known_law_in_time(delays.Never(1.0, law), math.inf, 2, GAPS)
    assert nobody.worth == 0.0 and kappa_at(nobody, 0, 1e6) == 0.0


def play_by_clock(policy, law, at, check, problem=PROBLEM, seed=0):
    """Ask at the times given and tell when answers come; hand all to `check` after each ask."""
    rng = np.random.default_rng(seed)
    player, due, past = policy.start(problem.arms, seed=seed, clock="wall"), [], []
    for number, now in enumerate(at.tolist()):
        while due and due[0][0] <= now:
            then, duel = heapq.heappop(due)
            player.tell(duel, at=then)
        duel = player.ask(at=now)
        check(number, now, past, player)
        won = rng.random() < problem.matrix[duel.first, duel.second]
        late = float(np.rint(law.at(duel.first, duel.second).sample(1, seed=rng)[0] * 1e6) / 1e6)
        past.append(naive.Past(duel.first, duel.second, won, late))
        if won and math.isfinite(late):
            heapq.heappush(due, (round(now + late, 6), duel))
    return player


BY_PAIR = delays.ByPair.of(4, lambda i, j: delays.Exponential("5m" if i < j else "20m"))


@pytest.mark.long
@pytest.mark.interpreted
@pytest.mark.parametrize("law", [*LAWS_IN_TIME.values(), BY_PAIR], ids=[*LAWS_IN_TIME, "by pair"])
def test_by_the_clock_the_evidence_is_the_likelihood_of_all_that_is_heard(law):
    starts = 1.7e9 + 600.0 * np.arange(12)
    at = np.round((starts[:, None] + 7.5 * np.arange(10)).ravel(), 6)
    looks = []

    def check(number, now, past, player):
        eprocess = player._ledger.assumed
        if eprocess.looked[0] == number and number > 60:
            expected = naive.told_bets(
                past, now, 4, law, eprocess.window, GAPS, evidence_weights(), at
            )  # fmt: skip
            off = ~np.eye(4, dtype=bool)
            np.testing.assert_allclose(np.exp(eprocess.log_evidence[off]), expected[off], rtol=1e-4)
            looks.append(expected.max())

    play_by_clock(duelay.Decide(delay=law), law, at, check)
    assert len(looks) > 3 and max(looks) > 1.5


def test_by_the_clock_an_arm_joins_under_a_law_that_is_told_for_all_pairs_alone():
    player = duelay.Decide(delay="exponential:20m").start(["a", "b"], seed=0, clock="wall")
    _ = [player.ask(at=60.0 * n) for n in range(50)]
    player.add_arm("c")
    shown = {arm for n in range(50, 100) for arm in tuple(player.ask(at=60.0 * n))[1:]}
    assert 2 in shown
    by_pair = duelay.Decide(delay=BY_PAIR).start(4, seed=0, clock="wall")
    with pytest.raises(ValueError, match="delay must"):
        by_pair.add_arm("e")
    assert by_pair.n_arms == 4


@pytest.mark.compiled
@pytest.mark.parametrize("traffic", ["bursts:60,1h,1s", "poisson:1m"])
def test_of_two_tied_arms_none_is_declared_under_a_told_law_more_often_than_promised(traffic):
    law = delays.Never(0.3, delays.LogNormal("30m", 1.0))
    result = duelay.simulate(
        TIED, duelay.Decide(delay=law, error=0.2), delay=law, traffic=traffic, horizon=5000,
        runs=150, seed=5, stop=0.2,
    )  # fmt: skip
    assert result.is_wrong.mean() <= 0.2 + 3 * (0.2 * 0.8 / 150) ** 0.5


@pytest.mark.compiled
def test_a_told_law_in_time_saves_duels():
    law = delays.LogNormal("2h", 1.0)
    found = [
        duelay.simulate(
            PROBLEM, policy, delay=law, traffic="poisson:10s", horizon=20_000, runs=20, seed=5,
            stop=0.05,
        ).stopped.mean()
        for policy in (duelay.Decide(delay=law), duelay.Decide())
    ]  # fmt: skip
    assert found[0] < 0.95 * found[1]


@interpreted
def test_by_the_clock_a_conversion_after_w_is_the_silence_that_is_priced_at_w():
    """Also where no duel was asked between W and the conversion."""
    law, found = delays.Exponential("20m"), []
    for delay in (None, 7200.0, 600.0):  # W is 92 minutes
        player = duelay.Decide(delay=law).start(2, seed=0, clock="wall")
        duel = player.ask(at=1e9)
        if delay is not None:
            player.tell(duel, at=1e9 + delay)
        player.ask(at=1e9 + 10_000.0)
        found.append(player._ledger.assumed.log_evidence)
    np.testing.assert_array_equal(found[0], found[1])
    assert not np.array_equal(found[0], found[2])
