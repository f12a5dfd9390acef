"""What a further arm costs, of experiments in a store: in Python, in words, and in the shell."""

import numpy as np
import pytest

from duelay.errors import InvalidValueError
from duelay.inference.arm_cost import ArmCost
from duelay.inference.forecast import MAX_DUELS, DuelsLeft
from duelay.live import Experiment
from duelay.live.arm_cost import ArmCostReport, _in_words
from live.hours import Hours, browser

MU = np.array([[0.5, 0.8, 0.95], [0.2, 0.5, 0.8], [0.05, 0.2, 0.5]])
ARMS = ["a", "b", "c"]
ANY = DuelsLeft(1, 2, 3)


@pytest.fixture
def hours():
    return Hours()


def made(url, hours, n, **options):
    experiment = Experiment.create(url, "x", ARMS, clock=hours, window="1h", **options)
    browser(experiment, hours, n, MU, never=0.0)
    return experiment


def test_too_early_nothing_is_said_of_the_cost(url, hours):
    found = made(url, hours, 10).cost_of_arm()
    assert found.duels is None and found.days is None and found.left is None
    assert "too early to say" in found.words == str(found)


def test_a_further_arm_costs_duels_and_days(url, hours):
    experiment = made(url, hours, 400)
    found = experiment.cost_of_arm("new")
    low, middle, high = found.duels
    assert low <= middle <= high and middle > 0 and found.words.startswith("new ")
    gap = experiment.standing().seconds_per_duel
    assert found.days == pytest.approx([n * gap / 86_400 for n in found.duels])
    assert experiment.arms == tuple(ARMS)  # nothing is changed
    assert ArmCostReport.from_json({**found.to_json(), "of a later version": 1}) == found
    with pytest.raises(InvalidValueError, match="b"):
        experiment.cost_of_arm("b")


def test_a_retired_arm_comes_back_with_what_is_known_of_it(url, hours):
    """A clear loser costs less when it comes back than an arm of which nothing is known."""
    experiment = made(url, hours, 400)
    experiment.retire_arm("c")
    back, new = experiment.cost_of_arm("c"), experiment.cost_of_arm("d")
    assert back.left[1] < new.left[1] and back.duels[1] < new.duels[1]


def test_where_no_duels_are_asked_any_more_an_arm_has_no_cost(url, hours):
    found = made(url, hours, 60, budget=50).cost_of_arm()
    assert found.duels is None and "stopped" in found.words
    with Experiment.create(url, "y", ARMS, clock=hours, goal="regret") as saves:
        assert saves.cost_of_arm().duels is None


@pytest.mark.parametrize(
    "more, gap, parts",
    [
        (DuelsLeft(900, 2400, 9000), 86.4, ["about 2,400", "900 and 9,000", "day", "visitors"]),
        (DuelsLeft(-70, 2400, 9000), None, ["70 fewer and 9,000 more"]),
        (DuelsLeft(900, 2400, MAX_DUELS), None, ["900 or many more"]),
        (DuelsLeft(900, MAX_DUELS, MAX_DUELS), None, ["more than 900"]),
    ],
)
def test_the_range_of_a_cost_is_said_as_it_is(more, gap, parts):
    words = _in_words(ArmCost(more, ANY), gap, "visitors", None)
    assert all(part in words for part in parts) and ("traffic" in words) == (gap is not None)
    assert f"{MAX_DUELS:,}" not in words
