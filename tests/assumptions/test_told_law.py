"""Whether answers come as a told law says: the statistic by its definition, and its edges."""

import dataclasses
import math

import numpy as np
import pytest
import scipy.stats

import naive
from duelay import delays
from duelay.assumptions import told_law
from duelay.assumptions.order import is_even
from duelay.logs.history import History

NAN = math.nan
NO_SIGN = "No sign of it: answers come as the law says."
NOTHING = "There is nothing to compare: too little was heard."
LAW = delays.Geometric(0.2)
NEVER = delays.Never(0.3, delays.Geometric(0.1))
EITHER_WAY = delays.ByPair.of(3, lambda i, j: delays.Geometric((0.1, 0.2, 0.4)[(i + j) % 3]))
ONE_WAY = delays.ByPair.of(3, lambda i, j: delays.Geometric(0.1 if i < j else 0.4))
SECONDS = delays.Never(0.2, delays.Exponential("60s"))
BY_CLOCK = delays.ByPair.of(3, lambda i, j: delays.Exponential("30s" if i < j else "90s"))


def a_history(seed, law, *, votes=False, order="coin", n=150, window=None):
    """Three arms at random, self-duels too; delays by a law, in seconds with duels every 2 s."""
    rng = np.random.default_rng(seed)
    first, second = rng.choice(3, size=(2, n), p=[0.5, 0.3, 0.2])
    won = rng.random(n) < 0.6
    delay = np.array(
        [law.at(i, j).sample(seed=rng) for i, j in zip(first, second, strict=True)], dtype=float
    )
    ages = np.arange(n, 0, -1) * (2.0 if law.in_time else 1.0)
    is_heard = (delay <= ages) & (delay <= float(window or math.inf)) & (won | votes)
    clock = {"at": 1.7e9 - ages, "now": 1.7e9} if law.in_time else {}
    return History(
        n_arms=3, first=first, second=second, delay=np.where(is_heard, delay, NAN),
        first_won=np.where(is_heard, won, NAN), order=order, window=window,
        feedback="votes" if votes else "conversions", **clock,
    )  # fmt: skip


def check(history, law):
    """Compare with the definition; return the finding."""
    edges, n, came, expected, covariance = naive.as_told(history, law, is_even(history))
    if np.abs(covariance).max() < 1e-9:  # one part, and only those that came
        found = told_law(history, law)
        assert math.isnan(found.p_value) and found.n == n and found.sentence == NOTHING
        return found
    score = came - expected
    statistic = score @ np.linalg.pinv(covariance, rcond=1e-9, hermitian=True) @ score
    tol = 1e-9 * np.abs(covariance).max()
    p = scipy.stats.chi2.sf(statistic, np.linalg.matrix_rank(covariance, tol=tol, hermitian=True))
    words = (
        f"Answers do not come as the law says that was told: by age {edges[-1]:g} "
        f"{came.sum():,.0f} of them came, {expected.sum():,.0f} were expected. Tell the right "
        "law, or none: what rests on it is not to be trusted."
    )
    found = told_law(history, law)
    assert (found.name, found.n) == ("told law", n)
    assert found.statistic == pytest.approx(statistic, rel=1e-7)
    assert found.p_value == pytest.approx(p, rel=1e-6, abs=1e-300)
    assert found.is_alarm == (p < 0.05)
    assert found.sentence == (words if p < 0.05 else NO_SIGN)
    if found.p_value > 1e-300:
        level = found.p_value
        at, above = (told_law(history, law, level=x) for x in (level, level * (1 + 1e-9)))
        assert not at.is_alarm and at.sentence == NO_SIGN
        assert above.is_alarm and above.sentence == words
    return found


ORDERS = [(True, "champion"), (True, None), (False, "coin"), (False, "champion"), (False, None)]


@pytest.mark.parametrize("votes, order", ORDERS)
@pytest.mark.parametrize("window", [None, 8])
def test_in_ticks_it_is_the_statistic_defined(votes, order, window):
    for seed, law in enumerate((LAW, NEVER, EITHER_WAY, ONE_WAY)):
        history = a_history(seed, law, votes=votes, order=order, window=window)
        check(history, law)
        check(history, delays.Geometric(0.25))
        check(history, delays.Uniform(1, 40))


@pytest.mark.parametrize("votes, order", ORDERS)
@pytest.mark.parametrize("window", [None, "25s"])
def test_by_the_clock_it_is_the_statistic_defined(votes, order, window):
    window = None if window is None else delays.Duration(window)
    for seed, law in enumerate((SECONDS, BY_CLOCK)):
        history = a_history(seed, law, votes=votes, order=order, window=window)
        check(history, law)
        check(history, delays.Exponential("70s"))


def test_a_law_that_is_far_too_slow_is_compared_up_to_half_of_the_time():
    for history, slow, half in (
        (a_history(0, LAW), delays.Geometric(0.001), "by age 75 "),
        (a_history(0, SECONDS), delays.Exponential("2h"), "by age 150 "),
    ):
        found = check(history, slow)
        assert found.is_alarm and half in found.sentence


def test_within_a_second_of_the_clock_half_of_the_time_is_less_than_half_a_second():
    k = np.arange(40)
    late = np.where(k % 4 == 0, 0.1, NAN)
    history = History(
        n_arms=2, first=k % 2, second=1 - k % 2, delay=late, first_won=late * 0 + 1, order="coin",
        at=1.7e9 + k * 0.01, now=1.7e9 + 0.6,
    )  # fmt: skip
    found = check(history, delays.Exponential("2s"))
    assert found.n == 30 and naive.law_edges(history, delays.Exponential("2s"))[-1] == 0.3


def in_turns(n, delay, *, votes=False, order="coin", **more):
    """Arms 0 and 1 in turns, answered after the delays that are told, or never."""
    k = np.arange(n)
    late = np.full(n, NAN)
    late[: len(delay)] = delay
    return History(
        n_arms=2, first=k % 2, second=1 - k % 2, delay=late, first_won=np.where(late > 0, 1.0, NAN),
        order=order, feedback="votes" if votes else "conversions", **more,
    )  # fmt: skip


def test_twenty_old_duels_are_enough_and_nineteen_are_not():
    """By age 10 answers have come: a duel of that very age is too young."""
    law = delays.Constant(10)
    assert check(in_turns(30, [10.0] * 8), law).n == 20
    few = told_law(in_turns(29, [10.0] * 8), law)
    assert few.sentence == "Needs 20 old duels of two arms, has 19."
    assert few.n == 19 and math.isnan(few.p_value) and math.isnan(few.statistic)


def test_self_duels_do_not_count():
    history = in_turns(40, [10.0] * 8)
    same = dataclasses.replace(history, second=np.where(np.arange(40) < 11, 0, history.second),
                               first=np.where(np.arange(40) < 11, 0, history.first))  # fmt: skip
    assert told_law(same, delays.Constant(10)).n == 19


def test_an_answer_whose_age_is_an_edge_is_before_it():
    """Edges at 4, 6, 8 and 9: of a law from 3 to 9."""
    law, n = delays.Uniform(3, 9), 61
    assert naive.law_edges(in_turns(n, []), law) == [4, 6, 8, 9]
    at, after = (check(in_turns(n, [age] * 25), law) for age in (4.0, 5.0))
    assert check(in_turns(n, [3.0] * 25), law).statistic == at.statistic
    assert check(in_turns(n, [6.0] * 25), law).statistic == after.statistic != at.statistic


def test_the_first_age_is_one():
    law = delays.Geometric(0.9)
    history = in_turns(60, [1.0] * 20 + [2.0] * 5)
    assert naive.law_edges(history, law) == [1, 2]
    check(history, law)
    assert naive.law_edges(history, delays.Geometric(0.97)) == [1]
    check(history, delays.Geometric(0.97))


def test_the_number_counts_where_the_order_is_even_and_else_only_when():
    """A quarter of all answers in each part, but no more than a few of them."""
    law = delays.Uniform(1, 20)
    few = in_turns(200, [3.0, 8.0, 13.0, 18.0] * 5)
    assert check(few, law).is_alarm
    champion = dataclasses.replace(few, order="champion")
    assert not check(champion, law).is_alarm
    assert told_law(few, law).n == told_law(champion, law).n == 181


def test_where_nothing_was_heard_in_an_order_that_is_not_even_there_is_nothing_to_compare():
    found = told_law(in_turns(60, [], order="champion"), LAW)
    assert found.sentence == NOTHING
    assert math.isnan(found.p_value) and math.isnan(found.statistic) and found.n == 46


def test_where_the_law_has_no_answers_yet_and_none_came_there_is_nothing_to_compare():
    found = told_law(in_turns(60, []), delays.Constant(100))
    assert found.sentence == NOTHING and found.n == 30


@pytest.mark.parametrize("order", ["coin", "champion"])
@pytest.mark.parametrize("votes", [True, False], ids=["votes", "conversions"])
def test_an_answer_before_a_law_has_any_rules_it_out(votes, order):
    found = told_law(in_turns(60, [3.0] * 5, votes=votes, order=order), delays.Constant(100))
    assert found.is_alarm and found.p_value == 0.0 and found.statistic == math.inf
    assert found.as_data()["statistic"] is None
    assert "by age 30 5 of them came, 0 were expected" in found.sentence
    assert str(found).startswith("told law (p < 1e-300, n = 30): Answers do not come")


def test_one_early_answer_of_one_pair_rules_its_law_out():
    """Arms 0 and 1 answer at 40 and not before, 1 and 2 when they like."""
    laws = delays.ByPair.of(
        3, lambda i, j: delays.Constant(40) if i + j == 1 else delays.Geometric(0.2)
    )
    k = np.arange(120)
    first, second = np.where(k % 2, 0, 2), np.ones(120, dtype=np.int64)
    late = np.where((k < 70) & (k % 4 == 0), 1.0 + k % 7, NAN)
    history = History(
        n_arms=3, first=first, second=second, delay=late, first_won=late * 0 + 1, order="champion"
    )
    edges = naive.law_edges(history, laws)
    assert edges == [21, 22, 23, 27] and not math.isinf(told_law(history, laws).statistic)
    early = dataclasses.replace(history, delay=np.where(k == 1, 5.0, late),
                                first_won=np.where(k == 1, 1.0, history.first_won))  # fmt: skip
    assert told_law(early, laws).p_value == 0.0


def test_votes_that_do_not_come_rule_out_a_law_by_which_all_do():
    law = delays.Constant(3)
    every = told_law(in_turns(60, [3.0] * 57, votes=True), law)
    assert math.isnan(every.p_value) and not every.is_alarm
    one_less = told_law(in_turns(60, [3.0] * 56, votes=True), law)
    assert one_less.p_value == 0.0 and one_less.is_alarm
    assert "by age 3 56 of them came, 57 were expected" in one_less.sentence
    assert not told_law(in_turns(60, [3.0] * 28), law).is_alarm  # half convert


def test_of_an_empty_history_nothing_is_told():
    for clock, law in (({}, EITHER_WAY), ({"at": []}, BY_CLOCK), ({"at": [], "now": 9.0}, SECONDS)):
        empty = History(n_arms=3, first=[], second=[], delay=[], first_won=[], **clock)
        found = told_law(empty, law)
        assert found.sentence == "Needs 20 old duels of two arms, has 0." and found.n == 0


def test_a_law_in_time_is_refused_where_ticks_are_counted():
    with pytest.raises(ValueError, match="delay"):
        told_law(in_turns(60, []), "exponential:1m")


def test_a_law_by_pair_is_the_same_in_either_order_where_those_that_duel_are():
    """Arm 2 never duels, and its laws differ by the order."""
    laws = delays.ByPair.of(
        3, lambda i, j: LAW if max(i, j) < 2 else delays.Geometric(0.1 if i < j else 0.4)
    )
    history = dataclasses.replace(in_turns(80, [2.0, 5.0] * 6), n_arms=3, arms=())
    assert check(history, laws).statistic == check(history, LAW).statistic
