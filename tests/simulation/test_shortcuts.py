"""What the simulator does faster than the definitions, against the plain way."""

import functools

import numpy as np
import pytest
from scipy import stats

import duelay
from duelay import delays
from duelay.problems import arithmetic, bradley_terry, close_rival
from duelay.simulation import streams
from duelay.simulation.loops import ticks
from duelay.simulation.loops.recorder import new_recorder
from duelay.simulation.world import make_world
from helpers import Rows
from yardsticks import PlainDoubleThompson, PlainRUCBDelay

PROBLEMS = [arithmetic(4, 0.1), bradley_terry([6, 3, 2, 2, 1, 1]), close_rival(8, 0.1, 0.3)]
LAWS = [delays.Geometric(0.05), delays.Never(0.3, delays.Uniform(1, 40))]
CALM = [
    duelay.RUCBDelay(delay=delays.Geometric(0.2), window=30, alpha=0.51),
    duelay.RUCBDelay(delay=delays.Geometric(0.2), window=None, alpha=0.51),
    duelay.RUCBDelay(delay=delays.Uniform(1, 9), window=30, alpha=0.51, order="coin"),
    duelay.RUCB(),
    duelay.RUCB(counting="conversions"),
    duelay.RRDBDelay(delay=delays.Geometric(0.2), window=30, delta=0.5),
    duelay.Borda(delay=delays.Geometric(0.2), window=30, delta=0.5),
    duelay.Borda(delay="learn", window=30, delta=0.5),
    duelay.DoubleThompson(window=30),
    duelay.DoubleThompson(delay="learn", window=30),
    duelay.DoubleThompson(delay=delays.Geometric(0.2), window=30),
    duelay.MaillardSampling(window=30),
    duelay.MaillardSampling(delay=None, window=30),
    duelay.MaillardSampling(delay=delays.Geometric(0.2), window=30),
    Rows(window=30),
    Rows(delay="learn", window=30),
    duelay.MRRDBDelay(schedule=(20, 60, 200)),
    duelay.MRRDBDelay(schedule=(20, 60, 200), feedback="counts"),
]


def play(policy, problem, law, horizon, step):
    """Return regrets, plays and conversions of a run, `step` ticks a call."""
    world_rng, policy_rng = streams(3, 0)
    world = make_world(problem, law, policy.window, horizon)
    rule, ledger = policy.rule(problem.n_arms), policy.ledger(problem.n_arms)
    recorder = new_recorder(problem.gaps, np.array([horizon // 3, horizon // 2, horizon]), True)
    for t in [*range(step, horizon, step), horizon]:
        ticks.run_ticks(rule, ledger, policy.counts_only, world, recorder, t, world_rng, policy_rng)
    return recorder.regret, recorder.pairs, world_rng.random(), policy_rng.random()


@pytest.mark.long
@pytest.mark.interpreted
@pytest.mark.parametrize("law", [delays.Geometric(0.2), delays.Never(0.2, delays.Constant(3))])
@pytest.mark.parametrize("policy", CALM, ids=str)
def test_ticks_that_pass_unlooked_at_change_nothing(policy, law):
    """One tick a call, every tick is looked at; in one call, calm ones are not."""
    problem = arithmetic(3, 0.2)
    policy = policy.for_horizon(3000)
    fast, slow = (play(policy, problem, law, 3000, step) for step in (3000, 1))
    for one, other in zip(fast, slow, strict=True):
        assert np.array_equal(one, other)


@pytest.mark.interpreted
def test_answers_to_self_duels_leave_the_queue_in_a_calm(monkeypatch):
    """The queue has room for four answers, and duels 6 to 9 need it all."""

    def pick(rule, ledger, t, rng):
        return (0, 0) if t <= 5 else (0, 1)

    monkeypatch.setattr(ticks, "pick", pick)
    monkeypatch.setattr(ticks, "calm_until", lambda rule, ledger, arm, t: 5)
    problem = duelay.Problem([[0.5, 1.0], [0.0, 0.5]])
    world = make_world(problem, delays.Constant(4), 4, 100)
    ledger = duelay.RUCB().ledger(2)
    recorder = new_recorder(problem.gaps, np.array([100]))
    rng = np.random.default_rng(2)
    assert rng.random() < 0.5  # the self-duel of tick 1 converts, at tick 5
    ticks.run_ticks(None, ledger, False, world, recorder, 13, np.random.default_rng(2), rng)
    assert ledger.conversions.tolist() == [[1, 4], [0, 0]]
    assert world.waiting[0] == 4


@pytest.mark.long
@pytest.mark.parametrize(
    "problem",
    [PROBLEMS[0], *(pytest.param(one, marks=pytest.mark.compiled) for one in PROBLEMS[1:])],
    ids=lambda problem: problem.name,
)
@pytest.mark.parametrize("order", ["champion", "coin"])
def test_rucb_is_the_plain_loop_duel_for_duel(problem, order):
    law = delays.Geometric(0.05)
    made = [
        duelay.simulate(
            problem, kind(delay=law, window=100, order=order), delay=law, horizon=2000, runs=3
        )
        for kind in (duelay.RUCBDelay, PlainRUCBDelay)
    ]
    assert np.array_equal(made[0].plays, made[1].plays)
    assert np.array_equal(made[0].regret, made[1].regret)


@pytest.mark.compiled
@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda p: p.name)
@pytest.mark.parametrize("told", [None, "learn"])
@pytest.mark.parametrize("kind", [duelay.DoubleThompson, Rows])
def test_double_thompson_has_the_law_of_the_plain_loop(problem, law, told, kind):
    """Kolmogorov-Smirnov over 200 runs each: regret, and how often each pair was played."""
    assert_same_law(by_thompson(kind, told, problem, law, 1),
                    by_thompson(PlainDoubleThompson, told, problem, law, 2))  # fmt: skip


@functools.cache  # the plain loop is the yardstick of both kinds
def by_thompson(kind, told, problem, law, seed):
    policy = kind(delay=told, window=100)
    return duelay.simulate(problem, policy, delay=law, horizon=3000, runs=200, seed=seed)


def assert_same_law(one, other):
    """Kolmogorov-Smirnov: regret, and how often each pair was played."""
    values = [(one.final, other.final)]
    k = one.problem.n_arms
    for i in range(k):
        for j in range(i, k):
            values.append(
                tuple((r.plays[:, i, j] + r.plays[:, j, i]).astype(float) for r in (one, other))
            )
    least = min(stats.ks_2samp(*pair, method="asymp").pvalue for pair in values)
    assert least * len(values) > 0.001  # Bonferroni: one in a thousand by chance


@pytest.mark.parametrize("law", [delays.Geometric(0.01), delays.Zipf(1.2, 5000)], ids=str)
def test_with_a_window_memory_does_not_depend_on_the_horizon(law):
    def size(thing):
        if isinstance(thing, tuple):
            return sum(size(part) for part in thing)
        return getattr(thing, "nbytes", 0)

    problem = arithmetic(4, 0.1)
    for policy in (
        duelay.RUCBDelay(delay=law, window=1000),
        duelay.recommend(window=1000).policy,
        duelay.RMED(window=1000),
    ):
        held = [
            size(make_world(problem, law, policy.window, horizon))
            + size(policy.for_horizon(horizon).ledger(4))
            + size(policy.for_horizon(horizon).rule(4))
            for horizon in (10**4, 10**9)
        ]
        assert held[0] == held[1] < 300_000
