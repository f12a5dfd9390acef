"""Levels under the null, power at the sizes that the docstrings state, and small cases by hand."""

import copy
import functools
import math
import pickle

import numba
import numpy as np
import pytest
import scipy.stats

import duelay
from duelay import delays
from duelay.assumptions import (
    TESTS,
    check_assumptions,
    delay_by_pair,
    delay_by_winner,
    independence,
    law_drift,
    order_balance,
    position_effect,
    preference_drift,
)
from duelay.assumptions.score_tests import cut, delay_scores, ranks, tail
from duelay.ledger import hear
from duelay.logs.history import History
from duelay.policies.turn import turn
from duelay.simulation import streams
from duelay.simulation.world import NO_ENTRY, duel, make_world, take_due, with_empty_queue

MU = np.array([[0.5, 0.6, 0.7], [0.4, 0.5, 0.6], [0.3, 0.4, 0.5]])
CLOSE = 0.5 + (MU - 0.5) / 2  # policies go on playing all pairs for longer
NAN = math.nan


def heard_of(first, second, won, delay, *, votes=False, order="coin", window=None, n_arms=3):
    """What is heard at tick n + 1 of duels that were won, or not, and would answer by `delay`."""
    limit = np.arange(len(first), 0, -1)
    heard = (delay <= limit) & (delay <= (window or np.inf)) & (won | votes)
    return History(
        n_arms=n_arms,
        first=first,
        second=second,
        delay=np.where(heard, delay, NAN),
        first_won=np.where(heard, won, NAN),
        window=window,
        feedback="votes" if votes else "conversions",
        order=order,
    )


def at_random(seed, n, law, *, mu=MU, **more):
    """Two arms at random, which may be the same."""
    rng = np.random.default_rng(seed)
    first, second = rng.integers(len(mu), size=(2, n))
    won, delay = rng.random(n) < mu[first, second], law.sample(n, seed=rng)
    return heard_of(first, second, won, delay, n_arms=len(mu), **more)


def by_thompson(runs, n, law, mu=CLOSE):
    """Votes on pairs chosen by what has been heard: double Thompson sampling, all runs at once."""
    rng, k, every = np.random.default_rng(0), len(mu), np.arange(runs)
    wins = np.zeros((runs, k, k))
    first, second = np.empty((2, runs, n), dtype=np.int64)
    won, delay = np.empty((runs, n), dtype=bool), np.empty((runs, n))
    due = {}
    for t in range(n):
        for run, i, j in due.pop(t, []):
            np.add.at(wins, (run, i, j), 1)
        theta = rng.beta(wins + 1, wins.transpose(0, 2, 1) + 1)
        theta = np.triu(theta, 1) + np.tril(1 - theta.transpose(0, 2, 1), -1)
        i = ((theta > 0.5).sum(axis=2) + 0.1 * rng.random((runs, k))).argmax(axis=1)
        against = rng.beta(wins + 1, wins.transpose(0, 2, 1) + 1)[every, :, i]
        against[every, i] = 0.5
        j = against.argmax(axis=1)
        i, j = np.where(rng.random(runs) < 0.5, (i, j), (j, i))
        first[:, t], second[:, t] = i, j
        won[:, t] = rng.random(runs) < mu[i, j]
        delay[:, t] = law.sample(runs, seed=rng)
        winner, loser = np.where(won[:, t], (i, j), (j, i))
        for d in np.unique(delay[:, t]):
            run = np.flatnonzero((i != j) & (delay[:, t] == d))
            if t + d < n:
                due.setdefault(t + int(d), []).append((run, winner[run], loser[run]))
    return [
        heard_of(*run, votes=True, n_arms=k) for run in zip(first, second, won, delay, strict=True)
    ]


def by_policy(policy, runs, n, law):
    """What players would have seen of a simulated world, by the compiled functions they run."""
    problem = duelay.Problem(CLOSE)
    world, histories = make_world(problem, law, policy.window, n), []
    for run in range(runs):
        world_rng, policy_rng = streams(0, run)
        ledger, rule = policy.ledger(problem.n_arms), policy.rule(problem.n_arms)
        queue = with_empty_queue(world)
        first, second, delay = watch(rule, ledger, queue, n, world_rng, policy_rng)
        histories.append(
            History(
                n_arms=problem.n_arms,
                first=first,
                second=second,
                delay=delay,
                first_won=np.where(np.isnan(delay), NAN, 1.0),
                window=policy.window,
                order=policy.order,
            )
        )
    return histories


@numba.njit
def watch(rule, ledger, world, n, world_rng, policy_rng):
    first, second = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    delay = np.full(n, np.nan)
    for t in range(1, n + 1):
        entry = take_due(world, t)
        while entry != NO_ENTRY:
            born = world.born[entry]
            hear(ledger, world.first[entry], world.second[entry], born, t)
            delay[born - 1] = t - born
            entry = take_due(world, t)
        i, j = turn(rule, ledger, t, policy_rng)
        duel(world, i, j, t, world_rng)
        first[t - 1], second[t - 1] = i, j
    return first, second, delay


QUICK = delays.Geometric(0.1)
SLOW = delays.Geometric(0.005)
NEVER = delays.Never(0.3, delays.Geometric(0.05))
TAIL = delays.Zipf(1.3, 300)
COIN = duelay.DoubleThompson()
ALTERNATE = duelay.DoubleThompson(order="alternate", window=300)
CHAMPION = duelay.RUCB(window=100)
RUNS = 2000
NULLS = {
    "random": lambda: [at_random(s, 400, QUICK) for s in range(RUNS)],
    "random votes": lambda: [at_random(s, 400, TAIL, votes=True) for s in range(RUNS)],
    "adaptive": lambda: by_policy(COIN, RUNS, 1000, NEVER),
    "adaptive votes": lambda: by_thompson(RUNS, 500, QUICK),
    "alternate": lambda: by_policy(ALTERNATE, RUNS, 1000, SLOW),
    "champion": lambda: by_policy(CHAMPION, RUNS, 800, QUICK),
}


@functools.cache
def nulls(name):
    return NULLS[name]()


def count(test, histories):
    """Alarms, and the histories that could tell."""
    p = np.array([test(history).p_value for history in histories])
    return int((p < 0.05).sum()), int((~np.isnan(p)).sum())


@pytest.mark.compiled
@pytest.mark.parametrize("name", NULLS)
@pytest.mark.parametrize("test", TESTS, ids=lambda test: test.__name__)
def test_the_level_is_held(test, name):
    alarms, told = count(test, nulls(name))
    print(f"\nlevel: {test.__name__}, {name}: {100 * alarms / max(told, 1):.1f} % of {told}")
    if test is order_balance and name in ("alternate", "champion"):
        assert alarms == 0 if name == "alternate" else alarms > 0  # not a coin's
    elif test is independence and name in ("alternate", "champion"):
        assert alarms == 0  # turns make neighbours differ, and a champion's order says nothing
    elif test is position_effect and "votes" not in name:
        assert alarms <= 0.065 * RUNS  # conversions tell it only where more than half convert
    else:
        least = 0.025 if test is order_balance else 0.035  # twice the smaller of two p-values
        assert told > 0.8 * RUNS and least <= alarms / told <= 0.065


@pytest.mark.compiled
def test_the_level_of_a_bonus_is_held_at_its_edge_where_everybody_answers_at_once():
    histories = [at_random(s, 500, delays.Constant(1)) for s in range(1000)]
    assert 35 <= count(position_effect, histories)[0] <= 65


@pytest.mark.compiled
def test_all_together_raise_few_false_alarms():
    alarms = [any(f.is_alarm for f in check_assumptions(h)) for h in nulls("adaptive")]
    assert np.mean(alarms) < 0.065


def two_at_random(rng, n, n_arms=3):
    """Two different arms at random."""
    first = rng.integers(n_arms, size=n)
    return first, (first + rng.integers(1, n_arms, size=n)) % n_arms


def lopsided(seed, n=600):
    rng = np.random.default_rng(seed)
    first, second = two_at_random(rng, n)
    turn = (second == 0) & (rng.random(n) < 0.2)  # arm 0 is first in 60 % of its duels
    first, second = np.where(turn, second, first), np.where(turn, first, second)
    won = rng.random(n) < MU[first, second]
    return heard_of(first, second, won, QUICK.sample(n, seed=rng))


def with_bonus(seed, n=1000, votes=True):
    rng = np.random.default_rng(seed)
    first, second = rng.integers(3, size=(2, n))
    bonus = 0.06 if votes else 0.1
    won = rng.random(n) < MU[first, second] + bonus
    delay = np.ones(n)
    return heard_of(first, second, won, delay, votes=votes)


def slow_winner(seed, n=1100, votes=False, times=2):
    rng = np.random.default_rng(seed)
    first, second = two_at_random(rng, n)
    won = rng.random(n) < MU[first, second]
    winner = np.where(won, first, second)
    delay = rng.geometric(np.where(winner == 1, 0.05 / times, 0.05))
    return heard_of(first, second, won, delay, votes=votes)


def slow_pair(seed, n=1100, votes=False, times=2):
    rng = np.random.default_rng(seed)
    first, second = two_at_random(rng, n)
    won = rng.random(n) < MU[first, second]
    delay = rng.geometric(np.where(first + second == 1, 0.05 / times, 0.05))
    return heard_of(first, second, won, delay, votes=votes)


def silent_pair(seed, n=1100):
    """One pair's conversions come half as often, and take as long."""
    rng = np.random.default_rng(seed)
    first, second = two_at_random(rng, n)
    won = rng.random(n) < MU[first, second]
    won &= (first + second != 1) | (rng.random(n) < 0.5)
    return heard_of(first, second, won, rng.geometric(0.05, size=n))


def slower(seed, n=1100, votes=False):
    rng = np.random.default_rng(seed)
    first, second = two_at_random(rng, n)
    won = rng.random(n) < MU[first, second]
    delay = rng.geometric(np.where(np.arange(n) < n / 2, 0.05, 0.025))
    return heard_of(first, second, won, delay, votes=votes)


def more_silent(seed, n=1100):
    rng = np.random.default_rng(seed)
    first, second = two_at_random(rng, n)
    won = rng.random(n) < MU[first, second]
    won &= rng.random(n) < np.where(np.arange(n) < n / 2, 1.0, 0.7)
    return heard_of(first, second, won, rng.geometric(0.05, size=n))


def test_a_drift_is_told_by_what_has_changed():
    quieter, slow = law_drift(more_silent(0, n=4000)), law_drift(slower(0, n=4000))
    assert quieter.is_alarm and "the share heard went from" in quieter.sentence
    assert slow.is_alarm and "the median delay went from" in slow.sentence


def changed_mind(seed, n=1100, votes=False):
    rng = np.random.default_rng(seed)
    first, second = two_at_random(rng, n, 2)
    mu = np.where((first == 0) == (np.arange(n) < n / 2), 0.6, 0.4)
    return heard_of(
        first, second, rng.random(n) < mu, rng.geometric(0.05, size=n), votes=votes, n_arms=2
    )


def again(seed, n=850, votes=False, times=2):
    """Visitors of fixed taste answer a pair several times in a row."""
    rng = np.random.default_rng(seed)
    first, second = two_at_random(rng, n, 2)
    likes = np.repeat(rng.integers(2, size=n // times + 1), times)[:n]
    return heard_of(
        first, second, likes == first, rng.geometric(0.05, size=n), votes=votes, n_arms=2
    )


POWER = {
    "again": (independence, again),
    "again in votes": (independence, functools.partial(again, n=450, votes=True)),
    "lopsided": (order_balance, lopsided),
    "bonus in votes": (position_effect, with_bonus),
    "bonus in conversions": (position_effect, functools.partial(with_bonus, votes=False)),
    "slow winner": (delay_by_winner, slow_winner),
    "slow winner in votes": (delay_by_winner, functools.partial(slow_winner, n=620, votes=True)),
    "slow pair": (delay_by_pair, slow_pair),
    "slow pair in votes": (delay_by_pair, functools.partial(slow_pair, n=550, votes=True)),
    "silent pair": (delay_by_pair, silent_pair),
    "slower": (law_drift, slower),
    "slower in votes": (law_drift, functools.partial(slower, n=550, votes=True)),
    "more silent": (law_drift, more_silent),
    "changed mind": (preference_drift, changed_mind),
    "changed mind in votes": (preference_drift, functools.partial(changed_mind, n=550, votes=True)),
}


@pytest.mark.compiled
@pytest.mark.parametrize("case", POWER)
def test_the_power_is_what_the_docstrings_say(case):
    test, world = POWER[case]
    power = np.mean([test(world(seed)).is_alarm for seed in range(200)])
    print(f"\npower: {test.__name__}, {case}: {100 * power:.1f} %")
    assert power > 0.9


@pytest.mark.compiled
@pytest.mark.parametrize(
    "test, world",
    [
        (preference_drift, more_silent),
        (preference_drift, slower),
        (law_drift, changed_mind),
        (delay_by_pair, changed_mind),
        (delay_by_pair, slower),
        (delay_by_winner, slower),
        (delay_by_winner, slow_pair),
        (law_drift, slow_pair),
        (law_drift, functools.partial(slow_winner, votes=True)),
    ],
)
def test_one_fault_does_not_alarm_the_test_of_another(test, world):
    alarms, _ = count(test, [world(seed) for seed in range(200)])
    assert alarms < 200 * (0.05 + 4 * math.sqrt(0.05 * 0.95 / 200))


def votes(first, second, first_won, delay=None, **more):
    """All answered at once, or as given."""
    n = len(first)
    delay = np.ones(n) if delay is None else delay
    given = {"n_arms": 2, "feedback": "votes", "order": "coin"} | more
    return History(first=first, second=second, delay=delay, first_won=first_won, **given)


def test_order_balance_by_hand():
    first = np.tile([0, 0, 1, 0, 1], 20)  # 30 of 50 in either half
    found = order_balance(votes(first, 1 - first, np.ones(100)))
    assert found.statistic == pytest.approx((60 - 40) ** 2 / 100)
    assert found.p_value == pytest.approx(2 * scipy.stats.chi2.sf(4, 1))
    assert found.n == 100 and not found.is_alarm
    found = order_balance(votes(first, 1 - first, np.ones(100)), level=0.1)
    assert found.sentence.startswith("Arm 0 is shown first in 60% of its duels. If the order")
    by_design = order_balance(votes(first, 1 - first, np.ones(100), order="champion"), level=0.1)
    assert "by design: this policy shows its champion first" in by_design.sentence


def test_an_order_that_is_even_at_the_end_alone_is_noticed():
    """First one order, then the other: the first place is one arm's, half of the time."""
    first = np.repeat([0, 1], 50)
    found = order_balance(votes(first, 1 - first, np.ones(100)))
    assert found.statistic == pytest.approx(100) and found.is_alarm
    assert found.p_value == pytest.approx(2 * scipy.stats.chi2.sf(100, 2))
    assert found.sentence.startswith(
        "Arm 0 is shown first in 100% of its duels with 1 in the first"
    )


def test_pairs_that_are_shown_in_one_order_are_noticed_though_all_arms_are_first_as_often():
    first = np.arange(300) % 3
    found = order_balance(votes(first, (first + 1) % 3, np.ones(300), n_arms=3))
    assert found.is_alarm and "100% of its duels with" in found.sentence


def test_the_order_of_self_duels_says_nothing():
    found = order_balance(votes(np.zeros(50, int), np.zeros(50, int), np.ones(50)))
    assert math.isnan(found.p_value) and found.n == 0
    assert str(found) == "order balance: Needs 20 duels of two arms, has 0."


def test_an_alternating_order_is_more_even_than_a_coin():
    first = np.arange(100) % 2
    found = order_balance(votes(first, 1 - first, np.ones(100), order="alternate"))
    assert found.p_value == 1.0 and found.sentence == "No sign of a lopsided order."


def test_a_position_effect_in_votes_by_hand():
    first = np.arange(110) % 2
    won = np.repeat([1.0, 0.0, 0.5], [60, 40, 10])  # ties are left out
    found = position_effect(votes(first, 1 - first, won))
    assert found.statistic == pytest.approx(2.0) and found.n == 100
    assert found.p_value == pytest.approx(2 * scipy.stats.norm.sf(2))
    assert found.sentence.startswith("Being shown first helps: the first arm won 60% of 100 votes")
    assert str(found).startswith("position effect (p = 0.046, n = 100): Being")
    hurt = position_effect(votes(first, 1 - first, 1 - won))
    assert hurt.statistic == -found.statistic and "hurts" in hurt.sentence
    assert "No sign" in position_effect(votes(first, 1 - first, won), level=0.01).sentence


def test_under_another_order_only_self_duels_tell_a_position_effect():
    first, won = np.zeros(60, int), np.repeat([1.0, 0.0], 30)
    second = np.repeat([1, 0], [50, 10])
    found = position_effect(votes(first, second, won, order="champion"))
    assert found.sentence == "Needs 20 votes on self-duels, as the order is not a coin's, has 10."
    found = position_effect(votes(first, np.repeat([1, 0], 30), won, order="champion"))
    assert found.n == 30 and "hurts" in found.sentence
    unknown = position_effect(votes(first, second, won, order=None))  # looks like no coin
    assert unknown.n == 10 and math.isnan(unknown.p_value)


def conversions(n, n_heard, **more):
    first, heard = np.arange(n + 1) % 2, np.arange(n + 1) < n_heard  # the last is too young
    one = np.where(heard, 1.0, NAN)
    return History(n_arms=2, first=first, second=1 - first, delay=one, first_won=one, **more)


def test_conversions_tell_a_position_effect_only_beyond_one_half():
    assert "cannot tell" in position_effect(conversions(100, 50)).sentence
    found = position_effect(conversions(100, 60))
    assert found.statistic == pytest.approx(2.0)
    assert found.p_value == pytest.approx(scipy.stats.norm.sf(2))
    assert found.is_alarm and "60 of 100 duels converted" in found.sentence
    found = position_effect(conversions(100, 52))
    assert not found.is_alarm and found.sentence.startswith("No sign")


def test_delay_by_winner_is_a_test_of_two_groups_within_a_pair():
    rng = np.random.default_rng(0)
    n = 200
    first, won, delay = rng.integers(2, size=n), rng.integers(2, size=n), rng.integers(1, 9, size=n)
    first[:], won[-8:] = 0, 0.5
    history = votes(
        first, 1 - first, won.astype(float), delay=np.minimum(delay, np.arange(n, 0, -1))
    )
    old, heard, age = cut(history)
    found, used = delay_by_winner(history), heard & (won != 0.5)
    r = np.corrcoef(delay_scores(history.delay[used]), won[used])[0, 1]
    assert found.statistic == pytest.approx((used.sum() - 1) * r**2)
    assert found.p_value == pytest.approx(scipy.stats.chi2.sf(found.statistic, 1))
    assert found.n == used.sum() and found.sentence.startswith("No sign of it")
    assert age == 8 and old.sum() == n - 8


def test_preference_drift_is_a_correlation_with_the_half():
    won = np.repeat([1.0, 0.0, 1.0, 0.0, 0.5], [15, 35, 30, 20, 1])  # 30 %, 60 %; one too young
    first = np.zeros(101, int)
    found = preference_drift(votes(first, first + 1, won))
    r = np.corrcoef(np.arange(100) >= 50, won[:100])[0, 1]
    assert found.statistic == pytest.approx(99 * r**2) and found.n == 100
    assert found.is_alarm and "arm 0 gains most" in found.sentence
    turned = preference_drift(votes(first, first + 1, 1 - won))
    assert turned.statistic == pytest.approx(found.statistic)
    assert "arm 0 loses most" in turned.sentence


def test_the_weights_of_conversions_cancel_a_drift_of_the_law():
    """Both orders lose half of their conversions: nothing is said of preferences."""
    first = np.arange(2000) % 2
    share = np.where(np.arange(2000) < 1000, 1.0, 0.5) * np.where(first == 0, 0.8, 0.2)
    heard = (np.arange(2000) // 2 % 100) < 100 * share
    one = np.where(heard, 1.0, NAN)
    history = History(
        n_arms=2, first=first, second=1 - first, delay=one, first_won=one, order="alternate"
    )
    assert preference_drift(history).statistic < 0.01
    assert law_drift(history).p_value < 1e-9


def test_the_sentences_of_what_is_found():
    found = delay_by_winner(slow_winner(0, times=4))
    assert "for arm 1, " in found.sentence and found.is_alarm
    found = delay_by_pair(slow_pair(0, times=4))
    assert "ticks for the pair 0 and 1, " in found.sentence and found.is_alarm
    found = law_drift(slower(0))
    assert "The delay law changes: by age 88 the median delay went from 14 to 24" in found.sentence
    found = preference_drift(changed_mind(0))
    assert "arm 0 loses most" in found.sentence and "start anew" in found.sentence
    by_champion = copy.copy(changed_mind(0))
    object.__setattr__(by_champion, "order", "champion")
    assert "Or fewer answers come" in preference_drift(by_champion).sentence
    one, repeated = copy.copy(changed_mind(0)), copy.copy(again(0))
    for history in (one, repeated):
        object.__setattr__(history, "display", "one")
    for found in (preference_drift(one), independence(repeated)):
        assert found.is_alarm and "lost for a time" in found.sentence
        assert "standing" not in found.sentence and "pair" not in found.sentence


def test_pairs_with_few_answers_are_taken_as_one():
    rng = np.random.default_rng(2)
    first, rare = np.zeros(400, int), np.arange(400) % 4 == 0
    second = np.where(rare, rng.integers(2, 9, size=400), 1)
    delay = np.where(rare, 9, rng.integers(1, 4, size=400))
    delay[-9:] = 1
    found = delay_by_pair(votes(first, second, np.ones(400), delay=delay, n_arms=9))
    assert found.is_alarm
    assert "a median of 9 ticks for the others, 2 for the pair 0 and 1" in found.sentence


OF_ANSWERS = [test for test in TESTS if test is not order_balance]


@pytest.mark.parametrize("test", OF_ANSWERS, ids=lambda test: test.__name__)
def test_too_little_is_said_to_be_too_little(test):
    empty = History(n_arms=2, first=[], second=[], delay=[], first_won=[])
    few = votes([0, 1], [1, 0], [1.0, 0.0])
    for history in (empty, few):
        found = test(history)
        assert math.isnan(found.p_value) and math.isnan(found.statistic) and not found.is_alarm
        if test is position_effect and history is empty:  # of conversions
            assert "cannot tell" in found.sentence
        else:
            assert found.sentence.startswith("Needs 20 ")


def test_where_nothing_varies_nothing_is_compared():
    alike = votes(np.zeros(50, int), np.ones(50, int), np.ones(50))
    for test in (delay_by_winner, delay_by_pair, law_drift, preference_drift):
        assert "here is nothing to compare" in test(alike).sentence


def test_all_tests_share_the_level():
    found = check_assumptions(slower(0))
    assert [f.name for f in found if f.is_alarm] == ["law drift"]
    assert len(found) == len(TESTS)
    alarms = [f.name for f in check_assumptions(slower(0), level=1e-9) if f.is_alarm]
    assert alarms == []
    with pytest.raises(ValueError, match=r"level must"):
        check_assumptions(slower(0), level=5)


@pytest.mark.parametrize("df", [1, 2, 3, 8, 15, 120, 301])
def test_the_tail_of_chi_squared(df):
    for x in (0.0, 0.5, float(df), 2.0 * df + 9, 3000.0):
        assert tail(x, df) == pytest.approx(scipy.stats.chi2.sf(x, df), rel=1e-9)


def test_ranks_are_shared():
    values = np.array([3.0, 1.0, 3.0, 2.0])
    assert ranks(values).tolist() == scipy.stats.rankdata(values).tolist()


def test_a_players_history():
    player = duelay.DoubleThompson(window=3).start(3, seed=0)
    duels = [player.ask() for _ in range(3)]
    assert player.tell(duels[2]) == "counted" and player.tell(duels[0]) == "counted"
    duels.append(player.ask())
    assert player.tell(duels[0]) == "repeated"  # its first telling stays
    player.ask()
    assert player.tell(duels[1]) == "late"
    for one in (player, pickle.loads(pickle.dumps(player)), copy.copy(player)):
        history = one.history()
        np.testing.assert_equal(history.delay, [3, NAN, 1, NAN, NAN])
        np.testing.assert_equal(history.first_won, [1, NAN, 1, NAN, NAN])
        assert history.first[:4].tolist() == [duel.first for duel in duels]
        assert history.second[:4].tolist() == [duel.second for duel in duels]
        assert (history.n, history.window, history.order) == (5, 3, "coin")
        assert history.feedback == "conversions" and history.ages.tolist() == [5, 4, 3, 2, 1]
    aside = copy.copy(player)
    aside.tell(aside.ask())
    assert player.history().n == 5


def test_a_policy_of_ones_own_need_not_say_its_order():
    player = duelay.MRRDBDelay(schedule=(20, 80)).start(3, seed=0)
    player.tell(player.ask())
    assert player.history().order is None and player.history().delay.tolist() == [1.0]


def test_a_history_needs_to_know_which_duel_was_heard():
    player = duelay.MRRDBDelay(schedule=(20, 80), feedback="counts").start(3)
    with pytest.raises(ValueError, match="history does"):
        player.history()


@pytest.mark.parametrize(
    "wrong, message",
    [
        ({"n_arms": 1}, "n_arms"),
        ({"first": [0, 2]}, "first must"),
        ({"second": [0.5, 1.0]}, "second must"),
        ({"delay": [1.0]}, r"must be rows of one number a duel, got the shapes \[\(1,\), \(2,\)\]"),
        ({"delay": [NAN, 1.0]}, "delay and first_won must be nan for the same duels"),
        ({"delay": [3.0, NAN]}, "duel 0 may have at most 2, got 3"),
        ({"delay": [2.0, NAN], "window": 1}, "duel 0 may have at most 1, got 2"),
        ({"delay": [0.0, NAN]}, "delay must"),
        ({"first_won": [0.0, NAN]}, "first_won"),
        ({"first_won": [1.2, NAN], "feedback": "votes"}, "first_won"),
        ({"feedback": "vote"}, "feedback"),
        ({"order": "toss"}, "order must"),
        ({"window": 0}, "window must"),
        ({"arms": ("a", "b", "c")}, "arms must"),
        ({"arms": ("a", "a")}, "arms must"),
    ],
)
def test_a_wrong_history_is_refused(wrong, message):
    right = {"n_arms": 2, "first": [0, 1], "second": [1, 0]}
    right |= {"delay": [1.0, NAN], "first_won": [1.0, NAN]}
    History(**right)
    with pytest.raises(ValueError, match=message):
        History(**right | wrong)
