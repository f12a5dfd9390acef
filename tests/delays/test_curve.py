import datetime
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duelay import delays, text
from duelay.delays import Curve, Duration

shares = st.lists(st.floats(0, 1), min_size=1, max_size=6).map(sorted)


@st.composite
def curves(draw):
    levels = draw(shares)
    ages = st.lists(
        st.floats(1e-3, 1e8), min_size=len(levels), max_size=len(levels), unique=True
    ).map(sorted)
    return Curve(tuple(draw(ages)), tuple(levels))


def test_a_curve_goes_evenly_from_point_to_point():
    law = Curve(["1m", datetime.timedelta(minutes=10), 3600], [0.2, 0.5, 0.8])
    assert law.ages == (Duration("1m"), Duration("10m"), Duration("1h")) and law.in_time
    ages = ["30s", "1m", "5.5m", "35m", "1h", "9d"]
    np.testing.assert_allclose(law.cdf(ages), [0.1, 0.2, 0.35, 0.65, 0.8, 0.8])
    np.testing.assert_allclose(law.quantile([0, 0.1, 0.35, 0.8]), [0, 30, 330, 3600])
    assert law.never == pytest.approx(0.2) and law.support == 3600
    assert law.quantile(0.81) == law.mean == math.inf
    assert repr(law).startswith("Curve(ages=(Duration('1m'), Duration('10m'), Duration('1h')), sh")


def test_the_mean_of_a_curve_is_that_of_its_stretches():
    law = Curve(["1m", "3m"], [0.5, 1.0])
    assert law.mean == 0.5 * 30 + 0.5 * 120
    assert law.mean == pytest.approx(law.sample(40_000, seed=0).mean(), rel=0.02)


def test_a_flat_stretch_is_jumped_over():
    law = Curve(["1m", "1h", "2h", "3h"], [0.5, 0.5, 1.0, 1.0])
    assert law.quantile([0.5, 1.0]).tolist() == [60, 7200] and law.support == 7200
    assert law.quantile(0.5 + 1e-9) == pytest.approx(3600, rel=1e-6)
    nothing = Curve(["1m"], [0.0])
    assert nothing.never == 1 and nothing.cdf("1d") == 0 and nothing.sample(seed=0) == math.inf


def test_a_curve_of_observed_delays_has_their_shares():
    law = Curve.of([30, "1m", 60.0, datetime.timedelta(minutes=4)], never=0.2)
    assert law.ages == (Duration("30s"), Duration("1m"), Duration("4m"))
    np.testing.assert_allclose(law.shares, [0.2, 0.6, 0.8])
    assert law.never == pytest.approx(0.2)
    seen = np.random.default_rng(0).exponential(3600, 500)
    law = Curve.of(seen)
    assert law.never == 0 and law.mean == pytest.approx(seen.mean(), rel=0.01)
    np.testing.assert_allclose(law.cdf(np.sort(seen)), np.arange(1, 501) / 500)


@given(curves())
def test_a_curve_reads_back_what_it_prints(law):
    assert delays.parse(text.form(law)) == law and str(law) == text.form(law)
    assert pickle.loads(pickle.dumps(law)) == law
    q = np.linspace(0, 1, 13) * law.shares[-1]
    ages = law.quantile(q)
    assert (np.diff(ages) >= 0).all() and (ages <= law.support).all()
    assert (law.cdf(ages * (1 + 1e-9)) >= q - 1e-9).all()


def test_forms_of_curves():
    form = "curve:1m/10m/1h,0.2/0.5/0.8"
    assert str(delays.parse(form)) == form
    assert str(delays.parse("curve:1m,0.5")) == "curve:1m/,0.5/"
    assert delays.parse("curve:1m/,0.5/") == Curve(["1m"], [0.5])


def test_many_points_are_printed_in_a_few_words():
    law = Curve.of(np.arange(1, 100) * 60.0, never=0.25)
    assert str(law).startswith("curve:<99 ages; median 49m30s; 25 % never; ")
    assert repr(law).startswith("Curve(<99 ages; median ")
    assert delays.parse(text.form(law)) == law


def test_bounds_are_no_part_of_the_law():
    law = Curve(["1m", "1h"], [0.2, 0.5], lower=[0.1, 0.4], upper=(0.3, 0.6))
    bare = Curve(["1m", "1h"], [0.2, 0.5])
    assert law == bare and hash(law) == hash(bare) and str(law) == str(bare)
    assert repr(law) == repr(bare) and bare.lower is None and bare.upper is None
    assert law.lower == (0.1, 0.4) and pickle.loads(pickle.dumps(law)).upper == (0.3, 0.6)
    assert text.parameters(Curve) == ["ages", "shares"]
    with pytest.raises(ValueError, match="'lower'"):
        delays.parse("curve:1m,0.5,lower=0.1")


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: Curve(["1h", "1m"], [0.1, 0.2]), "ages must"),
        (lambda: Curve([60, 60], [0.1, 0.2]), "ages must"),
        (lambda: Curve([], []), "ages must rise"),
        (lambda: Curve([0, 60], [0.1, 0.2]), "ages must"),
        (lambda: Curve(["soon"], [0.1]), "ages must"),
        (lambda: Curve([1, math.nan], [0.1, 0.2]), "ages must"),
        (lambda: Curve([1, 2], [0.1]), "shares"),
        (lambda: Curve([1, 2], [0.3, 0.2]), "shares"),
        (lambda: Curve([1, 2], [0.3, 1.2]), "shares"),
        (lambda: Curve([1, 2], ["a", "b"]), "shares"),
        (lambda: Curve([1, 2], [0.3, 0.4], lower=[0.1]), "lower"),
        (lambda: Curve.of([]), "delays"),
        (lambda: Curve.of([0.0, 1]), "delays"),
        (lambda: Curve.of([1], never=2), "never"),
    ],
)
def test_a_curve_that_is_none_is_refused_in_one_sentence(make, message):
    with pytest.raises(ValueError, match=message):
        make()
