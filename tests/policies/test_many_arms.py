"""Double Thompson sampling among many arms, against the same reckoned anew and drawn plainly."""

import copy
import math

import numpy as np
import pytest
from scipy import stats

import duelay
import naive
from duelay import delays
from duelay.ledger import age_to, assume, hear, open_ledger, record
from duelay.policies.double_thompson import many_arms
from duelay.policies.double_thompson.beta_posterior import chance_above_half
from duelay.policies.double_thompson.many_arms import (
    MANY_ARMS_FROM,
    ManyArmsRule,
    best_of_all,
    first_arm,
    many_arms_rule,
    take_floors,
)
from duelay.policies.double_thompson.row_samples import (
    count_bits,
    find_c,
    is_unbeaten,
    note_news,
    sample_all,
    sample_row,
    tilted,
)
from duelay.policies.double_thompson.rule import DoubleThompsonRule
from duelay.policies.pair_statistics import wins_and_count
from duelay.policies.turn import picks_entry
from duelay.testing import compiled_duels, live_duels
from helpers import Rows
from yardsticks import PlainDoubleThompson

LAWS = [None, delays.Geometric(0.1), delays.Uniform(1, 30), delays.Never(0.4, delays.Uniform(1, 9))]


def step(ledger, t, rng, n_arms=None):
    """One tick: perhaps an answer, and a duel."""
    age_to(ledger, t)
    i, j = rng.choice(n_arms or len(ledger.plays), size=2, replace=False)
    if ledger.conversions[i, j] < ledger.plays[i, j] and rng.random() < 0.5:
        hear(ledger, i, j, t - 1, t)
    i, j = rng.choice(n_arms or len(ledger.plays), size=2, replace=False)
    record(ledger, i, j, t)


def with_tilt(rule, tilt):
    """The same rule at its start, with another tilt."""
    weight = np.full(rule.weight.size, math.cosh(0.5 * tilt) ** (rule.weight.size - 1))
    up = math.exp(0.5 * tilt)
    return rule._replace(tilt=tilt, up=up, down=1.0 / up, weight=weight)


def chances(ledger):
    """P(theta_ij > 1/2) of all pairs, reckoned anew; 1/2 of an arm and itself."""
    k = len(ledger.plays)
    return np.array(
        [
            [0.5 if i == j else chance_above_half(*wins_and_count(ledger, i, j)) for j in range(k)]
            for i in range(k)
        ]
    )


def test_many_arms_have_a_rule_of_their_own():
    assert isinstance(duelay.DoubleThompson().rule(MANY_ARMS_FROM), ManyArmsRule)
    assert isinstance(duelay.DoubleThompson().rule(MANY_ARMS_FROM - 1), DoubleThompsonRule)
    assert isinstance(duelay.DoubleThompson(ties="regret").rule(MANY_ARMS_FROM), DoubleThompsonRule)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_bounds_hold_until_there_is_news(law):
    """Of every pair at every tick, while other arms have news; and weights are their products."""
    rng, ledger = np.random.default_rng(1), open_ledger(assume(law, 20, 5), 5)
    rule = many_arms_rule(0.51, 5)
    n_wide = 0
    for t in range(1, 200):
        if t < 60 or t % 30 == 0:
            step(ledger, t, rng, 5 if t < 40 else 3)
        else:
            age_to(ledger, t)
        note_news(rule, ledger)
        true = chances(ledger)
        assert (rule.low <= true + 1e-9).all() and (true <= rule.high + 1e-9).all()
        np.testing.assert_allclose(rule.low + rule.high.T, 1.0)
        n_wide += np.count_nonzero(rule.low < rule.high)
        weight = [math.prod(tilted(rule, p) for p in np.delete(rule.high[i], i)) for i in range(5)]
        np.testing.assert_allclose(rule.weight, weight)
        met = ledger.plays + ledger.plays.T > 0
        for i in range(5):
            found = rule.met[i, : rule.n_met[i]].tolist()
            assert sorted(found) == np.flatnonzero(met[i]).tolist()
            assert sorted(found[: rule.n_below[i]]) == [j for j in sorted(found) if j < i]
            assert rule.fresh[i, 0] == sum(1 << j for j in range(5) if not met[i, j])
    assert n_wide == 0 if law is None else n_wide > 100


def test_bounds_are_laid_anew_where_the_law_is():
    policy = duelay.DoubleThompson(delay="learn", window=20)
    rng, ledger, rule = np.random.default_rng(2), policy.ledger(3), many_arms_rule(0.51, 3)
    epochs = set()
    for t in range(1, 700):
        age_to(ledger, t)
        if t < 600:
            i, j = rng.choice(3, size=2, replace=False)
            record(ledger, i, j, t)
            if rng.random() < 0.5:
                hear(ledger, i, j, t - 5, t)
        note_news(rule, ledger)
        true = chances(ledger)
        assert (rule.low <= true + 1e-9).all() and (true <= rule.high + 1e-9).all()
        epochs.add(int(rule.epoch[0]))
    assert len(epochs) > 5 and ledger.assumed.n_looks[0] > 3


def test_by_the_clock_a_pair_that_met_has_no_bounds():
    policy = duelay.DoubleThompson(delay="learn", window="30s")
    rule, ledger = many_arms_rule(0.51, 3), policy.ledger(3, by_clock=True)
    record(ledger, 0, 1, 1)
    note_news(rule, ledger)
    assert (rule.low[0, 1], rule.high[0, 1], rule.low[1, 0], rule.high[1, 0]) == (0, 1, 0, 1)
    assert (rule.low[0, 2], rule.high[0, 2]) == (0.5, 0.5)
    assert take_floors(rule) == 0.0


@pytest.mark.parametrize("law", LAWS[:3], ids=str)
def test_c_is_never_out_of_date(law):
    """Whatever was remembered of an arm without news, as the ledger ages and the width grows."""
    rule = many_arms_rule(0.51, 4)
    rng, ledger = np.random.default_rng(5), open_ledger(assume(law, None, 4), 4)
    sizes = set()
    for t in range(1, 400):
        if t < 60 or t % 20 == 0:
            step(ledger, t, rng)
        else:
            age_to(ledger, t)
        note_news(rule, ledger)
        width, told = 0.05 * math.log(t), ledger.estimates()
        s, n = np.clip(told.wins, 0, told.expected), told.expected
        with np.errstate(divide="ignore", invalid="ignore"):
            is_out = np.where(n > 0, s / n + np.sqrt(width / n) <= 0.5, False)
        np.fill_diagonal(is_out, False)
        beaten = is_out.sum(axis=1)
        find_c(rule, ledger, width)
        assert rule.in_c.tolist() == (beaten == beaten.min()).tolist()
        assert [is_unbeaten(rule, ledger, i, width) for i in range(4)] == (beaten == 0).tolist()
        sizes.add((int(rule.in_c.sum()), int(beaten.min())))
    assert len(sizes) > 3


def test_an_arm_that_has_lost_just_enough_is_beaten():
    """All of n duels lost: 1/2 n >= sqrt(width n), so from n = 4 width on."""
    for n, is_beaten in ((7, False), (8, True), (9, True)):
        rule, ledger = many_arms_rule(0.51, 3), open_ledger(assume(None, None, 3), 3)
        ledger.plays[1, 0] = ledger.conversions[1, 0] = n
        ledger.news[:2] += n
        note_news(rule, ledger)
        assert is_unbeaten(rule, ledger, 0, 2.0) == (not is_beaten)


def test_between_its_bounds_a_coin_has_its_chance():
    rule, ledger = many_arms_rule(0.51, 2), open_ledger(assume(None, None, 2), 2)
    ledger.plays[0, 1], ledger.conversions[0, 1] = 10, 7
    ledger.news[:] += 10
    note_news(rule, ledger)
    p, rng, row, wins = chances(ledger)[0, 1], np.random.default_rng(4), np.ones(2, dtype=bool), 0
    for _ in range(2000):
        rule.low[0, 1], rule.high[0, 1] = 0.0, 1.0
        wins += sample_row(rule, ledger, 0, row, 0, rng)
    assert abs(wins / 2000 - p) < 4 * math.sqrt(p * (1 - p) / 2000)


def test_bits_are_counted():
    for word in (0, 1, 2**52, 2**53 - 1, 0b1011):
        assert count_bits(np.int64(word)) == word.bit_count()


@pytest.mark.long
@pytest.mark.parametrize("n_arms", [3, 53, 70])
def test_a_whole_sample_has_the_chances_of_its_pairs(n_arms):
    """The mean score of each arm, and the spread of those that met nobody; none is lost."""
    ledger, rng = open_ledger(assume(None, None, n_arms), n_arms), np.random.default_rng(3)
    for i, j, plays, won in ((0, 1, 6, 5), (2, 0, 9, 1), (n_arms - 1, 1, 4, 2)):
        ledger.plays[i, j], ledger.conversions[i, j] = plays, won
    rule, n = many_arms_rule(0.51, n_arms), 400
    note_news(rule, ledger)
    rule.in_c[:] = True
    scores = np.zeros((n, n_arms))
    for row in scores:
        sample_all(rule, ledger, 0, rng)
        row[:] = rule.score
        assert row.sum() == n_arms * (n_arms - 1) / 2
    true = chances(ledger)
    np.fill_diagonal(true, 0.0)
    error = np.sqrt((true * (1 - true)).sum(axis=1) / n)
    assert (np.abs(scores.mean(axis=0) - true.sum(axis=1)) < 4 * error).all()
    if n_arms > 10:
        spread = scores[:, 3:-1].var(axis=0, ddof=1).mean()
        assert spread == pytest.approx((n_arms - 1) / 4, rel=0.05)


def test_a_whole_sample_keeps_the_rows_that_are_drawn():
    """And arms outside of C are sampled against those in it alone."""
    n_arms, rng = 60, np.random.default_rng(4)
    ledger = open_ledger(assume(None, None, n_arms), n_arms)
    for t in range(1, 300):
        step(ledger, t, rng)
    rule = many_arms_rule(0.51, n_arms)
    note_news(rule, ledger)
    for in_c in (np.ones(n_arms, bool), np.arange(n_arms) % 9 == 0):
        rule.in_c[:] = in_c
        for place, arm in enumerate((9, 0, 54)):
            rule.drawn[place] = arm
            rule.won[place] = sample_row(rule, ledger, arm, rule.rows[place], place, rng)
        for place in range(3):
            for other in range(place):
                one, two = rule.drawn[place], rule.drawn[other]
                assert rule.rows[place, two] != rule.rows[other, one]
        sample_all(rule, ledger, 3, rng)
        assert rule.score[rule.drawn[:3]].tolist() == rule.won[:3].tolist()
        inside = rule.score[in_c].sum()
        m = in_c.sum()
        assert m * (m - 1) / 2 <= inside <= m * (m - 1) / 2 + m * (n_arms - m)


def test_of_several_with_the_best_score_any_is_first():
    rule, rng = many_arms_rule(0.51, 5), np.random.default_rng(0)
    rule.score[:], rule.in_c[:] = [3, 1, 3, 9, 3], [True, True, True, False, True]
    found = np.bincount([best_of_all(rule, rng) for _ in range(600)], minlength=5)
    assert found[[1, 3]].sum() == 0 and (abs(found[[0, 2, 4]] - 200) < 4 * 12).all()


def ledger_with_leaders(n_arms, strong, duels, law):
    """A ledger of which some arms are often played, and win; answers take 20 ticks."""
    rng, ledger = np.random.default_rng(n_arms + duels), Rows(delay=law, window=200).ledger(n_arms)
    strength, due = np.ones(n_arms), {}
    strength[: len(strong)] = strong
    for t in range(1, duels + 1):
        age_to(ledger, t)
        for i, j, born in due.pop(t, []):
            hear(ledger, i, j, born, t)
        i = rng.integers(len(strong) if rng.random() < 0.6 else n_arms)
        j = (i + 1 + rng.integers(n_arms - 1)) % n_arms
        i, j = (i, j) if rng.random() < 0.5 else (j, i)
        record(ledger, i, j, t)
        if rng.random() * (strength[i] + strength[j]) < strength[i]:
            due.setdefault(t + 1 + int(rng.integers(20)), []).append((i, j, t))
    age_to(ledger, duels + 1)
    return ledger


@pytest.mark.compiled
@pytest.mark.parametrize("law", [None, delays.Uniform(1, 80)], ids=str)
@pytest.mark.parametrize(
    "n_arms, strong, duels",
    [(12, [6], 60), (20, [9, 7, 5], 300), (24, [20], 150), (40, [8, 8], 400)],
)
def test_pairs_are_chosen_as_often_as_if_all_betas_were_drawn(n_arms, strong, duels, law):
    """One ledger, many draws, by a tilt with many proposals and by that of the rule."""
    ledger, n = ledger_with_leaders(n_arms, strong, duels, law), 40_000

    def picks(rule, seed):
        pairs = np.zeros((n, 2), dtype=np.int64)
        picks_entry(rule, ledger, 10**6, np.random.default_rng(seed), pairs)
        return np.bincount(pairs.min(axis=1) * n_arms + pairs.max(axis=1), minlength=n_arms**2)

    plain = picks(PlainDoubleThompson().rule(n_arms), 1)
    for c in (1.5, 4.0, 8.0):
        rows = picks(with_tilt(many_arms_rule(0.51, n_arms), c / math.sqrt(n_arms)), 2)
        is_rare = rows + plain < 40
        table = np.array([[*x[~is_rare], x[is_rare].sum()] for x in (rows, plain)])
        table = table[:, table.sum(axis=0) > 0]
        assert table.shape[1] > 8
        assert stats.chi2_contingency(table).pvalue > 0.0005


@pytest.mark.interpreted
def test_bounds_of_a_proposal_are_of_the_pairs_that_wait(monkeypatch):
    """However many rows were drawn before, and though these have laid bounds of pairs anew.

    Of an arm that waits it is the product of tilted upper bounds, and of the coins that are drawn.
    """
    seen = []

    def propose(rule, ledger, arm, n_drawn, best, rng):
        drawn = rule.drawn[:n_drawn]
        waits = np.delete(np.arange(len(rule.bound)), drawn)
        for i in waits[rule.bound[waits] > 0.0]:
            coins = [rule.down if rule.rows[place, i] else rule.up for place in range(n_drawn)]
            rest = [tilted(rule, rule.high[i, j]) for j in waits if j != i]
            assert rule.bound[i] == pytest.approx(math.prod(coins) * math.prod(rest))
        seen.append(n_drawn)
        return False

    monkeypatch.setattr(many_arms, "propose", propose)
    monkeypatch.setattr(many_arms, "_RARE_PROPOSAL", 1.0)
    law = delays.Uniform(1, 80)
    for n_arms, strong, duels in ((12, [6, 6], 200), (20, [9, 7, 5], 300)):
        ledger, rng = ledger_with_leaders(n_arms, strong, duels, law), np.random.default_rng(6)
        wide = many_arms_rule(0.51, n_arms)
        note_news(wide, ledger)
        age_to(ledger, duels + 60)  # nothing is heard: the bounds hold, and are too wide by now
        for _ in range(60):
            first_arm(copy.deepcopy(wide), ledger, 1000, False, rng)
    assert len(seen) > 20 and max(seen) > 1


@pytest.mark.long
@pytest.mark.interpreted
@pytest.mark.parametrize(
    "n_arms, strong, duels, c, law",
    [
        (4, [6], 25, 3.0, None),
        (5, [4], 30, 4.0, None),
        (6, [3], 80, 3.0, delays.Uniform(1, 80)),
        (7, [20], 70, 8.0, delays.Uniform(1, 80)),
        (8, [4], 60, 4.0, None),
    ],
)
def test_proposals_leave_the_law_of_the_definitions(n_arms, strong, duels, c, law, monkeypatch):
    """The same with few draws, interpreted, against `naive.double_thompson`.

    A tenth of them, about, come from a proposal that counts: it is made though it is not rare.
    """
    monkeypatch.setattr(many_arms, "_RARE_PROPOSAL", 1.0)
    ledger, t, n = ledger_with_leaders(n_arms, strong, duels, law), 1000, 2000
    told, rng = ledger.estimates(), np.random.default_rng(2)
    plain = [naive.double_thompson(told.mean, told.expected, 0.51, t, rng) for _ in range(4 * n)]
    rule = with_tilt(many_arms_rule(0.51, n_arms), c / math.sqrt(n_arms))
    picks = np.zeros((n, 2), dtype=np.int64)
    picks_entry(rule, ledger, t, np.random.default_rng(3), picks)
    counts = np.array(
        [
            np.bincount(np.asarray(x) @ [n_arms, 1], minlength=n_arms**2)
            for x in (np.sort(picks, axis=1), np.sort(plain, axis=1))
        ]
    )
    is_rare = counts.sum(axis=0) < 25
    table = np.column_stack([counts[:, ~is_rare], counts[:, is_rare].sum(axis=1)])
    table = table[:, table.sum(axis=0) > 0]
    assert table.shape[1] > 4
    assert stats.chi2_contingency(table).pvalue > 0.0005


@pytest.mark.long
@pytest.mark.interpreted
@pytest.mark.parametrize(
    "policy", [duelay.DoubleThompson(), duelay.DoubleThompson("learn", window=9)]
)
def test_live_and_simulated_duels_of_many_arms_agree(policy):
    problem = duelay.problems.bradley_terry([9.0, 5.0] + [1.0] * 33)
    live, simulated = (
        duels(policy, problem, delays.Geometric(0.3), 150, seed=2)
        for duels in (live_duels, compiled_duels)
    )
    assert live == simulated
