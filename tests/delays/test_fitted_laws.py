"""The delay law of a log: curves against slow twins, laws that are found again."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize

import duelay
import made_logs
from duelay import History, delays
from duelay.delays import fitted_laws, joint_estimation
from duelay.delays.fitted_laws import FAMILIES, estimate_delays
from duelay.delays.joint_estimation import estimate_jointly
from duelay.delays.survival import learn_curve, watch

NAN = math.nan


def history(first, second, delay, *, age, order="coin", window=None, votes=False):
    """A log by the clock; each duel is as old as `age` says."""
    by_age = np.argsort(-np.asarray(age, dtype=float), kind="stable")
    first, second, delay, age = (np.asarray(x)[by_age] for x in (first, second, delay, age))
    won = np.where(np.isnan(delay), NAN, 1.0)
    return History(
        n_arms=int(max(first.max(), second.max())) + 1, first=first, second=second, delay=delay,
        first_won=won, at=1e9 - age, now=1e9, order=order, window=window,
        feedback="votes" if votes else "conversions",
    )  # fmt: skip


def slow_curve(log, chance, age):
    """(1 - Kaplan-Meier) / chance, duel by duel, from the definition."""
    survival, watched = 1.0, []
    for i, j, delay, old in zip(log.first, log.second, log.delay, log.ages, strict=True):
        if i != j:
            watched.append((old, True) if math.isnan(delay) else (delay, False))
    for moment in sorted({left for left, is_silent in watched if not is_silent}):
        if moment > age:
            break
        at_risk = sum(left >= moment for left, _ in watched)
        events = sum(left == moment and not is_silent for left, is_silent in watched)
        survival *= 1.0 - events / at_risk
    return (1.0 - survival) / chance


@pytest.mark.parametrize("seed", range(3))
def test_the_curve_is_kaplan_meier_over_the_chance(seed):
    rng = np.random.default_rng(seed)
    n = 160
    age, delay = rng.uniform(1, 100, n).round(), rng.exponential(40, n).round()
    first = rng.integers(3, size=n)
    second = rng.integers(3, size=n)
    delay[(delay > age) | (rng.random(n) < 0.5)] = NAN
    log = history(first, second, delay, age=age)
    learned = learn_curve(watch(log), 0.5)
    for moment in (0.0, 5.0, 20.0, float(learned.ages[-1])):
        assert learned.at(moment)[0] == pytest.approx(slow_curve(log, 0.5, moment))


def test_the_curve_ends_where_hardly_a_duel_is_watched():
    age = np.arange(1.0, 201.0)
    delay = np.where(age == 200, 199.0, np.where(age > 5, 5.0, NAN))
    log = history(np.zeros(200, int), np.ones(200, int), delay, age=age, votes=True)
    learned = learn_curve(watch(log), 1.0)
    assert learned.ages.tolist() == [5.0]  # at age 199 there are two


def test_an_answer_in_ticks_may_be_told_as_soon_as_its_duel_is_so_old():
    log = History(n_arms=2, first=[0, 1], second=[1, 0], delay=[NAN, 1], first_won=[NAN, 1])
    watched = watch(log)
    assert watched.exit.tolist() == [1, 1] and watched.is_heard.tolist() == [False, True]


def test_a_window_ends_the_watch():
    log = history([0, 0], [1, 1], [NAN, 30.0], age=[500.0, 400.0],
                  window=delays.Duration("1m"))  # fmt: skip
    assert watch(log).exit.tolist() == [60.0, 30.0]


@pytest.mark.long
@pytest.mark.parametrize("seed", [0, 1])
def test_preferences_and_law_together_are_the_most_likely_ones(seed):
    """Against a minimizer that knows only the likelihood of the definition."""
    rng = np.random.default_rng(seed)
    n, mu, tau = 900, 0.7, np.array([0.3, 0.5, 0.8])  # by ages 10, 20 and 30
    first = (rng.random(n) < 0.25).astype(int)  # arm 0 is mostly first
    age = rng.choice([9.0, 10.0, 20.0, 30.0, 50.0], n)
    won = rng.random(n) < np.where(first == 0, mu, 1 - mu)
    delay = 10.0 * (1 + np.searchsorted(tau, rng.random(n)))
    delay = np.where(won & (delay <= np.minimum(age, 30.0)), delay, NAN)
    log = history(first, 1 - first, delay, age=age, order="champion")
    found = estimate_jointly(watch(log), 2)

    def cost(theta):
        m = 1 / (1 + math.exp(-theta[0]))
        q = np.exp(theta[1:4]) / (1 + np.exp(theta[1:4]).sum())
        total = 0.0
        for i, d, a in zip(log.first, log.delay, log.ages, strict=True):
            mine = m if i == 0 else 1 - m
            passed = int(min(a // 10, 3))
            if math.isnan(d):
                total += math.log(1 - mine * q[:passed].sum())
            else:
                total += math.log(mine * q[int(d // 10) - 1])
        return -total

    best = optimize.minimize(cost, np.zeros(4), method="BFGS")
    q = np.exp(best.x[1:4]) / (1 + np.exp(best.x[1:4]).sum())
    assert found.mean[0, 1] == pytest.approx(1 / (1 + math.exp(-best.x[0])), abs=2e-4)
    assert found.law.tau == pytest.approx(np.cumsum(q), abs=5e-4)
    slope = found.mean[0, 1] * found.mean[1, 0]  # of mu in its logit
    step, at = 1e-3, best.x
    hessian = np.zeros((4, 4))
    for a, b in np.ndindex(4, 4):
        d, e = step * np.eye(4)[a], step * np.eye(4)[b]
        hessian[a, b] = (cost(at + d + e) - cost(at + d - e) - cost(at - d + e)
                         + cost(at - d - e)) / (4 * step**2)  # fmt: skip
    error = slope * math.sqrt(np.linalg.inv(hessian)[0, 0])
    assert found.error[0, 1] == pytest.approx(error, rel=0.02)


def test_where_no_pair_was_shown_in_both_orders_the_law_is_refused():
    n = 200
    log = history([0] * n, [1] * n, [5.0] * n, age=[50.0] * n, order="champion")
    with pytest.raises(ValueError, match="each order"):
        delays.fit(log)


def test_without_an_answer_there_is_no_law():
    with pytest.raises(ValueError, match="none has been heard"):
        delays.fit(history([0], [1], [NAN], age=[5.0]))


TRUE = {
    "exponential": delays.Exponential("20m"),
    "weibull": delays.Never(0.2, delays.Weibull(0.5, "20m")),
    "log-normal": delays.Never(0.3, delays.LogNormal("10m", 1.0)),
    "gamma": delays.Never(0.1, delays.Gamma(4.0, "5m")),
}


def answered(law, n, seed, *, votes=True, days=2.0):
    rng = np.random.default_rng(seed)
    age = rng.uniform(0, days * 86_400, n).round(6)
    delay = np.where(rng.random(n) < law.never, np.inf,
                     law.quantile((1 - law.never) * rng.random(n)))  # fmt: skip
    heard = (delay <= age) & (votes | (rng.random(n) < 0.5))
    first = rng.integers(2, size=n)
    return history(first, 1 - first, np.where(heard, delay, NAN), age=age, votes=votes)


@pytest.mark.compiled
@pytest.mark.parametrize("name", FAMILIES)
def test_a_law_is_found_again(name):
    law = TRUE[name]
    found = estimate_delays(answered(law, 6000, seed=3))
    best = found.fits[0]
    named = next(fit for fit in found.fits if fit.name == name)
    assert named.fits and named.aic <= best.aic + 2.0  # a larger family may fit as well
    ages = law.quantile((1 - law.never) * np.array([0.1, 0.5, 0.9]))
    assert np.asarray(named.law.cdf(ages)) == pytest.approx(law.cdf(ages), abs=0.03)
    low, high = best.never_range
    assert low - 0.01 <= law.never <= high + 0.01
    assert type(delays.fit(answered(law, 6000, seed=3), name)) is type(law)


def test_the_likelihood_counts_each_duel_as_the_definition_says():
    """The difference of two laws, by the sums and duel by duel."""
    log = answered(TRUE["log-normal"], 400, seed=5, votes=False)
    sums = fitted_laws._add_up(watch(log), 0.5)
    logs = []
    for law in (delays.LogNormal("10m", 1.0), delays.LogNormal("20m", 0.7)):
        slow = 0.0
        for delay, age in zip(log.delay, log.ages, strict=True):
            if math.isnan(delay):
                slow += math.log(1 - 0.5 * 0.7 * law.cdf(age))
            else:
                slow += math.log(0.7 * (law.cdf(delay * 1.001) - law.cdf(delay * 0.999)))
        logs.append((slow, fitted_laws._log_likelihood(law, 0.7, sums)))
    assert logs[0][0] - logs[1][0] == pytest.approx(logs[0][1] - logs[1][1], abs=0.5)


@pytest.mark.compiled
def test_delays_of_a_constant_are_fitted_by_no_family():
    n = 2000
    rng = np.random.default_rng(0)
    first = rng.integers(2, size=n)
    log = history(first, 1 - first, np.full(n, 3600.0), age=np.full(n, 90_000.0), votes=True)
    law = delays.fit(log)
    assert isinstance(law, delays.Curve) and law.cdf(3600.0) == pytest.approx(1.0)
    assert all(one.never_range is None for one in fitted_laws.estimate_delays(log).fits)


@pytest.mark.compiled
def test_a_law_far_from_the_median_is_found():
    """Two humps: half of the answers in seconds, half in hours. An exponential has their mean."""
    rng = np.random.default_rng(0)
    n = 8000
    delay = np.where(rng.random(n) < 0.5, rng.exponential(30, n), rng.normal(20_000, 2000, n))
    first = rng.integers(2, size=n)
    log = history(first, 1 - first, np.abs(delay), age=np.full(n, 200_000.0), votes=True)
    found = {fit.name: fit for fit in estimate_delays(log).fits}
    assert found["exponential"].law.mean == pytest.approx(10_000, rel=0.05)
    assert not any(fit.fits for fit in found.values())


@pytest.mark.compiled
def test_delays_in_whole_seconds_are_rounded_ones():
    rng = np.random.default_rng(1)
    n = 20_000
    shown, delay = rng.uniform(0, 1e6, n), rng.exponential(4.0, n)
    seen = np.floor(shown + delay) - np.floor(shown)  # both times are cut to seconds
    first = rng.integers(2, size=n)
    log = history(first, 1 - first, seen, age=np.full(n, 1000.0), votes=True)
    law = {fit.name: fit.law for fit in estimate_delays(log).fits}["exponential"]
    assert law.mean == pytest.approx(4.0, rel=0.03)


@pytest.mark.compiled
def test_a_log_in_ticks_gives_a_law_in_ticks():
    rng = np.random.default_rng(1)
    n = 4000
    first, delay = rng.integers(2, size=n), rng.geometric(0.1, n).astype(float)
    heard = (rng.random(n) < 0.5) & (delay <= np.arange(n, 0, -1))
    log = History(n_arms=2, first=first, second=1 - first, delay=np.where(heard, delay, NAN),
                  first_won=np.where(heard, 1.0, NAN), order="coin")  # fmt: skip
    curve, law = delays.fit(log, "curve"), delays.fit(log, "exponential")
    true = delays.Geometric(0.1)
    assert not law.in_time and not curve.in_time
    for age in (3, 10, 30):
        assert law.cdf(age) == pytest.approx(true.cdf(age), abs=0.04)
        assert curve.cdf(age) == pytest.approx(true.cdf(age), abs=0.05)


def test_a_family_that_is_unknown_is_refused_by_name():
    with pytest.raises(ValueError, match="family must"):
        delays.fit(answered(TRUE["gamma"], 50, seed=0), "gama")


def test_a_law_of_few_answers_is_the_curve():
    log = history([0, 1] * 10, [1, 0] * 10, [5.0, NAN] * 10, age=[50.0] * 20)
    assert isinstance(delays.fit(log), delays.Curve)
    with pytest.raises(ValueError, match="30 answers are needed"):
        delays.fit(log, "gamma")


@pytest.mark.compiled
def test_what_the_fit_gives_goes_into_a_policy():
    made = made_logs.make("never", seed=0, n=2000)
    law = delays.fit(made.history)
    player = duelay.RUCBDelay(delay=law, window="1d").start(4, seed=0, clock="wall")
    assert player.ask() is not None


def test_where_every_duel_is_old_the_error_of_the_curve_is_that_of_a_share():
    n, heard = 400, 90
    delay = np.where(np.arange(n) < heard, 5.0, NAN)
    first = np.arange(n) % 2
    learned = learn_curve(watch(history(first, 1 - first, delay, age=np.full(n, 50.0))), 0.5)
    share = heard / n
    assert learned.at(10.0)[0] == pytest.approx(2 * share)
    assert learned.at(10.0)[1] == pytest.approx(2 * math.sqrt(share * (1 - share) / n))


def test_a_stretch_that_a_duel_has_not_passed_says_nothing_of_it():
    """Of age 15, it was silent up to 10 for all that counts, whatever came since."""
    log = history([0, 0, 0], [1, 1, 1], [12.0, NAN, 12.0], age=[15.0, 15.0, 25.0], order="champion")
    edges, pair = np.array([-1.0, 10.0, 20.0]), np.zeros(3, dtype=np.int64)
    counts = joint_estimation._count(watch(log), edges, pair, 1, np.ones(3, dtype=bool))
    assert counts.answers.tolist() == [[0, 1]] and counts.silences.tolist() == [[0, 2, 0]]


def test_young_duels_do_not_bend_the_law_that_comes_with_preferences():
    """Most are younger than their delays: of them only quick answers are heard."""
    rng = np.random.default_rng(3)
    n = 30_000
    first = (rng.random(n) < 0.3).astype(int)
    age, delay = rng.uniform(0, 60, n), rng.uniform(0, 50, n)
    won = rng.random(n) < np.where(first == 0, 0.65, 0.35)
    log = history(first, 1 - first, np.where(won & (delay <= age), delay, NAN), age=age,
                  order="champion")  # fmt: skip
    tau, error = estimate_jointly(watch(log), 2).law.at([10.0, 25.0, 40.0])
    assert (np.abs(tau - np.array([0.2, 0.5, 0.8])) < 4 * error).all() and error.max() < 0.02


@pytest.mark.compiled
def test_the_range_of_those_that_never_answer_counts_that_preferences_are_estimated():
    made = made_logs.make("champion first", seed=1)
    found = estimate_delays(made.history)
    known = fitted_laws._fit_all(found.watched, found.chance, found.learned, 1.0)[0].never_range
    low, high = found.fits[0].never_range
    assert found.joint.spread > 1.5
    assert (high - low) / (known[1] - known[0]) == pytest.approx(
        math.sqrt(found.joint.spread), rel=0.1
    )
