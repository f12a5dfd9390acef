"""Borda's elimination against its definition, on ledgers at random."""

import math

import numpy as np
import pytest

import naive
from duelay import delays
from duelay.inference.borda_scores import is_behind
from duelay.ledger import age_to, assume, open_ledger, record
from duelay.ledger.delay_models.base import FOREVER
from duelay.policies.borda import borda_rule, drop_arms, log_error_at
from duelay.policies.turn import calm_until, turn


def played(rng, law, n_arms, ticks, strong=0):
    """A ledger after duels at random, of which the arm `strong` wins nearly all."""
    ledger = open_ledger(assume(law, None, n_arms), n_arms)
    for t in range(1, ticks + 1):
        age_to(ledger, t)
        i, j = (int(arm) for arm in rng.choice(n_arms, size=2, replace=False))
        record(ledger, i, j, t)
        chance = 0.9 if i == strong else 0.1 if j == strong else 0.5
        ledger.conversions[i, j] += rng.random() < chance
    age_to(ledger, ticks + 1)
    return ledger


@pytest.mark.long
@pytest.mark.interpreted
@pytest.mark.parametrize("law", [None, delays.Constant(1), delays.Geometric(0.2)], ids=str)
@pytest.mark.parametrize("n_arms", [2, 3, 5])
def test_an_arm_is_behind_where_the_bound_says_so(law, n_arms):
    rng, verdicts = np.random.default_rng(n_arms), []
    for _ in range(30):
        ledger = played(rng, law, n_arms, int(rng.integers(1, 60 * n_arms)))
        told, t = ledger.estimates(), int(rng.integers(5, 400))
        for i, j in ((0, 1), (1, 0), (n_arms - 1, 0)):
            error = math.exp(-rng.exponential(3.0))
            expected = naive.is_behind(told.n, told.expected, told.wins, i, j, error, t)
            assert is_behind(ledger, i, j, -math.log(error), t) == expected
            verdicts.append(expected)
    assert 5 < sum(verdicts) < len(verdicts) - 5


def test_nobody_is_behind_while_a_pair_has_not_been_heard_of():
    """Arm 1 has won all of its duels with 2, arm 0 none: but the two have never met."""
    ledger = open_ledger(assume(None, None, 3), 3)
    ledger.plays[1, 2] = ledger.conversions[1, 2] = ledger.plays[0, 2] = 1000
    assert not is_behind(ledger, 0, 1, 1.0, 3000)
    ledger.plays[1, 0] = ledger.conversions[1, 0] = 1000
    assert is_behind(ledger, 0, 1, 1.0, 3000) and not is_behind(ledger, 1, 0, 1.0, 3000)


def test_a_look_drops_those_behind_an_active_arm_all_at_once():
    """Arm 0 is behind 1, and 1 behind 2: both go. Arm 3, which is out already, drops nobody."""
    ledger = open_ledger(assume(None, None, 4), 4)
    for i in range(4):
        for j in range(i):
            ledger.plays[i, j] = ledger.conversions[i, j] = 1000
    rule = borda_rule(0.05, 4)
    rule.active[3] = False
    drop_arms(rule, ledger, 6000)
    assert rule.active.tolist() == [False, False, True, False]
    rule.active[:] = [True, True, False, False]
    drop_arms(rule, ledger, 6000)
    assert rule.active.tolist() == [False, True, False, False]


def test_the_error_of_a_comparison_shrinks_with_the_square_of_the_look():
    for look in (1, 2, 7):
        error = 0.05 * 6 / math.pi**2 / look**2 / 4
        assert log_error_at(0.05, 5, look) == pytest.approx(-math.log(error))


@pytest.mark.parametrize("n_arms, looks", [(3, [30, 33, 36, 39, 42, 46]), (12, [120, 132, 145])])
def test_looks_begin_at_ten_ticks_an_arm_and_grow_by_a_tenth(n_arms, looks):
    """Every pair is even, so nobody is ever dropped."""
    rule, ledger = borda_rule(0.05, n_arms), open_ledger(assume(None, None, n_arms), n_arms)
    rng, seen = np.random.default_rng(0), []
    for t in range(1, looks[-1] + 1):
        before = rule.look[0]
        turn(rule, ledger, t, rng)
        ledger.conversions[:] = (ledger.plays + 1) // 2
        if rule.look[0] != before:
            seen.append(t)
    assert seen == looks and rule.active.all()
    assert rule.n_look[0] == 1 + len(looks)


def test_the_last_two_arms_are_told_apart():
    """All duels are silent: arm 0, always first, loses each of them, and goes at the first look."""
    rule, ledger = borda_rule(0.05, 2), open_ledger(assume(None, None, 2), 2)
    rng = np.random.default_rng(0)
    duels = [turn(rule, ledger, t, rng) for t in range(1, 23)]
    assert duels == 19 * [(0, 1)] + 3 * [(1, 1)]


def test_every_pair_with_an_active_arm_is_played_in_turn():
    """Arms 1 and 3 are out: the pair of both is left out, each other one comes once a round."""
    rule, ledger = borda_rule(0.05, 4), open_ledger(assume(None, None, 4), 4)
    rule.active[[1, 3]] = False
    rng = np.random.default_rng(0)
    round_of_five = [turn(rule, ledger, t, rng) for t in range(1, 11)]
    assert round_of_five == 2 * [(0, 1), (0, 2), (0, 3), (1, 2), (2, 3)]


def test_the_arm_that_is_left_duels_itself_for_ever():
    rule, ledger = borda_rule(0.05, 3), open_ledger(assume(None, None, 3), 3)
    rule.active[[0, 2]] = False
    assert turn(rule, ledger, 1, np.random.default_rng(0)) == (1, 1)
    assert calm_until(rule, ledger, 1, 5) == FOREVER
