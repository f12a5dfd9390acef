"""Rates, lifts and their intervals, against their definitions."""

import math

import numpy as np
import pytest

import naive
from duelay.errors import InvalidValueError
from duelay.inference.rates import find_rates, lift_of, margin_of_lift, rate_intervals, write_rates

JOINED = np.zeros(2, dtype=np.int64)


@pytest.mark.parametrize("n, won", [(0, 0), (40, 0), (40, 40), (1000, 53), (7, 3)])
def test_the_interval_has_the_rates_at_which_the_mixture_is_not_too_likely(n, won):
    low, high = rate_intervals(np.array([n, 9]), np.array([won, 1]), 0.05, JOINED)
    expected = naive.share_interval(won, n - won, 1, 0.05 / 3)
    assert (low[0], high[0]) == pytest.approx(expected, abs=2e-4)


def test_an_arm_that_joins_has_a_part_of_the_error_that_was_kept_for_it():
    counts = np.full(4, 100), np.full(4, 10)
    low, _ = rate_intervals(*counts, 0.05, np.array([0, 0, 1, 2]))
    parts = [1 / 3, 1 / 3, 1 / 6, 1 / 18]
    expected = [naive.share_interval(10, 90, 1, 0.05 * part)[0] for part in parts]
    np.testing.assert_allclose(low, expected, atol=2e-4)
    assert sum(parts) < 1


def test_all_intervals_hold_at_every_look():
    """Two arms with a rate of 20 %, looked at after every visitor."""
    rng, runs, n, missed = np.random.default_rng(0), 300, 400, 0
    visits = (np.arange(1, n + 1)[:, None] * np.ones(2)).astype(np.int64)
    for _ in range(runs):
        won = (rng.random((n, 2)) < 0.2).cumsum(axis=0)
        low, high = (np.array(ends) for ends in zip(*(
            rate_intervals(visits[k], won[k], 0.2, JOINED) for k in range(0, n, 7)
        ), strict=True))  # fmt: skip
        missed += bool(((low > 0.2) | (high < 0.2)).any())
    assert missed / runs <= 0.2 * 2 / 3 + 3 * math.sqrt(0.16 / runs)


def test_a_lift_and_the_margin_that_it_makes():
    for lift in (0.01, 0.2, 3.0):
        assert lift_of(0.5 + margin_of_lift(lift)) == pytest.approx(lift)
    assert lift_of([0.0, 0.5, 1.0]).tolist() == [-1.0, 0.0, math.inf]
    for wrong in (0.0, -0.1, "x"):
        with pytest.raises(InvalidValueError, match="lift"):
            margin_of_lift(wrong)


def test_rates_count_the_arm_that_was_shown():
    plays = np.array([[0, 10], [12, 0]])
    heard, closed = np.array([[0, 5], [3, 0]]), np.array([[0, 8], [10, 0]])
    converted = np.array([[0, 4], [3, 0]])
    share = np.array([[0.5, 2 / 3], [1 / 3, 0.5]])
    ends = np.array([[0, 0.2], [0.1, 0]]), np.array([[1, 0.9], [0.8, 1]])
    rates = find_rates(plays, heard, closed, converted, share, ends, 0.05, JOINED)
    assert rates.shown.tolist() == [10, 12] and rates.conversions.tolist() == [5, 3]
    assert rates.rate.tolist() == [0.5, 0.3] and rates.closed.tolist() == [8, 10]
    np.testing.assert_allclose(rates.lift, [[0, 1], [-0.5, 0]])
    np.testing.assert_allclose(rates.lift_lower, [[0, -0.75], [1 / 9 - 1, 0]])
    np.testing.assert_allclose(rates.lift_upper, [[0, 8], [3, 0]])
    words = write_rates([0, 1], ["a", "b"], 1, rates)
    assert "50.00 %" in words and "-50 %" in words and "leads" in words
    beyond = np.array([[0.5, 0.95], [0.05, 0.5]])
    rates = find_rates(plays, heard, closed, converted, beyond, ends, 0.05, JOINED)
    np.testing.assert_allclose(rates.lift, [[0, 8], [1 / 9 - 1, 0]])


def test_before_anything_is_known_every_rate_and_lift_is_possible():
    nothing = np.zeros((2, 2), dtype=np.int64)
    ends = np.full((2, 2), -np.inf), np.full((2, 2), np.inf)
    unheard = np.full((2, 2), np.nan)
    rates = find_rates(nothing, nothing, nothing, nothing, unheard, ends, 0.05, JOINED)
    assert np.isnan(rates.rate).all()
    assert rates.lower.tolist() == [0, 0] and rates.upper.tolist() == [1, 1]
    assert np.isnan(rates.lift[0, 1]) and rates.lift_lower[0, 1] == -1.0
    assert rates.lift_upper[0, 1] == np.inf
    assert "no window has closed" in write_rates([0, 1], ["a", "b"], None, rates)
