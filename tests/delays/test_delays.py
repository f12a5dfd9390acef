import math
from dataclasses import dataclass

import numpy as np
import pytest
import scipy.special
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

import duelay
from duelay import delays, policies, text
from duelay.delays import (
    ByPair,
    Constant,
    Empirical,
    Geometric,
    LogNormal,
    NegativeBinomial,
    Never,
    Pareto,
    Uniform,
    Weibull,
    Zipf,
)

# A law with a heavy tail belongs into LAWS if its mean is finite, and into HEAVY if it is not.
HEAVY = [Pareto(0.8, 10.0)]  # all conversions come, and the mean is infinite
LAWS = [
    Geometric(0.01),
    Geometric(1),
    Constant(),
    Constant(40),
    Uniform(3, 3),
    Uniform(2, 90),
    NegativeBinomial(3, 0.05),
    NegativeBinomial(0.4, 0.02),
    NegativeBinomial(5, 1.0),
    Zipf(1.2, 1000),
    Zipf(0.0, 10),
    Weibull(0.5, 30.0),
    Weibull(2.0, 0.01),
    LogNormal(20.0, 1.2),
    Pareto(3.0, 10.0),
    Pareto(1.5, 10.0),
    *HEAVY,
    Never(0.2, Pareto(1.5, 10.0)),
    Empirical(pmf=(0.2, 0.0, 0.3)),
    Empirical(pmf=(1.0,)),
    Empirical(pmf=(0.0,)),
    Never(0.3, Geometric(0.05)),
    Never(0.0, Uniform(1, 5)),
    Never(1.0, Constant(3)),
    Never(0.5, Never(0.5, Zipf(2.0, 20))),
]


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_cdf_pmf_quantiles_and_support_fit_together(law):
    t = np.arange(0, 5000)
    tau, mass = law.cdf(t), law.pmf(t)
    assert tau[0] == 0 and (np.diff(tau) >= 0).all() and tau[-1] <= 1 - law.never + 1e-12
    assert (mass >= 0).all()
    np.testing.assert_allclose(np.cumsum(mass), tau, atol=1e-12)
    if law.support < 5000:
        assert law.cdf(law.support) == pytest.approx(1 - law.never, abs=1e-12)
    for q in (0.0, 0.1, 0.49, 0.5, 0.699, 0.7, 0.9, 0.999, 1.0):
        found = law.quantile(q)
        if math.isinf(found):
            assert q > 1 - law.never or (q == 1 - law.never and law.support == math.inf)
        else:
            assert law.cdf(found) >= q and (found == 1 or law.cdf(found - 1) < q)
    assert law.cdf(-3) == 0 and law.pmf(0) == 0 and law.pmf(1.5) == 0
    assert law.cdf(2.7) == law.cdf(2)
    assert law.at(0, 1) is law


MOST = 10**6  # ticks to be summed one by one: of a heavy tail all of them would be gigabytes


def beyond(law, start):
    """The sum of 1 - cdf from a far tick on: by trapezia, and where floats lose it as a power."""
    t = np.floor(start * 1.001 ** np.arange(30_000))  # to 1e19
    left = 1 - law.cdf(t)
    n = max(101, int((left > 1e-9).sum()))
    t, left = t[:n], left[:n]
    power = math.log(left[-101] / left[-1]) / math.log(t[-1] / t[-101])
    trapezia = ((left[1:] + left[:-1]) / 2 * np.diff(t)).sum()
    return float(trapezia + t[-1] * left[-1] / (power - 1))


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_the_mean_is_that_of_the_probabilities(law):
    if law.never > 0 or law in HEAVY:
        assert law.mean == math.inf
    else:
        last = int(law.quantile(1 - 1e-13))
        slow = sum((1 - law.cdf(np.arange(min(last, MOST) + 1))).tolist())
        if last <= MOST:
            assert law.mean == pytest.approx(slow, rel=1e-6)
        else:
            assert law.mean == pytest.approx(slow + beyond(law, MOST + 1), rel=1e-4)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_samples_follow_the_law(law):
    draws = law.sample(4000, seed=1)
    assert (draws >= 1).all()
    for t in (1, 5, 50, 500):
        tau = law.cdf(t)
        assert abs(np.mean(draws <= t) - tau) <= 4 * math.sqrt(tau * (1 - tau) / 4000) + 1e-12
    assert np.array_equal(draws, law.sample(4000, seed=1))
    assert isinstance(law.sample(seed=2), float)


def test_families_agree_with_scipy():
    t = np.arange(1, 400)
    pairs = [
        (Geometric(0.03), scipy.stats.geom(0.03).cdf(t)),
        (NegativeBinomial(2.5, 0.04), scipy.stats.nbinom(2.5, 0.04).cdf(t - 1)),
        (Weibull(0.7, 20.0), scipy.stats.weibull_min(0.7, scale=20.0).cdf(t)),
        (Pareto(0.9, 20.0), scipy.stats.lomax(0.9, scale=20.0).cdf(t)),
        (LogNormal(30.0, 0.8), scipy.stats.lognorm(0.8, scale=30.0).cdf(t)),
        (Uniform(5, 90), scipy.stats.randint(5, 91).cdf(t)),
        (Zipf(1.3, 300), scipy.stats.zipfian(1.3, 300).cdf(t)),
    ]
    for law, expected in pairs:
        np.testing.assert_allclose(law.cdf(t), expected, atol=1e-12)


def test_means_of_long_tails():
    assert Weibull(1.0, 1e6).mean == pytest.approx(1 / -math.expm1(-1e-6), rel=1e-9)
    assert Weibull(0.25, 1e4).mean == pytest.approx(24e4, rel=1e-4)  # E X = scale · Gamma(1 + 4)
    assert LogNormal(1e5, 2.0).mean == pytest.approx(1e5 * math.exp(2), rel=1e-4)
    assert LogNormal(100.0, 30.0).mean == pytest.approx(100 * math.exp(450))
    assert Weibull(0.001, 1.0).mean == math.inf
    assert LogNormal(1e5, 60.0).mean == math.inf  # e^1800 is more than a float can say
    assert NegativeBinomial(2, 0.001).mean == pytest.approx(1 + 2 * 999)
    for shape, scale in ((1.01, 1.0), (1.5, 10.0), (3.0, 300.0), (20.0, 0.5)):
        exact = scale**shape * scipy.special.zeta(shape, scale)  # Hurwitz's
        assert Pareto(shape, scale).mean == pytest.approx(exact, rel=1e-12)
    assert Pareto(1.0, 10.0).mean == Pareto(0.5, "10m").mean == math.inf


def test_a_quantile_beyond_all_ticks_is_never():
    far = Weibull(0.01, 1.0)
    assert far.cdf(2**62) < 0.999 and far.quantile(0.999) == math.inf
    assert far.cdf(far.quantile(0.7)) >= 0.7


def test_a_law_of_ones_own_needs_a_cdf_only():
    class Twice(delays.Law):
        def cdf(self, t):
            t = np.asarray(t)
            return np.where(t >= 10, 1.0, np.where(t >= 2, 0.25, 0.0))

    law = Twice()
    assert law.mean == pytest.approx(2 * 0.25 + 10 * 0.75)
    assert law.quantile([0.2, 0.3]).tolist() == [2, 10]
    assert law.settled(10**7) == 10 and law.settled(5) == 5
    assert "Twice" in str(law) and "Twice" in str(Never(0.1, law))
    assert delays.check(law) is law


def test_a_tail_that_is_too_heavy_has_an_infinite_mean():
    class Heavy(delays.Law):
        def cdf(self, t):
            return 1 - 1 / (np.maximum(np.floor(t), 0) + 1)

    assert Heavy().mean == math.inf


def test_settled_is_where_nothing_more_comes():
    assert Constant(7).settled(100) == 7
    assert Constant(7).settled(3) == 3
    assert Never(1.0, Constant(7)).settled(100) == 1
    assert 3000 < Geometric(0.01).settled(10**7) < 4000
    assert Geometric(0.01).settled(1) == 1


def test_the_law_of_those_who_answer_may_be_a_text():
    assert Never(0.25, "geometric:0.1") == Never(0.25, Geometric(0.1))
    with pytest.raises(ValueError, match="unknown law 'geometrc'"):
        Never(0.25, "geometrc:0.1")


def test_tables_end_exactly():
    assert NegativeBinomial(1e6, 0.5).quantile(1 - 1e-9) < 1.1e6
    law = Empirical((0.1,) * 10 + (0,) * 3)
    assert law.quantile(1.0) == law.support == 10 and law.pmf(13) == 0


@pytest.mark.parametrize("cdf", [[1, 1, 1], [0, 0.5, 0.2], [0, 0.5, 1.5], [0, -0.1, 1]])
def test_a_law_of_ones_own_that_is_none_is_refused(cdf):
    class Wrong(delays.Law):
        support = 2.0

        def cdf(self, t):
            return np.array(cdf)[np.clip(np.asarray(t, dtype=int), 0, 2)]

    with pytest.raises(ValueError, match="delay must"):
        delays.tables(Wrong(), 2, 2)


@pytest.mark.parametrize(
    "cdf, message",
    [
        (lambda self, t: 1.0, r"that of Mine returns 1\.0 for three"),
        (lambda self, t: None, "that of Mine returns nan for three"),
        (lambda self, t: "x", "that of Mine does not, could not convert string to float"),
        (lambda self, t: 1.0 if t >= 1 else 0.0, "that of Mine does not, The truth value of an"),
    ],
)
def test_a_law_of_ones_own_takes_an_array_of_ages(cdf, message):
    law = type("Mine", (delays.Law,), {"cdf": cdf})()
    with pytest.raises(ValueError, match=f"takes an array of ages and returns as.*{message}"):
        delays.check(law)


def test_a_law_of_ones_own_that_is_not_frozen_is_refused():
    @dataclass
    class Loose(delays.Law):
        share: float = 0.5

        def cdf(self, t):
            return np.where(np.asarray(t) >= 1, self.share, 0.0)

    with pytest.raises(ValueError, match="frozen.* Loose"):
        delays.check(Loose())


def test_tables_share_equal_laws():
    law = ByPair.of(3, lambda i, j: Geometric(0.5) if i == j else Uniform(1, 4))
    tau, which = delays.tables(law, 3, 1000)
    assert tau.shape[0] == 2
    np.testing.assert_allclose(tau[which[0, 1], :6], [0, 0.25, 0.5, 0.75, 1, 1])
    np.testing.assert_allclose(tau[which[2, 2], :3], [0, 0.5, 0.75])


def test_by_pair_answers_for_every_pair():
    law = ByPair(((Constant(1), Constant(2)), (Constant(3), Never(0.5, Constant(4)))))
    assert law.n_arms == 2 and law.at(1, 0) == Constant(3)
    assert law.mean.tolist() == [[1, 2], [3, math.inf]]
    assert law.never.tolist() == [[0, 0], [0, 0.5]]
    assert law.cdf([1, 2]).shape == (2, 2, 2)
    assert law.pmf(2).tolist() == [[0, 1], [0, 0]]
    assert law.quantile(0.2).tolist() == [[1, 2], [3, 4]]
    assert law.sample(5, seed=0).shape == (2, 2, 5)
    assert delays.parse(str(law)) == law


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: Geometric(0), "p must"),
        (lambda: Geometric(1.2), "p must"),
        (
            lambda: Geometric(math.nan),
            "p must",
        ),
        (lambda: Geometric("x"), "p must"),
        (lambda: Constant(0), "ticks must"),
        (lambda: Constant(1.5), "ticks must"),
        (lambda: Uniform(4, 3), "high must"),
        (lambda: NegativeBinomial(0, 0.1), "r must"),
        (lambda: NegativeBinomial(1, 1e-7), "r and p must give a table of at most 50000000 ticks"),
        (lambda: Zipf(-1, 5), "exponent"),
        (lambda: Zipf(1, 10**9), "cutoff"),
        (lambda: Weibull(0, 1), "shape"),
        (lambda: Pareto(0, 1), "shape"),
        (lambda: LogNormal(1, -1), "sigma"),
        (lambda: Never(1.5, Constant(1)), "share must"),
        (lambda: Never(0.5, 3), "law must be a delay law .* got 3"),
        (lambda: Constant(10**19), "ticks must"),
        (lambda: Empirical.from_samples(["a"]), "samples"),
        (lambda: Empirical.from_samples([1, 1e13]), "samples"),
        (lambda: ByPair(Constant(1)), "K×K delay laws for K of at least 2, got 1"),
        (lambda: ByPair(None), "laws must"),
        (lambda: ByPair(((Constant(1),) * 3, (Constant(1),))), "K×K, got 2 rows and one of 3"),
        (lambda: Empirical(pmf=(0.7, 0.7)), "sum to at most 1, got a sum of 1.4"),
        (lambda: Empirical(pmf=(-0.1, 0.7)), "a least of -0.1"),
        (lambda: Empirical(pmf=()), "pmf must"),
        (lambda: Empirical(pmf="x"), "pmf must"),
        (lambda: Empirical.from_samples([0, 1]), "samples"),
        (lambda: Empirical.from_samples([]), "samples"),
        (lambda: ByPair((Constant(1),) * 3), "K×K delay laws for K of at least 2, got 3"),
        (lambda: ByPair((Constant(1), 5, 6, 7)), "laws must"),
        (
            lambda: delays.check(0.01),
            "got the number 0.01: write geometric:0.01 if that is the chance",
        ),
        (lambda: delays.check(0.0), "delay must"),
        (
            lambda: delays.check(20),
            "got the number 20: write geometric:0.05 for a mean of 20, constant:20 for 20 every",
        ),
        (lambda: Geometric(0.1).quantile(1.1), "q must"),
    ],
)
def test_wrong_parameters_are_refused_in_one_sentence(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@given(st.lists(st.integers(1, 50) | st.just(math.inf), min_size=1, max_size=40))
def test_an_empirical_law_repeats_its_samples(samples):
    law = Empirical.from_samples(samples)
    for t in (1, 7, 50):
        assert law.cdf(t) == pytest.approx(np.mean(np.array(samples) <= t))
    assert law.never == pytest.approx(np.mean(np.isinf(samples)), abs=1e-9)


def test_a_long_table_is_printed_in_a_few_words_that_no_other_shares():
    table = np.full(9_999, 0.7 / 9_999)
    law, other = Empirical(table), Empirical(table[::-1] * np.linspace(1, 0.9, 9_999))
    assert str(law).startswith("empirical:<9999 ages; median 5000; 30 % never; ")
    assert repr(law).startswith("Empirical(<9999 ages; median 5000; 30 % never; ")
    assert len(str(law)) < 80 and str(law) != str(other) and str(law) == str(Empirical(table))
    assert text.parse("law", text.form(law)) == law  # where every number is needed
    assert str(Empirical(np.zeros(60))).startswith("empirical:<60 ages; 100 % never; ")
    known = duelay.RUCBDelay(delay=law)
    assert len(repr(known)) < 150 and policies.parse(str(known)) == known
    with pytest.raises(ValueError, match="pmf must"):
        delays.parse(str(law))


def test_a_label_leaves_out_a_law_that_is_printed_in_brief():
    law = Empirical(np.full(60, 1 / 60))
    problem = duelay.Problem([[0.5, 0.6], [0.4, 0.5]])
    result = duelay.simulate(problem, duelay.RUCBDelay(delay=law), delay=law, horizon=5)
    assert result.label == "rucb-delay"


@pytest.mark.parametrize("policy", [duelay.DoubleThompson, duelay.RMED])
@pytest.mark.parametrize(
    "word, guess", [("lern", "learn"), ("Learn", "learn"), ("geometrik:0.1", "geometric")]
)
def test_a_word_that_is_no_law_is_refused_with_all_there_are(policy, word, guess):
    message = (
        rf"delay must be None, 'learn', .* or a law \(did you mean {guess}\?\), got '{word}'; laws"
    )
    with pytest.raises(ValueError, match=message):
        policy(delay=word)
    with pytest.raises(ValueError, match="delay must"):
        policy(delay=100)


def test_who_needs_a_law_is_not_offered_to_learn_it():
    with pytest.raises(ValueError, match="'lern'.* by-pair"):
        duelay.RUCBDelay(delay="lern")


def test_a_law_takes_ages_in_any_layout():
    ages = np.arange(1.0, 13.0).reshape(3, 4)
    for law in (delays.LogNormal(20, 1.0), delays.Weibull(0.7, 20), delays.Geometric(0.1)):
        assert np.array_equal(law.cdf(ages.T), law.cdf(ages).T)


def test_a_seed_for_delays_and_for_a_generator_gives_draws_that_have_nothing_in_common():
    law, n = Geometric(0.01), 4000
    by_pair = ByPair.of(2, lambda i, j: law)
    for seed in (0, 1, np.int64(2)):
        outcomes = np.random.default_rng(seed).random(n)
        for sample in (law.sample(n, seed=seed), by_pair.sample(n, seed=seed)[0, 0]):
            ranks = np.argsort(np.argsort(sample + 0.5 * np.random.default_rng(99).random(n)))
            assert abs(np.corrcoef(ranks, outcomes)[0, 1]) < 4 / np.sqrt(n)
    given = [np.random.default_rng(5), np.random.default_rng(5)]  # a generator is taken as it is
    assert np.array_equal(law.sample(9, seed=given[0]), law.quantile(given[1].random(9)))
