"""Whether pairs differ in how often they answer, where no coin decides the order."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats

from duelay import History
from duelay.assumptions import share_by_pair

NAN = math.nan


def a_log(seed, never, n=4000):
    """Conversions of four arms, the stronger mostly first; never (K, K) by pair."""
    rng = np.random.default_rng(seed)
    i, j = np.array([(a, b) for a in range(4) for b in range(4) if a != b])[
        rng.integers(12, size=n)
    ].T
    swap = (i > j) & (rng.random(n) < 0.6)
    i, j = np.where(swap, j, i), np.where(swap, i, j)
    won = rng.random(n) < 0.5 + 0.08 * (j - i)
    comes = rng.random(n) >= never[np.minimum(i, j), np.maximum(i, j)]
    heard = won & comes
    delay = np.where(heard, rng.exponential(60, n), NAN)
    return History(n_arms=4, first=i, second=j, delay=delay, first_won=np.where(heard, 1, NAN),
                   at=1.7e9 + np.arange(n) * 10.0, now=1.7e9 + n * 10.0 + 5000.0,
                   order="champion")  # fmt: skip


def test_the_level_is_held_without_a_difference():
    alarms = sum(share_by_pair(a_log(seed, np.full((4, 4), 0.2))).is_alarm for seed in range(200))
    assert alarms <= scipy.stats.binom.ppf(0.999, 200, 0.05)


def test_a_pair_that_answers_less_often_is_found_and_named():
    never = np.full((4, 4), 0.1)
    never[0, 2] = 0.6
    found = [share_by_pair(a_log(seed, never)) for seed in range(30)]
    assert sum(finding.is_alarm for finding in found) >= 27
    assert sum("0 and 2 in" in finding.sentence for finding in found) >= 25


def test_the_statistic_by_hand():
    """Two pairs: rates 30/60 + 15/60 and 20/40 + 10/40."""
    first = np.repeat([0, 1, 0, 2], [60, 60, 40, 40])
    second = np.repeat([1, 0, 2, 0], [60, 60, 40, 40])
    won = np.concatenate([np.arange(60) < 30, np.arange(60) < 15, np.arange(40) < 20,
                          np.arange(40) < 2])  # fmt: skip
    delay = np.where(won, 1.0, NAN)
    log = History(n_arms=3, first=first, second=second, delay=delay,
                  first_won=np.where(won, 1.0, NAN), at=1.7e9 + np.arange(200.0),
                  now=1.7e9 + 1000.0, order="champion")  # fmt: skip

    def variance(won, n):
        share = (won + 1) / (n + 2)
        return share * (1 - share) / n

    sums = np.array([0.75, 0.55])
    weight = 1 / np.array([variance(30, 60) + variance(15, 60), variance(20, 40) + variance(2, 40)])
    mean = (weight * sums).sum() / weight.sum()
    found = share_by_pair(log)
    assert found.statistic == pytest.approx((weight * (sums - mean) ** 2).sum())
    assert found.p_value == pytest.approx(scipy.stats.chi2.sf(found.statistic, 1))


def test_where_no_two_pairs_were_shown_in_both_orders_nothing_is_told():
    log = History(n_arms=2, first=[0] * 50, second=[1] * 50, delay=[1.0] * 50, first_won=[1.0] * 50,
                  at=1.7e9 + np.arange(50.0), now=1.7e9 + 100.0)  # fmt: skip
    assert math.isnan(share_by_pair(log).p_value)
