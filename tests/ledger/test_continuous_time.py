"""The ledger by the clock: buckets of age against the sum over all duels, and the law learned."""

import math

import numpy as np
import pytest

import duelay
from duelay import delays
from duelay.delays import survival as delay_survival
from duelay.ledger import age_to, assume_by_clock, clock_to, hear, open_ledger, record, with_room
from duelay.ledger.delay_models.base import FOREVER, final_age, is_deaf, is_known, teach
from duelay.ledger.delay_models.continuous_time import (
    ByClock,
    add_past,
    count_passes,
    learned_ages,
    learned_curve,
    told_ages,
    with_room_by_clock,
)
from duelay.ledger.delay_models.kaplan_meier import MIN_TAUGHT

LAWS = ["exponential:10m", "constant:1h", "log-normal:10m,3", "uniform:1m,1h", "weibull:0.3,1h",
        "never:0.4,(log-normal:10m,0.1)", "curve:1m/2m/1d,0.3/0.31/0.9"]  # fmt: skip


def bucket_error(assumed, delay=None):
    """The largest error that the buckets make in a duel's tau; `delay` is a law that is told."""
    if assumed.learns:
        rise = np.diff(assumed.tau)
        return float(max(rise[0], rise[1:].max() / 2.0)) if rise.size > 1 else 1.0
    k, worst, before = len(assumed.law), 0.0, np.nextafter(assumed.ages[1:], 0.0)
    for i in range(k):
        for j in range(k):
            law, worth = delay.at(i, j), assumed.worth[assumed.law[i, j]]
            start = np.abs(worth - law.cdf(assumed.ages)).max()
            end = np.abs(worth[:-1] - law.cdf(before)).max(initial=0.0)  # the first counts as 0
            worst = max(worst, float(start), float(end))
    return worst


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
    with pytest.raises(ValueError, match="learn-from-self-duels"):
        assume_by_clock("learn-from-self-duels", None, 2)
    with pytest.raises(ValueError, match="rounds are counted in ticks"):
        duelay.MRRDBDelay(mean_delay=5, horizon=100).start(3, clock="wall")
    with pytest.raises(ValueError, match="delay"):
        duelay.RUCBDelay(window=None).start(3, clock="wall")
    with pytest.raises(ValueError, match="window"):
        duelay.DoubleThompson(window=50).start(3, clock="wall")
    with pytest.raises(ValueError, match="clock must"):
        duelay.DoubleThompson().start(3, clock="moon")


@pytest.mark.parametrize("window", [None, 1800.0, 3600.0])
@pytest.mark.parametrize("law", LAWS)
def test_no_duel_at_any_age_counts_as_wrong_as_the_error_says(law, window):
    """One duel, looked at just before and at the beginning of every bucket."""
    law, limit = delays.parse(law), math.inf if window is None else window
    assumed = assume_by_clock(law, window, 2)
    error, worst = bucket_error(assumed, law), 0.0
    for worth, low, high in zip(
        assumed.worth[0], assumed.ages, [*assumed.ages[1:], 1e12], strict=True
    ):
        for age in (low, 0.5 * (low + high), np.nextafter(high, 0.0)):
            worst = max(worst, abs(worth - float(law.cdf(min(age, limit)))))
    assert worst == pytest.approx(error, abs=1e-9) and error <= 1 / 400 + 1e-9


@pytest.mark.parametrize("longest", [math.inf, 1800.0, 3600.0])
def test_ages_of_a_told_law_are_its_quantiles(longest):
    for told, steps in ((LAWS[:1], 400), (LAWS[3:5], 200), ([LAWS[5]] * 30, 20), (LAWS[1:2], 400)):
        laws, wanted = [delays.parse(law) for law in told], {0.0}
        for law in laws:
            for step in range(1, steps):
                wanted.add(float(law.quantile((1.0 - law.never) * step / steps)))
        wanted = {age for age in wanted if age < longest}
        wanted |= {longest} if longest < math.inf else set()
        np.testing.assert_allclose(told_ages(laws, longest), sorted(wanted), rtol=1e-12)


def test_a_told_law_counts_as_the_mean_of_both_ends_of_a_bucket():
    """By hand, for a law with a jump at the end of a bucket, and one with a window."""
    jumps = assume_by_clock("constant:1h", None, 2)
    assert jumps.ages.tolist() == [0.0, 3600.0] and jumps.worth.tolist() == [[0.0, 1.0]]
    even = assume_by_clock("uniform:100s,500s", 200.0, 2)
    assert even.ages.tolist() == pytest.approx([0, *range(101, 201)])
    assert even.worth[0, 1:100] == pytest.approx(np.arange(1, 100) / 400 + 1 / 800)
    assert (even.worth[0, 0], even.worth[0, 100]) == (0.0, pytest.approx(0.25))
    never = assume_by_clock("never:0.4,(uniform:100s,500s)", None, 2)
    assert never.worth[0, -1] == pytest.approx(0.6 * (1 - 1 / 800))


def test_ages_of_a_learned_law_go_up_to_the_window():
    ages, last = [0.0, 1e-3], 1e-3
    while last * 1.06 < 1e8:
        last *= 1.06
        ages.append(last)
    np.testing.assert_allclose(learned_ages(None), [*ages, 1e8], rtol=1e-9)
    for window in (1e-4, 1e-3, 1.5e-3, 60.0, 3e8):
        ages = [0.0, *(1e-3 * 1.06**k for k in range(600) if 1e-3 * 1.06**k < window), window]
        np.testing.assert_allclose(learned_ages(window), ages, rtol=1e-9)


def test_every_count_of_a_learned_ledger_is_that_of_a_list_of_duels():
    """At every news, self-duels that teach the law among them; *expected* is of the last look."""
    rng, window = np.random.default_rng(6), 40.0
    assumed = assume_by_clock("learn", window, 2)
    ledger, now, looks, look = open_ledger(assumed, 2, "coin"), 1.7e9, 0, 50
    at, pairs, heard, teaches, taught = [], [], [], [], 0
    for t in range(1, 421):
        now += rng.exponential(1.0) * (rng.random() < 0.6)
        clock_to(ledger, now)
        for k in range(t - 1):
            is_open = heard[k] == math.inf and now - at[k] < 30.0
            if is_open and rng.random() < 0.04:
                heard[k] = now - at[k]
                hear(ledger, *pairs[k], k + 1, t)
                taught += teaches[k]
        age_to(ledger, t)
        if (looks == 0 and taught >= MIN_TAUGHT) or t >= look:
            look = t + max(50, t // 20)
            looks += taught >= MIN_TAUGHT
        age = now - np.array(at)
        low, high = assumed.ages[:-1], assumed.ages[1:]
        bucket = np.searchsorted(assumed.ages, age, side="right") - 1
        for i, j in ((0, 1), (1, 0), (0, 0), (1, 1)):
            mine = np.array([pair == (i, j) and i != j for pair in pairs], dtype=bool)
            wanted = np.bincount(bucket[mine], minlength=assumed.ages.size)
            np.testing.assert_array_equal(assumed.duels[i, j], wanted)
        delay, tells = np.array(heard)[:, None], np.array(teaches, dtype=bool)[:, None]
        passed = tells & (age[:, None] >= high) & (delay >= low)
        np.testing.assert_array_equal(assumed.at_risk[:-1], passed.sum(axis=0))
        np.testing.assert_array_equal(assumed.events[:-1], (passed & (delay < high)).sum(axis=0))
        assert (assumed.n_taught[0], assumed.n_looks[0], assumed.look[0]) == (taught, looks, look)
        by_hand = (assumed.duels * assumed.worth[0]).sum(axis=2)
        np.testing.assert_allclose(assumed.total, by_hand, rtol=1e-9, atol=1e-9)
        first, second = rng.integers(2, size=2)
        record(ledger, first, second, t)
        if first == second and rng.random() < 0.5:
            teach(assumed, t)
        is_taught = first != second or assumed.heard_in[t % assumed.born.size] == -1
        at, pairs = [*at, now], [*pairs, (first, second)]
        heard, teaches = [*heard, math.inf], [*teaches, bool(is_taught)]
    assert looks > 2 and sum(teaches) > sum(i != j for i, j in pairs) + 20
    at_risk = np.maximum(assumed.at_risk[:-1], 1)
    survival, _ = delay_survival.kaplan_meier(assumed.events[:-1], at_risk)
    tau = np.append(0.0, np.minimum(2.0 * (1.0 - survival), 1.0))
    assert assumed.tau[-1] > 0.3 and assumed.look[0] > 421
    assumed.look[0] = 421
    age_to(ledger, 421)
    np.testing.assert_allclose(assumed.tau, tau)
    middle = 0.5 * (tau[1:-1] + tau[2:])
    np.testing.assert_allclose(assumed.worth[0], [0.0, *middle, tau[-1]])


def test_looks_at_the_law_come_after_fifty_duels_or_a_twentieth_of_all():
    assumed = assume_by_clock("learn", 40.0, 2)
    ledger = open_ledger(assumed, 2, "coin")
    assumed.n_taught[0], assumed.n_looks[0] = MIN_TAUGHT, 1
    for t, look, looks in ((49, 50, 1), (50, 100, 2), (99, 100, 2), (100, 150, 3), (1000, 1050, 4),
                           (1060, 1113, 5), (5019, 5269, 6)):  # fmt: skip
        age_to(ledger, t)
        assert (assumed.look[0], assumed.n_looks[0]) == (look, looks)
    assumed.n_taught[0] = MIN_TAUGHT - 1
    age_to(ledger, 6000)
    assert (assumed.look[0], assumed.n_looks[0]) == (6300, 6)


def test_a_told_law_is_never_learned():
    assumed = assume_by_clock("exponential:10m", None, 2)
    worth = assumed.worth.copy()
    assumed.n_taught[0] = 10 * MIN_TAUGHT
    age_to(open_ledger(assumed, 2), 500)
    assert assumed.n_looks[0] == 0 and (assumed.worth == worth).all()
    assert is_known(assumed) and final_age(assumed) == FOREVER


def test_the_first_look_waits_for_the_hundredth_conversion_alone():
    for taught in (MIN_TAUGHT - 1, MIN_TAUGHT, MIN_TAUGHT + 1):
        assumed = assume_by_clock("learn", 40.0, 2)
        assumed.n_taught[0] = taught
        age_to(open_ledger(assumed, 2, "coin"), 7)
        assert is_known(assumed) == (taught >= MIN_TAUGHT) == (assumed.n_looks[0] == 1)


def test_a_ledger_is_deaf_until_a_twentieth_is_answered_or_with_a_law_until_the_first():
    told, learned = assume_by_clock("exponential:10m", None, 2), assume_by_clock("learn", None, 2)
    assert is_deaf(told, 100) and is_deaf(learned, 1)
    told.n_taught[0] = 1
    assert not is_deaf(told, 10**6)
    for taught, t, wanted in ((1, 21, True), (1, 20, False), (5, 101, True), (5, 100, False),
                              (6, 101, False), (0, 1, True)):  # fmt: skip
        learned.n_taught[0] = taught
        assert is_deaf(learned, t) == wanted
    learned.n_taught[0], learned.n_looks[0] = 1, 1
    assert not is_deaf(learned, 10**6)


@pytest.mark.parametrize("answered", [MIN_TAUGHT - 1, MIN_TAUGHT, MIN_TAUGHT + 50])
def test_a_past_that_is_closed_counts_in_full(answered):
    plays = np.array([[4, 150], [90, 2]])
    assumed = assume_by_clock("learn", 40.0, 2)
    n = assumed.ages.size
    asked, heard = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    asked[:4], heard[1], heard[3] = (240, 240, 210, 210), 30, answered - 30
    add_past(assumed, 246, plays, asked, heard)
    assert (assumed.reached == 247).all() and assumed.n_taught[0] == answered
    assert (assumed.duels[:, :, -1] == plays).all() and (assumed.duels[:, :, :-1] == 0).all()
    assert (assumed.at_risk == asked).all() and (assumed.events == heard).all()
    assert assumed.n_looks[0] == is_known(assumed) == (answered >= MIN_TAUGHT)
    silent = (1 - 30 / 240) * (1 - (answered - 30) / 210)
    tau = min(1.0, 2 * (1 - silent)) if answered >= MIN_TAUGHT else 1.0
    np.testing.assert_allclose(assumed.total, plays * tau)


def test_a_past_under_a_told_law_teaches_nothing():
    assumed = assume_by_clock("never:0.4,(uniform:100s,500s)", 200.0, 2)
    plays, none = np.array([[0, 30], [20, 0]]), np.zeros(assumed.ages.size, dtype=np.int64)
    add_past(assumed, 50, plays, none + 7, none + 3)
    assert (assumed.at_risk == 0).all() and (assumed.events == 0).all()
    assert assumed.n_taught[0] == 0 and assumed.n_looks[0] == 0
    np.testing.assert_allclose(assumed.total, plays * 0.15)


def test_there_is_room_until_the_oldest_open_duel_is_in_the_way():
    assumed = assume_by_clock("learn", 40.0, 2)
    size = assumed.born.size
    for oldest in (1, 700):
        assumed.reached[-1] = oldest
        assert with_room_by_clock(assumed, oldest + size - 1) is assumed
        wide = with_room_by_clock(assumed, oldest + size)
        for name in ("born", "first", "second", "heard_in"):
            assert getattr(wide, name).size == 2 * size


def test_a_learned_curve_has_greenwoods_band():
    """By hand: buckets in which nobody, some, one of one, or all convert; the last has no end."""
    assumed = assume_by_clock("learn", 2e-3, 2)
    n = assumed.ages.size
    for last in (n - 2, n - 3, 4):
        assumed.at_risk[:], assumed.events[:] = 0, 0
        assumed.at_risk[:4], assumed.events[:4] = (60, 50, 0, 40), (5, 0, 0, 3)
        assumed.at_risk[last], assumed.events[last] = 1, 0
        assumed.at_risk[-1] = 9  # nobody knows how long these will be silent
        curve, survival, terms = learned_curve(assumed), 1.0, 0.0
        assert [float(age) for age in curve.ages] == assumed.ages[1 : last + 2].tolist()
        for place in range(last + 1):
            at_risk, events = int(assumed.at_risk[place]), int(assumed.events[place])
            if events:
                survival *= 1 - events / at_risk
                terms += events / (at_risk * (at_risk - events))
            tau, wide = 2 * (1 - survival), 2 * 1.96 * survival * math.sqrt(terms)
            assert curve.shares[place] == pytest.approx(tau)
            assert curve.lower[place] == pytest.approx(max(tau - wide, 0))
            assert curve.upper[place] == pytest.approx(min(tau + wide, 1))
    assumed.events[last] = 1  # the only one left converts: all are certain to
    curve = learned_curve(assumed)
    assert (curve.shares[-1], curve.lower[-1], curve.upper[-1]) == (1.0, 1.0, 1.0)
    assumed.at_risk[:], assumed.events[:] = 0, 0
    assert learned_curve(assumed).shares == (0.0,)


def test_the_error_of_a_learned_law_is_half_a_bucket_or_the_whole_first():
    assumed = assume_by_clock("learn", 1.2e-3, 2)
    n = assumed.ages.size
    assumed.tau[:] = [0.0, *np.linspace(0.3, 0.6, n - 1)]
    assert bucket_error(assumed) == pytest.approx(0.3)
    assumed.tau[:] = [0.0, 0.1, *np.linspace(0.6, 0.7, n - 2)]
    assert bucket_error(assumed) == pytest.approx(0.25)
    assumed.tau[-1] = 1.5 + assumed.tau[-2]
    assert bucket_error(assumed) == pytest.approx(0.75)
    assert bucket_error(assume_by_clock("learn", 1e-4, 2)) == 1.0


@pytest.mark.parametrize("n_before", [0, 120])
def test_the_passes_that_a_catch_up_makes_are_counted_before(n_before):
    rng = np.random.default_rng(3)
    at = times(300, rng)
    ledger = with_room(open_ledger(assume_by_clock("learn", None, 3), 3, "coin"), 301)
    for number, now in enumerate(at, 1):
        clock_to(ledger, now)
        if number <= n_before:
            age_to(ledger, number)
        record(ledger, 0, number % 3, number)
    for later in (0.0, 10.0, 1e9):
        clock_to(ledger, at[-1] + later)
        before, counted = ledger.assumed.reached.sum(), count_passes(ledger.assumed, 301)
        age_to(ledger, 301)
        assert ledger.assumed.reached.sum() - before == counted > 0
