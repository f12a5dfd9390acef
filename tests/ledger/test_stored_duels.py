"""Bets on duels that are kept elsewhere, against those that keep their duels: the same news."""

import math

import numpy as np
import pytest

from duelay.ledger import age_to, clock_to, for_votes, hear, hear_vote, open_ledger, record
from duelay.ledger.evidence.booking import NO_STAKE, count_answer, leave_open
from duelay.ledger.evidence.eprocess import start_eprocess
from duelay.ledger.evidence.silence import next_wait
from duelay.ledger.evidence.stored_duels import (
    book_rows,
    count_news,
    doubt_anew,
    look_now,
    stake_now,
    touch_all,
    wait_now,
)
from duelay.ledger.evidence.winner_threshold import weigh

SAME = (
    "silent_won", "silent_lost", "kappa", "refit", "wealth", "log_evidence", "best", "wins", "seen",
    "lead", "n", "doubt", "doubts", "n_open", "n_touched", "is_touched", "n_booked", "n_answered",
    "n_heard", "delays", "winner", "declared", "looked", "path", "path_tick", "path_size", "stride",
)  # fmt: skip


def column(values, dtype=np.float64):
    return np.array(values, dtype=dtype)


@pytest.mark.parametrize("is_vote", [False, True])
def test_the_same_news_makes_the_same_evidence_wherever_duels_are_kept(is_vote):
    """Rows of duels with their W and stake, booked in the order of asking, against the rings."""
    rng, n_arms, window = np.random.default_rng(1), 3, 60.0
    ledger = open_ledger(start_eprocess(0.05, window, n_arms, by_clock=True), n_arms, "coin")
    away = open_ledger(start_eprocess(0.05, window, n_arms, by_clock=True), n_arms, "coin")
    if is_vote:
        ledger, away = for_votes(ledger), for_votes(away)
    mine, other = ledger.assumed, away.assumed
    now, booked, duels, kinds = 1.7e9, 0, [], set()
    for t in range(1, 401):
        now += rng.exponential(2.0) * (rng.random() < 0.7)
        clock_to(ledger, now)
        for number, row in enumerate(duels[max(0, t - 90) :], start=max(0, t - 90) + 1):
            if row["told"] or row["due"] > now:
                continue
            row["told"], pair = True, (row["first"], row["second"])
            if is_vote:
                hear_vote(ledger, *pair, row["won"], number, t)
            else:
                hear(ledger, *pair, number, t)
            if pair[0] == pair[1]:
                continue
            delay = now - row["asked"]
            in_time = number > booked and (row["stake"] == NO_STAKE or delay <= row["wait"])
            row["answered"] = in_time
            count_news(
                other, *(column([arm], np.int64) for arm in pair), column([row["won"]]),
                column([delay]), column([in_time], np.bool_),
            )  # fmt: skip
            kinds.add("in time" if in_time else "late")
        usual = wait_now(other)
        assert usual == next_wait(mine) and isinstance(usual, float)
        age_to(ledger, t)
        due = []
        while booked < len(duels):
            row = duels[booked]
            if row["first"] != row["second"]:
                if now - row["asked"] < (usual if row["stake"] == NO_STAKE else row["wait"]):
                    break
                due.append(row)
            booked += 1
        book_rows(
            other, *(column([row[name] for row in due], np.int64) for name in ("first", "second")),
            column([row["answered"] for row in due], np.bool_),
            *(column([row[name] for row in due]) for name in ("won", "stake")),
            np.full(len(due), np.nan),
        )  # fmt: skip
        kinds |= {"no bet" if row["stake"] == NO_STAKE else "bet" for row in due}
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
        waits, stake = stake_now(other)
        duels.append({"first": i, "second": j, "asked": now, "due": now + comes, "won": won,
                      "wait": waits, "stake": stake, "told": False, "answered": False})  # fmt: skip
    assert kinds == {"in time", "late", "bet", "no bet"}
    assert next_wait(mine) < window and mine.path_size[0] > 100 and mine.wins.any()


@pytest.mark.parametrize("is_vote", [False, True])
def test_several_rows_are_booked_one_after_the_other(is_vote):
    rng, n, n_arms = np.random.default_rng(2), 80, 3
    one, each, again = (
        start_eprocess(0.05, 60.0, n_arms, by_clock=True)._replace(is_vote=is_vote)
        for _ in range(3)
    )
    pairs = np.array([rng.choice(n_arms, size=2, replace=False) for _ in range(n)]).T
    answered, won = rng.random(n) < 0.5, rng.choice([0.0, 0.5, 1.0], n)
    rows = [*pairs, answered, won, rng.choice([NO_STAKE, 0.2, 0.6], n)]
    together, alone = np.full(n, np.nan), np.full(n, np.nan)
    book_rows(one, *rows, together)
    for row in range(n):
        book_rows(each, *(values[row : row + 1] for values in rows), alone[row : row + 1])
    np.testing.assert_array_equal(together, alone)
    np.testing.assert_array_equal(np.isnan(together), answered)
    again.kappa[0], again.refit[0] = 0.123, n + 1  # the weights that are known are taken
    book_rows(again, *rows, together)
    for name in SAME:
        np.testing.assert_array_equal(getattr(one, name), getattr(each, name), name)
        if name not in ("kappa", "refit"):
            np.testing.assert_array_equal(getattr(one, name), getattr(again, name), name)
    assert one.n_booked[0] == n and one.n_answered[0] == answered.sum()


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
        count_answer(eprocess, i, j, won)
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
