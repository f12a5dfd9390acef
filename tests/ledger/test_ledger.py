"""The incremental ledger against the definitions, over random histories."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from duelay import delays
from duelay.ledger import age_to, assume, for_votes, hear, hear_vote, open_ledger, record
from duelay.ledger.delay_models import base
from duelay.ledger.delay_models.base import drifts, final_age, pair_counts, stands_still
from duelay.ledger.votes import start_votes

LAWS = {
    "geometric": delays.Geometric(0.07),
    "geometric-fast": delays.Geometric(0.97),
    "geometric-1": delays.Geometric(1.0),
    "constant": delays.Constant(1),
    "constant-9": delays.Constant(9),
    "uniform": delays.Uniform(2, 30),
    "zipf": delays.Zipf(1.2, 80),
    "weibull": delays.Weibull(0.6, 8.0),
    "log-normal": delays.LogNormal(5.0, 1.0),
    "negative-binomial": delays.NegativeBinomial(2.5, 0.2),
    "empirical": delays.Empirical(pmf=(0.1, 0.0, 0.4)),
    "never-geometric": delays.Never(0.3, delays.Geometric(0.1)),
    "never-geometric-1": delays.Never(0.3, delays.Geometric(1.0)),
    "never-uniform": delays.Never(0.5, delays.Uniform(1, 12)),
    "nobody": delays.Never(1.0, delays.Constant(1)),
    "by-pair": delays.ByPair.of(3, lambda i, j: delays.Geometric(0.05 + 0.3 * i + 0.1 * j)),
}


def random_history(rng, law, n, n_arms):
    history = []
    for _ in range(n):
        i, j = (int(arm) for arm in rng.integers(n_arms, size=2))
        d = law.at(i, j).sample(seed=rng)
        history.append(naive.Past(i, j, bool(rng.random() < 0.6), float(d)))
    return history


def replay(history, assumed, t, n_arms, window):
    """The ledger after the duels of ticks 1 to t - 1, as an ask at tick t sees it."""
    ledger = open_ledger(assumed, n_arms)
    limit = np.inf if window is None else window
    for now in range(1, t + 1):
        for s, past in enumerate(history[: now - 1], start=1):
            if past.won and past.delay == now - s and past.delay <= limit:
                ledger.conversions[past.first, past.second] += 1
        age_to(ledger, now)
        if now < t:
            record(ledger, history[now - 1].first, history[now - 1].second, now)
    return ledger


@pytest.mark.parametrize("window", [None, 1, 2, 13, 500])
@pytest.mark.parametrize("name", LAWS)
def test_counts_follow_equations_2_to_4(name, window):
    law = LAWS[name]
    rng = np.random.default_rng([len(name), window or 0])
    history = random_history(rng, law, 90, 3)

    def tau(i, j, age):
        return law.at(i, j).cdf(age)

    for t in (1, 2, 3, 14, 15, 60, 91):
        ledger = replay(history, assume(law, window, 3), t, 3, window)
        n, n_tilde, s, mean = naive.estimates(history, t, 3, tau, window)
        told = ledger.estimates()
        assert np.array_equal(told.n, n) and (np.diag(told.mean) == 0.5).all()
        np.testing.assert_allclose(told.expected, n_tilde, atol=1e-9)
        np.testing.assert_allclose(told.wins, s, atol=1e-9)
        seen = n_tilde > 1e-9
        np.testing.assert_allclose(told.mean[seen], mean[seen], atol=1e-8)


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    window=st.one_of(st.none(), st.integers(1, 60)),
    t=st.integers(1, 60),
    n_arms=st.integers(2, 5),
    name=st.sampled_from([name for name in LAWS if name != "by-pair"]),
)
def test_counts_follow_the_definitions_whatever_the_history(seed, window, t, n_arms, name):
    law = LAWS[name]
    history = random_history(np.random.default_rng(seed), law, t, n_arms)
    told = replay(history, assume(law, window, n_arms), t, n_arms, window).estimates()
    tau = naive.estimates(history, t, n_arms, lambda i, j, age: law.cdf(age), window)
    np.testing.assert_allclose(told.expected, tau[1], atol=1e-9)
    np.testing.assert_allclose(told.wins, tau[2], atol=1e-9)


@pytest.mark.parametrize("window", [None, 11])
def test_the_three_readings_of_the_baseline(window):
    rng = np.random.default_rng(5)
    history = random_history(rng, delays.Geometric(0.1), 80, 3)
    history = [past for past in history if past.first != past.second]
    t = len(history) + 1
    n, n_tilde, s, _ = naive.estimates(history, t, 3, lambda i, j, age: 1.0, window)
    corrected = replay(history, assume(None, window, 3), t, 3, window).estimates()
    assert np.array_equal(corrected.expected, n) and np.array_equal(corrected.wins, s)
    for reading, twin in (
        ("append-only", naive.append_only),
        ("conversions", naive.conversions_only),
    ):
        n, wins = twin(history, t, 3, window)
        told = replay(history, assume(reading, window, 3), t, 3, window).estimates()
        assert np.array_equal(told.n, n) and np.array_equal(told.expected, n)
        assert np.array_equal(told.wins, wins)


ASSUMED = {
    "at once": lambda: assume(None, None, 3),
    "append-only": lambda: assume("append-only", None, 3),
    "conversions": lambda: assume("conversions", None, 3),
    "geometric, a window": lambda: assume(delays.Geometric(0.07), 13, 3),
    "geometric, none": lambda: assume(delays.Geometric(0.4), None, 3),
    "any law": lambda: assume(delays.Uniform(2, 30), None, 3),
    "any law, a window": lambda: assume(delays.Zipf(1.2, 80), 20, 3),
    "votes": lambda: start_votes(False, 3),
}


@pytest.mark.parametrize("name", ASSUMED)
def test_what_is_settled_stays_as_it_is(name):
    """Where nothing is played or heard any more; and by then it is, but for a geometric law."""
    assumed = ASSUMED[name]()
    ledger = open_ledger(assumed, 3)
    history = random_history(np.random.default_rng(4), delays.Geometric(0.1), 60, 3)
    for t, past in enumerate(history, start=1):
        age_to(ledger, t)
        record(ledger, past.first, past.second, t)
        ledger.conversions[past.first, past.second] += past.won
    last = max(t for t, past in enumerate(history, start=1) if past.first != past.second)
    ticks = final_age(assumed)
    changed, pairs, settled = [], {}, set()
    for t in range(61, last + ticks + 100):
        age_to(ledger, t)
        for i, j in ((0, 1), (0, 2), (2, 1)):
            told = pair_counts(assumed, ledger.plays, ledger.conversions, i, j)
            if pairs.get((i, j), told) != told:
                assert (i, j) not in settled
                changed.append(t - last)
            pairs[i, j] = told
            if stands_still(assumed, ledger.plays, i, j):
                settled.add((i, j))
    assert not changed or max(changed) <= ticks
    assert (ticks == 0) == (not changed)
    assert settled == (set() if name.startswith("geometric") else set(pairs))
    assert not drifts(assumed)


def test_a_geometric_ledger_stays_exact_over_many_rescalings():
    """What is missing is kept as a scaled sum; 20,000 ticks at p = 0.3 rescale it 15 times."""
    p, window, k = 0.3, 40, 2
    ledger = open_ledger(assume(delays.Geometric(p), window, k), k)
    n = 20_000
    for t in range(1, n + 1):
        age_to(ledger, t)
        record(ledger, t % 2, 1 - t % 2, t)
    age_to(ledger, n + 1)
    ages = np.minimum(np.arange(1, n + 1), window)
    expected = np.sum(1 - (1 - p) ** ages)
    np.testing.assert_allclose(ledger.estimates().expected[0, 1], expected, rtol=1e-12)


def test_self_duels_are_counted_and_say_nothing():
    ledger = open_ledger(assume(delays.Geometric(0.5), 10, 2), 2)
    age_to(ledger, 1)
    record(ledger, 1, 1, 1)
    ledger.conversions[1, 1] += 1
    age_to(ledger, 2)
    assert ledger.plays[1, 1] == 1
    assert ledger.estimates().n.sum() == 0
    assert np.isnan(ledger.estimates().mean[0, 1])


def test_an_arms_news_are_its_duels_with_others_and_the_answers_to_them():
    """Rules look anew at an arm only when its news are more than they were."""
    ledger = open_ledger(assume(None, None, 3), 3)
    record(ledger, 0, 1, 1)
    assert ledger.news.tolist() == [1, 1, 0]
    record(ledger, 2, 2, 2)
    assert ledger.news.tolist() == [1, 1, 0]
    hear(ledger, 0, 1, 1, 3)
    assert ledger.news.tolist() == [2, 2, 0]
    assert ledger.plays.sum() == 2 and ledger.plays[0, 1] == ledger.plays[2, 2] == 1
    assert ledger.conversions.sum() == ledger.conversions[0, 1] == 1
    answered = for_votes(ledger)
    for first_won, wins in ((0.0, 1), (0.5, 1), (1.0, 2)):
        hear_vote(answered, 2, 1, first_won, 1, 2)
        assert answered.conversions[2, 1] == wins - 1 and answered.conversions[0, 1] == 1
    assert ledger.news.tolist() == [2, 5, 3]
    assert answered.estimates().wins[2, 1] == 1.5 and answered.estimates().n[1, 2] == 3


@pytest.mark.long
@pytest.mark.interpreted
def test_a_law_with_too_long_a_tail_asks_for_a_window():
    with pytest.raises(ValueError, match="window must"):
        assume(delays.Weibull(0.1, 1000.0), None, 2)
    with pytest.raises(ValueError, match="window must"):
        assume(delays.Geometric(1e-9), 50_000_000, 2)


@pytest.mark.interpreted
def test_a_question_that_an_assumption_does_not_answer_has_the_safe_answer():
    class Silent(NamedTuple):
        x: float

    silent, plays = Silent(0.0), np.full((2, 2), 8)
    assert base.drifts(silent) and not base.stands_still(silent, plays, 0, 1)
    assert base.is_known(silent)  # it learns nothing
    assert base.epoch(silent) == 0 and base.next_look(silent) == base.FOREVER
    assert base.share_first(silent, plays, np.full((2, 2), 2), 0, 1) == 0.25
    with pytest.raises(TypeError, match="no ledger keeps Silent"):
        base.advance(silent, 1)
