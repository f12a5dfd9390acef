"""Bets on duels that are kept elsewhere, against those that keep their duels: the same news."""

import math

import numpy as np
import pytest

from duelay.ledger import age_to, clock_to, for_votes, hear, hear_vote, open_ledger, record
from duelay.ledger.evidence.batch import (
    AFTERWARDS,
    ANSWERED,
    MATURED,
    SILENT,
    doubt_anew,
    look_now,
    settle,
    touch_all,
    wait,
)
from duelay.ledger.evidence.eprocess import leave_open, settle_answer, start_eprocess
from duelay.ledger.evidence.silence import patience
from duelay.ledger.evidence.stopping import NOBODY, weigh

SAME = (
    "silent_won", "silent_lost", "kappa", "refit", "wealth", "log_evidence", "best", "wins", "seen",
    "lead", "n", "doubt", "doubts", "n_open", "n_touched", "is_touched", "matured", "answered",
    "n_heard", "delays", "winner", "declared", "looked", "path", "path_tick", "path_size", "stride",
)  # fmt: skip


def tell(eprocess, news):
    """Settle rows of kind, first, second, first_won and delay; return the odds, nan for none."""
    columns = [np.array(column) for column in zip(*news, strict=True)] or [np.zeros(0)] * 5
    kind, first, second, won, delay = columns
    odds = np.full(len(news), np.nan)
    whole = (first.astype(np.int64), second.astype(np.int64))
    settle(eprocess, kind.astype(np.int8), *whole, won.astype(float), delay.astype(float), odds)
    return odds


@pytest.mark.parametrize("is_vote", [False, True])
def test_the_same_news_makes_the_same_evidence_wherever_duels_are_kept(is_vote):
    """Answers as they come, then the duels that have reached age W, oldest first, then a look."""
    rng, n_arms, window = np.random.default_rng(1), 3, 60.0
    ledger = open_ledger(start_eprocess(0.05, window, n_arms, by_clock=True), n_arms, "coin")
    away = open_ledger(start_eprocess(0.05, window, n_arms, by_clock=True), n_arms, "coin")
    if is_vote:
        ledger, away = for_votes(ledger), for_votes(away)
    mine, other = ledger.assumed, away.assumed
    now, oldest, duels, kinds = 1.7e9, 1, [None], set()
    for t in range(1, 301):
        now += rng.exponential(2.0) * (rng.random() < 0.7)
        clock_to(ledger, now)
        news = []
        for number in range(max(1, t - 60), t):
            i, j, asked, due, won, is_told = duels[number]
            if is_told or due > now:
                continue
            duels[number][-1] = True
            if is_vote:
                hear_vote(ledger, i, j, won, number, t)
            else:
                hear(ledger, i, j, number, t)
            if i != j and number >= oldest:
                news.append((ANSWERED, i, j, won, now - asked))
            elif i != j and is_vote:
                news.append((AFTERWARDS, i, j, won, now - asked))
        odds = tell(other, news)
        assert (odds == 1.0).all()
        longest = wait(other)
        assert longest == patience(mine) and isinstance(longest, float)
        age_to(ledger, t)
        due = []
        while oldest < t and duels[oldest][2] <= now - longest:
            i, j, asked, _, won, is_told = duels[oldest]
            if i != j:
                due.append((MATURED if is_told else SILENT, i, j, won, now - asked))
            oldest += 1
        for row in due:  # kappa may be fixed anew between two
            kappa = float(other.kappa[0])
            (odds,) = tell(other, [row])
            assert math.isnan(odds) if row[0] == MATURED else odds == (0.0 if is_vote else kappa)
        kinds |= {row[0] for row in [*news, *due]}
        look_now(other, t)
        for name in SAME:
            np.testing.assert_array_equal(getattr(mine, name), getattr(other, name), name)
        i, j = rng.choice(n_arms, size=2, replace=rng.random() < 0.2)
        record(ledger, i, j, t)
        if i != j:
            leave_open(other.n_open, i, j, 1)
        won = float(rng.choice([1.0, 1.0, 0.0, 0.5])) if is_vote else 1.0
        comes = rng.exponential(8.0) + 50.0 * (rng.random() < 0.03)
        comes = comes if rng.random() < (0.9 if is_vote else 0.5) else math.inf
        duels.append([i, j, now, now + comes, won, False])
    assert kinds == {ANSWERED, SILENT, MATURED} | ({AFTERWARDS} if is_vote else set())
    assert patience(mine) < window and mine.path_size[0] > 100
    assert is_vote or mine.kappa[0] > 0.1


def test_several_rows_are_settled_one_after_the_other():
    rng, n_arms = np.random.default_rng(2), 3
    for is_vote in (False, True):
        one, each = (
            start_eprocess(0.05, 60.0, n_arms, by_clock=True)._replace(is_vote=is_vote)
            for _ in range(2)
        )
        kinds = rng.choice([ANSWERED, SILENT, MATURED, AFTERWARDS], size=80)
        news = []
        for kind in kinds:
            i, j = rng.choice(n_arms, size=2, replace=False)
            news.append((kind, i, j, float(rng.choice([0.0, 0.5, 1.0])), rng.exponential()))
        odds = np.concatenate([tell(each, [row]) for row in news])
        np.testing.assert_array_equal(tell(one, news), odds)
        np.testing.assert_array_equal(np.isnan(odds), kinds == MATURED)
        for name in SAME:
            np.testing.assert_array_equal(getattr(one, name), getattr(each, name), name)
        assert one.matured[0] == np.isin(kinds, (SILENT, MATURED)).sum()
        assert one.answered[0] == (kinds == MATURED).sum()
        assert one.n_heard[0] == (kinds == ANSWERED).sum()


def test_news_of_pairs_is_noted_once_and_self_duels_have_none():
    eprocess = start_eprocess(0.05, 60.0, 4, by_clock=True)
    first, second = np.array([2, 1, 3, 0, 0]), np.array([1, 2, 3, 0, 3])
    touch_all(eprocess, first, second)
    assert eprocess.n_touched[0] == 2
    assert eprocess.touched[:2].tolist() == [1 * 4 + 2, 0 * 4 + 3]


def test_doubts_are_reckoned_without_a_look():
    """Of both arms of every pair with news, and of no other."""
    eprocess = start_eprocess(0.05, 60.0, 4, by_clock=True)
    for i, j, won in ((0, 1, 1.0), (2, 1, 1.0), (3, 2, 0.0), (0, 3, 0.0)):
        settle_answer(eprocess, i, j, won, NOBODY, 1.0)
    eprocess.n[0, 2] = eprocess.n[2, 0] = 4.0  # of no news: nobody reads it
    eprocess.lead[0, 2], eprocess.lead[2, 0] = -2.0, 2.0
    doubt_anew(eprocess)
    assert (
        eprocess.n_touched[0] == 4
        and (eprocess.log_evidence == 0).all()
        and eprocess.looked[0] == 0
    )
    wanted = np.zeros((4, 4))
    for winner, loser in ((0, 1), (2, 1), (2, 3), (3, 0)):
        wanted[loser, winner] = weigh(1.0, -1.0)
    np.testing.assert_array_equal(eprocess.doubt, wanted)
    np.testing.assert_allclose(eprocess.doubts, wanted.sum(axis=1))
    assert eprocess.doubts[1] == pytest.approx(2 * math.log(2))
    nothing = start_eprocess(0.05, 60.0, 4, by_clock=True)
    nothing.n[0, 1], nothing.lead[0, 1] = 4.0, -2.0
    doubt_anew(nothing)
    assert (nothing.doubts == 0).all()
