"""Guard-rails: intervals and alarms that hold at every look, against slow twins and simulation."""

import itertools
import math

import numpy as np
import pytest

from duelay.inference.guardrails import (
    _log_ratio,
    arm_shares,
    difference_interval,
    rate_interval,
)

CASES = [(0, 40, 3, 50), (9, 40, 3, 50), (30, 40, 3, 50), (7, 7, 0, 9), (2, 1000, 4, 1000)]


def predicted(outcomes):
    """The mixture, outcome by outcome: the next is a yes with (k + 1/2) / (n + 1)."""
    log, k = 0.0, 0
    for n, x in enumerate(outcomes):
        share = (k + 0.5) / (n + 1.0)
        log += math.log(share if x else 1.0 - share)
        k += x
    return log


def slow_excess(k, n, base_k, base_n, bound):
    """Mixture over the largest likelihood of all rates that keep the bound, on a grid."""
    mixed = predicted([1] * k + [0] * (n - k)) + predicted([1] * base_k + [0] * (base_n - base_k))
    grid = np.linspace(0.0, 1.0, 1001)
    own, other = grid[:, None], grid[None, :]
    with np.errstate(divide="ignore", invalid="ignore"):
        likelihood = np.nan_to_num(k * np.log(own), nan=0.0, neginf=-1e9)
        likelihood = likelihood + np.nan_to_num((n - k) * np.log(1 - own), nan=0.0, neginf=-1e9)
        likelihood = likelihood + np.nan_to_num(base_k * np.log(other), nan=0.0, neginf=-1e9)
        likelihood = likelihood + np.nan_to_num(
            (base_n - base_k) * np.log(1 - other), nan=0.0, neginf=-1e9
        )
    return mixed - likelihood[own <= other + bound + 1e-12].max()


def exceeds(k, n, base_k, base_n, bound, error):
    """Whether the lower end of the interval is above the bound, without a search for it."""
    excess = k / np.maximum(n, 1) - base_k / np.maximum(base_n, 1)
    is_over = (n > 0) & (base_n > 0) & (excess > bound)
    counts = (values.astype(np.float64) for values in (k, n, base_k, base_n))
    return _log_ratio(*counts, np.where(is_over, bound, excess)) >= -math.log(error)


@pytest.mark.parametrize("bound", [0.0, 0.02, 0.3])
@pytest.mark.parametrize("case", CASES)
def test_the_interval_ends_where_mixture_over_largest_likelihood_reaches_the_error(case, bound):
    evidence, slack = slow_excess(*case, bound), 0.02  # of the grid
    wide = difference_interval(*case, math.exp(-max(evidence, 0.0) - slack))
    assert wide.lower <= bound
    if evidence > slack:
        narrow = difference_interval(*case, math.exp(slack - evidence))
        assert narrow.lower > bound


@pytest.mark.parametrize("case", CASES)
def test_the_interval_of_a_difference_holds_it_and_has_a_mirror_image(case):
    for error in (0.05, 0.001):
        found = difference_interval(*case, error)
        assert found.lower <= found.mean <= found.upper
        for bound in (found.lower - 1e-6, found.lower + 1e-6):
            assert exceeds(*np.array(case), bound, error) == (bound < found.lower)
        mirrored = difference_interval(case[2], case[3], case[0], case[1], error)
        assert mirrored.lower == pytest.approx(-found.upper, abs=1e-9)


def test_the_interval_of_a_rate_is_what_the_mixture_does_not_refute():
    for k, n in ((0, 30), (4, 30), (30, 30)):
        low, high = rate_interval(k, n, 0.05)
        mixed = predicted([1] * k + [0] * (n - k))
        for rate in np.linspace(0.001, 0.999, 400):
            likelihood = k * math.log(rate) + (n - k) * math.log(1 - rate)
            assert (low <= rate <= high) == (mixed - likelihood < math.log(20))


def test_nothing_is_known_without_duels():
    found = difference_interval(0, 0, 0, 0, 0.05)
    assert (float(found.lower), float(found.upper)) == (-1.0, 1.0)
    # One arm alone bounds the difference by its own rate.
    found = difference_interval([0, 0, 3], [0, 4, 5], [0, 0, 0], [4, 0, 0], 0.05)
    assert np.isnan(found.mean).all() and (found.upper - found.lower > 1.0).all()
    assert found.upper[0] == 1.0 and found.lower[1] == -1.0 < found.lower[2]
    assert difference_interval(5, 5, 0, 0, math.exp(-1.0)).lower <= 0.0
    assert [float(end) for end in rate_interval(0, 0, 0.05)] == [0.0, 1.0]


def test_all_arms_together_have_the_error_however_many_join():
    for n_first, n_joined in itertools.product((2, 3, 6), (0, 1, 40)):
        joined = np.array([0] * n_first + list(range(1, n_joined + 1)))
        share = arm_shares(joined, 1)
        assert share[1] == 0.0 and share.sum() <= 1.0 + 1e-12 and (np.delete(share, 1) > 0).all()


@pytest.mark.parametrize("rates", [(0.07, 0.05), (0.32, 0.3), (0.02, 0.0)])
def test_at_the_bound_few_experiments_ever_alarm_whoever_is_asked(rates):
    """A look at every duel; an arm with fewer events so far is asked more often."""
    runs, duels, error, bound = 400, 1500, 0.2, 0.02
    rng = np.random.default_rng(5)
    k, n = np.zeros((runs, 2)), np.zeros((runs, 2))
    alarmed = np.zeros(runs, dtype=bool)
    each = np.arange(runs)
    for t in range(duels):
        is_less = (k[:, 0] + 1) / (n[:, 0] + 2) < (k[:, 1] + 1) / (n[:, 1] + 2)
        arm = (rng.random(runs) < np.where(is_less, 0.3, 0.7)).astype(int)
        k[each, arm] += rng.random(runs) < np.array(rates)[arm]
        n[each, arm] += 1
        if t % 5 == 0:
            alarmed |= exceeds(k[:, 0], n[:, 0], k[:, 1], n[:, 1], bound, error)
    assert alarmed.mean() <= error + 3 * math.sqrt(error * (1 - error) / runs)


def test_a_worse_arm_is_found():
    rng = np.random.default_rng(1)
    k = rng.binomial(8000, 0.09, size=50)
    base = rng.binomial(8000, 0.05, size=50)
    assert (difference_interval(k, 8000, base, 8000, 0.05).lower > 0.01).mean() > 0.9
