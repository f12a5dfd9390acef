"""What double Thompson sampling and RMED remember, against what they would compute anew."""

import math
import pickle

import numpy as np
import pytest
from scipy import stats

import duelay
import naive
from duelay import delays
from duelay.ledger import age_to, assume, for_votes, hear, hear_vote, open_ledger, record
from duelay.ledger.delay_models.base import expected, expected_at_last
from duelay.policies.double_thompson.beta_posterior import (
    beats_for_certain,
    chance_above_half,
    draw_above_half,
    is_beaten_for_certain,
    reach,
)
from duelay.policies.double_thompson.rule import (
    beats_all,
    double_thompson_rule,
    has_changed,
    is_surely_in_c,
    lay_floors,
    least_regret,
    may_beat,
    promised_regret,
    wins_sample,
)
from duelay.policies.double_thompson.self_duel_runs import loses_some, quiet_turns
from duelay.policies.pair_statistics import wins_and_count
from duelay.policies.rmed import against, rmed_rule
from duelay.policies.turn import calm_until, pass_over, turn
from helpers import Fixed

LAWS = [None, delays.Geometric(0.1), delays.Uniform(1, 30)]


def played(law, n_arms=3, ticks=40, seed=0):
    """A ledger after random duels with random answers, and its generator."""
    rng = np.random.default_rng(seed)
    ledger = open_ledger(assume(law, None, n_arms), n_arms)
    for t in range(1, ticks + 1):
        step(ledger, t, rng)
    return ledger, rng


def step(ledger, t, rng):
    """One tick: perhaps an answer, and a duel."""
    age_to(ledger, t)
    i, j = rng.choice(len(ledger.plays), size=2, replace=False)
    if ledger.conversions[i, j] < ledger.plays[i, j] and rng.random() < 0.5:
        hear(ledger, i, j, t - 1, t)
    i, j = rng.choice(len(ledger.plays), size=2, replace=False)
    record(ledger, i, j, t)


def bounds(ledger, width):
    """The upper and lower bounds of all pairs, with S clipped; U = 1 and L = 0 where unheard."""
    told = ledger.estimates()
    s, n = np.clip(told.wins, 0, told.expected), told.expected
    with np.errstate(divide="ignore", invalid="ignore"):
        return (
            np.where(n > 0, s / n + np.sqrt(width / n), 1.0),
            np.where(n > 0, s / n - np.sqrt(width / n), 0.0),
        )


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_bounds_are_compared_with_one_half_without_division(law):
    verdicts = set()
    for seed in range(12):
        ledger, rng = played(law, seed=seed)
        for width in (0.01, 0.1, float(rng.exponential())):
            upper, lower = bounds(ledger, width)
            for i, j in ((0, 1), (1, 0), (2, 0)):
                is_out = is_beaten_for_certain(ledger, i, j, width)
                is_sure = beats_for_certain(ledger, i, j, width)
                assert (is_out, is_sure) == (upper[i, j] <= 0.5, lower[i, j] > 0.5)
                verdicts.add((is_out, is_sure))
    assert verdicts == {(True, False), (False, True), (False, False)}
    unseen = open_ledger(assume(None, None, 2), 2)
    assert not is_beaten_for_certain(unseen, 0, 1, 0.0)
    assert not beats_for_certain(unseen, 0, 1, 0.0)
    unseen.plays[0, 1] = 4  # S = 0 of 4: at width 1 the upper bound is 1/2, for certain
    assert is_beaten_for_certain(unseen, 0, 1, 1.0) and not beats_for_certain(unseen, 1, 0, 1.0)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_how_many_an_arm_may_beat_is_never_out_of_date(law):
    """Whatever was remembered of an arm without news, as the ledger ages and the width grows."""
    rule = double_thompson_rule(0.51, False, 4)
    rng, ledger = np.random.default_rng(5), open_ledger(assume(law, None, 4), 4)
    seen = set()
    for t in range(1, 400):
        if t < 60 or t % 20 == 0:
            step(ledger, t, rng)
        else:
            age_to(ledger, t)
        width = 0.05 * math.log(t)
        upper = bounds(ledger, width)[0]
        for i in range(4):
            others = [j for j in range(4) if j != i]
            expected = sum(upper[i, j] > 0.5 for j in others)
            assert may_beat(rule, ledger, i, width) == expected
            assert is_surely_in_c(ledger, i, width) == (expected == 3)
            seen.add(expected)
    assert len(seen) > 2


def test_a_chance_is_computed_once_the_evidence_has_lasted_a_tick():
    rule = double_thompson_rule(0.51, False, 2)
    assert has_changed(rule, 0, 1, 5, 3.0, 8.0)  # new
    assert has_changed(rule, 0, 1, 5, 3.0, 8.0)  # it may change again within the tick
    assert not has_changed(rule, 0, 1, 6, 3.0, 8.0)
    assert rule.chance[0, 1] == chance_above_half(3.0, 8.0)
    assert not has_changed(rule, 0, 1, 6, 3.0, 8.0)
    for s, n in ((4.0, 8.0), (4.0, 9.0)):  # either is enough
        assert has_changed(rule, 0, 1, 7, s, n)
        assert rule.chance[0, 1] < 0
        assert not has_changed(rule, 0, 1, 8, s, n)
        assert rule.chance[0, 1] == chance_above_half(s, n)
    assert rule.chance[1, 0] == -1.0


def test_the_chance_of_a_coin_is_the_betas():
    rng = np.random.default_rng(0)
    for n in (0.0, 0.3, 1.0, 17.0, 1234.5, 1e5):
        for mean in (0.0, 0.1, 0.5, 0.52, 0.93, 1.0, rng.random()):
            s = mean * n
            true = stats.beta.sf(0.5, s + 1, n - s + 1)
            if true > 1e-250:
                assert chance_above_half(s, n) == pytest.approx(true, rel=1e-8)
            else:
                assert chance_above_half(s, n) < 1e-240


@pytest.mark.parametrize(("plays", "won"), [(10, 5), (40, 12), (1, 0), (400, 100), (3000, 1400)])
def test_a_beta_above_half_has_its_law_however_rare_that_is(plays, won):
    ledger = duelay.DoubleThompson(order="champion").ledger(2)
    ledger.plays[0, 1], ledger.conversions[0, 1] = plays, won
    rng = np.random.default_rng(1)
    drawn = [draw_above_half(ledger, 0, 1, rng) for _ in range(2000)]
    beta = stats.beta(won + 1, plays - won + 1)
    assert min(drawn) > 0.5
    assert stats.kstest(drawn, lambda x: 1 - beta.sf(x) / beta.sf(0.5)).pvalue > 0.001


@pytest.mark.interpreted
def test_a_beta_above_half_is_drawn_from_an_exponential_law_only_where_it_is_rare():
    """That is where one half is more than a deviation, sqrt(n) / 2 duels, above the mean."""
    for n, won, is_rare in ((16, 5, True), (16, 6, False), (21, 8, True), (16, 8, False),
                            (16, 11, False), (16, 16, False)):  # fmt: skip
        ledger = duelay.DoubleThompson(order="champion").ledger(2)
        ledger.plays[0, 1], ledger.conversions[0, 1] = n, won
        rng = Fixed(0.6)
        theta = draw_above_half(ledger, 0, 1, rng)
        assert rng.betas == ([] if is_rare else [(won + 1, n + 1 - won)])
        assert rng.coins == (2 if is_rare else 0)
        slope = 2 * (n - 2 * won)
        quantile = -math.log(1.0 - 0.6)  # of the exponential law
        assert theta == pytest.approx(0.5 + quantile / slope if is_rare else 0.6)


@pytest.mark.parametrize("window", [None, 20])
@pytest.mark.parametrize("law", [*LAWS, delays.Never(0.4, delays.Uniform(3, 9))], ids=str)
def test_what_a_pair_can_lose_without_news_is_what_it_loses_in_the_end(law, window):
    """By letting the ledger age: S now, the most that N~ - S is ever, and N~ now."""
    n_grow = 0
    for seed in range(4):
        rng, ledger = np.random.default_rng(seed), open_ledger(assume(law, window, 3), 3)
        for t in range(1, 12 + seed):
            step(ledger, t, rng)
        told, pairs = ledger.estimates(), [(0, 1), (1, 0), (2, 0), (1, 2)]
        found = {pair: reach(ledger, *pair) for pair in pairs}
        most = dict.fromkeys(pairs, 0.0)
        for later in range(t + 1, t + 300):
            for pair in pairs:
                s, n = wins_and_count(ledger, *pair)
                most[pair] = max(most[pair], n - s)
            age_to(ledger, later)
        for pair in pairs:
            won, lost, n = found[pair]
            assert won == pytest.approx(min(max(told.wins[pair], 0.0), told.expected[pair]))
            assert n == pytest.approx(told.expected[pair])
            assert lost == pytest.approx(most[pair], abs=1e-9)
            n_grow += lost > n - won + 0.1
    assert n_grow == 0 if law is None else n_grow > 2


@pytest.mark.interpreted
def test_a_pair_without_news_is_a_coin_and_one_with_news_a_beta():
    rule = double_thompson_rule(0.51, False, 2)
    ledger = open_ledger(assume(None, None, 2), 2)
    ledger.plays[0, 1], ledger.conversions[0, 1], ledger.news[:] = 10, 7, 17
    rng = Fixed(0.6)
    assert wins_sample(rule, ledger, 0, 1, 20, rng)  # 0.6 > 1/2
    assert rng.betas == [(8.0, 4.0)] and rng.coins == 0
    chance = chance_above_half(7.0, 10.0)
    for value in (chance - 1e-9, chance + 1e-9):
        coin = Fixed(value)
        assert wins_sample(rule, ledger, 0, 1, 21, coin) == (value < chance)
        assert coin.coins == 1 and coin.betas == []
    ledger.plays[0, 1] = 100  # behind its back: nothing is read before there is news
    assert rule.stamp[0, 1] == ledger.news.sum()
    coin = Fixed(0.5)
    wins_sample(rule, ledger, 0, 1, 22, coin)
    assert coin.betas == []
    ledger.news[1] += 1
    wins_sample(rule, ledger, 0, 1, 23, coin)
    assert coin.betas == [(8.0, 94.0)]


@pytest.mark.interpreted
def test_while_answers_are_late_the_ledger_is_read_at_every_tick():
    """Under a law that is not settled a chance is not taken for granted without news."""
    rule = double_thompson_rule(0.51, False, 2)
    ledger = open_ledger(assume(delays.Geometric(0.1), None, 2), 2)
    for t in range(1, 11):
        age_to(ledger, t)
        record(ledger, 0, 1, t)
    for t in range(11, 15):
        age_to(ledger, t)
        rng = Fixed(0.6)
        wins_sample(rule, ledger, 0, 1, t, rng)
        assert len(rng.betas) == 1  # what should have been heard has grown
    assert rule.stamp[0, 1] == -1


def test_a_new_look_at_the_law_makes_every_remembered_chance_doubtful():
    policy = duelay.DoubleThompson(delay="learn", window=30)
    rule, ledger, rng = policy.rule(3), policy.ledger(3), np.random.default_rng(0)
    for t in range(1, 10):
        turn(rule, ledger, t, rng)
    mark = 10**9  # no arm has so much news
    for next_look, is_kept in ((0, True), (50, False)):
        ledger.assumed.look[0] += next_look
        rule.stamp[:] = mark
        rule.favourite[0] = (rule.favourite[0] + 1) % 3  # so that all are looked at
        for t in range(10, 14):
            turn(rule, ledger, t, rng)
        assert (rule.stamp == mark).any() == is_kept


@pytest.mark.long
@pytest.mark.parametrize("is_known", [False, True])
def test_one_coin_for_all_pairs_has_the_law_of_one_for_each(is_known):
    """Beats all with the product of the chances, and whom else by each pair's own."""
    ledger = open_ledger(assume(None, None, 4), 4)
    chances = []
    for j, (n, won) in enumerate(((6, 4), (8, 3), (5, 3)), start=1):
        ledger.plays[0, j], ledger.conversions[0, j] = n, won
        chances.append(chance_above_half(float(won), float(n)))
    rng, draws = np.random.default_rng(0), 6000
    rows = []
    for _ in range(draws):
        rule = double_thompson_rule(0.51, False, 4)
        if is_known:
            beats_all(rule, ledger, 0, 19, np.random.default_rng(1))
        all_beaten = beats_all(rule, ledger, 0, 20, rng)
        rows.append([True] * 3 if all_beaten else rule.row[1:].tolist())
        assert all_beaten or not all(rows[-1])
    rows = np.array(rows)
    for places in ((0,), (1,), (2,), (0, 1), (1, 2), (0, 1, 2)):
        p = math.prod(chances[place] for place in places)
        share = rows[:, places].all(axis=1).mean()
        assert abs(share - p) < 4 * math.sqrt(p * (1 - p) / draws)


def test_the_regret_that_an_arm_promises_is_over_the_whole_sample():
    """D-TS+: with those outside of C, who cannot be first but are somebody's opponents."""
    rng, k = np.random.default_rng(4), 5
    for _ in range(50):
        rule = double_thompson_rule(0.51, True, k)
        upper = np.triu(rng.random((k, k)), 1)
        rule.theta[:] = upper + np.tril(1 - upper.T, -1)
        wins = (rule.theta > 0.5).sum(axis=1)
        in_c = rng.random(k) < 0.6
        in_c[rng.integers(k)] = True
        rule.score[:] = np.where(in_c, wins, wins - k)

        def promised(i, rule=rule, wins=wins):
            return sum(
                (wins.max() - (wins[i] + wins[j]) / 2) / (k - 1) / naive.entropy(rule.theta[i, j])
                for j in range(k)
                if j != i
            )

        for i in range(k):
            assert promised_regret(rule, i, int(wins.max())) == pytest.approx(promised(i))
        top = rule.score.max()
        best = min(np.flatnonzero(rule.score == top), key=promised)
        assert least_regret(rule, int(top)) == best


def test_rmeds_evidence_is_computed_anew_when_it_changes():
    rule, (ledger, rng) = rmed_rule(3), played(delays.Geometric(0.2))
    seen = set()
    for t in range(41, 200):
        step(ledger, t, rng)
        told = ledger.estimates()
        for i, j in ((0, 1), (1, 0), (2, 1)):
            n, mean = told.expected[i, j], np.clip(told.mean[i, j], 0, 1)
            expected = n * naive.entropy(mean) if n > 0 and mean <= 0.5 else 0.0
            assert against(rule, ledger, i, j) == pytest.approx(expected, abs=1e-9)
            seen.add(expected > 0)
    assert seen == {True, False}
    close = open_ledger(assume(None, None, 2), 2)
    close.plays[0, 1], close.conversions[0, 1] = 100, 52
    assert against(rmed_rule(2), close, 0, 1) == 0.0  # it does not seem to be beaten
    assert against(rmed_rule(2), close, 1, 0) == pytest.approx(100 * naive.entropy(0.48))
    early = open_ledger(assume(delays.Constant(9), None, 2), 2)
    age_to(early, 1)
    record(early, 0, 1, 1)  # played, and nothing should have been heard yet
    assert against(rmed_rule(2), early, 0, 1) == against(rmed_rule(2), early, 1, 0) == 0.0


def test_rmed_takes_an_arm_of_which_nothing_is_heard_for_an_even_one():
    """Arm 0 loses to 1 a little and has not met 2; those beat each other in a circle."""
    ledger = for_votes(open_ledger(assume(None, None, 4), 4))
    for first, second, won, n in ((0, 1, 4, 10), (0, 3, 9, 10), (2, 1, 90, 99), (3, 2, 90, 99)):
        for k in range(n):
            hear_vote(ledger, first, second, float(k < won), 1, 2)
    for k in range(99):
        hear_vote(ledger, 1, 3, float(k < 90), 1, 2)
    ledger.plays[:] = 1
    assert turn(rmed_rule(4), ledger, 400, np.random.default_rng(0)) == (0, 1)


FLOORS = [
    delays.Geometric(0.1),
    delays.Never(0.3, delays.Geometric(0.1)),
    delays.Uniform(1, 30),
    delays.Never(0.4, delays.Uniform(1, 30)),
]


@pytest.mark.long
@pytest.mark.interpreted
@pytest.mark.parametrize("window", [None, 20])
@pytest.mark.parametrize("law", FLOORS, ids=str)
def test_a_floor_holds_until_there_is_news(law, window):
    """The chance of every later tick, and membership of C, against those reckoned anew."""
    n_laid = 0
    for seed in range(40):
        rng, ledger = np.random.default_rng(seed), open_ledger(assume(law, window, 3), 3)
        for t in range(1, 40):
            step(ledger, t, rng)
        rules = [double_thompson_rule(0.51, False, 3) for _ in range(3)]
        for arm, rule in enumerate(rules):
            rule.favourite[0] = arm
        laid = {arm: lay_floors(rule, ledger, 40) for arm, rule in enumerate(rules)}
        laid = {arm: together for arm, together in laid.items() if together > 0}
        n_laid += len(laid)
        for arm, together in laid.items():
            assert together == pytest.approx(np.delete(rules[arm].floor, arm).prod())
        for t in range(40, 110):
            age_to(ledger, t)
            for arm in laid:
                for j in {0, 1, 2} - {arm}:
                    chance = chance_above_half(*wins_and_count(ledger, arm, j))
                    assert chance >= rules[arm].floor[j] - 1e-9
                assert is_surely_in_c(ledger, arm, 0.51 * math.log(t))
    assert n_laid > 5


def test_without_a_bound_on_what_is_expected_no_floor_is_laid():
    policy = duelay.DoubleThompson(delay="learn", window="30s")
    rule, ledger = policy.rule(2), policy.ledger(2, by_clock=True)
    record(ledger, 0, 1, 1)
    assert lay_floors(rule, ledger, 2) == 0.0


def test_what_expected_grows_to_is_reached_and_not_passed():
    for law in FLOORS:
        for window in (None, 20):
            ledger = open_ledger(assume(law, window, 2), 2)
            for t in range(1, 6):
                age_to(ledger, t)
                record(ledger, 0, 1, t)
            last = expected_at_last(ledger.assumed, ledger.plays, 0, 1)
            for t in range(6, 400):
                age_to(ledger, t)
                assert expected(ledger.assumed, ledger.plays, 0, 1) <= last + 1e-9
            assert expected(ledger.assumed, ledger.plays, 0, 1) == pytest.approx(last)


@pytest.mark.parametrize("chance", [0.9, 0.99])
def test_quiet_turns_are_as_many_as_if_each_were_drawn(chance):
    rng = np.random.default_rng(3)
    drawn = np.array([quiet_turns(chance, rng) for _ in range(4000)])
    for n in (1, 3, 10):
        p = chance ** (2 * n)
        assert abs((drawn >= n).mean() - p) < 4 * math.sqrt(p * (1 - p) / 4000)
    assert quiet_turns(1.0, rng) > 10**15


@pytest.mark.long
def test_where_a_floor_does_not_hold_the_losses_have_the_law_of_the_sample():
    """Over many ticks an arm loses to each other, and to both, as often as if all were drawn."""
    ledger = open_ledger(assume(None, None, 3), 3)
    chances = []
    for j, (n, won) in enumerate(((12, 8), (10, 7)), start=1):
        ledger.plays[0, j], ledger.conversions[0, j] = n, won
        chances.append(chance_above_half(float(won), float(n)))
    rng, ticks, beats = np.random.default_rng(0), 20_000, np.zeros(3, dtype=bool)
    floors = np.array([0.0, 0.8 * chances[0], 0.9 * chances[1]])
    together, lost = floors[1] * floors[2], np.zeros((ticks, 2), dtype=bool)
    for row in lost:
        if rng.random() >= together:
            left = floors.copy()
            assert loses_some(ledger, 0, left, together, beats, rng) == (not beats.all())
            assert set(left[1:]) <= {0.0, *floors} and 0.0 in left[1:]
            row[:] = ~beats[1:]
    both = (1 - chances[0]) * (1 - chances[1])
    shares = [lost[:, 0].mean(), lost[:, 1].mean(), lost.all(axis=1).mean()]
    for share, p in zip(shares, [1 - chances[0], 1 - chances[1], both], strict=True):
        assert abs(share - p) < 4 * math.sqrt(p * (1 - p) / ticks)


def test_a_self_duel_leaves_a_quiet_stretch_as_it_is_and_news_ends_it():
    policy = duelay.DoubleThompson(order="champion")
    rule, ledger, rng = policy.rule(2), policy.ledger(2), np.random.default_rng(0)
    for t in range(1, 200):
        record(ledger, 0, 1, t)
        hear(ledger, 0, 1, t, t + 1)
    assert turn(rule, ledger, 200, rng) == (0, 0)
    left = int(rule.quiet[0])
    assert turn(rule, ledger, 201, rng) == (0, 0) and rule.quiet[0] == left - 1
    assert calm_until(rule, ledger, 0, 201) == 201 + left - 1
    pass_over(rule, 5)
    assert calm_until(rule, ledger, 0, 206) == 201 + left - 1
    record(ledger, 0, 1, 207)
    assert calm_until(rule, ledger, 0, 207) == 207


@pytest.mark.parametrize(
    "policy", [duelay.DoubleThompson(), duelay.DoubleThompson("learn", window=9)]
)
def test_a_player_stored_in_a_quiet_stretch_goes_on_alike(policy):
    player = policy.start(3, seed=1)
    for _ in range(600):
        duel = player.ask()
        if duel.first == 0:  # whom all others lose to
            player.tell(duel)
    assert player._rule.quiet[0] > 2 and player._rule.floor_news[0] >= 0
    stored = pickle.dumps(player)
    went_on = [player.ask()[1:] for _ in range(80)]
    again = pickle.loads(stored)
    assert [again.ask()[1:] for _ in range(80)] == went_on
