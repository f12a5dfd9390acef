"""Laws in time, each against scipy; laws in ticks beside them."""

import copy
import datetime
import math
import pickle
from dataclasses import dataclass

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

import duelay
from duelay import delays, policies, text
from duelay.delays import (
    ByPair,
    Constant,
    Curve,
    Duration,
    Empirical,
    Exponential,
    Gamma,
    Geometric,
    LogNormal,
    Never,
    Pareto,
    Uniform,
    Weibull,
)

# A law, and scipy's. Where scipy's quantiles are worse than 1e-9, a third entry says how far off
# they may be; `test_quantiles_are_where_the_cdf_gets_there` holds ours to our cdf all the same.
PAIRS = [
    (Weibull(0.5, "10m"), scipy.stats.weibull_min(0.5, scale=600)),
    (Weibull(3, "14d"), scipy.stats.weibull_min(3, scale=14 * 86_400)),
    (Pareto(1.5, "10m"), scipy.stats.lomax(1.5, scale=600)),
    (LogNormal("10m", 1.5), scipy.stats.lognorm(1.5, scale=600)),
    (LogNormal("20ms", 0.1), scipy.stats.lognorm(0.1, scale=0.02)),
    (Exponential("2h"), scipy.stats.expon(scale=7200)),
    (Exponential("1ms"), scipy.stats.expon(scale=0.001)),
    (Gamma(2, "10m"), scipy.stats.gamma(2, scale=600)),
    (Gamma(0.3, "1d"), scipy.stats.gamma(0.3, scale=86_400)),
    (Gamma(150, "1s"), scipy.stats.gamma(150)),
    (Uniform("1m", "10m"), scipy.stats.uniform(60, 540)),
]
CURVE = Curve(["1m", "10m", "1h"], [0.2, 0.5, 1.0])
LAWS = [law for law, *_ in PAIRS] + [
    Constant("1h"),
    CURVE,
    Never(0.3, Exponential("2h")),
    Never(0.5, Never(0.2, CURVE)),
    Never(0.0, Uniform("1m", "2m")),
]
Q = np.array([1e-9, 1e-3, 0.1, 0.4999, 0.5, 0.9, 0.999, 1 - 1e-9])


@pytest.mark.parametrize("entry", PAIRS, ids=lambda entry: str(entry[0]))
def test_a_law_in_time_agrees_with_scipy(entry):
    law, known, rtol = (*entry, 1e-9)[:3]
    ages = np.concatenate(([0.0, -5.0], known.ppf(Q), [known.mean() / 3, 3 * known.mean()]))
    np.testing.assert_allclose(law.cdf(ages), known.cdf(ages), rtol=1e-10)
    np.testing.assert_allclose(law.quantile(Q), known.ppf(Q), rtol=rtol)
    assert law.mean == pytest.approx(known.mean(), rel=1e-12)
    assert law.in_time and law.never == 0
    assert law.support == known.support()[1]
    assert law.quantile(1.0) == law.support


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_quantiles_are_where_the_cdf_gets_there(law):
    q = np.linspace(0.001, 0.999, 57) * (1 - law.never)
    ages = law.quantile(q)
    assert (law.cdf(ages * (1 + 1e-9)) >= q - 1e-12).all()
    assert (law.cdf(ages * (1 - 1e-9)) <= q + 1e-12).all()
    assert law.cdf(0) == law.cdf(-1.0) == 0
    if law.never:
        assert law.quantile(1 - law.never / 2) == law.mean == math.inf
    assert isinstance(law.quantile(0.2), float) and isinstance(law.cdf(3.5), float)
    assert law.at(0, 1) is law


SPREAD = [law for law in LAWS if law not in (Constant("1h"), Gamma(150, "1s"))]  # that one is slow


@pytest.mark.parametrize("law", SPREAD, ids=str)
def test_samples_follow_the_law_in_time(law):
    draws = law.sample(300, seed=3)
    came = draws[np.isfinite(draws)]
    assert abs(1 - len(came) / 300 - law.never) < 0.1
    share = 1 - law.never
    assert scipy.stats.kstest(came, lambda age: law.cdf(age) / share).pvalue > 0.01
    assert np.array_equal(draws[:20], law.sample(300, seed=3)[:20])
    assert isinstance(law.sample(seed=2), float)


def test_a_constant_in_time_is_one_delay():
    law = Constant("1h")
    assert law.mean == law.support == 3600 and (law.sample(5, seed=0) == 3600).all()
    assert law.cdf(["59m", "1h", "61m"]).tolist() == [0, 1, 1]


def test_ages_are_given_as_seconds_texts_or_timedeltas():
    law = Exponential("2h")
    for age in ("2h", 7200, datetime.timedelta(hours=2), Duration("2h"), np.float64(7200)):
        assert law.cdf(age) == pytest.approx(1 - math.exp(-1), rel=1e-15)
    assert Never(0.5, law).cdf("2h") == law.cdf("2h") / 2
    assert law.cdf(["1h", "2h"]).shape == (2,)
    with pytest.raises(ValueError, match="age must"):
        law.cdf("soon")


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_a_law_in_time_prints_pickles_and_shows_itself(law):
    for same in (delays.parse(str(law)), pickle.loads(pickle.dumps(law)), copy.deepcopy(law)):
        assert same == law and hash(same) == hash(law) and same.in_time
    assert str(law) in law._repr_html_() and "ticks" not in law._repr_html_()


def test_forms_of_laws_in_time():
    forms = {
        "weibull:0.5,10m": Weibull(0.5, "10m"),
        "log-normal:10m,1.5": LogNormal("10m", 1.5),
        "exponential:2h": Exponential("2h"),
        "exponential:100": Exponential(100),
        "gamma:2,10m": Gamma(2, datetime.timedelta(minutes=10)),
        "constant:1h": Constant("1h"),
        "uniform:1m,10m": Uniform("1m", Duration("10m")),
        "never:0.3,exponential:2h": Never(0.3, Exponential("2h")),
        "never:0.3,(gamma:2,10m)": Never(0.3, Gamma(2, "10m")),
        "curve:1m/10m/1h,0.2/0.5/1": CURVE,
    }
    for form, law in forms.items():
        assert delays.parse(form) == law and str(law) == form
    assert delays.parse("exponential:mean=90s") == Exponential("1m30s")
    assert repr(Exponential("2h")) == "Exponential(mean=Duration('2h'))"
    assert repr(Weibull(1, "90s")) == "Weibull(shape=1.0, scale=Duration('1m30s'))"
    assert text.parameters(Exponential) == ["mean"]


times = st.floats(1e-6, 1e9).map(Duration.of)
positive = st.floats(1e-3, 1e3)
simple = st.one_of(
    st.builds(Exponential, times | positive),
    st.builds(Weibull, positive, times),
    st.builds(LogNormal, times, positive),
    st.builds(Gamma, positive, times | positive),
    st.builds(Constant, times),
    st.lists(times, min_size=2, max_size=2, unique=True).map(lambda t: Uniform(*sorted(t))),
)
windows = st.none() | st.integers(1, 10**9) | times


@given(simple | st.builds(Never, st.floats(0, 1), simple), windows)
def test_laws_and_policies_in_time_read_back_what_they_print(law, window):
    assert delays.parse(str(law)) == law
    for policy in (
        duelay.RUCBDelay(law, window),
        duelay.DoubleThompson(delay=law, window=window),
        duelay.Decide(window=window),
        duelay.RUCB(window=window),
    ):
        assert policies.parse(str(policy)) == policy and hash(policy) == hash(policy)
        assert pickle.loads(pickle.dumps(policy)) == policy


def test_ticks_and_seconds_of_the_same_number_are_not_the_same():
    assert Weibull(0.5, "100s") != Weibull(0.5, 100.0)
    assert Constant("1s") != Constant(1) and str(Constant("1s")) == "constant:1s"
    assert duelay.RUCBDelay(window="1000s") != duelay.RUCBDelay(window=1000)
    assert str(duelay.RUCBDelay(window="1000s")) == "rucb-delay:delay=geometric:0.01,window=16m40s"
    assert duelay.DoubleThompson(window="14d") == policies.parse("double-thompson:window=14d")
    assert str(duelay.DoubleThompson(window="1209600s")) == "double-thompson:window=14d"
    assert duelay.DoubleThompson(delay="learn", window="14d").window == Duration("14d")
    assert duelay.recommend("exponential:2h", window="14d").policy.window == Duration("14d")


def test_an_exponential_law_in_ticks_is_rounded_up():
    law, t = Exponential(100), np.arange(1, 3000)
    assert not law.in_time
    np.testing.assert_array_equal(law.cdf(t), 1.0 - np.exp(-t / 100.0))
    assert law.cdf(7.9) == law.cdf(7) and law.cdf(0.5) == 0
    assert law.mean == pytest.approx(1 / (1 - math.exp(-0.01)), rel=1e-12)
    geometric = Geometric(-math.expm1(-0.01))
    np.testing.assert_allclose(law.cdf(t), geometric.cdf(t), rtol=1e-12)
    assert law.quantile([0.5, 0.9]).tolist() == geometric.quantile([0.5, 0.9]).tolist()
    np.testing.assert_allclose(delays.tables(law, 2, 50)[0][0], geometric.cdf(np.arange(51)))


def test_a_gamma_law_in_ticks_is_rounded_up():
    law, t = Gamma(2, 10.0), np.arange(1, 300)
    known = scipy.stats.gamma(2, scale=10)
    assert not law.in_time
    np.testing.assert_allclose(law.cdf(t), known.cdf(t), rtol=1e-12)
    assert law.cdf(7.9) == law.cdf(7) and law.cdf(0.5) == 0
    assert law.mean == pytest.approx(np.sum(known.sf(np.arange(1000))), rel=1e-12)
    assert (law.quantile(Q) == np.ceil(known.ppf(Q))).all()


def test_a_law_in_time_of_ones_own_needs_a_cdf_only():
    @dataclass(frozen=True)
    class Hyperbolic(delays.Law):
        power: float
        in_time = True

        def cdf(self, t):
            return 1 - (1 + np.maximum(t, 0.0) / 3600) ** -self.power

    law = Hyperbolic(4.0)
    assert law.mean == pytest.approx(1200, rel=1e-9)
    assert law.quantile(0.5) == pytest.approx(3600 * (2**0.25 - 1), rel=1e-9)
    assert Never(0.2, law).quantile(0.4) == law.quantile(0.5) and Never(0.2, law).in_time
    assert Hyperbolic(1.0).mean == math.inf
    assert "Hyperbolic" in law._repr_html_()


def test_a_law_in_time_has_no_pmf():
    with pytest.raises(ValueError, match="pmf needs"):
        Exponential("2h").pmf(3)


def test_laws_by_pair_are_all_in_time_or_none_is():
    law = ByPair.of(2, lambda i, j: Exponential("2h" if i == j else "1h"))
    assert law.in_time and law.mean.tolist() == [[7200, 3600], [3600, 7200]]
    assert delays.parse(str(law)) == law and law.cdf("1h").shape == (2, 2)
    assert "time until half has come" in law._repr_html_()
    assert not ByPair.of(2, lambda i, j: Geometric(0.1)).in_time
    with pytest.raises(ValueError, match="exponential:2h"):
        ByPair((Exponential("2h"), Geometric(0.1), Geometric(0.1), Geometric(0.1)))


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: Weibull(1, "soon"), "scale"),
        (lambda: LogNormal("0s", 1), "median"),
        (lambda: Exponential(0), "mean must"),
        (lambda: Exponential(None), "mean must"),
        (lambda: Gamma("1h", 2), "shape"),
        (lambda: Gamma(1e7, 2), "shape"),
        (lambda: Uniform("10m", "1m"), "high must"),
        (lambda: Uniform("1m", 600), "high must"),
        (lambda: Uniform(1, "10m"), "high must"),
        (lambda: Geometric(Duration("1s")), "p must"),
        (lambda: delays.parse("weibull:0.5,10x"), "law 'weibull:0.5,10x': scale must be a dur"),
        (
            lambda: delays.check("2h"),
            "got the duration 2h: write exponential:2h for a mean of 2h, constant:2h for 2h every",
        ),
        (lambda: duelay.MRRDBDelay(mean_delay="2h"), "mean_delay"),
        (lambda: duelay.recommend(Duration("2h")), "got the duration 2h: write exponential:2h"),
    ],
)
def test_what_is_wrong_in_time_is_refused_in_one_sentence(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_laws_in_ticks_are_not_in_time():
    for law in (Weibull(0.5, 30.0), LogNormal(20, 1), Constant(3), Uniform(1, 4), Gamma(2, 3.0),
                Empirical((0.5,)), Never(0.1, Geometric(0.1))):  # fmt: skip
        assert not law.in_time


@pytest.mark.parametrize(
    "text", ["log-normal:{},1.5", "gamma:0.3,{}", "gamma:40,{}", "weibull:0.5,{}", "exponential:{}"]
)
@pytest.mark.parametrize("never", ["{}", "never:0.3,({})"])
def test_a_quantile_is_where_the_law_reaches_it(text, never):
    """In ticks the smallest such age, found without a guess; in time to twelve digits."""
    top = 1.0 if never == "{}" else 0.7
    q = top * np.array([1e-9, 1e-3, 0.1, 0.5, 0.9, 1 - 1e-9, 1 - 2.0**-53])
    ticks = delays.parse(never.format(text.format(20)))
    found = ticks.quantile(q[:-1])
    assert (ticks.cdf(found) >= q[:-1]).all()
    assert ((ticks.cdf(found - 1) < q[:-1]) | (found == 1)).all()
    law = delays.parse(never.format(text.format("20s")))
    found = law.quantile(q)
    assert law.quantile(0.0) == 0.0 and law.quantile(1.0) == math.inf
    assert (law.cdf(found[:6] * (1 + 1e-11)) >= q[:6]).all()
    assert (law.cdf(found[:6] * (1 - 1e-11)) <= q[:6]).all()
    assert found[6] > found[5]
    assert float(law.sample(seed=3)) == law.sample(1, seed=3)[0]
