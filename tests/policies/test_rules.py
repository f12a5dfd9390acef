"""Rules against their slow twins, tick by tick, with delayed conversions."""

import functools
import math

import numpy as np
import pytest

import duelay
import naive
from duelay import delays
from duelay.problems import arithmetic, bradley_terry
from helpers import play_beside

PROBLEM = bradley_terry([5.0, 1.0, 3.0, 2.0])


@pytest.mark.long
@pytest.mark.parametrize("alpha", [0.51, 1.0])
def test_rucb_delay_chooses_as_algorithm_1_says(alpha):
    law, window = delays.Geometric(0.2), 15
    policy = duelay.RUCBDelay(delay=law, window=window, alpha=alpha)
    champion = None
    seen = set()

    def check(t, history, choice, player):
        nonlocal champion
        n, n_tilde, s, _ = naive.estimates(history, t, 4, lambda i, j, a: law.cdf(a), window)
        upper = naive.upper_bounds(n, n_tilde, s, alpha * math.log(t))
        near = np.abs(upper - 0.5) < 1e-9
        np.fill_diagonal(near, False)
        assert not near.any()  # no verdict hangs on the last bit
        firsts, champion, seconds = naive.rucb_allowed(np.round(upper, 12), champion)
        assert choice[0] in firsts
        assert choice[1] in seconds[choice[0]]
        assert player._rule.champion[0] == (-1 if champion is None else champion)
        seen.add((min(len(firsts), 2), champion is None, choice[0] == choice[1]))

    play_beside(policy, law, 700, check, problem=bradley_terry([60.0, 1.0, 9.0, 3.0]))
    assert {(1, False, True), (2, True, False), (2, False, False)} <= seen


@pytest.mark.long
def test_rucb_draws_its_first_arm_with_the_right_probabilities():
    """Line 11: B half of the time, the rest of C alike."""
    from duelay.ledger import assume, open_ledger
    from duelay.policies.rucb import rucb_rule
    from duelay.policies.turn import turn

    rng = np.random.default_rng(3)
    for champion, expected in (
        (0, [1 / 2, 1 / 6, 1 / 6, 1 / 6]),
        (2, [1 / 6, 1 / 6, 1 / 2, 1 / 6]),
        (-1, [1 / 4] * 4),
    ):
        counts = np.zeros(4)
        for _ in range(4000):
            rule = rucb_rule(1.0, 4)
            rule.champion[0] = champion
            ledger = open_ledger(assume(None, None, 4), 4)
            first, second = turn(rule, ledger, 1, rng)
            assert second != first  # a tie at the top
            counts[first] += 1
        assert np.abs(counts / 4000 - expected).max() < 4 * math.sqrt(0.25 / 4000)


@pytest.mark.parametrize("champion", [0, 2])
def test_rucbs_champion_goes_when_somebody_beats_it(champion):
    """Line 8: B is what is left of it in C; with none the rest of C are alike."""
    from duelay.ledger import assume, open_ledger
    from duelay.policies.rucb import rucb_rule
    from duelay.policies.turn import turn

    rng, firsts = np.random.default_rng(3), set()
    for _ in range(40):
        rule = rucb_rule(1.0, 3)
        rule.champion[0] = champion
        ledger = open_ledger(assume(None, None, 3), 3)
        ledger.plays[champion, 1] = 1000
        firsts.add(turn(rule, ledger, 1001, rng)[0])
        assert rule.champion[0] == -1
    assert firsts == {0, 1, 2} - {champion}


@pytest.mark.interpreted
def test_rucb_says_how_long_its_champion_duels_itself():
    """Against a look at every tick: it may say one tick less, and never one more."""
    from duelay.ledger import assume, open_ledger
    from duelay.ledger.delay_models.base import FOREVER
    from duelay.policies.rucb import rucb_rule
    from duelay.policies.turn import calm_until, select

    rule, ledger = rucb_rule(0.51, 3), open_ledger(assume(None, None, 3), 3)
    rule.champion[0] = 0
    write_down(ledger, (0, 1, 970), (0, 2, 970))
    assert calm_until(rule, ledger, 0, 50) == FOREVER
    assert calm_until(rule, ledger, 1, 50) == 50  # it is not the champion
    ledger.plays[0, 1], ledger.conversions[0, 1] = 40, 31  # exp(11^2 / (0.51 * 40)) is 376.7
    rng, t = np.random.default_rng(0), 50
    while select(rule, ledger, t + 1, rng) == (0, 0):
        t += 1
    assert t == 376 and calm_until(rule, ledger, 0, 50) == 375
    rule.champion[0] = 0
    assert calm_until(rule, ledger, 0, 400) == 400
    for won in (20, 10):  # even, or losing: nobody would be calm
        ledger.conversions[0, 1] = won
        assert calm_until(rule, ledger, 0, 50) == 50
    ledger.plays[0, 1], ledger.conversions[0, 1] = 0, 0  # nothing is known of arm 1
    assert calm_until(rule, ledger, 0, 50) == 50


@pytest.mark.long
def test_rucb_draws_its_second_arm_alike_among_ties():
    """Line 13: at the start every other arm is as frightening."""
    counts = np.zeros(4)
    for seed in range(3000):
        duel = duelay.RUCB().start(4, seed=seed).ask()
        counts[(duel.second - duel.first) % 4] += 1
    assert counts[0] == 0
    assert np.abs(counts[1:] / 3000 - 1 / 3).max() < 4 * math.sqrt(2 / 9 / 3000)


def test_a_rival_whose_bound_is_exactly_one_half_is_played():
    """Note 1: with ties at the top, U_cc = 1/2 among them, the second arm is not the first."""
    from duelay.ledger import assume, open_ledger
    from duelay.policies.rucb import rucb_rule
    from duelay.policies.turn import turn

    ledger = open_ledger(assume(None, None, 2), 2)
    # At t = 1 there is no radius: 2 wins of 4 are a bound of exactly 1/2 for both arms.
    ledger.plays[0, 1] = 4
    ledger.conversions[0, 1] = 2
    first, second = turn(rucb_rule(1.0, 2), ledger, 1, np.random.default_rng(0))
    assert second != first


def test_rucb_picks_any_arm_where_every_arm_is_beaten():
    """A cycle of certain defeats empties C: line 7."""
    cycle = duelay.RUCB(alpha=0.51).start(3, seed=0)
    for i in range(3):
        cycle._ledger.plays[i, (i + 1) % 3] = 1000
        cycle._ledger.conversions[i, (i + 1) % 3] = 1000
    firsts = {cycle.ask().first for _ in range(40)}
    assert firsts == {0, 1, 2}
    assert cycle._rule.champion[0] == -1


@pytest.mark.long
def test_rr_db_delay_plays_and_drops_as_remark_1_says():
    law, window, delta = delays.Uniform(1, 20), 18, 0.3
    policy = duelay.RRDBDelay(delay=law, window=window, delta=delta)
    active = {0, 1, 2, 3}
    sizes = set()

    def check(t, history, choice, player):
        nonlocal active
        n, n_tilde, s, _ = naive.estimates(history, t, 4, lambda i, j, a: law.cdf(a), window)
        upper = naive.upper_bounds(n, n_tilde, s, math.log(4 * t / delta))
        expected, active = naive.rr_db_choice(upper, active, n)
        assert choice == expected
        assert set(np.flatnonzero(player._rule.active)) == active
        sizes.add(len(active))

    play_beside(policy, law, 900, check, problem=bradley_terry([90.0, 0.5, 9.0, 2.0]))
    assert 1 in sizes and len(sizes) > 2


@pytest.mark.parametrize("ordered", [False, True])
def test_mrr_db_delay_follows_algorithm_2(ordered):
    law, schedule = delays.Geometric(0.3), (6, 20, 60)
    policy = duelay.MRRDBDelay(
        schedule=schedule, pairs="ordered" if ordered else "unordered", horizon=2000
    )
    past = []
    twin = naive.mrr_db(4, schedule, ordered, lambda s, t: naive.y_tilde(past[s - 1], s, t, np.inf))
    dropped = []

    def check(t, history, choice, player):
        past[:] = history
        assert choice == next(twin)
        dropped.append(4 - player._rule.active.sum())

    play_beside(policy, law, 900, check, seed=1)
    assert dropped[-1] >= 2


def test_mrr_db_delay_plays_the_least_played_pair_when_its_rounds_are_over():
    past = []
    law = delays.Constant(1)
    twin = naive.mrr_db(3, (2,), False, lambda s, t: naive.y_tilde(past[s - 1], s, t, np.inf))

    def check(t, history, choice, player):
        past[:] = history
        assert choice == next(twin)

    even = arithmetic(3, 0.001)
    policy = duelay.MRRDBDelay(schedule=(2,), horizon=100)
    play_beside(policy, law, 60, check, problem=even)


def elimination_rules(n_arms):
    """RR-DB's rule and MRR-DB-Delay's, each with what ends a round of it or looks at its bounds."""
    from duelay.policies.mrr_db_delay import end_round, mrr_db_rule
    from duelay.policies.rr_db_delay import rr_db_rule
    from duelay.policies.turn import turn

    rng = np.random.default_rng(0)
    by_bounds = rr_db_rule(0.05, n_arms)
    by_rounds = mrr_db_rule(np.array([500, 1000, 2000]), False, n_arms)
    by_rounds.round[0] = 1  # with gamma = 1/2, in round 1, nobody can be dropped
    return (
        (by_bounds, lambda ledger: turn(by_bounds, ledger, 3001, rng)),
        (by_rounds, lambda ledger: end_round(by_rounds, ledger)),
    )


def write_down(ledger, *told):
    """Let each pair have been played 1000 times, and the first have won so many."""
    ledger.plays[:], ledger.conversions[:] = 0, 0
    for i, j, wins in told:
        ledger.plays[i, j], ledger.conversions[i, j] = 1000, wins
        ledger.news[[i, j]] += 1


def test_a_round_or_a_bound_that_would_drop_every_arm_drops_none():
    """Arm 0 beats 1 and 1 beats 2; where 2 beats 0, all three are beaten at once."""
    from duelay.ledger import assume, open_ledger

    for rule, look in elimination_rules(4):
        ledger = open_ledger(assume(None, None, 4), 4)
        rule.active[3] = False  # it is no longer asked
        write_down(ledger, (0, 1, 990), (1, 2, 990), (0, 2, 10))
        look(ledger)
        assert np.flatnonzero(rule.active).tolist() == [0, 1, 2]
        write_down(ledger, (0, 1, 990), (1, 2, 500), (0, 2, 500))
        look(ledger)
        assert np.flatnonzero(rule.active).tolist() == [0, 2]  # and no old verdict is left


def test_only_an_active_arm_drops_another():
    from duelay.ledger import assume, open_ledger

    for rule, look in elimination_rules(3):
        ledger = open_ledger(assume(None, None, 3), 3)
        rule.active[2] = False
        write_down(ledger, (0, 1, 500), (0, 2, 10), (1, 2, 500))
        look(ledger)
        assert np.flatnonzero(rule.active).tolist() == [0, 1]


def test_the_arm_that_is_left_duels_itself_at_once():
    from duelay.ledger import assume, open_ledger
    from duelay.policies.turn import turn

    for rule, _ in elimination_rules(3):
        ledger = open_ledger(assume(None, None, 3), 3)
        write_down(ledger, (0, 1, 500), (0, 2, 10), (1, 2, 10))
        assert turn(rule, ledger, 3001, np.random.default_rng(0)) == (2, 2)
        assert np.flatnonzero(rule.active).tolist() == [2]


ALL_MAY_WIN = ((0, 1, 40, 22), (0, 2, 30, 19), (1, 2, 25, 12), (3, 0, 20, 7))
# Arm 3 loses to arm 0 for certain and beats the others, whom arm 0 may beat: in C is 0 alone.
ONE_IN_C = ((3, 0, 500, 205), (3, 1, 100, 80), (3, 2, 100, 80), (0, 1, 30, 15), (0, 2, 20, 10))


@pytest.mark.long
@pytest.mark.parametrize("is_plus", [False, True])
@pytest.mark.parametrize(
    "law", [None, pytest.param(delays.Never(0.4, delays.Constant(1)), marks=pytest.mark.compiled)]
)
@pytest.mark.parametrize("told_of", [ALL_MAY_WIN, ONE_IN_C], ids=["all may win", "one in C"])
def test_double_thompson_chooses_as_often_as_the_algorithm_does(is_plus, law, told_of):
    """One ledger, many draws: the pairs' frequencies against those of the slow twin."""
    from duelay.ledger import assume, open_ledger
    from duelay.policies.double_thompson.rule import double_thompson_rule

    ledger = open_ledger(assume(law, None, 4), 4)
    for i, j, plays, won in told_of:
        ledger.plays[i, j] = plays
        ledger.conversions[i, j] = won if law is None else round(0.6 * won)
        if law is not None:
            ledger.assumed.closed[i, j] = plays
    told, t, draws = ledger.estimates(), 120, 6000
    rng, twin_rng = np.random.default_rng(5), np.random.default_rng(6)
    counts, twin = np.zeros((4, 4)), np.zeros((4, 4))
    pick, rule = one_turn(), double_thompson_rule(0.51, is_plus, 4)
    pick(rule, ledger, t - 1, rng)  # from now on nothing changes: coins in place of Betas
    for _ in range(draws):
        counts[pick(rule, ledger, t, rng)] += 1
        twin[naive.double_thompson(told.mean, told.expected, 0.51, t, twin_rng, is_plus)] += 1
    p = (counts + twin) / (2 * draws)
    error = np.sqrt(2 * p * (1 - p) / draws)
    assert (np.abs(counts - twin) / draws <= 4 * error + 1e-12).all()
    assert np.count_nonzero(counts) > (5 if told_of is ALL_MAY_WIN else 2)


@functools.cache  # a kernel of a test's is compiled anew for each
def one_turn():
    """`select` by itself: as a kernel where we are compiled, since it dispatches on types."""
    from duelay._core.jit.decorators import kernel
    from duelay.rules import select

    @kernel
    def pick(rule, ledger, t, rng):
        return select(rule, ledger, t, rng)

    return pick


@pytest.mark.long
@pytest.mark.interpreted
@pytest.mark.parametrize(
    "strengths, law, ticks",
    [
        ((5.0, 1.0, 3.0, 2.0), delays.Geometric(0.3), 500),
        ((0.3, 9.0, 2.0, 0.5), delays.Geometric(0.3), 500),
        ((1.0, 2.0, 3.0, 15.0), delays.Constant(9), 300),  # the first turns are before any answer
    ],
    ids=str,
)
def test_rmed_follows_its_algorithm(strengths, law, ticks):
    window = 30
    policy = duelay.RMED(delay=law, window=window, order="champion")
    past = []

    def read(t):
        _, n_tilde, s, _ = naive.estimates(past, t, 4, lambda i, j, a: law.cdf(a), window)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.clip(s, 0, n_tilde) / n_tilde, n_tilde

    twin = naive.rmed(4, read)
    own = []

    def check(t, history, choice, player):
        past[:] = history
        assert choice == next(twin)
        own.append(choice[0] == choice[1])

    play_beside(policy, law, ticks, check, problem=bradley_terry(strengths))
    assert any(own) and not all(own[100:])


@pytest.mark.parametrize("order", ["coin", "alternate"])
def test_arms_are_shown_in_either_order_alike(order):
    player = duelay.DoubleThompson(order=order).start(3, seed=0)
    for _ in range(900):
        player.ask()
    plays = player.standing().plays
    for i, j in ((0, 1), (0, 2), (1, 2)):
        n = plays[i, j] + plays[j, i]
        assert n > 50
        spread = 4 * math.sqrt(n) / 2 if order == "coin" else 1
        assert abs(plays[i, j] - n / 2) <= spread


def test_an_unknown_order_is_named():
    for policy in (duelay.RUCB, duelay.RUCBDelay, duelay.RRDBDelay, duelay.DoubleThompson):
        with pytest.raises(ValueError, match="order must"):
            policy(order="dice")


def test_two_arms_end_with_the_winner_against_itself():
    for policy in (
        duelay.RRDBDelay(delay=delays.Constant(1)),
        duelay.MRRDBDelay(schedule=(10, 30, 90), horizon=1000),
    ):
        player = policy.start(2, seed=0)
        for _ in range(400):
            duel = player.ask()
            if duel.first < duel.second:
                player.tell(duel)
        assert (duel.first, duel.second) == (0, 0)
        assert list(player.standing().active) == [True, False]
