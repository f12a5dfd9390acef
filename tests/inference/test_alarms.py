"""Alarms beside a verdict: what is named in the headline, and how often where all is well."""

import dataclasses
import math

import numpy as np
import pytest

import duelay
from duelay import History, delays
from duelay.assumptions import share_by_arm, told_law
from duelay.inference import alarms
from duelay.inference.alarms import find_alarms, in_words

MU = np.array([[0.5, 0.6, 0.65], [0.4, 0.5, 0.6], [0.35, 0.4, 0.5]])


def played(n, seed=0, mu=MU, lost=0.0, law=lambda i, j: delays.Geometric(0.1), **more):
    """Duels of random pairs by coin; a share `lost` of arm 0's wins is never told."""
    rng, k = np.random.default_rng(seed), len(mu)
    first = rng.integers(k, size=n)
    second = (first + rng.integers(1, k, size=n)) % k
    won = (rng.random(n) < mu[first, second]) & ~((first == 0) & (rng.random(n) < lost))
    delay = np.empty(n)
    for i in range(k):
        for j in range(k):
            here = (first == i) & (second == j)
            delay[here] = law(i, j).sample(int(here.sum()), seed=rng)
    won &= delay <= np.arange(n, 0, -1)
    return History(
        n_arms=k, first=first, second=second, delay=np.where(won, delay, np.nan),
        first_won=np.where(won, 1.0, np.nan), order="coin", **more,
    )  # fmt: skip


def by_pair(i, j):
    return delays.Geometric((0.02, 0.1, 0.3)[(i + j) % 3])


def names(found):
    return [finding.name for finding in found]


def test_delays_that_differ_by_pair_are_allowed_and_no_alarm():
    """The guarantee holds for them, and a right declaration is not called doubtful."""
    for seed in range(5):
        history = played(1500, seed, law=by_pair)
        assert duelay.assumptions.delay_by_pair(history).p_value < 1e-6
        assert find_alarms(history) == ()


def test_an_arm_whose_wins_are_lost_is_worth_a_look():
    found = find_alarms(played(12_000, lost=0.3))
    assert names(found) == ["share by arm"]
    assert "arm 0" in found[0].sentence
    assert in_words(found) == "; worth a look: share by arm"


def test_a_law_that_is_not_as_told_is_doubtful():
    history = played(1500)
    assert find_alarms(history, delays.Geometric(0.1)) == ()
    for wrong in ("geometric:0.05", "geometric:0.2", "never:0.3,geometric:0.1", "constant:10"):
        found = find_alarms(history, delays.parse(wrong))
        assert names(found) == ["told law"], wrong
        assert in_words(found) == "; but doubtful: told law"


def test_visitors_who_answer_again_and_again_are_doubtful():
    history = played(1500, mu=np.full((2, 2), 0.5))
    rng = np.random.default_rng(1)
    low_wins = np.repeat(rng.random(300) < 0.5, 5)  # five duels in a row have one taste
    won = low_wins == (history.first == 0)
    delay = np.where(won, np.minimum(3, history.ages), np.nan)
    found = find_alarms(dataclasses.replace(history, delay=delay, first_won=delay * 0 + 1))
    assert "independence" in names(found)


def test_slow_wins_of_one_arm_are_doubtful():
    law = {True: delays.Geometric(0.05), False: delays.Geometric(0.2)}
    found = find_alarms(played(3000, law=lambda i, j: law[i == 0]))
    assert "delay by winner" in names(found) and "doubtful" in in_words(found)


@pytest.mark.parametrize("clock", [None, "wall"])
def test_what_was_known_at_a_declaration_is_found_again(clock):
    player, rng = duelay.Decide().start(3, seed=0, clock=clock), np.random.default_rng(0)
    due, then = {}, None
    for t in range(400):
        at = {} if clock is None else {"at": 1e9 + 60.0 * t}
        for duel in due.pop(t, []):
            player.tell(duel, **at)
        if t == 250:
            then = player.history()
        duel = player.ask(**at)
        if rng.random() < MU[duel.first, duel.second]:
            due.setdefault(t + int(rng.integers(3, 40)), []).append(duel)
    was = alarms._as_it_was(player.history(), 250)
    for name in ("first", "second", "delay", "first_won", "asked"):
        np.testing.assert_array_equal(getattr(was, name), getattr(then, name))


def test_what_alarmed_at_a_declaration_stays():
    """Visitors who answered five times each, and 3000 sound duels after them."""
    bad, good = played(400, mu=np.full((2, 2), 0.5)), played(3000, mu=np.full((2, 2), 0.5))
    taste = np.repeat(np.random.default_rng(1).random(80) < 0.5, 5)
    first_won = np.where(taste == (bad.first == 0), 1.0, np.nan)
    history = History(
        n_arms=2, order="coin",
        first=np.append(bad.first, good.first), second=np.append(bad.second, good.second),
        delay=np.append(first_won, good.delay), first_won=np.append(first_won, good.first_won),
    )  # fmt: skip
    assert "independence" not in names(find_alarms(history))
    assert "independence" in names(find_alarms(history, declared=400))


def test_the_headline_names_a_law_that_is_not_as_told():
    player, rng = duelay.Decide(delay="geometric:0.02").start(2, seed=0), np.random.default_rng(0)
    due = {}
    for t in range(800):
        for duel in due.pop(t, []):
            player.tell(duel)
        duel = player.ask()
        if rng.random() < 0.5:
            due.setdefault(t + int(rng.geometric(0.2)), []).append(duel)
    assert player.standing().headline.endswith("; but doubtful: told law")


def test_where_nothing_is_guaranteed_nothing_alarms():
    player = duelay.RUCB().start(2, seed=0)
    for _ in range(200):
        duel = player.ask()
        player.tell(duel)
    assert player.standing().alarms == ()


@pytest.mark.slow
def test_in_a_sound_experiment_few_looks_ever_alarm():
    """Two arms and four, a look every 50 duels, and somebody is declared after 400.

    5 % and three standard errors.
    """
    runs = 60
    for k in (2, 4):
        alarmed = 0
        for seed in range(runs):
            history = played(900, seed, mu=np.full((k, k), 0.5))
            looks = (
                find_alarms(alarms._as_it_was(history, n), declared=400 if n >= 400 else None)
                for n in range(100, 901, 50)
            )
            alarmed += any(looks)
        assert alarmed / runs < alarms.LEVEL + 3 * math.sqrt(alarms.LEVEL * 0.95 / runs)


@pytest.mark.parametrize("seed", range(3))
def test_a_told_law_is_right_with_any_feedback_order_and_window(seed):
    law = delays.Geometric(0.1)
    sound = played(1500, seed)
    for history in (
        sound,
        dataclasses.replace(sound, order="champion"),
        played(1500, seed, mu=np.full((2, 2), 0.5)),
    ):
        assert told_law(history, law).p_value > 1e-3
        assert told_law(history, "geometric:0.2").is_alarm
    shut = np.where(sound.delay <= 8, 1.0, np.nan)
    window = dataclasses.replace(sound, delay=sound.delay * shut, first_won=shut, window=8)
    assert told_law(window, law).p_value > 1e-3


def test_a_told_law_by_pair_is_tested_pair_by_pair():
    laws = delays.ByPair.of(3, by_pair)
    history = played(2000, law=by_pair)
    assert told_law(history, laws).p_value > 1e-3
    assert told_law(history, delays.Geometric(0.05)).is_alarm
    one_way = delays.ByPair.of(3, lambda i, j: by_pair(i, j) if i < j else delays.Geometric(0.5))
    history = played(2000, law=one_way.at)
    assert told_law(history, one_way).p_value > 1e-3  # its number of answers depends on who wins
    assert told_law(history, laws).is_alarm


def test_nothing_heard_where_a_law_says_that_it_should_be_is_an_alarm():
    history = played(400, lost=1.0, mu=np.array([[0.5, 1.0], [0.0, 0.5]]))
    assert not history.is_heard.any()
    finding = told_law(history, "geometric:0.1")
    assert finding.is_alarm and " 0 of them came" in finding.sentence
    assert math.isnan(told_law(played(15), "geometric:0.1").p_value)


@pytest.mark.long
@pytest.mark.interpreted
def test_the_tests_alarm_as_often_as_they_say():
    """100 sound experiments at 5 %: four standard errors."""
    wrong = [told_law(played(600, seed), delays.Geometric(0.1)).is_alarm for seed in range(100)]
    assert np.mean(wrong) < 0.05 + 4 * math.sqrt(0.05 * 0.95 / 100)
    wrong = [share_by_arm(played(600, seed)).is_alarm for seed in range(100)]
    assert np.mean(wrong) < 0.05 + 4 * math.sqrt(0.05 * 0.95 / 100)


def test_the_tests_find_what_they_say_they_find():
    told = [told_law(played(630, seed), "geometric:0.0667").is_alarm for seed in range(40)]
    assert np.mean(told) > 0.9
    lost = [share_by_arm(played(6500, seed, lost=0.3)).is_alarm for seed in range(40)]
    assert np.mean(lost) > 0.9


def test_shares_say_nothing_of_two_arms_or_where_pairs_take_unlike_long():
    assert math.isnan(share_by_arm(played(800, mu=np.full((2, 2), 0.5))).p_value)
    assert "how long" in share_by_arm(played(1500, law=by_pair)).sentence
    assert "even order" in share_by_arm(dataclasses.replace(played(800), order="champion")).sentence


def test_a_standing_calls_nothing_whose_threads_wait_for_each_other(monkeypatch):
    def threaded(*_):
        raise AssertionError("it takes a second where other programs keep the processors busy")

    player = duelay.Decide(error=0.05).start(4, seed=0)
    for t in range(400):
        duel = player.ask()
        if t % 3 == 0:
            player.tell(duel)
    for name in ("eigh", "cholesky", "solve", "inv", "pinv", "svd", "lstsq", "qr"):
        monkeypatch.setattr(np.linalg, name, threaded)
    standing = player.standing()
    assert "after 400 duels" in str(standing) and standing.chances.sum() > 0
