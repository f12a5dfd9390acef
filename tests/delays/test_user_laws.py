"""Laws of somebody's own are refused at the front door where they are none, with the age."""

import math
import re
import warnings
from dataclasses import dataclass

import numpy as np
import pytest

import duelay
from duelay import delays
from duelay.delays import ByPair, Geometric, Never


@dataclass(frozen=True)
class Own(delays.Law):
    name: str
    in_time: bool = False

    def cdf(self, t):
        return CDFS[self.name](np.asarray(t))


CDFS = {
    "decays": lambda t: np.exp(-t / 100),
    "overshoots": lambda t: np.minimum(t / 1000, 1.5),
    "touches 1": lambda t: np.minimum(t * 0.2, 1.5),
    "dips": lambda t: np.where((t >= 21) & (t <= 24), 0.5, np.minimum(0.03 * t, 1.0)),
    "starts below": lambda t: np.where(t == 0, 0.0, np.where(t < 5, -0.1, 1.0)),
    "starts above": lambda t: np.where(t < 5, 0.1, 1.0),
    "is nan": lambda t: np.where(t > 2000, np.nan, 1.0 - 0.99**t),
    "falls late": lambda t: np.where(t > 10**5, 0.3, np.minimum(0.4, t / 10)),
    "sums up": lambda t: 0.1 * (t >= 1) + 0.2 * (t >= 2) + 0.7 * (t >= 3) + 4e-16 * (t == 40),
    "ends": lambda t: np.linspace(0, 1, 30)[t],
    "raises": lambda t: np.array([1 - 1 / math.exp(age) for age in t]),
    "overflows": lambda t: 1 - 1 / np.exp(t),
    "grows": lambda t: 1 - 1 / (1.0 + t**3),
    "exponential": lambda t: 1 - np.exp(-t / 100),
    "heavy": lambda t: 1 - 1 / (1.0 + t) ** 0.01,
    "narrow": lambda t: np.minimum(np.asarray(t).astype(np.int32), 7) / 7,
    "tops out": lambda t: 0.7 * (1 - np.exp(-t / 100)),
    "table tops out": lambda t: np.linspace(0, 0.7, 30)[np.minimum(t, 29)],
}
TICKS = "delay must have a cdf that is 0 at age 0 and rises to at most 1, got "
TIME = "delay must have a cdf that rises from at least 0 to at most 1, got "
NO_LAWS = [
    (Own("decays", True), TIME + "a fall from 0.99999 at age 0.001 seconds to 0.999984 at age"),
    (Own("overshoots", True), TIME + "1.5 at age 1584.89 seconds from Own("),
    (Own("decays"), TICKS + "1 at age 0 from Own("),
    (Own("touches 1"), TICKS + "1.2 at age 6 from Own("),
    (Own("dips"), TICKS + "a fall from 0.6 at age 20 to 0.5 at age 21 from Own("),
    (Own("starts below"), TICKS + "-0.1 at age 1 from Own("),
    (Own("starts above"), TICKS + "0.1 at age 0 from Own("),
    (Own("is nan"), TICKS + "nan at age "),
    (Own("falls late"), TICKS + "a fall from 0.4 at age "),
]


@pytest.mark.parametrize(("law", "message"), NO_LAWS)
def test_a_law_that_is_none_is_refused_with_the_age_and_what_it_says_there(law, message):
    for delay in (law, Never(0.2, law), Never(0.2, Never(0.1, law)), ByPair((law,) * 4)):
        with pytest.raises(ValueError, match=re.escape(message)) as error:
            delays.check(delay)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "law", [Own("tops out"), Own("tops out", True), Own("table tops out")], ids=str
)
def test_a_law_whose_cdf_does_not_end_at_one_minus_never_is_refused(law):
    with pytest.raises(
        ValueError, match=r"0\.7 in the end, and never is 0; .* returns 0\.3"
    ) as told:
        delays.check(law)
    assert told.value.argument == "delay"

    class Right(Own):
        never = 0.3

    assert delays.check(Right(law.name, law.in_time)).never == 0.3

    class TooMuch(Own):
        never = 0.4

    with pytest.raises(ValueError, match=r"never is 0\.4; .* returns 0\.3"):
        delays.check(TooMuch(law.name, law.in_time))


def test_one_of_many_laws_by_pair_is_enough_to_be_refused():
    laws = (Geometric(0.1), Geometric(0.1), Own("touches 1"), Geometric(0.1))
    with pytest.raises(ValueError, match=r"got 1\.2 at age 6"):
        delays.check(ByPair(laws))


def test_no_simulation_begins_under_a_law_that_is_none():
    problem = duelay.problems.arithmetic(3, 0.1)
    with pytest.raises(ValueError, match=r"got 1\.2 at age 6"):
        duelay.simulate(problem, duelay.RUCB(), delay=Own("touches 1"), horizon=5)
    with pytest.raises(ValueError, match=r"a fall from 0\.99999 at age 0\.001 seconds"):
        duelay.simulate(
            problem,
            duelay.DoubleThompson(),
            delay=Own("decays", True),
            horizon=5,
            traffic="steady:10s",
        )
    with pytest.raises(ValueError, match=r"got 1\.2 at age 6"):
        duelay.RUCBDelay(delay=Own("touches 1"))


@pytest.mark.parametrize(
    "law",
    [
        Own("sums up"),  # to a little above 1, and falls by as little
        Own("ends"),  # where no duel may get to
        Own("raises"),  # OverflowError, as math does
        Own("overflows"),
        Own("grows"),  # t³ of a whole number has room
        Own("exponential", True),
        Own("heavy"),
        Own("heavy", True),
        Own("narrow"),
    ],
)
def test_a_law_that_is_one_but_for_rounding_and_ages_far_away_is_not_refused(law):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert delays.check(law) is law


def test_a_table_that_falls_is_refused_with_the_age_however_little_it_falls():
    with pytest.raises(ValueError, match=r"a fall from 0\.6 at age 20 to 0\.5 at age 21 from Own"):
        delays.tables(Own("dips"), 2, 100)

    class Little(delays.Law):
        support = 4.0

        def cdf(self, t):
            return np.array([0.0, 0.1 + 0.2, 0.3, 1.0, 1.0])[np.minimum(t, 4)]

    with pytest.raises(
        ValueError, match=r"from 0\.30000000000000004 at age 1 to 0\.29999999999999999 at age 2"
    ):
        delays.tables(Little(), 2, 4)
