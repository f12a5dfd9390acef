"""What the simulator does faster than the definitions, against the plain way."""

import functools

import numpy as np
import pytest
from scipy import stats

import duelay
from duelay import delays
from duelay.engine import loop, streams
from duelay.engine.bulk import draw_duels, nothing_late, run_rounds
from duelay.engine.tick import new_tally
from duelay.engine.world import make_world
from duelay.problems import arithmetic, bradley_terry, close_rival
from duelay.testing.yardsticks import PlainDoubleThompson, PlainRUCBDelay
from helpers import Rows

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
    tally = new_tally(problem.gaps, np.array([horizon // 3, horizon // 2, horizon]), True)
    for t in [*range(step, horizon, step), horizon]:
        loop.run(rule, ledger, policy.counts_only, world, tally, t, world_rng, policy_rng)
    return tally.regret, tally.pairs, world_rng.random(), policy_rng.random()


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

    monkeypatch.setattr(loop, "pick", pick)
    monkeypatch.setattr(loop, "calm_until", lambda rule, ledger, arm, t: 5)
    problem = duelay.Problem([[0.5, 1.0], [0.0, 0.5]])
    world = make_world(problem, delays.Constant(4), 4, 100)
    ledger = duelay.RUCB().ledger(2)
    tally = new_tally(problem.gaps, np.array([100]))
    rng = np.random.default_rng(2)
    assert rng.random() < 0.5  # the self-duel of tick 1 converts, at tick 5
    loop.run(None, ledger, False, world, tally, 13, np.random.default_rng(2), rng)
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


@pytest.mark.compiled
@pytest.mark.parametrize("pairs", ["unordered", "ordered"])
@pytest.mark.parametrize("law", range(3))
@pytest.mark.parametrize("problem", range(3))
def test_rounds_in_bulk_have_the_law_of_duel_by_duel(problem, law, pairs):
    """A few rounds, one and then turns to the horizon, and a first round that never ends.

    Each of these schedules meets every problem, every law and both kinds of pairs.
    """
    schedule = [(20, 60, 200), (30,), None][(problem + law) % 3]
    problem, law = PROBLEMS[problem], [*LAWS, delays.Zipf(1.2, 300)][law]
    policy = duelay.MRRDBDelay(schedule=schedule, pairs=pairs)
    fast, plain = (
        duelay.simulate(
            problem, policy, delay=law, horizon=2500, runs=200, seed=seed, checkpoints=[700, 2500],
            setting=duelay.Setting(bulk=bulk, pairs=True, is_cautious=False),
        )
        for bulk, seed in ((True, 1), (False, 2))
    )  # fmt: skip
    assert_same_law(fast, plain)
    assert (fast.plays.sum(axis=(1, 2)) == 2500).all()
    assert fast.pairs.sum(axis=(1, 2)).tolist() == [200 * 700, 200 * 2500]
    assert stats.ks_2samp(fast.regret[:, 0], plain.regret[:, 0], method="asymp").pvalue > 0.0005
    led = [np.bincount(result.leader, minlength=problem.n_arms) for result in (fast, plain)]
    assert stats.chi2_contingency(np.array(led) + 0.5).pvalue > 0.0005


CERTAIN = duelay.Problem(  # the best is arm 2, then 0, 3 and 1
    [[0.5, 1.0, 0.0, 1.0], [0.0, 0.5, 0.0, 0.0], [1.0, 1.0, 0.5, 1.0], [0.0, 1.0, 0.0, 0.5]]
)


def rounds(policy, delay, horizon, in_bulk):
    """Return what a run leaves behind: counts of two arms, regrets, plays and active arms."""
    rule, ledger, rngs = policy.rule(4), policy.ledger(4), streams(0, 0)
    world = make_world(CERTAIN, delays.Constant(delay), None, horizon)
    tally = new_tally(CERTAIN.gaps, np.unique([1, horizon // 3, horizon // 2, horizon]), True)
    if in_bulk:
        run_rounds(rule, ledger, world, nothing_late(world), tally, horizon, *rngs)
        assert not np.diag(ledger.conversions).any()  # self-duels are not drawn
    else:
        loop.run(rule, ledger, False, world, tally, horizon, *rngs)
    told = ledger.conversions[~np.eye(4, dtype=bool)]
    return told, ledger.plays, tally.regret, tally.pairs, tally.shown, rule.active, rule.round


@pytest.mark.interpreted
@pytest.mark.parametrize("pairs", ["unordered", "ordered"])
@pytest.mark.parametrize("delay", [1, 4, 9, 33])
@pytest.mark.parametrize("schedule", [(4, 9, 20, 31), (3, 10), (1, 9), (30,), (5,)], ids=str)
def test_rounds_in_bulk_are_duel_by_duel_where_chance_decides_nothing(schedule, delay, pairs):
    """Horizons end within a round, within a turn of the last one, and with one arm left."""
    for horizon in (5, 40, 41, 77, 203, 350):
        policy = duelay.MRRDBDelay(schedule=schedule, pairs=pairs, horizon=horizon)
        fast, slow = (rounds(policy, delay, horizon, in_bulk) for in_bulk in (True, False))
        for one, other in zip(fast, slow, strict=True):
            assert np.array_equal(one, other)


@pytest.mark.parametrize("step, look", [(1, 12), (1, 14), (3, 21), (3, 30)])
def test_answers_drawn_in_bulk_come_when_their_law_says(step, look):
    """The mean number heard by `look`, and at each tick after it; what never comes is not kept."""
    law, n, reps = delays.Never(0.2, delays.Uniform(2, 9)), 5, 3000
    problem = arithmetic(3, 0.1)
    world, rng = make_world(problem, law, None, 1000), np.random.default_rng(4)
    heard = np.zeros((reps, 50))  # by the tick at which it is heard
    for row in heard:
        late = nothing_late(world)
        row[look] = draw_duels(world, late, 0, 2, 8, step, n, look, rng)
        np.add.at(row, late.due[: late.kept[0]], 1)
        assert (late.first[: late.kept[0]] == 0).all() and late.kept[0] <= n
        assert (late.second[: late.kept[0]] == 2).all()
    born = 8 + step * np.arange(n)
    by = [problem.matrix[0, 2] * law.cdf(np.maximum(tick - born, 0)).sum() for tick in range(50)]
    by[:look] = np.zeros(look)
    mean, error = heard.mean(axis=0), heard.std(axis=0) / reps**0.5
    assert (np.abs(mean - np.diff(by, prepend=0)) <= 4 * error + 1e-9).all()
    never = make_world(problem, delays.Never(1.0, law), None, 1000)
    assert draw_duels(never, nothing_late(never), 0, 2, 8, step, n, look, rng) == 0


@pytest.mark.compiled
def test_conversions_drawn_in_bulk_have_the_mean_of_their_law():
    """Heard by a tick: sum of mu tau(tick - born), and so are those that come later."""
    law = delays.Never(0.2, delays.Uniform(1, 60))
    problem = arithmetic(3, 0.1)
    world = make_world(problem, law, None, 1000)
    rng = np.random.default_rng(0)
    heard, after = [], []
    for _ in range(4000):
        late = nothing_late(world)
        heard.append(draw_duels(world, late, 0, 2, 11, 2, 50, 115, rng))
        due = late.due[: late.kept[0]]
        assert (due > 115).all()
        after.append(np.sum(due <= 130))
    born = 11 + 2 * np.arange(50)
    by = [problem.matrix[0, 2] * law.cdf(tick - born).sum() for tick in (115, 130)]
    assert np.mean(heard) == pytest.approx(by[0], abs=4 * np.std(heard) / 4000**0.5)
    assert np.mean(after) == pytest.approx(by[1] - by[0], abs=4 * np.std(after) / 4000**0.5)


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
