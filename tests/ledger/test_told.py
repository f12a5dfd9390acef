"""A law that is told, in numbers: how long silence is listened to, and what it is worth."""

import math

import numpy as np
import pytest

from duelay import delays
from duelay.ledger.bets import GAPS
from duelay.ledger.told import age_booked, last_age, start_told

LONG = 1 << 16
pytestmark = pytest.mark.interpreted


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
    told = start_told(law, LONG, 2, GAPS)
    assert last_age(told) == last
    np.testing.assert_allclose(told.tau[0], law.cdf(np.arange(last + 1)), rtol=1e-12)


def test_a_law_without_answers_is_listened_to_for_a_tick_and_tells_nothing():
    told = start_told(delays.Never(1.0, delays.Constant(1)), LONG, 2, GAPS)
    assert last_age(told) == 1 and told.worth == 0.0
    assert not told.kappa.any() and not told.won.any() and not told.lost.any()


def test_a_pair_that_never_answers_keeps_nobody_waiting():
    never, law = delays.Never(1.0, delays.Constant(1)), delays.Geometric(0.1)
    told = start_told(delays.ByPair.of(2, lambda i, j: never if i > j else law), LONG, 2, GAPS)
    assert last_age(told) == last_age(start_told(law, LONG, 2, GAPS))


@pytest.mark.parametrize("longest, last", [(64, 16), (9, 2), (4, 1), (3, 1)])
def test_the_laws_of_many_pairs_share_the_room(longest, last):
    law = delays.ByPair.of(2, lambda i, j: delays.Geometric(0.01 * (1 + i + 2 * j)))
    told = start_told(law, longest, 2, GAPS)
    assert told.tau.shape == (4, last + 1)
    assert len(np.unique(told.law)) == 4


@pytest.mark.parametrize("last, period", [(1, 1), (32, 1), (33, 2), (64, 2), (65, 3), (320, 10)])
def test_silences_are_brought_up_to_date_at_each_32nd_part(last, period):
    assert start_told(delays.Constant(last), LONG, 2, GAPS).period == period


def test_what_a_silence_is_worth_grows_with_the_answers_that_should_have_come():
    told = start_told(delays.Empirical([0.2, 0.3, 0.4]), LONG, 2, GAPS)
    kappa = [0.0, 0.2 / 1.8, 0.5 / 1.5, 0.9 / 1.1]
    np.testing.assert_allclose(told.kappa, [kappa], rtol=1e-12)
    np.testing.assert_allclose(np.exp(told.won[0, 2]), 1 + 2 * kappa[2] * GAPS, rtol=1e-12)
    np.testing.assert_allclose(np.exp(told.lost[0, 2]), 1 - 2 * kappa[2] * GAPS, rtol=1e-12)
    assert told.worth == pytest.approx(kappa[3])


def test_the_age_booked_is_that_of_the_last_refreshment():
    told = start_told(delays.Constant(9), LONG, 2, GAPS)
    assert age_booked(told, 1) == 0
    told.fresh[0] = 7
    assert [age_booked(told, born) for born in (3, 6, 7, 8)] == [4, 1, 0, 0]
