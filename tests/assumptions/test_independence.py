"""Whether an answer is like the one before it: the score by its definition, and its edges."""

import itertools
import math

import numpy as np
import pytest
import scipy.stats

import naive
from duelay.assumptions import independence
from duelay.logs.history import History

NAN = math.nan
NO_SIGN = "No sign that an answer is like the one before it."
NOTHING = "There is nothing to compare: no pair has 3 answers that are not all the same."


def in_words(alike, neighbours):
    return (
        f"Answers to a pair are too often like the one before, {alike / neighbours:.0%} of "
        "them: do the same visitors answer it again and again? Count each visitor once a pair."
    )


def a_history(seed, *, votes=True, order="coin", n=70, n_arms=4):
    """Some arms rarely, self-duels, ties and means of several votes; late answers and silence."""
    rng = np.random.default_rng(seed)
    first, second = rng.choice(n_arms, size=(2, n), p=[0.4, 0.3, 0.2, 0.1])
    won = rng.choice([0.0, 0.1, 0.5, 0.9, 1.0], size=n, p=[0.3, 0.1, 0.1, 0.1, 0.4])
    delay = rng.integers(1, 9, size=n).astype(float)
    is_heard = (delay <= np.arange(n, 0, -1)) & (rng.random(n) < 0.9)
    if not votes:
        is_heard, won = is_heard & (won > 0.5), np.ones(n)
    return History(
        n_arms=n_arms, first=first, second=second, delay=np.where(is_heard, delay, NAN),
        first_won=np.where(is_heard, won, NAN), order=order,
        feedback="votes" if votes else "conversions",
    )  # fmt: skip


def told(*answers, order="coin"):
    """Votes at once: (first, second, what the first got) of each, and a last duel too young."""
    first, second, won = zip(*answers, (0, 1, 1.0), strict=True)
    return History(
        n_arms=4, first=first, second=second, delay=np.ones(len(first)), first_won=won,
        feedback="votes", order=order,
    )  # fmt: skip


def of_two(wins):
    """Arm 0 against arm 1, in turns: whether arm 0 wins each."""
    return told(*((0, 1, x) if k % 2 else (1, 0, 1 - x) for k, x in enumerate(wins)))


def check(history):
    """Compare with the definition; return the finding."""
    total, variance, alike, neighbours, n = naive.likeness(history)
    score = total / math.sqrt(variance)
    p = scipy.stats.norm.sf(score)
    found = independence(history)
    assert (found.name, found.n) == ("independence", n)
    assert found.statistic == pytest.approx(score, rel=1e-9, abs=1e-12)
    assert found.p_value == pytest.approx(p, rel=1e-9)
    assert found.is_alarm == (p < 0.05)
    assert found.sentence == (in_words(alike, neighbours) if p < 0.05 else NO_SIGN)
    level = found.p_value
    at, above = (independence(history, level=x) for x in (level, level * (1 + 1e-9)))
    assert not at.is_alarm and at.sentence == NO_SIGN
    assert above.is_alarm and above.sentence == in_words(alike, neighbours)
    return found


@pytest.mark.parametrize(
    "votes, order",
    [(True, "coin"), (True, "champion"), (True, None), (False, "coin"), (False, "alternate")],
)
def test_the_score_the_p_value_and_the_sentence_are_those_defined(votes, order):
    for seed in range(6):
        check(a_history(seed, votes=votes, order=order, n=70 if votes else 140))


def test_conversions_in_an_order_that_is_not_even_are_not_compared():
    history = a_history(0, votes=False, order="champion")
    found = independence(history)
    assert found.sentence == "Needs votes, or an order by coin or in turns."
    assert math.isnan(found.p_value) and not found.is_alarm
    assert found.n == len(naive.like_with_like(history)[1])


def test_twenty_answers_are_enough_and_nineteen_are_not():
    wins = [1, 1, 0, 1, 0, 0, 0, 1, 0, 1] * 2
    assert check(of_two(wins)).n == 20
    found = independence(of_two(wins[:19]))
    assert found.sentence == "Needs 20 answers of two arms that differ, has 19."
    assert found.n == 19 and math.isnan(found.p_value) and math.isnan(found.statistic)


def test_ties_and_self_duels_and_silence_are_no_answers():
    wins = [1, 1, 0, 1, 0, 0, 0, 1, 0, 1] * 2
    answers = [(0, 1, x) for x in wins[:19]]
    found = independence(told(*answers, (0, 1, 0.5), (2, 2, 1.0), (3, 3, 0.0)))
    assert found.sentence.endswith("has 19.")
    between = [row for answer in answers for row in (answer, (1, 0, 0.5), (2, 2, 1.0))]
    mixed = check(told(*between, (0, 1, wins[19])))
    assert (mixed.statistic, mixed.n) == (check(of_two(wins)).statistic, 20)


def test_a_pair_with_two_answers_tells_nothing_and_one_with_three_does():
    """The pair with few answers comes first, and last."""
    wins = [1, 1, 0, 1, 0, 0, 0, 1, 0, 1] * 2
    for few, many in (((0, 1), (2, 3)), ((2, 3), (0, 1))):
        rows = [(*many, x) for x in wins]
        alone = check(told(*rows)).statistic
        two = check(told((*few, 1.0), *rows, (*few, 0.0)))
        assert two.n == 22 and two.statistic == alone
        three = check(told((*few, 1.0), *rows, (*few, 0.0), (*few, 0.0)))
        assert three.n == 23 and three.statistic != alone


def test_the_score_by_hand():
    """Arm 0 wins the first of twenty: rests of 0.95 and nineteen times -0.05."""
    found = check(of_two([1] + [0] * 19))
    total = -0.95 * 0.05 + 18 * 0.05**2 + (0.95**2 + 19 * 0.05**2) / 20
    variance = (0.95 * 0.05) ** 2 + 18 * 0.05**4
    assert found.statistic == pytest.approx(total / math.sqrt(variance))


def test_over_all_orders_of_the_answers_the_score_adds_up_to_nothing():
    totals = []
    for places in itertools.combinations(range(20), 2):
        history = of_two([float(k in places) for k in range(20)])
        spread = math.sqrt(naive.likeness(history)[1])
        totals.append(independence(history).statistic * spread)
    assert math.fsum(totals) == pytest.approx(0.0, abs=1e-9)


def test_answers_in_long_runs_alarm_and_those_in_turns_do_not():
    runs, turns = check(of_two([1] * 12 + [0] * 12)), check(of_two([1, 0] * 12))
    assert runs.is_alarm and "96% of them" in runs.sentence
    assert turns.statistic < -4 and turns.p_value > 0.9999


@pytest.mark.parametrize("share", [0.0, 0.1, 1 / 3, 0.7, 0.9, 1.0])
def test_answers_that_are_all_the_same_tell_nothing_however_they_are_rounded(share):
    for history in (told(*[(0, 1, share)] * 39), of_two([share] * 39)):
        found = independence(history)
        assert found.sentence == NOTHING and found.n == 39
        assert math.isnan(found.p_value) and math.isnan(found.statistic)


def test_answers_to_pairs_that_have_two_each_tell_nothing():
    pairs = [way for way in itertools.combinations(range(8), 2) for _ in range(2)]
    first, second = np.array([*pairs, (0, 1)]).T
    won = np.arange(len(first)) % 2.0
    history = History(
        n_arms=8, first=first, second=second, delay=np.ones(len(first)), first_won=won,
        feedback="votes", order="coin",
    )  # fmt: skip
    assert independence(history).sentence == NOTHING


def test_equal_answers_are_alike_in_either_order():
    """1 - 0.9 is not 0.1 to the last bit."""
    found = check(of_two([0.1] * 12 + [0.9] * 12))
    assert "96% of them" in found.sentence


def test_of_an_empty_history_nothing_is_told():
    for votes in (True, False):
        found = independence(
            History(n_arms=2, first=[], second=[], delay=[], first_won=[],
                    feedback="votes" if votes else "conversions")
        )  # fmt: skip
        assert found.sentence.endswith("has 0.") and found.n == 0


def test_young_duels_do_not_count_though_they_answered_at_once():
    """Delays of 9 ticks, and 1 tick for the last nine duels."""
    wins = np.array([1.0, 1, 0, 1, 0, 0, 0, 1, 0, 1] * 4)
    delay = np.where(np.arange(40) < 31, 9.0, 1.0)
    history = History(
        n_arms=2, first=np.zeros(40, int), second=np.ones(40, int), delay=delay, first_won=wins,
        feedback="votes",
    )  # fmt: skip
    assert check(history).n == 31
