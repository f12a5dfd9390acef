"""Maillard sampling: its chances against the definitions, its clock, and how it comes back."""

import math

import numpy as np
import pytest
from scipy import stats

import duelay
import naive
from duelay import delays
from duelay.engine import loop, streams
from duelay.engine.tick import new_tally
from duelay.engine.world import make_world
from duelay.ledger import age_to, assume, hear, open_ledger, record
from duelay.players.leading import leader_of
from duelay.problems import arithmetic
from duelay.rules.maillard import (
    believe,
    challenger,
    doubt,
    find_leader,
    find_lowest,
    is_challenged,
    lowest_ratios,
    maillard_rule,
    rate,
    set_chance,
    weigh,
)
from duelay.rules.turn import calm_until, pass_over, select

LAWS = [None, delays.Geometric(0.1), delays.Never(0.4, delays.Uniform(1, 30))]
KNOBS = (0.15, 0.1, 0.5)


def played(law, n_arms=4, ticks=60, seed=0):
    """A ledger after random duels with random answers."""
    rng = np.random.default_rng(seed)
    ledger = open_ledger(assume(law, None, n_arms), n_arms)
    for t in range(1, ticks + 1):
        age_to(ledger, t)
        i, j = sorted(rng.choice(n_arms, size=2, replace=False))
        if ledger.conversions[i, j] < ledger.plays[i, j] and rng.random() < 0.7:
            hear(ledger, i, j, t - 1, t)
        record(ledger, *rng.permutation([i, j]), t)
    age_to(ledger, ticks + 1)
    return ledger


def settled(ledger, t, rng, knobs=KNOBS):
    """A rule that has looked at the ledger, its strengths where the sweeps lead."""
    rule = maillard_rule(*knobs, len(ledger.plays))
    assert believe(rule, ledger, t)
    before = np.full(len(ledger.plays), np.inf)
    while abs(rule.strength - before).max() > 1e-13:
        before = rule.strength.copy()
        rate(rule)
    find_lowest(rule)
    find_leader(rule, rng)
    set_chance(rule, weigh(rule))
    return rule


def chances(rule):
    """The chance of each pair, read off a rule."""
    k, leader = rule.weight.size, rule.leader[0]
    shown = np.zeros((k, k))
    comes = -math.expm1(-rule.hazard[0])
    shown[leader] = rule.weight
    shown[leader, leader] = 0.0
    shown[leader] *= comes / shown[leader].sum()
    shown[leader, leader] = 1.0 - comes
    return shown


@pytest.mark.parametrize("knobs", [KNOBS, (0.3, 0.05, 0.2), (0.1, 0.3, 50.0)])
@pytest.mark.parametrize("law", LAWS, ids=str)
def test_the_chances_are_those_of_the_definitions(law, knobs):
    rng = np.random.default_rng(0)
    for seed in range(4):
        ledger = played(law, ticks=20 + 30 * seed, seed=seed)
        told = ledger.estimates()
        expected = naive.maillard(told.n, told.expected, told.wins, *knobs)
        rule = settled(ledger, 20 + 30 * seed + 1, rng, knobs)
        np.testing.assert_allclose(chances(rule), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("knobs", [KNOBS, (0.3, 0.05, 0.2), (0.1, 0.3, 50.0)])
@pytest.mark.parametrize("law", LAWS, ids=str)
def test_a_standing_is_led_by_the_ratios_of_the_rule(law, knobs):
    for seed in range(4):
        ledger = played(law, ticks=10 + 30 * seed, seed=seed)
        rule = settled(ledger, 10 + 30 * seed + 1, np.random.default_rng(0), knobs)
        told = lowest_ratios(ledger.estimates(), *knobs)
        np.testing.assert_allclose(told, rule.lowest, rtol=1e-9, atol=1e-12)
        assert told.argmax() == rule.leader[0]


def test_who_lost_two_duels_of_a_thousand_leads_though_another_beats_more():
    ledger = open_ledger(assume(None, None, 4), 4)
    for winner, loser, won, lost in ((0, 1, 600, 400), (2, 0, 1, 0), (3, 0, 1, 0), (1, 2, 60, 40),
                                     (1, 3, 60, 40), (2, 3, 45, 45)):  # fmt: skip
        ledger.plays[winner, loser], ledger.conversions[winner, loser] = won + lost, won
    everybody = np.ones(4, dtype=bool)
    assert leader_of(ledger, everybody, duelay.DoubleThompson()) == 1
    assert leader_of(ledger, everybody, duelay.MaillardSampling()) == 0


@pytest.mark.parametrize("n_arms", [2, 3])
def test_before_anything_is_heard_a_standing_has_no_numbers_that_are_none(n_arms):
    ledger = open_ledger(assume(None, None, n_arms), n_arms)
    assert lowest_ratios(ledger.estimates(), *KNOBS).tolist() == [0.0] * n_arms


def test_pairs_are_drawn_with_these_chances():
    rng = np.random.default_rng(1)
    ledger = played(None, ticks=12, seed=3)
    told = ledger.estimates()
    expected = naive.maillard(told.n, told.expected, told.wins, *KNOBS)
    rule = settled(ledger, 13, rng)
    n = 20_000
    drawn = np.zeros((4, 4))
    for t in range(n):  # nothing is played: there is no news
        drawn[select(rule, ledger, 13 + t, rng)] += 1
    assert 0.01 < expected[expected > 0].min() and expected.max() < 0.99
    off = abs(drawn / n - expected)
    assert (off <= 4 * np.sqrt(expected * (1 - expected) / n)).all()


def test_a_sweep_gives_each_strength_its_mean_given_the_others():
    ledger = played(None, seed=5)
    rule = maillard_rule(*KNOBS, 4)
    believe(rule, ledger, 61)
    before = rule.strength.copy()
    rate(rule)
    for i in range(4):
        others = np.where(np.arange(4) < i, rule.strength, before)
        total = 1 / KNOBS[0] ** 2 + rule.pull[i].sum()
        mean = sum(rule.pull[i, j] * others[j] + rule.lift[i, j] for j in range(4) if j != i)
        assert rule.strength[i] == pytest.approx(mean / total)
        assert rule.variance[i] == pytest.approx(1 / total)


def test_doubt_is_the_logarithm_of_a_chance_however_small():
    for z in [*np.linspace(-60, 3, 200), -25.0, -25.0 + 1e-9]:
        exact = -min(0.0, math.log(2) + stats.norm.logcdf(z))
        assert doubt(z) == pytest.approx(exact, rel=1e-5, abs=1e-12)


def test_the_clock_gives_every_turn_its_chance_however_that_changes():
    rule, rng = maillard_rule(*KNOBS, 3), np.random.default_rng(2)
    given = (0.3, 0.02, 0.1)
    came, turns = np.zeros(3), np.zeros(3)
    for turn in range(30_000):
        phase = turn // 3 % 3
        set_chance(rule, given[phase])
        came[phase] += is_challenged(rule, rng)
        turns[phase] += 1
    for phase, chance in enumerate(given):
        off = abs(came[phase] / turns[phase] - chance)
        assert off <= 4 * math.sqrt(chance * (1 - chance) / turns[phase])


def test_a_certain_challenger_comes_at_every_turn():
    rule, rng = maillard_rule(*KNOBS, 3), np.random.default_rng(3)
    rule.leader[0] = 1
    set_chance(rule, weigh(rule))
    assert all(is_challenged(rule, rng) for _ in range(1000))
    assert {challenger(rule, rng) for _ in range(100)} == {0, 2}


def test_a_calm_ends_where_the_clock_does():
    rng = np.random.default_rng(4)
    for chance in (0.3, 0.01, 1e-9, 0.0):
        rule = maillard_rule(*KNOBS, 3)
        rule.leader[0] = 1
        set_chance(rule, chance)
        is_challenged(rule, rng)
        until = calm_until(rule, None, 1, 100)
        assert calm_until(rule, None, 0, 100) == 100
        if chance >= 0.01:
            pass_over(rule, until - 100)
            assert is_challenged(rule, rng)
        else:
            assert until > 10**6


def test_ties_go_to_who_leads_and_else_to_anybody():
    firsts = set()
    for seed in range(40):
        rule, rng = maillard_rule(*KNOBS, 3), np.random.default_rng(seed)
        find_leader(rule, rng)
        firsts.add(int(rule.leader[0]))
        leads = rule.leader[0]
        find_leader(rule, rng)
        assert rule.leader[0] == leads
    assert firsts == {0, 1, 2}


def test_evidence_that_grows_by_itself_is_looked_at_without_news():
    ledger = played(delays.Geometric(0.01), ticks=40)
    rule = maillard_rule(*KNOBS, 4)
    looked = []
    for t in range(41, 41 + 64):
        age_to(ledger, t)
        looked.append(believe(rule, ledger, t))
    assert looked[0] and sum(looked[1:]) == 2
    at_once = played(None, ticks=40)
    rule = maillard_rule(*KNOBS, 4)
    assert [believe(rule, at_once, t) for t in range(41, 105)] == [True] + 63 * [False]


def after_losses(policy, problem, opponents, losses, horizon, seed=0):
    """Let the winner lose its first duels, then play on: what it lacks at the end, in gaps.

    That is the regret a duel over the last thousand, 0 if the winner alone is shown.
    """
    world_rng, policy_rng = streams(seed, 0)
    world = make_world(problem, delays.Geometric(0.1), policy.window, horizon)
    rule, ledger = policy.rule(problem.n_arms), policy.ledger(problem.n_arms)
    for t in range(1, losses + 1):
        age_to(ledger, t)
        j = opponents[t % len(opponents)]
        if t // len(opponents) % 2:
            record(ledger, j, 0, t)
            hear(ledger, j, 0, t, t)
        else:
            record(ledger, 0, j, t)
    tally = new_tally(problem.gaps, np.array([horizon - 1000, horizon]))
    tally.tick[0] = losses
    loop.run(rule, ledger, False, world, tally, horizon, world_rng, policy_rng)
    return (tally.regret[1] - tally.regret[0]) / 1000 / np.sort(problem.gaps)[1]


@pytest.mark.compiled
def test_the_winner_comes_back_after_fifty_losses_to_all_others():
    problem, policy = arithmetic(11, 0.04), duelay.MaillardSampling(delay=None)
    for seed in range(8):
        assert after_losses(policy, problem, range(1, 11), 50, 1_000_000, seed) < 0.2


@pytest.mark.compiled
def test_the_winner_comes_back_after_losses_to_one_arm_if_they_are_few():
    problem, policy = arithmetic(6, 0.04), duelay.MaillardSampling(delay=None)
    for seed in range(8):
        assert after_losses(policy, problem, [1], 12, 200_000, seed) < 0.2


def test_fifty_losses_to_one_arm_leave_a_chance_that_never_comes():
    """So it is with double Thompson sampling: a policy of little regret cannot ask more often."""
    ledger = open_ledger(assume(None, None, 6), 6)
    for t in range(1, 51):
        record(ledger, *((1, 0) if t % 2 else (0, 1)), t)
        if t % 2:
            hear(ledger, 1, 0, t, t)
    rule = settled(ledger, 51, np.random.default_rng(0))
    assert 0.0 < rule.weight[0] < 1e-9
    assert stats.beta.sf(0.5, 1, 51) < 1e-9
