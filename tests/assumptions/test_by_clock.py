"""Tests of assumptions by the clock: levels under bursts and daily cycles, and words."""

import functools
import heapq
import math
import re

import numpy as np
import pytest

import duelay
from duelay import delays
from duelay.assumptions import (
    TESTS,
    check_assumptions,
    delay_by_pair,
    delay_by_winner,
    law_drift,
    position_effect,
    preference_drift,
    report,
)
from duelay.logs.history import History

MU = np.array([[0.5, 0.55, 0.6], [0.45, 0.5, 0.55], [0.4, 0.45, 0.5]])
EPOCH = 1.7e9 - 1.7e9 % 86_400
LAW = delays.Never(0.2, delays.LogNormal("10m", 1.0))
NAN = math.nan


def at_noon(rng, n, days=4):
    """Times of n duels: all day one or two a minute, and at noon a hundred a second."""
    n_burst = n // (2 * days)
    bursts = [EPOCH + 86_400 * day + 43_200 + np.arange(n_burst) / 100 for day in range(days)]
    spread = EPOCH + 86_400 * days * rng.random(n - days * n_burst)
    return np.sort(np.concatenate([*bursts, spread]))


def by_day(rng, n, days=4):
    """Times of n duels: many by day and few at night."""
    at = EPOCH + 86_400 * days * rng.random(40 * n)
    rate = np.exp(3 * np.sin(2 * np.pi * at / 86_400) - 3)
    return np.sort(at[rng.random(40 * n) < rate][:n])


def heard_of(at, first, second, won, delay, now, *, votes=False, order="coin", **more):
    """What is heard by now of duels that were won, or not, and would answer by `delay`."""
    heard = (at + delay <= now) & (won | votes)
    return History(
        n_arms=3,
        first=first,
        second=second,
        delay=np.where(heard, delay, NAN),
        first_won=np.where(heard, won, NAN),
        feedback="votes" if votes else "conversions",
        order=order,
        at=at,
        now=now,
        **more,
    )


def at_random(seed, n, times=at_noon, law=LAW, **more):
    rng = np.random.default_rng(seed)
    at = times(rng, n)
    first = rng.integers(3, size=len(at))
    second = (first + rng.integers(1, 3, size=len(at))) % 3
    won, delay = rng.random(len(at)) < MU[first, second], law.sample(len(at), seed=rng)
    return heard_of(at, first, second, won, delay, at[-1] + 600 * rng.random(), **more)


def by_player(policy, seed, n, times=at_noon, votes=False):
    """The history of a live program."""
    rng = np.random.default_rng(seed)
    feedback = "votes" if votes else "conversions"
    player, due = policy.start(3, seed=seed, clock="wall", feedback=feedback), []
    moments = times(rng, n)
    for at, late in zip(moments, LAW.sample(len(moments), seed=rng).tolist(), strict=True):
        while due and due[0][0] <= at:
            when, duel, won = heapq.heappop(due)
            player.tell(duel, *([("second", "first")[won]] if votes else []), at=when)
        duel = player.ask(at=at)
        won = rng.random() < MU[duel.first, duel.second]
        if (won or votes) and math.isfinite(late):
            heapq.heappush(due, (at + late, duel, int(won)))
    return player.history()


def alarms(test, histories):
    """Alarms at 5 %, and the histories that could tell."""
    p = np.array([test(history).p_value for history in histories])
    return int((p < 0.05).sum()), int((~np.isnan(p)).sum())


RUNS = 400
LEARN = duelay.DoubleThompson(delay="learn")
NULLS = {
    "noon": lambda s: at_random(s, 800),
    "by day": lambda s: at_random(s, 800, by_day),
    "votes": lambda s: at_random(s, 800, votes=True),
    "learn, noon": lambda s: by_player(LEARN, s, 800),
    "learn, by day": lambda s: by_player(LEARN, s, 800, by_day),
}


@functools.cache
def nulls(name):
    return [NULLS[name](seed) for seed in range(RUNS // 2 if "learn" in name else RUNS)]


def is_held(test, name, runs, found):
    """Whether alarms are as often as 5 % allow, within four standard errors of the number told."""
    alarmed, told = found
    if test is position_effect and name != "votes":
        return alarmed == 0  # conversions cannot tell
    level = 0.06 if test is preference_drift and "learn" in name else 0.05
    return told > 0.7 * runs and alarmed <= level * told + 4 * math.sqrt(0.05 * 0.95 * told)


@pytest.mark.compiled
@pytest.mark.parametrize("name", NULLS)
@pytest.mark.parametrize("test", TESTS, ids=lambda test: test.__name__)
def test_the_level_is_held_under_bursts_and_daily_cycles(test, name):
    assert is_held(test, name, len(nulls(name)), alarms(test, nulls(name)))


def test_the_level_is_held_at_noon_quickly():
    histories = [at_random(seed, 300) for seed in range(60)]
    for test in TESTS:
        assert is_held(test, "noon", 60, alarms(test, histories)), test


def slower(seed, n=1100):
    """The median delay doubles by half-time."""
    rng = np.random.default_rng(seed)
    at = at_noon(rng, n)
    first = rng.integers(3, size=n)
    second = (first + rng.integers(1, 3, size=n)) % 3
    delay = delays.LogNormal("10m", 1.0).sample(n, seed=rng) * (1 + (np.arange(n) > n / 2))
    return heard_of(at, first, second, rng.random(n) < MU[first, second], delay, at[-1] + 3600)


def slow_winner(seed, n=1100):
    """Answers take three times as long where arm 1 wins."""
    rng = np.random.default_rng(seed)
    at = at_noon(rng, n)
    first = rng.integers(3, size=n)
    second = (first + rng.integers(1, 3, size=n)) % 3
    delay = delays.LogNormal("10m", 1.0).sample(n, seed=rng) * np.where(first == 1, 3, 1)
    return heard_of(at, first, second, rng.random(n) < MU[first, second], delay, at[-1] + 3600)


def test_faults_are_found_by_the_clock_and_said_in_durations():
    assert sum(law_drift(slower(seed)).is_alarm for seed in range(20)) >= 18
    assert sum(delay_by_winner(slow_winner(seed)).is_alarm for seed in range(20)) >= 18
    words = law_drift(slower(0)).sentence
    assert re.search(r"by age \w*m\w* the median delay went from \d+m\w* to \d+m\w* from", words)
    assert "ticks" not in words
    words = delay_by_winner(slow_winner(0)).sentence
    assert re.search(r"a median of \d+m\w* for arm 1, \d+m\w* for arm [02]\.", words)
    words = delay_by_pair(slow_winner(0)).sentence
    assert "ticks" not in words


def test_a_burst_just_before_the_end_leaves_the_duels_before_it_to_be_tested():
    """Most duels are seconds old: nothing of them has been heard, and they do not count."""
    quiet = slower(0)
    burst = quiet.now + np.arange(4000) / 100
    many, nothing = np.zeros(4000, dtype=np.int64), np.full(4000, NAN)
    history = History(
        n_arms=3,
        first=np.append(quiet.first, many),
        second=np.append(quiet.second, many + 1),
        delay=np.append(quiet.delay, nothing),
        first_won=np.append(quiet.first_won, nothing),
        at=np.append(quiet.at, burst),
        order="coin",
    )
    assert law_drift(history).is_alarm and law_drift(history).n > 300


def of_few(n, first_won=1.0, delay=60.0, at=0.0, **more):
    """Duels of two arms in turns, all asked at one time and answered at one time, or never."""
    first = np.arange(n) % 2
    one = np.ones(n)
    return History(
        n_arms=2,
        first=first,
        second=1 - first,
        delay=delay * one,
        first_won=(NAN if math.isnan(delay) else first_won) * one,
        at=EPOCH + at * np.arange(n),
        **more,
    )


@pytest.mark.parametrize(
    "history",
    [
        of_few(1),
        of_few(1, delay=NAN),
        of_few(200),
        of_few(200, now=EPOCH + 3600, order="coin"),
        of_few(200, delay=0.0),
        of_few(200, delay=NAN, order="coin", now=EPOCH + 9),
        of_few(200, delay=7.1, at=0.3, order="alternate", now=EPOCH + 1e6),
        of_few(200, first_won=0.5, feedback="votes", now=EPOCH + 3600),
        of_few(200, first_won=0.0, feedback="votes", at=1.0),
        History(n_arms=2, first=[], second=[], delay=[], first_won=[], at=[]),
    ],
)
def test_histories_without_variety_are_tested_without_a_warning(history):
    for finding in check_assumptions(history):
        assert math.isnan(finding.p_value) or 0 <= finding.p_value <= 1
        assert finding.sentence
    assert "tests alarm" in report(history)


def test_equal_delays_are_tied_whenever_they_were_asked():
    """The difference of two times of today is off by a tenth of a microsecond."""
    history = of_few(200, delay=7.1, at=0.3, now=EPOCH + 1e6)
    assert set(history.delay) == {7.1}
    assert "every delay is the same" in law_drift(history).sentence
