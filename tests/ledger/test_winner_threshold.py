"""Looks at bets by hand: what the evidence comes to, who is declared when, and what is kept."""

import math

import numpy as np
import pytest

import naive
from duelay.ledger import age_to, hear, open_ledger, record
from duelay.ledger.arms import reopen
from duelay.ledger.evidence.eprocess import PATH, start_eprocess
from duelay.ledger.evidence.winner_threshold import (
    FOR_CHOICE,
    FOR_EVIDENCE,
    NOBODY,
    all_evidence,
    arm_evidence,
    divergence,
    error_at,
    is_passed,
    log_threshold,
    look,
    mix,
    need_all,
    touch,
    weigh,
)

pytestmark = pytest.mark.interpreted  # the same lines compiled are met by every other test


def won_in_turn(winners, n_arms=2, **told):
    """Bets and their ledger when duels (i, j) were won by i, one a tick, heard a tick later."""
    eprocess = start_eprocess(0.05, None, n_arms, first_wait=1)._replace(**told)
    eprocess.delays[0], eprocess.n_heard[0] = 1e-3, 10**6  # so that W stays 1
    ledger = open_ledger(eprocess, n_arms, "coin")
    for t, (i, j) in enumerate(winners, start=1):
        age_to(ledger, t)
        record(ledger, i, j, t)
        hear(ledger, i, j, t, t + 1)
    age_to(ledger, len(winners) + 1)
    return eprocess


@pytest.mark.parametrize("far", [0.0, 1e4, -1e4])
def test_a_mixture_of_any_size_neither_overflows_nor_vanishes(far):
    log_weight, wealth = np.log([0.2, 0.3, 0.5]), np.array([1.0, -2.0, 3.0])
    expected = math.log(0.2 * math.exp(1.0) + 0.3 * math.exp(-2.0) + 0.5 * math.exp(3.0))
    assert mix(log_weight, wealth + far) == pytest.approx(expected + far, rel=1e-12)


def test_the_divergence_from_a_fair_coin_is_never_below_0():
    near = 0.5 + np.linspace(-1e-7, 1e-7, 2001)
    assert min(divergence(p) for p in near) == 0.0
    with_rounding = [math.log(2.0) + p * math.log(p) + (1 - p) * math.log(1 - p) for p in near]
    assert min(with_rounding) < 0.0


@pytest.mark.parametrize("n", [0.3, 1.0, 7.0, 40.0])
@pytest.mark.parametrize("share", [-1.0, -0.6, -0.01, 0.0, 0.01, 0.6, 1.0])
def test_what_speaks_against_an_arm_is_the_divergence_of_the_duels_that_it_loses(n, share):
    expected = n * naive.entropy(0.5 + 0.5 * share) if share < 0 else 0.0
    assert weigh(n, n * share) == pytest.approx(expected, abs=1e-12)


def test_a_lead_beyond_the_number_of_duels_weighs_as_much_as_all_of_them():
    assert weigh(2.0, -2.5) == weigh(2.0, -2.0) == pytest.approx(2.0 * math.log(2.0))


def test_where_nothing_was_told_a_lead_by_rounding_weighs_nothing():
    assert weigh(0.0, -1e-17) == 0.0


def n_passed(eprocess):
    """How many others each arm has passed."""
    k = range(eprocess.doubts.size)
    return [sum(is_passed(eprocess, i, j) for j in k if j != i) for i in k]


def test_evidence_that_just_reaches_the_level_is_counted_once():
    evidence = won_in_turn([(0, 1)] * 9, 3).log_evidence[0, 1]
    eprocess = won_in_turn([(0, 1)] * 9, 3, level=evidence)
    assert n_passed(eprocess) == [1, 0, 0] and eprocess.winner[0] == NOBODY
    assert (
        is_passed(eprocess, 0, 1)
        and not is_passed(eprocess, 1, 0)
        and not is_passed(eprocess, 0, 2)
    )
    eprocess = won_in_turn([(0, 1)] * 15, 3, level=evidence)
    assert n_passed(eprocess) == [1, 0, 0] and eprocess.winner[0] == NOBODY


def test_whoever_has_passed_all_others_is_declared_and_stays_so():
    level = won_in_turn([(0, 1)] * 9, 3).log_evidence[0, 1]
    eprocess = won_in_turn(
        [(1, 0)] * 9 + [(1, 2)] * 9 + [(2, 1)] * 60 + [(2, 0)] * 60, 3, level=level
    )
    assert n_passed(eprocess) == [0, 2, 2]
    assert (eprocess.winner[0], eprocess.declared[0]) == (1, 18)


@pytest.mark.parametrize("has_changed", [False, True])
@pytest.mark.parametrize("zeros", [0.0, 0.3])
def test_an_arm_s_evidence_is_the_least_in_its_row_less_what_it_owes(zeros, has_changed):
    rng, k, error = np.random.default_rng(5), 7, 0.05
    for _ in range(50):
        eprocess = start_eprocess(error, None, k)
        eprocess.best[:] = np.where(rng.random((k, k)) < zeros, 0.0, rng.exponential(3.0, (k, k)))
        if has_changed:
            eprocess.joined[5:] = [1, 2]
            eprocess.present[rng.integers(1, k)] = False
            eprocess = reopen(eprocess, error)
        needs, found = np.zeros((k, k)), np.zeros(k)
        need_all(eprocess, needs)
        if has_changed:  # then an arm may have less than none, and not where it has just none
            eprocess.best[1:, 0] = needs[1:, 0] - eprocess.level
        all_evidence(eprocess, found)
        least = [
            min(
                eprocess.best[i, j] - needs[i, j] + eprocess.level
                for j in range(k)
                if j != i and eprocess.present[j]
            )
            for i in range(k)
        ]
        assert found == pytest.approx(np.array(least), abs=1e-12)


def test_an_arm_s_evidence_is_the_least_that_it_ever_had_over_an_opponent():
    eprocess = start_eprocess(0.05, None, 3)
    eprocess.best[:] = [[0.0, 5.0, 4.0], [1.0, 0.0, 2.0], [3.0, 0.5, 0.0]]
    assert [arm_evidence(eprocess, i) for i in range(3)] == [4.0, 1.0, 0.5]


@pytest.mark.parametrize("error", [0.2, 0.05, 0.001])
@pytest.mark.parametrize("n_arms", [2, 3, 4, 5, 12])
def test_no_preferences_let_arms_be_wrong_more_often_than_the_threshold_allows(n_arms, error):
    """The sum over arms of L^-d, d being the arms that each does not beat, in random tournaments.

    And in the worst ones: circles of three at the top, and of all.
    """
    rng = np.random.default_rng(n_arms)
    plain = math.exp(log_threshold(n_arms, error))
    certain = math.exp(log_threshold(n_arms, error, winner_exists=True))
    top = np.triu(np.ones((n_arms, n_arms)), 1)
    circle = top.copy()
    if n_arms > 2:
        circle[0, 2], circle[2, 0] = 0, 1
    around = (np.arange(n_arms) - np.arange(n_arms)[:, None]) % n_arms
    beats = [top, circle, np.zeros((n_arms, n_arms)), (around > 0) & (around <= (n_arms - 1) // 2)]
    for _ in range(200):
        drawn = np.triu(rng.choice([1, 0, -1], size=(n_arms, n_arms)), 1)
        beats.append(drawn - drawn.T == 1)
    worst = {plain: 0.0, certain: 0.0}
    for one in beats:
        losses = [[j for j in range(n_arms) if j != i and not one[i, j]] for i in range(n_arms)]
        wrong = naive.wrong_by_count(losses)
        worst[plain] = max(worst[plain], wrong(plain))
        if any(not of for of in losses):
            worst[certain] = max(worst[certain], wrong(certain))
    assert all(0.5 * error < share <= error * (1 + 1e-12) for share in worst.values())


def test_the_threshold_does_not_grow_with_the_number_of_arms():
    levels = [math.exp(log_threshold(k, 0.05)) for k in (2, 3, 4, 300)]
    assert levels == pytest.approx([40, 60, 60.67, 60.67], abs=0.01)
    certain = [math.exp(log_threshold(k, 0.05, winner_exists=True)) for k in (2, 3, 300)]
    assert certain == pytest.approx([20, 21.91, 21.91], abs=0.01)
    joining = [math.exp(log_threshold(k, 0.05, may_join=True)) for k in (2, 3, 4, 300)]
    assert joining == pytest.approx([66.67, 88.89, 89.39, 89.39], abs=0.01)
    for told in ({}, {"winner_exists": True}, {"may_join": True}):
        for k in (2, 3, 4, 9):
            assert error_at(log_threshold(k, 0.07, **told), k, **told) == pytest.approx(0.07)
    assert error_at(0.0, 4) == error_at(-1.0, 4) == error_at(0.5, 4) == 1.0
    for error in (0.001, 0.3):
        level = math.exp(log_threshold(9, error))
        assert 3 / level + 2 / (level * (level - 1)) == pytest.approx(error)


def test_a_look_takes_news_of_every_pair_once_and_forgets_it():
    eprocess = start_eprocess(0.05, None, 3)
    for i, j in ((2, 1), (1, 2), (0, 2)):
        touch(eprocess, i, j, FOR_EVIDENCE)
    assert eprocess.touched[: eprocess.n_touched[0]].tolist() == [5, 2]
    assert np.argwhere(eprocess.is_touched).tolist() == [[0, 2], [1, 2]]
    eprocess.wealth[:] = 1.0
    look(eprocess, 8)
    seen = np.array([[0, 0, 1], [0, 0, 1], [1, 1, 0]])
    np.testing.assert_allclose(eprocess.log_evidence, seen, atol=1e-12)
    assert not eprocess.is_touched.any() and eprocess.looked[0] == 7
    touch(eprocess, 1, 0, FOR_CHOICE)
    look(eprocess, 9)
    assert eprocess.log_evidence[0, 1] == 0.0  # nothing was booked
    touch(eprocess, 1, 0, FOR_EVIDENCE)
    look(eprocess, 9)
    np.testing.assert_allclose(eprocess.log_evidence, 1.0 - np.eye(3), atol=1e-12)


@pytest.mark.parametrize("every", [1, 3, 7])
def test_the_path_is_what_the_evidence_was_at_the_moments_that_are_kept(every):
    eprocess = start_eprocess(0.05, None, 3)
    rng, past, kept, stride = np.random.default_rng(0), {}, [], 1
    for t in range(1, 700 * every, every):
        eprocess.best[:] += rng.random((3, 3))
        past[t - 1] = [arm_evidence(eprocess, i) for i in range(3)]
        look(eprocess, t)
        if len(kept) == PATH and (t - 1) // stride > kept[-1] // stride:
            kept, stride = kept[::2], 2 * stride
        if not kept or (t - 1) // stride > kept[-1] // stride:
            kept.append(t - 1)
        assert eprocess.stride[0] == stride
        assert eprocess.path_tick[: eprocess.path_size[0]].tolist() == kept
    np.testing.assert_array_equal(eprocess.path[: len(kept)], [past[tick] for tick in kept])


@pytest.mark.parametrize("declared", [1, 300, 640, 5000])
@pytest.mark.parametrize("every", [1, 7])
def test_the_path_keeps_the_moment_of_the_declaration_for_ever(declared, every):
    eprocess = start_eprocess(0.05, None, 3)
    for t in range(1, 20_000, every):
        if t >= declared:
            eprocess.best[1] = 2.0 * eprocess.level
            touch(eprocess, 0, 1, FOR_EVIDENCE)
            touch(eprocess, 1, 2, FOR_EVIDENCE)
            eprocess.wealth[1] = 2.0 * eprocess.level
        look(eprocess, t)
        if eprocess.winner[0] == 1:
            kept = eprocess.path_tick[: eprocess.path_size[0]].tolist()
            assert kept == sorted(set(kept)) and len(kept) <= PATH
            place = kept.index(eprocess.declared[0])
            assert eprocess.path[place, 1] >= eprocess.level
            assert (eprocess.path[:place, 1] < eprocess.level).all()
    assert eprocess.winner[0] == 1 and eprocess.stride[0] > 1


def test_a_declaration_at_a_tick_that_is_kept_already_takes_its_place():
    eprocess = start_eprocess(0.05, None, 3)
    look(eprocess, 1)
    eprocess.wealth[1] = 2.0 * eprocess.level
    touch(eprocess, 0, 1, FOR_EVIDENCE)
    touch(eprocess, 1, 2, FOR_EVIDENCE)
    look(eprocess, 1)
    assert eprocess.path_tick[: eprocess.path_size[0]].tolist() == [0]
    assert eprocess.path[0, 1] >= eprocess.level


@pytest.mark.parametrize("error", [0.2, 0.05, 0.001])
@pytest.mark.parametrize("n_arms", [2, 3, 4, 12])
def test_arms_that_are_ordered_by_rates_may_be_wrong_less_often(n_arms, error):
    """The sum over arms of L^-d in random orders with ties, and two arms tied for the first place.

    With arms that join, each first arm is wrong by the first arm, in the order of joining, that it
    does not beat; the n-th of those that join is wrong for 1 / (L n (n + 1)) at most.
    """
    rng = np.random.default_rng(n_arms)
    ranks = [np.arange(n_arms), np.array([0, *range(n_arms - 1)]), np.zeros(n_arms)]
    ranks += [rng.integers(n_arms, size=n_arms) for _ in range(200)]
    plain = math.exp(log_threshold(n_arms, error, is_ordered=True))
    certain = math.exp(log_threshold(n_arms, error, is_ordered=True, winner_exists=True))
    joining = math.exp(log_threshold(n_arms, error, is_ordered=True, may_join=True))
    worst = {plain: 0.0, certain: 0.0, joining: 0.0}
    for rank in ranks:
        losses = [
            [j for j in range(n_arms) if j != i and rank[j] <= rank[i]] for i in range(n_arms)
        ]
        wrong = naive.wrong_by_count(losses)
        worst[plain] = max(worst[plain], wrong(plain))
        with_winner = any(not of for of in losses)
        if with_winner:
            worst[certain] = max(worst[certain], wrong(certain))
        late = (
            1.0 + with_winner
        ) / joining  # of those that join, and of the first arm that is best
        worst[joining] = max(worst[joining], (wrong(joining) + late) / 0.9)
    assert all(0.5 * error < share <= error * (1 + 1e-12) for share in worst.values())


def test_rates_need_less_evidence_than_preferences():
    for told, level in (({}, 40.51), ({"winner_exists": True}, 21), ({"may_join": True}, 67.0)):
        for k in (3, 300):
            log_level = log_threshold(k, 0.05, is_ordered=True, **told)
            assert math.exp(log_level) == pytest.approx(level, abs=0.01)
            assert log_level < log_threshold(k, 0.05, **told)
            assert error_at(log_level, k, is_ordered=True, **told) == pytest.approx(0.05)
