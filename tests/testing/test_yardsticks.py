"""Yardsticks play what the fast rules play; tests/simulation/test_shortcuts.py has longer runs."""

import numpy as np
import pytest

import duelay
import yardsticks
from duelay import delays
from duelay.testing import compiled_duels
from helpers import PROBLEM

LAW = delays.Geometric(0.3)


@pytest.mark.interpreted  # compiled in test_shortcuts
def test_plain_rucb_delay_gives_the_same_duels():
    known = {"delay": LAW, "window": 20}
    plain = compiled_duels(yardsticks.PlainRUCBDelay(**known), PROBLEM, LAW, 150)
    assert plain == compiled_duels(duelay.RUCBDelay(**known), PROBLEM, LAW, 150)


@pytest.mark.interpreted
def test_plain_double_thompson_finds_the_winner_too():
    result = duelay.simulate(
        PROBLEM, yardsticks.PlainDoubleThompson(), delay=LAW, horizon=400, runs=2, seed=0
    )
    assert (result.leader == PROBLEM.winner).all()
    assert np.isfinite(result.final).all()
