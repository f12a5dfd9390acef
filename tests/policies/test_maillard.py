"""Maillard sampling: its chances against the definitions, its clock, and how it comes back."""

import math

import numpy as np
import pytest
from scipy import stats

import duelay
import naive
from duelay import delays
from duelay.inference.leader import leader_of
from duelay.ledger import age_to, assume, hear, open_ledger, record
from duelay.ledger.delay_models.base import FOREVER, epoch
from duelay.policies.maillard import (
    believe,
    challenger,
    doubt,
    find_leader,
    find_lowest,
    is_challenged,
    lowest_ratios,
    maillard_rule,
    rate,
    read_pairs,
    set_chance,
    weigh,
)
from duelay.policies.turn import calm_until, pass_over, select
from duelay.problems import arithmetic
from duelay.simulation import streams
from duelay.simulation.loops.recorder import new_recorder
from duelay.simulation.loops.ticks import run_ticks
from duelay.simulation.world import make_world

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


@pytest.mark.parametrize(
    "lowest", [[-0.4, -1.0, -0.7, -2.5], [0.3, -1.0, -1.0, -3.0], [-0.2, -0.2, -0.5, -1.0]]
)
def test_a_leader_that_is_beaten_itself_is_challenged_the_more(lowest):
    """By hand, from the definition of p; in a circle no arm is without evidence against it."""
    rule = maillard_rule(*KNOBS, 4)
    rule.lowest[:], rule.leader[0] = lowest, 0
    against = [-math.log(min(1.0, 2.0 * stats.norm.cdf(z))) for z in lowest]
    runner_up = max(lowest[1:])
    p = [
        math.exp(-d) / (1 if z == runner_up else 1 + d)
        for z, d in zip(lowest, against, strict=True)
    ]
    p[0] = math.exp(-against[0]) / (1 + against[0])
    wanted = [chance / p[0] for chance in p]
    assert weigh(rule) == pytest.approx(min(sum(wanted[1:]), 1.0))
    assert rule.weight[1:] == pytest.approx(wanted[1:])


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
        close = {"rel": 1e-10, "abs": 1e-12} if z > -25.0 else {"abs": 1e-5}  # 3 / z^4
        assert doubt(z) == pytest.approx(exact, **close)


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
        if believe(rule, ledger, t):
            looked.append(t)
    assert looked == [41, 64, 96]
    at_once = played(None, ticks=40)
    rule = maillard_rule(*KNOBS, 4)
    assert [believe(rule, at_once, t) for t in range(41, 105)] == [True] + 63 * [False]


def assert_read(rule, ledger):
    """What a rule keeps of each pair is what a new one would read."""
    fresh = maillard_rule(rule.spread, rule.noise, rule.beyond, rule.strength.size)
    read_pairs(fresh, ledger, True)
    for name in ("rest", "pull", "lift"):
        np.testing.assert_array_equal(getattr(rule, name), getattr(fresh, name))


def test_a_look_without_news_reads_all_pairs_and_leaves_the_strengths():
    ledger = played(delays.Uniform(1, 200), ticks=40)
    rule = maillard_rule(*KNOBS, 4)
    believe(rule, ledger, 41)
    strength, variance, pull = rule.strength.copy(), rule.variance.copy(), rule.pull.copy()
    for t in range(41, 65):
        age_to(ledger, t)
    assert believe(rule, ledger, 64)
    assert (rule.pull > pull)[pull > 0].all()
    assert_read(rule, ledger)
    assert (rule.strength == strength).all() and (rule.variance == variance).all()


def test_what_is_settled_is_not_looked_at_without_news():
    """31 ticks after the last challenge, under a law of at most 31 ticks, nothing grows."""
    ledger = played(delays.Uniform(1, 31), ticks=32)
    for asked, is_due in ((32, False), (33, False), (34, True)):
        rule = maillard_rule(*KNOBS, 4)
        believe(rule, ledger, 33)
        rule.asked[0] = asked
        assert believe(rule, ledger, 64) == is_due


def test_news_of_two_arms_is_read_at_once_and_sweeps_once():
    """However a pair is ordered; a rule that looks at once knows what a new one would read."""
    rng, ledger = np.random.default_rng(6), open_ledger(assume(None, None, 4), 4)
    rule = maillard_rule(*KNOBS, 4)
    assert believe(rule, ledger, 1)  # the first look has no news
    for t in range(1, 60):
        i, j = rng.choice(4, size=2, replace=False)
        record(ledger, i, j, t)
        if rng.random() < 0.5:
            hear(ledger, i, j, t, t)
        before = rule.strength.copy()
        assert believe(rule, ledger, 33) and not believe(rule, ledger, 33)
        assert_read(rule, ledger)
        swept = rule.strength.copy()
        rule.strength[:] = before
        rate(rule)
        assert (rule.strength == swept).all() and (swept != before).any()


def test_the_first_look_is_one_whatever_the_news():
    for news in range(4):
        ledger = open_ledger(assume(None, None, 3), 3)
        ledger.news[0] = news
        rule = maillard_rule(*KNOBS, 3)
        assert believe(rule, ledger, 1) and rule.seen_epoch[0] == 0


def test_self_duels_say_nothing_of_strengths():
    ledger = played(None, ticks=30, seed=7)
    rule, other = maillard_rule(*KNOBS, 4), maillard_rule(*KNOBS, 4)
    believe(rule, ledger, 33)
    for i in range(4):
        record(ledger, i, i, 31 + i)
        hear(ledger, i, i, 31 + i, 31 + i)
    believe(other, ledger, 37)
    assert (other.pull.diagonal() == 0).all()
    for mine, theirs in zip(rule, other, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_duels_of_which_nothing_can_be_heard_yet_say_nothing():
    ledger = open_ledger(assume(delays.Uniform(10, 30), None, 3), 3)
    for t in range(1, 6):
        age_to(ledger, t)
        record(ledger, 0, t % 2 + 1, t)
    rule = maillard_rule(*KNOBS, 3)
    believe(rule, ledger, 6)
    assert (rule.rest == 1).all() and (rule.pull == 0).all() and (rule.lift == 0).all()
    assert (rule.lowest == 0).all()


def test_all_pairs_are_read_where_the_law_is_learned_anew():
    policy = duelay.MaillardSampling(delay="learn", window=20)
    rng, ledger, rule = np.random.default_rng(8), policy.ledger(4), maillard_rule(*KNOBS, 4)
    n_anew = 0
    for t in range(1, 400):
        age_to(ledger, t)
        i, j = rng.choice(4 if t < 100 else 2, size=2, replace=False)
        if t > 5 and rng.random() < 0.3:
            hear(ledger, i, j, t - 5, t)
        is_new = epoch(ledger.assumed) != rule.seen_epoch[0]
        believe(rule, ledger, t)
        assert rule.seen_epoch[0] == epoch(ledger.assumed)
        if is_new:
            assert_read(rule, ledger)
            n_anew += t > 100 and t % 32 != 0
        record(ledger, i, j, t)
    assert n_anew > 3


def test_a_law_learned_anew_is_news():
    ledger = duelay.MaillardSampling(delay="learn", window=20).ledger(3)
    record(ledger, 0, 1, 1)
    rule = maillard_rule(*KNOBS, 3)
    assert believe(rule, ledger, 2) and not believe(rule, ledger, 2)
    ledger.assumed.look[0] += 1
    assert believe(rule, ledger, 2) and rule.seen_epoch[0] == epoch(ledger.assumed)
    assert not believe(rule, ledger, 2)


def test_who_leads_is_shown_and_looked_for_where_there_is_news_alone():
    ledger, rng = open_ledger(assume(None, None, 3), 3), np.random.default_rng(9)
    rule = maillard_rule(*KNOBS, 3)
    for winner in (0, 1, 2):
        n = 100 * (1 + winner)
        for j in {0, 1, 2} - {winner}:
            ledger.plays[winner, j] += 20 * n
            ledger.conversions[winner, j] += 20 * n
        for _ in range(4):  # sweeps bring strengths up to date
            ledger.news[:] += 1
            first, _ = select(rule, ledger, 33, rng)
        assert first == winner and rule.hazard[0] == -math.log1p(-weigh(rule))
    rule.lowest[:] = [5.0, 0.0, 0.0]
    assert select(rule, ledger, 33, rng)[0] == 2


def test_the_tick_of_a_challenge_is_noted():
    ledger, rng = played(None, ticks=12, seed=3), np.random.default_rng(10)
    rule, last, n = settled(ledger, 13, rng), 0, 0
    for t in range(13, 200):
        first, second = select(rule, ledger, t, rng)
        last = t if first != second else last
        n += first != second
        assert rule.asked[0] == last
    assert 20 < n < 167


def test_the_clock_runs_down_by_the_hazards_of_its_turns():
    """A twin with the same draws lets it run down turn by turn."""
    rule, rng, twin = maillard_rule(*KNOBS, 3), *(np.random.default_rng(11) for _ in range(2))
    left, n = twin.exponential(), 0
    for turn in range(3000):
        chance = (0.3, 0.02, 0.02, 0.1)[turn % 4]
        set_chance(rule, chance)
        left += math.log1p(-chance)
        comes = left <= 0.0
        assert is_challenged(rule, rng) == comes
        left = twin.exponential() if comes else left
        n += comes
    assert n > 100 and rng.random() == twin.random()


def test_a_challenger_is_drawn_by_the_weights_of_all_but_the_leader():
    rule, rng, twin = maillard_rule(*KNOBS, 5), *(np.random.default_rng(12) for _ in range(2))
    rule.weight[:] = [0.5, 0.0, 2.0, 1.0, 0.25]
    for leader in range(5):
        rule.leader[0] = leader
        weight = np.where(np.arange(5) == leader, 0.0, rule.weight)
        for _ in range(100):
            drawn = twin.random() * weight.sum()
            assert challenger(rule, rng) == np.searchsorted(weight.cumsum(), drawn, side="right")


class Last:
    """A generator whose number is as near to 1 as rounding allows, or beyond."""

    def random(self):
        return 1.0


@pytest.mark.interpreted
def test_where_rounding_leaves_no_challenger_the_last_arm_is_one():
    rule = maillard_rule(*KNOBS, 4)
    for leader, last in ((0, 3), (3, 2)):
        rule.leader[0] = leader
        assert challenger(rule, Last()) == last


def test_a_calm_lasts_as_many_turns_as_nobody_challenges():
    for seed in range(60):
        rng = np.random.default_rng(seed)
        rule = maillard_rule(*KNOBS, 3)
        rule.leader[0] = 1
        set_chance(rule, (0.5, 0.1, 0.02)[seed % 3])
        for _ in range(seed % 7):
            is_challenged(rule, rng)
        rule.clock[0] = max(rule.clock[0], 0.0) + (seed % 2) * 5 * rule.hazard[0]
        calm, turns = calm_until(rule, None, 1, 100) - 100, 0
        while not is_challenged(rule, rng):
            turns += 1
        assert calm == turns


def test_a_calm_that_ends_with_a_turn_ends_before_it():
    """The clock has run down where it is exactly 0."""
    rule, rng = maillard_rule(*KNOBS, 3), np.random.default_rng(13)
    rule.leader[0], rule.hazard[0], rule.clock[0], rule.turns[0] = 1, 0.25, 1.0, 1
    assert calm_until(rule, None, 1, 100) == 102
    pass_over(rule, 2)
    assert rule.turns[0] == 3 and is_challenged(rule, rng) and rule.turns[0] == 0
    rule.hazard[0] = 0.0
    assert calm_until(rule, None, 1, 100) == FOREVER
    rule.hazard[0] = 1e-300
    assert calm_until(rule, None, 1, 100) == 100 + 10**18
    rule.clock[0], rule.hazard[0], rule.turns[0] = 1.0, 1.0, 0
    assert calm_until(rule, None, 1, 100) == 100


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
    recorder = new_recorder(problem.gaps, np.array([horizon - 1000, horizon]))
    recorder.tick[0] = losses
    run_ticks(rule, ledger, False, world, recorder, horizon, world_rng, policy_rng)
    return (recorder.regret[1] - recorder.regret[0]) / 1000 / np.sort(problem.gaps)[1]


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
