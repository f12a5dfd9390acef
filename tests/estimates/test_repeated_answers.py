"""Answers of one unit count once a pair."""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np
import pytest

import duelay
from duelay import History
from duelay.estimates.preferences import Counts, Position, of_votes
from duelay.estimates.repeated_answers import (
    count_repeated,
    draw_one_duel_per_unit,
    pool_answers_of_units,
)
from duelay.inference.evidence import evidence_of, replay_bets
from duelay.ledger.evidence.eprocess import GAPS, evidence_weights

NAN = math.nan


def judged(n_prompts, seed, *, judges=1, bonus=0.0, taste=None, mu=0.5):
    """Each prompt in both orders, by several judges; a prompt may have a taste of its own."""
    rng = np.random.default_rng(seed)
    rows = []
    for prompt in range(n_prompts):
        share = mu if taste is None else float(rng.random() < mu) * taste + (1 - taste) * mu
        for first in (0, 1):
            for _ in range(judges):
                p = (share if first == 0 else 1 - share) + bonus
                rows.append((first, 1 - first, float(rng.random() < p), prompt))
    first, second, won, unit = (np.array(column) for column in zip(*rows, strict=True))
    n = len(rows)
    return History(n_arms=2, first=first, second=second, delay=np.zeros(n), first_won=won,
                   feedback="votes", at=1e9 + np.arange(n), unit=unit)  # fmt: skip


def slow_means(log):
    """For each unit and pair, the mean over orders of the means of each."""
    answers = defaultdict(lambda: defaultdict(list))
    for i, j, won, unit in zip(log.first, log.second, log.first_won, log.unit, strict=True):
        if i != j and not math.isnan(won):
            answers[unit, min(i, j), max(i, j)][i < j].append(won if i < j else 1 - won)
    return {key: np.mean([np.mean(side) for side in sides.values()])
            for key, sides in answers.items()}  # fmt: skip


@pytest.mark.parametrize("seed", range(3))
def test_votes_of_a_unit_are_one_their_mean(seed):
    rng = np.random.default_rng(seed)
    n = 200
    first = rng.integers(3, size=n)
    second = rng.integers(3, size=n)
    won = rng.choice([0.0, 0.5, 1.0, NAN], n)
    log = History(n_arms=3, first=first, second=second, delay=np.where(np.isnan(won), NAN, 0.0),
                  first_won=won, feedback="votes", at=1e9 + np.arange(n) // 3.0,
                  unit=rng.integers(20, size=n))  # fmt: skip
    found, slow = pool_answers_of_units(log), slow_means(log)
    heard = found.is_heard
    assert heard.sum() == len(slow)
    for i, j, won, unit in zip(*(getattr(found, name)[heard]
                                 for name in ("first", "second", "first_won", "unit")),
                               strict=True):  # fmt: skip
        assert (won if i < j else 1 - won) == pytest.approx(slow[unit, min(i, j), max(i, j)])
    repeated = count_repeated(log)
    both = (first != second) & log.is_heard
    assert repeated.answers == both.sum() - len(slow)


def test_one_duel_a_unit_and_pair_is_left_and_none_is_chosen_by_its_answer():
    log = judged(300, seed=0, judges=2)
    left = draw_one_duel_per_unit(log)
    two = left.first != left.second
    assert two.sum() == 300 and len(np.unique(left.unit[two])) == 300
    silent = draw_one_duel_per_unit(duelay.History(**{**vars(log), "delay": np.full(log.n, NAN),
                                    "first_won": np.full(log.n, NAN)}))  # fmt: skip
    assert (two == (silent.first != silent.second)).all()
    assert 100 < left.first[two].sum() < 200  # either order


def test_the_first_place_cancels_where_each_prompt_meets_both_orders():
    found = duelay.estimate(judged(400, seed=1, bonus=0.2, mu=0.5))
    assert found.mean[0, 1] == pytest.approx(0.5, abs=0.05)
    assert found.position.bonus == pytest.approx(0.2, abs=4 * found.position.error)
    assert found.repeated.units == 400 and found.repeated.answers == 400


def test_repeated_answers_do_not_make_it_surer():
    """Prompts of a fixed taste, asked by five judges in both orders: ten answers are worth one."""
    once_asked = duelay.estimate(judged(60, seed=2, taste=1.0, judges=1))
    often = duelay.estimate(judged(60, seed=2, taste=1.0, judges=5))
    assert often.upper[0, 1] - often.lower[0, 1] == pytest.approx(
        once_asked.upper[0, 1] - once_asked.lower[0, 1], rel=0.2
    )


def test_without_units_nothing_is_left_out():
    log = judged(10, seed=0)
    plain = History(**{**vars(log), "unit": None})
    assert draw_one_duel_per_unit(plain) is plain and pool_answers_of_units(plain) is plain
    assert count_repeated(plain).units == 0


def voted(first, won, **more):
    """Votes of two arms, as good as each other."""
    n = len(first)
    return History(n_arms=2, first=np.array(first), second=1 - np.array(first), delay=np.zeros(n),
                   first_won=np.array(won, dtype=float), feedback="votes",
                   at=1.7e9 + np.arange(n), chosen_by="design", **more)  # fmt: skip


@pytest.mark.parametrize("order", [None, "champion"])
def test_one_order_alone_cannot_tell_an_arm_from_its_place(order):
    rng = np.random.default_rng(0)
    found = duelay.estimate(voted([0] * 1000, rng.random(1000) < 0.65, order=order))
    assert found.winner is None and found.guarantee.kind == "none"


def test_votes_sorted_by_their_order_declare_nobody():
    """All of one order, then all of the other: on the way the first place speaks for one arm."""
    wrong = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        log = voted([0] * 400 + [1] * 400, rng.random(800) < 0.65)
        found = duelay.estimate(log)
        wrong += found.winner is not None
        assert found.lower[0, 1] <= 0.5 <= found.upper[0, 1] and found.evidence is None
    assert wrong == 0


@pytest.mark.parametrize("way", ["sorted", "reversed", "shuffled"])
def test_the_first_place_is_taken_out_of_units_that_miss_an_order_alone(way):
    """300 prompts, of which 70 % met both orders; as good as each other, the first place 0.25."""
    right = 0
    for seed in range(15):
        rng = np.random.default_rng(seed)
        order = np.concatenate([np.zeros(300, int), np.ones(210, int)])
        unit = np.concatenate([np.arange(300), np.arange(210)])
        rows = {"sorted": np.arange(510), "reversed": np.arange(510)[::-1],
                "shuffled": rng.permutation(510)}[way]  # fmt: skip
        found = duelay.estimate(voted(order[rows], rng.random(510) < 0.75, unit=unit[rows]))
        right += bool(found.lower[0, 1] <= 0.5 <= found.upper[0, 1]) and found.winner is None
        assert found.position.bonus == pytest.approx(0.25, abs=4 * found.position.error)
    assert right >= 12  # of 15: less than once in a hundred, if 95 % are


def test_the_standard_error_is_that_of_the_units_means():
    log = judged(300, seed=3, judges=4, bonus=0.1)
    found, means = duelay.estimate(log), np.array(list(slow_means(log).values()))
    assert found.mean[0, 1] == pytest.approx(means.mean())
    assert found.preferences.error[0, 1] == pytest.approx(means.std() / math.sqrt(300))


def test_evidence_of_a_mean_is_a_smaller_bet_on_either_side():
    log = voted([0, 1] * 30, [0.75, 0.25] * 30)
    eprocess = replay_bets(log, 0.05, is_whole=True)
    found, n = evidence_of(eprocess), eprocess.seen.sum()
    assert 40 < n < 60  # those that were asked after ten answers
    weight, gaps = evidence_weights(), GAPS
    for i, j, side in ((0, 1, 1.0), (1, 0, -1.0)):
        made = math.log((weight * (1 + side * gaps) ** n).sum())
        assert found.log_evidence[i, j] == pytest.approx(made)
    assert found.lead[0, 1] == pytest.approx(30) and found.n[0, 1] == 60


def test_what_is_not_known_of_the_first_place_is_in_the_errors():
    pairs = ((80, 20), (80, 20), (50, 8), (50, 8))  # duels, answers, wins of the first, squares
    counts = Counts(*(np.array([[0.0, x], [y, 0.0]]) for x, y in pairs))
    tilt, naive = np.array([[0.0, 0.6], [-0.6, 0.0]]), np.full((2, 2), 0.5)
    sure = of_votes(counts, Position(0.1, 0.0), tilt, 0.05, naive)
    found = of_votes(counts, Position(0.1, 0.05), tilt, 0.05, naive)
    assert found.mean[0, 1] == pytest.approx((50 + 12) / 100 - 0.06)
    assert found.error[0, 1] ** 2 - sure.error[0, 1] ** 2 == pytest.approx((0.6 * 0.05) ** 2)
    assert found.upper[0, 1] - found.mean[0, 1] == pytest.approx(1.959964 * found.error[0, 1])
