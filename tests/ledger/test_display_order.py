"""Which arm is shown first."""

import numpy as np
import pytest

from duelay.ledger import assume, for_votes, open_ledger
from duelay.ledger.display_order import arrange, start_order
from helpers import Fixed


@pytest.mark.interpreted  # compiled, a generator is NumPy's
@pytest.mark.parametrize(("drawn", "shown"), [(0.0, (2, 1)), (0.49, (2, 1)), (0.51, (1, 2))])
def test_by_coin_half_of_the_draws_turn_the_pair_round(drawn, shown):
    assert arrange(start_order("coin", 3), 1, 2, Fixed(drawn)) == shown


@pytest.mark.interpreted
@pytest.mark.parametrize("drawn", [0.0, 0.49, 0.51, 0.99])
def test_in_turns_a_coin_decides_who_begins(drawn):
    order = start_order("alternate", 3)
    first = arrange(order, 1, 2, Fixed(drawn))
    assert first == ((2, 1) if drawn < 0.5 else (1, 2))
    for _ in range(3):  # in whichever order the pair is chosen, and whatever is drawn
        assert arrange(order, 2, 1, Fixed(0.99)) == first[::-1]
        assert arrange(order, 1, 2, Fixed(0.0)) == first


def test_each_pair_has_turns_of_its_own():
    rng = np.random.default_rng(0)
    begins = np.zeros((20, 20))
    order = start_order("alternate", 20)
    for i in range(20):
        for j in range(i):
            begins[arrange(order, i, j, rng)] += 1
    ahead = np.tril(begins).sum()
    assert abs(ahead - 95) < 3 * np.sqrt(190) / 2  # of 190 pairs


def test_the_champion_and_self_duels_are_shown_as_they_come():
    rng = np.random.default_rng(0)
    assert arrange(start_order("champion", 3), 2, 1, rng) == (2, 1)
    for order in ("champion", "coin", "alternate"):
        assert arrange(start_order(order, 3), 1, 1, rng) == (1, 1)


def test_votes_are_not_corrected_unless_that_is_asked_for():
    ledger = open_ledger(assume(None, None, 3), 3)
    assert not for_votes(ledger).assumed.is_corrected
    assert for_votes(ledger, corrects_position=True).assumed.is_corrected
