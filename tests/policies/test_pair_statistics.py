"""The questions that rules ask of a ledger, against what they mean."""

import math

import numpy as np
import pytest

import naive
from duelay import delays
from duelay.ledger import age_to, assume, for_votes, hear_vote, open_ledger, record
from duelay.ledger.delay_models.base import FOREVER
from duelay.ledger.evidence.winner_threshold import divergence
from duelay.policies.pair_statistics import is_beaten, stays_unbeaten, upper_bound, wins_and_count
from duelay.policies.rr_db_delay import loses, rr_db_rule
from duelay.policies.rucb import find_rivals, has_witness, rucb_rule
from duelay.policies.self_duels import rival
from duelay.policies.turn import calm_until, turn


def one_pair(n_first, n_second=0, converted=0, converted_second=0, law=None):
    """A ledger of two arms after duels of one tick each: 0 first, then 1 first."""
    ledger = open_ledger(assume(law, None, 2), 2)
    for t in range(1, n_first + n_second + 1):
        age_to(ledger, t)
        record(ledger, *((0, 1) if t <= n_first else (1, 0)), t)
    age_to(ledger, n_first + n_second + 1)
    ledger.conversions[0, 1] = converted
    ledger.conversions[1, 0] = converted_second
    return ledger


def test_an_arm_is_beaten_where_its_upper_bound_is_below_one_half_and_not_at_it():
    silent = one_pair(4)  # N = N~ = 4, S = 0: U = sqrt(4 width) / 4
    assert upper_bound(silent, 0, 1, 1.0) == 0.5 and not is_beaten(silent, 0, 1, 1.0)
    assert is_beaten(silent, 0, 1, 0.999) and not is_beaten(silent, 1, 0, 0.0)
    rng = np.random.default_rng(0)
    for law in (None, delays.Geometric(0.1), delays.Constant(3)):
        for _ in range(50):
            n = rng.integers(1, 30, size=2)
            ledger = one_pair(*n, *(int(rng.integers(m + 1)) for m in n), law=law)
            for i, j in ((0, 1), (1, 0)):
                width = float(rng.exponential())
                upper = naive.upper_bounds(*ledger.estimates()[:3], width)
                assert upper_bound(ledger, i, j, width) == pytest.approx(upper[i, j])
                assert is_beaten(ledger, i, j, width) == (upper[i, j] < 0.5)


def test_an_arm_that_leads_is_not_beaten_however_narrow_the_bounds():
    """One duel, won: U = 1 and 1/2 - S = -1/2, whose square is above a width of 0."""
    won = one_pair(1, 0, 1)
    assert not is_beaten(won, 0, 1, 0.0) and is_beaten(won, 1, 0, 0.0)
    even = one_pair(2, 0, 1)  # exactly 1/2
    assert not is_beaten(even, 0, 1, 0.0) and not is_beaten(even, 1, 0, 0.0)


def test_nobody_is_beaten_where_nothing_should_have_been_heard_yet():
    early = one_pair(0, 2, 0, 2, law=delays.Constant(9))  # two conversions before their time
    assert upper_bound(early, 0, 1, 0.0) == math.inf and not is_beaten(early, 0, 1, 0.0)
    little = one_pair(1, law=delays.Geometric(0.05))
    assert upper_bound(little, 0, 1, 1.0) == pytest.approx(1 / 0.05)


@pytest.mark.parametrize("law", [None, delays.Geometric(0.1)], ids=str)
def test_the_rival_is_the_other_arm_with_the_highest_bound(law):
    """Where an arm may not duel itself: the largest U_ji of RUCB, with alpha = 0.51."""
    rng, rivals = np.random.default_rng(1), set()
    for _ in range(60):
        ledger = open_ledger(assume(law, None, 4), 4)
        ticks = int(rng.integers(20, 120))
        for t in range(1, ticks + 1):
            age_to(ledger, t)
            i, j = (int(arm) for arm in rng.choice(4, size=2, replace=False))
            record(ledger, i, j, t)
            ledger.conversions[i, j] += rng.random() < 0.5
        age_to(ledger, ticks + 1)
        upper = naive.upper_bounds(*ledger.estimates()[:3], 0.51 * math.log(ticks + 1))
        for i in range(4):
            expected = max((j for j in range(4) if j != i), key=lambda j: upper[j, i])
            assert rival(ledger, i, ticks + 1) == expected
            rivals.add((i, expected))
    assert len(rivals) == 12


def test_the_first_arm_that_was_never_heard_of_is_the_rival():
    ledger = one_pair(0)
    assert rival(ledger, 0, 1) == 1 and rival(ledger, 1, 1) == 0


def test_only_an_arm_that_would_duel_itself_gets_a_rival():
    """Arm 1 has lost its silent duel with 2, and 0 its own with 1: the rival is 2."""
    for self_duels, alone in ((True, (1, 1)), (False, (1, 2))):
        rule, rng = rr_db_rule(0.5, 3), np.random.default_rng(0)
        ledger = open_ledger(assume(None, None, 3), 3, self_duels=self_duels)
        assert [turn(rule, ledger, t, rng) for t in (1, 2, 3)] == [(0, 1), (0, 2), (1, 2)]
        rule.active[[0, 2]] = False
        assert turn(rule, ledger, 4, rng) == alone


def test_wins_are_cut_off_at_none_and_all():
    many = one_pair(3, 0, 3, law=delays.Geometric(0.1))  # three heard where 0.561 were expected
    s, n = wins_and_count(many, 0, 1)
    assert s == n == pytest.approx(0.1 + 0.19 + 0.271)
    assert wins_and_count(many, 1, 0)[0] == 0.0


def test_the_divergence_from_a_fair_coin():
    for p in (0.0, 1e-9, 0.05, 0.3, 0.5, 0.62, 0.95, 1.0):
        assert divergence(p) == pytest.approx(naive.entropy(p), abs=1e-15)
    assert divergence(0.0) == divergence(1.0) == math.log(2)


LAWS = [None, delays.Geometric(0.03), delays.Uniform(5, 60), delays.Never(0.3, delays.Constant(9))]


@pytest.mark.long
@pytest.mark.interpreted
@pytest.mark.parametrize("law", LAWS, ids=str)
def test_who_stays_unbeaten_is_not_beaten_before_there_is_news(law):
    """However long nothing is played or heard, while the width grows as alpha log t does."""
    rng = np.random.default_rng(1)
    kept = beaten = 0
    for _ in range(120):
        n = rng.integers(1, 25, size=2)
        ledger = one_pair(*n, rng.binomial(n[0], 0.1), rng.binomial(n[1], 0.3), law=law)
        alpha, t = 0.02 + float(rng.exponential(0.3)), int(n.sum()) + 1
        if is_beaten(ledger, 0, 1, alpha * math.log(t)):
            continue
        stays = stays_unbeaten(ledger, 0, 1, alpha * math.log(t))
        later = []
        for tick in range(t + 1, t + 150):
            age_to(ledger, tick)
            later.append(is_beaten(ledger, 0, 1, alpha * math.log(tick)))
        kept += stays
        beaten += any(later)
        assert not (stays and any(later))
    assert kept > 10
    assert beaten == 0 if law is None else beaten > 5


def test_the_bonus_of_the_first_moves_every_pair_so_nobody_is_known_to_stay():
    ledger = for_votes(open_ledger(assume(None, None, 3), 3), corrects_position=True)
    for t in range(1, 41):
        age_to(ledger, t)
        record(ledger, 1, 2, t)
        hear_vote(ledger, 1, 2, 1.0, 1, 2)
    assert not stays_unbeaten(ledger, 0, 1, 100.0)
    plain = for_votes(open_ledger(assume(None, None, 3), 3))
    assert stays_unbeaten(plain, 0, 1, 100.0)


def test_an_arm_that_may_yet_be_beaten_is_looked_at_again():
    """Sixty silent duels say little while they are young, and much without any news later."""
    for rule, is_out in (
        (rr_db_rule(0.5, 2), lambda rule, ledger, width: loses(rule, ledger, 0, width)),
        (rucb_rule(0.6, 2), lambda rule, ledger, width: has_witness(rule, ledger, 0, width)),
    ):
        ledger = one_pair(60, law=delays.Geometric(0.002))
        assert not is_out(rule, ledger, 3.0)
        for t in range(62, 900):
            age_to(ledger, t)
        assert is_out(rule, ledger, 3.0)


def test_an_arm_that_stays_unbeaten_is_not_looked_at_before_there_is_news():
    for rule, is_out in (
        (rr_db_rule(0.5, 2), lambda rule, ledger, width: loses(rule, ledger, 0, width)),
        (rucb_rule(0.6, 2), lambda rule, ledger, width: has_witness(rule, ledger, 0, width)),
    ):
        ledger = one_pair(10)
        assert not is_out(rule, ledger, 3.0)
        ledger.plays[0, 1] = 1000  # behind its back
        assert not is_out(rule, ledger, 3.0)
        ledger.news[0] += 1
        assert is_out(rule, ledger, 3.0)


def test_rucb_is_calm_until_a_bound_reaches_one_half_again():
    """Left alone, U_j,arm grows with log t: below 1/2 at the last calm tick, not long after."""
    rng = np.random.default_rng(2)
    ended = 0
    for _ in range(200):
        alpha = 0.51 + float(rng.exponential(0.5))
        rule, ledger = rucb_rule(alpha, 3), open_ledger(assume(None, None, 3), 3)
        rule.champion[0] = 1
        for j, n in ((0, rng.integers(0, 60)), (2, rng.integers(1, 60))):
            ledger.plays[1, j] = n
            ledger.conversions[1, j] = rng.integers(n // 2, n + 1)

        def has_rival(t, rule=rule, ledger=ledger):
            return find_rivals(rule, ledger, 1, rule.alpha * math.log(t)) > 0

        t = 5
        assert calm_until(rule, ledger, 0, t) == t  # not the champion: it cannot be known
        calm = calm_until(rule, ledger, 1, t)
        if has_rival(t):
            assert calm == t
        elif calm < FOREVER:
            assert not has_rival(calm) and has_rival(2 + int(calm * (1 + 1e-8)))
            ended += calm > t
        else:
            assert not has_rival(10**18)
    assert ended > 30
    ledger.plays[1, [0, 2]] = ledger.conversions[1, [0, 2]] = 10**6
    assert calm_until(rule, ledger, 1, 5) == FOREVER
