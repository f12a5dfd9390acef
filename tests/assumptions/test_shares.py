"""Whether pairs differ in how often they answer, where no coin decides the order."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats

import naive
from duelay import History
from duelay.assumptions import check_assumptions, share_by_arm, share_by_pair

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


def heard_of(counts, *, order="champion", young=(), feedback="conversions", arms=(), n_arms=4):
    """(first, second): (duels, answers) of each ordered pair, at once, and duels too young."""
    rows = [(way, k < won) for way, (n, won) in counts.items() for k in range(n)]
    rows += [(way, True) for way in young]
    first, second = np.array([way for way, _ in rows]).T
    answered = np.where([won for _, won in rows], 1.0, NAN)
    ages = np.where(np.arange(len(rows)) < len(rows) - len(young), 100.0, 1.0)
    return History(
        n_arms=n_arms, first=first, second=second, delay=answered, first_won=answered,
        at=1.7e9 - ages, now=1.7e9, order=order, feedback=feedback, arms=arms,
    )  # fmt: skip


def check(history):
    """Compare with the definition; return the finding."""
    sums = naive.sums_by_pair(history)
    mean = sum(x / v for x, v, _ in sums.values()) / sum(1 / v for _, v, _ in sums.values())
    off = {pair: (x - mean) ** 2 / v for pair, (x, v, _) in sums.items()}
    statistic, n = sum(off.values()), sum(n for *_, n in sums.values())
    p = scipy.stats.chi2.sf(statistic, len(sums) - 1)
    one, other = odd = max(off, key=off.get)
    words = (
        f"Pairs differ in how often they answer: {history.arms[one]} and {history.arms[other]} in "
        f"{sums[odd][0]:.0%}, on the whole it is {mean:.0%}. One delay law does not fit them all: "
        "tell one for each (delays.ByPair), or show by coin."
    )
    no_sign = "No sign of it: every pair answers as often."
    found = share_by_pair(history)
    assert (found.name, found.n) == ("share by pair", n)
    assert found.statistic == pytest.approx(statistic, rel=1e-9)
    assert found.p_value == pytest.approx(p, rel=1e-9)
    assert found.is_alarm == (p < 0.05)
    assert found.sentence == (words if p < 0.05 else no_sign)
    level = found.p_value
    at, above = (share_by_pair(history, level=x) for x in (level, level * (1 + 1e-9)))
    assert not at.is_alarm and at.sentence == no_sign
    assert above.is_alarm and above.sentence == words
    return found


@pytest.mark.parametrize("seed", range(5))
def test_the_statistic_the_p_value_and_the_sentence_are_those_defined(seed):
    never = np.full((4, 4), 0.1)
    never[0, 2] = 0.1 * seed
    check(a_log(seed, never, n=900))


@pytest.mark.parametrize("seed", range(3))
def test_it_is_the_same_in_ticks_and_with_self_duels(seed):
    """Some pairs are too rare to be compared; and some duels are too young."""
    rng = np.random.default_rng(seed)
    first, second = rng.choice(4, size=(2, 400), p=[0.4, 0.3, 0.2, 0.1])
    delay = rng.integers(1, 9, size=400)
    is_heard = (delay <= np.arange(400, 0, -1)) & (rng.random(400) < 0.3)
    history = History(
        n_arms=4, first=first, second=second, delay=np.where(is_heard, delay, NAN),
        first_won=np.where(is_heard, 1.0, NAN), arms=("a", "b", "c", "d"),
    )  # fmt: skip
    assert len(naive.sums_by_pair(history)) < 6
    check(history)


PAIRS = {(0, 1): (30, 12), (1, 0): (25, 9), (0, 2): (20, 5), (2, 0): (24, 11)}


@pytest.mark.parametrize("rare", [(0, 2), (2, 0)])
def test_twenty_duels_in_each_order_are_enough_and_nineteen_are_not(rare):
    counts = PAIRS | {(1, 2): (40, 12), (2, 1): (40, 9), (0, 2): (30, 5), (2, 0): (30, 11)}
    with_it = check(heard_of(counts | {rare: (20, 5)}))
    without = check(heard_of(counts | {rare: (19, 5)}))
    assert (with_it.n, without.n) == (185, 135)


def test_a_duel_that_is_too_young_does_not_count_towards_the_twenty():
    counts = PAIRS | {(1, 2): (40, 12), (2, 1): (19, 9)}
    assert check(heard_of(counts, young=[(2, 1)])).n == 99
    assert check(heard_of(counts | {(2, 1): (20, 9)}, young=[(2, 1)])).n == 159


def test_two_pairs_of_twenty_duels_in_each_order_are_enough_and_one_is_not():
    least = {way: (20, 4 + 2 * k) for k, way in enumerate(PAIRS)}
    assert check(heard_of(least)).n == 80
    one = share_by_pair(heard_of(least | {(2, 0): (19, 3)}))
    assert one.sentence == "Needs conversions, and two pairs in both orders."
    assert one.n == 40 and math.isnan(one.p_value) and math.isnan(one.statistic)


def test_one_pair_alone_tells_nothing_though_it_has_many_duels():
    one = share_by_pair(heard_of({(0, 1): (300, 100), (1, 0): (300, 60)}))
    assert one.n == 600 and math.isnan(one.p_value) and not one.is_alarm


def test_pairs_in_one_order_tell_nothing():
    one_way = {(0, 1): (50, 20), (0, 2): (50, 5), (2, 3): (50, 10)}
    found = share_by_pair(heard_of(one_way))
    assert found.n == 0 and math.isnan(found.p_value)


def test_self_duels_are_no_pair():
    same = {(k, k): (60, 20 * (k == 1)) for k in range(3)}
    assert share_by_pair(heard_of(same)).n == 0
    assert check(heard_of(PAIRS | same)) == check(heard_of(PAIRS))


def test_votes_tell_nothing_here():
    found = share_by_pair(heard_of(PAIRS, feedback="votes"))
    assert math.isnan(found.p_value) and found.n == 99
    assert found.sentence == "Needs conversions, and two pairs in both orders."


def test_of_an_empty_history_nothing_is_told():
    found = share_by_pair(History(n_arms=3, first=[], second=[], delay=[], first_won=[]))
    assert found.n == 0 and math.isnan(found.p_value)


def test_pairs_that_never_answer_and_pairs_that_always_do_can_be_compared():
    extreme = {(0, 1): (20, 20), (1, 0): (20, 20), (2, 3): (80, 0), (3, 2): (80, 0)}
    found = check(heard_of(extreme, arms=("red", "blue", "green", "grey")))
    assert found.is_alarm and "red and blue in 200%, on the whole it is 13%" in found.sentence


def visitors(seed, rates, display):
    """An A/B test: visitors see the first arm alone; the rate of all doubles halfway."""
    rng, n = np.random.default_rng(seed), 12_000
    first = rng.integers(3, size=n)
    second = (first + rng.integers(1, 3, size=n)) % 3
    rate = np.array(rates)[first] * np.where(np.arange(n) < n // 2, 0.5, 1.0)
    heard = rng.random(n) < rate
    delay = np.where(heard, rng.exponential(3600, n), NAN)
    return History(3, first, second, delay, np.where(heard, 1.0, NAN), order="coin",
                   at=1.7e9 + 60.0 * np.arange(n), now=1.7e9 + 60.0 * n + 1e6,
                   display=display)  # fmt: skip


def test_rates_that_differ_and_change_are_no_fault_where_one_arm_is_shown():
    """A pair of better arms converts more often, and all rates may rise and fall."""
    log = visitors(0, (0.2, 0.3, 0.9), "one")
    findings = check_assumptions(log)
    assert not [finding.name for finding in findings if finding.is_alarm]
    (position,) = [finding for finding in findings if finding.name == "position effect"]
    assert math.isnan(position.p_value) and "there is no first place" in position.sentence
    assert math.isnan(share_by_arm(log).p_value)
    alarms = [f.name for f in check_assumptions(visitors(0, (0.2, 0.3, 0.9), "pair")) if f.is_alarm]
    assert alarms == ["delay by pair", "law drift"]
