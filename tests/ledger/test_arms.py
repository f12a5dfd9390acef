"""Bets while arms come and go: what each arm needs, and false declarations by retiring."""

import math

import numpy as np
import pytest

from duelay._core.jit.decorators import kernel
from duelay.ledger.arms import reopen, with_arm
from duelay.ledger.delay_models.base import advance, convert, enter
from duelay.ledger.evidence.eprocess import start_eprocess
from duelay.ledger.evidence.winner_threshold import NOBODY, log_threshold, needed, passes_all
from duelay.policies.decide import find_leader, find_rival

ERROR = 0.05


def test_by_the_clock_there_is_room_for_arms_to_join_from_the_start():
    eprocess = start_eprocess(ERROR, None, 4, by_clock=True)
    assert eprocess.level == pytest.approx(log_threshold(4, ERROR, may_join=True))
    assert eprocess.level > start_eprocess(ERROR, None, 4).level


def test_a_late_comer_needs_more_and_the_others_keep_what_they_have():
    eprocess = start_eprocess(ERROR, None, 3, by_clock=True)
    eprocess.wealth[:] = np.arange(eprocess.wealth.size).reshape(eprocess.wealth.shape)
    eprocess.best[0, 1], eprocess.winner[0] = 2.5, 0
    wider = with_arm(with_arm(eprocess, ERROR), ERROR)
    np.testing.assert_array_equal(wider.wealth[:3, :3], eprocess.wealth)
    assert (wider.wealth[3:] == 0).all() and (wider.wealth[:, 3:] == 0).all()
    assert wider.best[0, 1] == 2.5 and wider.winner[0] == NOBODY
    assert wider.joined.tolist() == [0, 0, 0, 1, 2] and wider.present.all()
    base = log_threshold(3, ERROR, may_join=True)
    for i, more in ((0, 0.0), (2, 0.0), (3, math.log(2)), (4, math.log(6))):
        for j in range(5):
            assert needed(wider, i, j) == pytest.approx(base + more)
    shares = [math.exp(-needed(wider, i, 0)) for i in range(5)]
    assert sum(shares) <= 0.9 * ERROR
    assert wider.path.shape[1] == wider.doubts.size == 5 and wider.touched.size == 25
    assert wider.n_touched[0] == 10


def test_who_has_not_passed_a_retired_arm_needs_more_over_each_that_is_left():
    eprocess = with_arm(start_eprocess(ERROR, None, 3, by_clock=True), ERROR)
    eprocess.present[2] = False
    eprocess = reopen(eprocess, ERROR)
    base, over = log_threshold(3, ERROR, may_join=True), math.log(16 / (0.1 * ERROR))
    assert needed(eprocess, 0, 1) == pytest.approx(over)
    assert needed(eprocess, 0, 3) == pytest.approx(over + math.log(2))
    assert needed(eprocess, 3, 0) == pytest.approx(over + math.log(2))
    wider = with_arm(eprocess, ERROR)  # the second to join
    assert needed(wider, 4, 3) == pytest.approx(over + math.log(6) + math.log(2))
    pairs = [(i, j) for i in (0, 1, 3, 4) for j in range(5) if i != j]
    assert sum(math.exp(-needed(wider, i, j)) for i, j in pairs) <= 0.1 * ERROR
    eprocess.best[0, 2] = base
    assert needed(eprocess, 0, 1) == pytest.approx(base)
    eprocess.best[0, 1] = eprocess.best[0, 3] = base
    assert passes_all(eprocess, 0) and not passes_all(eprocess, 1)
    eprocess.present[2] = True  # it is back, and passed
    assert passes_all(eprocess, 0)


def test_a_winner_is_not_taken_for_granted_once_arms_change():
    eprocess = start_eprocess(ERROR, None, 3, by_clock=True, winner_exists=True)
    assert eprocess.level == pytest.approx(log_threshold(3, ERROR, winner_exists=True))
    assert not with_arm(eprocess, ERROR).winner_exists
    assert reopen(eprocess, ERROR).level == pytest.approx(log_threshold(3, ERROR, may_join=True))


def test_a_retired_arm_neither_leads_nor_is_a_rival():
    rng = np.random.default_rng(0)
    eprocess = start_eprocess(ERROR, None, 4, by_clock=True)
    eprocess.present[[0, 2]] = False
    chosen = set()
    for _ in range(50):
        leader = find_leader(eprocess, rng)
        chosen |= {leader, find_rival(eprocess, leader, rng)}
    assert chosen == {1, 3}


@kernel
def play(eprocess, start, until, rng):
    """Duels of two arms that are present, all tied, chosen at random and answered at once."""
    k = eprocess.present.size
    for t in range(start, until):
        eprocess.now[0] = t
        advance(eprocess, t)
        i = j = 0
        while i == j or not (eprocess.present[i] and eprocess.present[j]):
            i, j = int(rng.random() * k), int(rng.random() * k)
        enter(eprocess, i, j, t)
        if rng.random() < 0.5:
            eprocess.event[0] = t + 1
            convert(eprocess, t, t + 1)


@pytest.mark.compiled
def test_retiring_by_looking_declares_nobody_more_often_than_promised():
    """Ten tied arms; when one is ahead of another by chance, all the others are retired."""
    k, runs, lucky, declared = 10, 60, 0, 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        eprocess = start_eprocess(ERROR, None, k, by_clock=True)
        for t in range(1, 40_000, 200):
            play(eprocess, t, t + 200, rng)
            ahead = np.argwhere(eprocess.best >= eprocess.level)
            if len(ahead) and not eprocess.has_changed:
                lucky += 1
                eprocess.present[:] = np.isin(np.arange(k), ahead[0])
                eprocess = reopen(eprocess, ERROR)
            if eprocess.winner[0] != NOBODY:
                break
        declared += eprocess.winner[0] != NOBODY
    assert lucky > 2 * ERROR * runs  # who would have been declared at the level of the start
    assert declared / runs <= ERROR + 3 * math.sqrt(ERROR * (1 - ERROR) / runs)
