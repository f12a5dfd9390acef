"""The ledger by the clock: buckets of age against the sum over all duels, and the law learned."""

import math

import numpy as np
import pytest

import duelay
from duelay import delays
from duelay.ledger import age_to, assume_by_clock, clock_to, hear, open_ledger, record, with_room
from duelay.ledger.clock import ByClock, bucket_error, learned_curve

LAWS = ["exponential:10m", "constant:1h", "log-normal:10m,3", "uniform:1m,1h", "weibull:0.3,1h",
        "never:0.4,(log-normal:10m,0.1)", "curve:1m/2m/1d,0.3/0.31/0.9"]  # fmt: skip


def times(n, rng):
    """Bursts, pauses of all lengths, and many duels at one time."""
    gaps = np.exp(rng.normal(2.0, 3.0, n)) * (rng.random(n) < 0.3)
    return 1.7e9 + np.cumsum(gaps)


def play(assumed, at, heard, n_arms, seed=0):
    """Book random duels; `heard` is when each converts, or infinity. Return ledger and pairs."""
    rng = np.random.default_rng(seed)
    ledger = open_ledger(assumed, n_arms, "coin")
    pairs = rng.integers(n_arms, size=(len(at), 2))
    order, place = np.argsort(heard, kind="stable"), 0
    for k, now in enumerate(at):
        while place < len(at) and heard[order[place]] <= now:
            duel = order[place]
            if duel >= k:
                break
            clock_to(ledger, heard[duel])
            hear(ledger, *pairs[duel], duel + 1, k + 1)
            place += 1
        ledger = with_room(ledger, k + 1)
        clock_to(ledger, now)
        age_to(ledger, k + 1)
        record(ledger, *pairs[k], k + 1)
    return ledger, pairs


@pytest.mark.long
@pytest.mark.interpreted
@pytest.mark.parametrize("window", [None, "30m"])
@pytest.mark.parametrize("law", LAWS)
def test_expected_is_the_sum_of_tau_but_for_the_error_that_is_stated(law, window):
    law, limit = delays.parse(law), math.inf if window is None else 1800.0
    at = times(250, np.random.default_rng(1))
    assumed = assume_by_clock(law, None if window is None else limit, 3)
    ledger, pairs = play(assumed, at, np.full(len(at), np.inf), 3)
    error = bucket_error(ledger.assumed, law)
    assert error <= 1 / 400 + 1e-9
    for later in (0.0, 1.0, 600.0, 86400.0):
        clock_to(ledger, at[-1] + later)
        age_to(ledger, len(at) + 1)
        tau = np.asarray(law.cdf(np.minimum(at[-1] + later - at, limit)))
        for i in range(3):
            for j in range(3):
                mine = (pairs == (i, j)).all(axis=1)
                wanted = tau[mine].sum() if i != j else 0.0
                got = ledger.assumed.total[i, j]
                assert abs(got - wanted) <= error * mine.sum() + 1e-9


def test_a_law_by_pair_has_each_pairs_own_quantiles():
    law = delays.ByPair.of(3, lambda i, j: delays.Exponential(f"{1 + 10 * (i + j)}m"))
    at = times(300, np.random.default_rng(2))
    ledger, pairs = play(assume_by_clock(law, None, 3), at, np.full(len(at), np.inf), 3)
    error = bucket_error(ledger.assumed, law)
    assert error <= 0.02
    tau = np.array([law.at(*pair).cdf(at[-1] - then) for pair, then in zip(pairs, at, strict=True)])
    age_to(ledger, len(at) + 1)
    for i, j in ((0, 1), (2, 1)):
        mine = (pairs == (i, j)).all(axis=1)
        assert abs(ledger.assumed.total[i, j] - tau[mine].sum()) <= error * mine.sum()


def kaplan_meier(delay, age, boundaries):
    """2 (1 - KM) at the end of each bucket, over the duels that have passed all of it."""
    survival, found = 1.0, []
    for low, high in zip(boundaries[:-1], boundaries[1:], strict=True):
        passed = age >= high
        at_risk = passed & (delay >= low)
        if at_risk.any():
            survival *= 1.0 - (at_risk & (delay < high)).sum() / at_risk.sum()
        found.append(min(1.0, 2.0 * (1.0 - survival)))
    return np.array(found)


@pytest.mark.long
@pytest.mark.interpreted
def test_the_law_is_learned_from_the_duels_of_two_arms_that_have_passed_a_bucket():
    rng = np.random.default_rng(3)
    at = 1.7e9 + np.cumsum(rng.exponential(2.0, 900))
    delay = np.where(rng.random(900) < 0.4, rng.exponential(120.0, 900), np.inf)
    ledger, pairs = play(assume_by_clock("learn", None, 3), at, at + delay, 3)
    assumed = ledger.assumed
    two = pairs[:, 0] != pairs[:, 1]
    heard = np.where(at + delay <= at[-1], delay, np.inf)
    wanted = kaplan_meier(heard[two], (at[-1] - at)[two], assumed.ages)
    curve = learned_curve(assumed)
    np.testing.assert_allclose(curve.shares, wanted[: len(curve.shares)], atol=1e-12)
    assert (np.array(curve.lower) <= curve.shares).all() and curve.upper[-1] > curve.shares[-1]
    assert curve.ages[-1] <= at[-1] - at[0]
    assert assumed.n_taught[0] == (np.isfinite(heard) & two).sum() and assumed.n_looks[0] > 3
    assert bucket_error(assumed) < 0.05


def test_buckets_of_a_learned_law_are_as_fine_as_the_page_says():
    ages = assume_by_clock("learn", None, 2).ages
    assert np.diff(delays.Exponential("1h").cdf(ages)).max() / 2 == pytest.approx(0.011, abs=5e-4)
    assert (ages[2:-1] / ages[1:-2]).max() == pytest.approx(1.06)


def test_before_enough_is_heard_silence_is_taken_for_defeat():
    at = 1.7e9 + np.arange(80.0)
    ledger, pairs = play(assume_by_clock("learn", None, 2), at, np.full(80, np.inf), 2)
    age_to(ledger, 81)
    assert (ledger.assumed.total == np.where(np.eye(2), 0, ledger.plays)).all()


@pytest.mark.long
@pytest.mark.interpreted
def test_what_has_been_learned_reaches_the_duels_counted_before():
    rng = np.random.default_rng(4)
    at = 1.7e9 + np.cumsum(rng.exponential(1.0, 700))
    delay = np.where(rng.random(700) < 0.5, rng.exponential(60.0, 700), np.inf)
    ledger, _ = play(assume_by_clock("learn", None, 2), at, at + delay, 2)
    assumed = ledger.assumed
    by_hand = (assumed.duels * assumed.worth[0]).sum(axis=2)
    np.testing.assert_allclose(assumed.total, by_hand, rtol=1e-9)
    assert assumed.total.sum() < 0.99 * assumed.duels.sum()


@pytest.mark.long
@pytest.mark.interpreted
def test_counts_of_two_players_add_up():
    rng = np.random.default_rng(5)
    parts = []
    for _ in range(2):
        at = np.sort(1.7e9 + 1000 * rng.random(150))
        delay = np.where(rng.random(150) < 0.5, rng.exponential(60.0, 150), np.inf)
        parts.append((at, delay, rng.integers(2, size=150)))
    at, delay, first = (np.concatenate(part) for part in zip(*parts, strict=True))
    order = np.argsort(at, kind="stable")

    def book(at, delay, first):
        ledger = open_ledger(assume_by_clock("learn", None, 2), 2, "coin")
        news = sorted(
            [(now, 0, k) for k, now in enumerate(at)]
            + [(now, 1, k) for k, now in enumerate(at + delay) if now < 1.7e9 + 1000]
        )
        t = 0
        numbers = {}
        for now, is_heard, k in news:
            ledger = with_room(ledger, t + 1)
            clock_to(ledger, now)
            if is_heard:
                hear(ledger, first[k], 1 - first[k], numbers[k], t + 1)
            else:
                t += 1
                numbers[k] = t
                age_to(ledger, t)
                record(ledger, first[k], 1 - first[k], t)
        clock_to(ledger, 1.7e9 + 1000)
        age_to(ledger, t + 1)
        return ledger.assumed

    one, other = (book(*part) for part in parts)
    both = book(at[order], delay[order], first[order])
    for name in ("duels", "events", "at_risk", "n_taught"):
        added = getattr(one, name) + getattr(other, name)
        np.testing.assert_array_equal(getattr(both, name), added)


def test_time_never_runs_backwards_and_rings_grow_without_a_trace():
    at = 1.7e9 + np.arange(1100.0)
    ledger, _ = play(assume_by_clock("exponential:1h", None, 2), at, np.full(1100, np.inf), 2)
    clock_to(ledger, 5.0)
    assert ledger.assumed.now[0] == at[-1]
    assert ledger.assumed.born.size == 2048
    assert ledger.assumed.duels.sum() == ledger.plays.sum() - ledger.plays.trace()


@pytest.mark.parametrize("window", [None, "5m"])
def test_a_conversion_after_the_last_age_teaches_nothing(window):
    seconds = None if window is None else 300.0
    ledger = open_ledger(assume_by_clock("learn", seconds, 2), 2, "coin")
    for t, now in enumerate((0.0, 10.0, 400.0), start=1):
        clock_to(ledger, now)
        age_to(ledger, t)
        record(ledger, 0, 1, t)
    hear(ledger, 0, 1, 1, 4)
    assert ledger.assumed.n_taught[0] == (window is None)


def test_a_law_that_never_answers_is_told():
    ledger, _ = play(
        assume_by_clock("never:1,exponential:1h", None, 2), 1.7e9 + np.arange(50.0),
        np.full(50, np.inf), 2,
    )  # fmt: skip
    assert (ledger.assumed.total == 0).all() and isinstance(ledger.assumed, ByClock)


def test_what_does_not_go_by_the_clock_says_so():
    with pytest.raises(ValueError, match="'learn-from-self-duels' does not go by the clock"):
        assume_by_clock("learn-from-self-duels", None, 2)
    with pytest.raises(ValueError, match="rounds are counted in ticks"):
        duelay.MRRDBDelay(mean_delay=5, horizon=100).start(3, clock="wall")
    with pytest.raises(ValueError, match="delay geometric:0.01 is in ticks, and there is a clock"):
        duelay.RUCBDelay(window=None).start(3, clock="wall")
    with pytest.raises(ValueError, match="window 50 is in ticks, and there is a clock"):
        duelay.DoubleThompson(window=50).start(3, clock="wall")
    with pytest.raises(ValueError, match="clock must be"):
        duelay.DoubleThompson().start(3, clock="moon")
