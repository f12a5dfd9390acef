import inspect
import itertools
import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import entropy

import duelay
from duelay import delays, theory
from duelay.problems import arithmetic

SIX = duelay.datasets.load("six-rankers")
TENNIS = duelay.datasets.load("tennis")
LAW = delays.Geometric(0.01)
PAPER = {"delay": LAW, "window": 1000, "horizon": 200_000}


def test_the_radius_of_lemma_1():
    assert theory.radius(100, 60.0, 50, alpha=2.0) == pytest.approx(
        math.sqrt(2.0 * 100 * math.log(50) / 60.0**2)
    )
    assert theory.radius([4, 4], [2.0, 0.0], 9)[1] == math.inf
    assert theory.coverage(10, alpha=1.0) == pytest.approx(0.98)
    assert theory.coverage(1) == 0


def test_c_of_delta_solves_lemma_2s_last_line():
    """(M + 1)(4 alpha - 1) K (K - 1) / ((2 alpha - 1) T^(2 alpha - 1)) = delta at T = C(delta)."""
    for alpha, delta, k, window in itertools.product((0.6, 1.0, 2.5), (0.01, 0.5), (2, 6), (1, 99)):
        c = theory.burn_in(delta, n_arms=k, window=window, alpha=alpha)
        left = (window + 1) * (4 * alpha - 1) * k * (k - 1)
        assert left / ((2 * alpha - 1) * c ** (2 * alpha - 1)) == pytest.approx(delta)
    assert theory.burn_in(0.1, n_arms=5, window=9, alpha=0.5) == math.inf
    assert theory.burn_in(1e-9, n_arms=200, window=10**6, alpha=0.501) == math.inf


def test_what_a_duel_tells_by_champion_and_by_coin():
    for mu, tau in itertools.product((0.1, 0.45, 0.5, 0.8), (0.2, 0.7, 1.0)):
        ways = [entropy([p * tau, 1 - p * tau], [tau / 2, 1 - tau / 2]) for p in (mu, 1 - mu)]
        assert theory.information(mu, tau) == pytest.approx(max(ways))
        assert theory.information(mu, tau, "coin") == pytest.approx(np.mean(ways))
    with pytest.raises(ValueError, match="order must"):
        theory.information(0.4, 0.5, "alternate")


@pytest.mark.compiled
def test_a_ledger_by_coin_shows_the_shrunken_mean():
    """Fact 1, by simulation: pairs chosen without looking, nothing assumed about the delay."""
    from dataclasses import dataclass

    from duelay.ledger import assume, open_ledger

    @dataclass(frozen=True)
    class Blind(duelay.Policy):
        def choose(self, ledger, t, rng):
            return (0, 1) if rng.random() < 0.5 else (1, 0)

        def ledger(self, n_arms):
            return open_ledger(assume(None, None, n_arms), n_arms)

    problem = duelay.Problem([[0.5, 0.7], [0.3, 0.5]])
    law = delays.Never(0.2, delays.Geometric(0.02))
    n, runs = 60, 1500
    result = duelay.simulate(problem, Blind(), delay=law, horizon=n, runs=1, seed=1)
    assert result.plays.sum() == n
    from duelay.simulation import streams
    from duelay.simulation.loops.plain_python import play_player
    from duelay.simulation.loops.recorder import new_recorder
    from duelay.simulation.world import make_world

    means = []
    for run in range(runs):
        world_rng, policy_rng = streams(2, run)
        player = Blind().start(2, policy_rng)
        world = make_world(problem, law, None, n)
        recorder, plays = (
            new_recorder(problem.gaps, np.array([n])),
            np.zeros((2, 2), dtype=np.int64),
        )
        play_player(player, False, world, recorder, plays, n, world_rng, [])
        means.append(player.standing().mean[0, 1])
    # The standing is of tick n + 1 before its conversions are told: ages n .. 1, heard by then - 1.
    ages = np.arange(n)
    expected = np.mean([theory.coin_mean(0.7, law.cdf(age)) for age in ages])
    error = np.std(means, ddof=1) / math.sqrt(runs)
    assert abs(np.mean(means) - expected) <= 4 * error


def slow_d(problem, alpha, share):
    total = 0.0
    for i, j in itertools.combinations(range(problem.n_arms), 2):
        gaps = [problem.gaps[arm] for arm in (i, j) if arm != problem.winner]
        total += 4 * alpha / (share**2 * min(gaps) ** 2)
    return total


def slow_high_probability(problem, alpha, share, delta, window, horizon):
    k, most = problem.n_arms, max(problem.gaps)
    d = slow_d(problem, alpha, share)
    c = theory.burn_in(delta / 2, n_arms=k, window=window, alpha=alpha)
    total = (2 * c + 2 * d * math.log(2 * d)) * most + 4 * most * math.log(2 / delta)
    for j in range(k):
        if j != problem.winner:
            gap = problem.gaps[j]
            total += 2 * alpha * math.log(horizon) / (share**2 * gap)
            total += 8 * alpha * most * math.log(horizon) / (share**2 * gap**2)
    return total


@pytest.mark.parametrize("problem", [SIX, TENNIS], ids=["six", "tennis"])
@pytest.mark.parametrize("discount", ["first", "window"])
def test_theorem_1_term_by_term(problem, discount):
    share = 0.01 if discount == "first" else LAW.cdf(1000) / 1001
    bound = theory.high_probability_bound(
        problem, **PAPER, delta=0.05, alpha=1.3, discount=discount
    )
    slow = slow_high_probability(problem, 1.3, share, 0.05, 1000, 200_000)
    assert bound == pytest.approx(slow)


@pytest.mark.parametrize("share", [0.01, 1.0])
def test_theorem_2_integrates_theorem_1(share):
    """Over delta, but for 4 (log 2 + 1) < 8, which the paper rounds up.

    Without delay the burn-in is large enough to be seen beside D.
    """
    alpha, told = 1.7, PAPER | {"delay": delays.Geometric(share)}
    integral, _ = quad(
        lambda delta: slow_high_probability(SIX, alpha, share, delta, 1000, 200_000),
        0, 1, limit=500,
    )  # fmt: skip
    slack = (8 - 4 * (math.log(2) + 1)) * max(SIX.gaps)
    assert theory.expected_bound(SIX, **told, alpha=alpha) == pytest.approx(
        integral + slack, rel=1e-6
    )


def test_alpha_is_1_where_nothing_is_said():
    law = {"delay": LAW, "window": 9}
    for formula, told in (
        (theory.radius, {"n": 100, "n_tilde": 60.0, "t": 50}),
        (theory.coverage, {"t": 10}),
        (theory.burn_in, {"delta": 0.1, "n_arms": 5, "window": 9}),
        (theory.high_probability_bound, {"problem": SIX, **PAPER, "delta": 0.05}),
        (theory.expected_bound, {"problem": SIX, **PAPER}),
        (theory.comparisons_bound, {"problem": SIX, **law, "t": 50}),
    ):
        assert np.array_equal(formula(**told), formula(**told, alpha=1.0))


def test_bounds_are_infinite_where_they_diverge():
    assert theory.expected_bound(SIX, **PAPER, alpha=1.0) == math.inf
    late = {"delay": delays.Constant(5), "window": 1000, "horizon": 1000}
    assert theory.expected_bound(SIX, **late, alpha=2.0) == math.inf
    assert theory.high_probability_bound(SIX, **late, delta=0.1) == math.inf
    assert theory.high_probability_bound(SIX, **late, delta=0.1, discount="window") < math.inf
    assert theory.mrr_bound(SIX, horizon=1000, mean_delay=math.inf) == math.inf


def test_the_replacement_of_tau_1_is_looser_here():
    first = theory.high_probability_bound(SIX, **PAPER, delta=0.05)
    window = theory.high_probability_bound(SIX, **PAPER, delta=0.05, discount="window")
    assert first == pytest.approx(1.3e9, rel=0.05)
    assert window == pytest.approx(1.5e11, rel=0.05)
    with pytest.raises(ValueError, match="discount"):
        theory.high_probability_bound(SIX, **PAPER, delta=0.05, discount="tau")


def test_the_bound_on_comparisons():
    bound = theory.comparisons_bound(TENNIS, delay=LAW, window=1000, t=5000, alpha=1.5)
    gaps, winner = TENNIS.gaps, TENNIS.winner
    for i, j in itertools.permutations(range(8), 2):
        square = min(gaps[arm] for arm in (i, j) if arm != winner) ** 2
        assert bound[i, j] == pytest.approx(4 * 1.5 * math.log(5000) / (0.01**2 * square))
    assert bound[winner, winner] == math.inf and bound[0, 0] == 0
    late = theory.comparisons_bound(TENNIS, delay=delays.Constant(7), window=9, t=50)
    assert (late[~np.eye(8, dtype=bool)] == math.inf).all() and late[0, 0] == 0
    by_pair = delays.ByPair.of(8, lambda i, j: delays.Geometric(0.5 if i else 0.25))
    slowest = theory.comparisons_bound(TENNIS, delay=by_pair, window=10, t=50)
    uniform = theory.comparisons_bound(TENNIS, delay=delays.Geometric(0.25), window=10, t=50)
    np.testing.assert_allclose(slowest, uniform)


def test_n_m_makes_lemma_3_hold():
    """The appendix's n_m is the least with Equation (10)'s right-hand side <= gamma / 2."""
    horizon, mean = 200_000, 100.0

    def right_side(n, gamma):
        log = math.log(horizon * gamma**2)
        spread = 1 / math.sqrt(2 * n) + math.sqrt(2 * mean) / n
        return 2 / (3 * n) * log + spread * math.sqrt(log) + mean / n

    schedule = theory.mrr_schedule(horizon, mean)
    assert schedule[0] == 893
    for m, n in enumerate(schedule, start=1):
        gamma = 2.0**-m
        assert right_side(n, gamma) <= gamma / 2 < right_side(n - 1, gamma)


def test_the_other_schedules():
    horizon, mean = 50_000, 30.0
    brief = theory.mrr_schedule(horizon, mean, constants=(0.5, 0.1, 0.2))
    counts = theory.mrr_schedule(horizon, mean, feedback="counts")
    for m in (1, 2, 3):
        gamma = 2.0**-m
        log = math.log(horizon * gamma**2)
        n = 0.5 * log / gamma**2 + 0.1 * math.sqrt(mean * log) / gamma + 0.2 * mean / gamma
        assert brief[m - 1] == math.ceil(n)
        root = math.sqrt(2 * log) + math.sqrt(2 * log + 8 / 3 * gamma * log + 6 * gamma * m * mean)
        assert counts[m - 1] == math.ceil(root**2 / gamma**2)
    for schedule in (brief, counts):
        assert (np.diff(schedule) > 0).all()
    assert len(theory.mrr_schedule(10, 100.0)) == 0  # T gamma_1^2 = 2.5 <= e
    assert len(theory.mrr_schedule(11, 100.0)) == 1


def test_a_schedule_ends_with_the_first_round_past_the_horizon():
    schedule = theory.mrr_schedule(50_000, 1000.0)
    assert len(schedule) > 2 and (schedule[:-1] < 50_000).all() and schedule[-1] >= 50_000
    assert 50_000 * 4.0 ** -(len(schedule) + 1) > math.e  # its logarithm allows one more


def test_theorem_3_and_the_theorem_for_counts_term_by_term():
    horizon, mean, k = 200_000, 100.0, 8
    slow = slow_counts = 0.0
    for j in range(k):
        if j != TENNIS.winner:
            gap = TENNIS.gaps[j]
            log = math.log(4 * horizon * gap**2 / 9)
            slow += 9 * k * log / gap + 4 * k * log + 6 * k * math.sqrt(2 * mean * log)
            slow += 81 / gap + 6 * k * mean + k * gap / 2
            slow_counts += 36 * k * log / gap + 8 * k * log
            slow_counts += 36 * k * math.log(3 / gap) * mean + 243 / 2 / gap + k * gap / 2
    assert theory.mrr_bound(TENNIS, horizon=horizon, mean_delay=mean) == pytest.approx(slow)
    assert theory.mrr_bound(
        TENNIS, horizon=horizon, mean_delay=mean, feedback="counts"
    ) == pytest.approx(slow_counts)
    assert theory.mrr_bound(arithmetic(3, 0.001), horizon=5, mean_delay=1.0) < math.inf


def test_the_minimax_lower_bound():
    c = math.exp(-0.5) / 128
    assert theory.minimax_lower_bound(6, 10_000, 0.25) == pytest.approx(c * math.sqrt(240_000))
    # It is below what Appendix D's last display gives at its gap, for any K.
    for k, tau in itertools.product((2, 3, 50), (1.0, 0.3)):
        horizon = 10_000
        gap = math.sqrt((k - 1) / (128 * horizon * tau))
        proof = horizon * gap / 4 * math.exp(-64 * horizon / (k - 1) * tau * gap**2) / 2
        assert theory.minimax_lower_bound(k, horizon, tau) <= proof * (1 + 1e-12)
    assert theory.minimax_lower_bound(9, 7, 0.5) == 0  # (K - 1) / (2 tau) = 8
    assert theory.minimax_lower_bound(9, 8, 0.5) > 0
    assert theory.minimax_lower_bound(5, 100, 0.0) == 0
    with pytest.raises(ValueError, match="tau_window"):
        theory.minimax_lower_bound(5, 100, 2)


def test_appendix_ds_instances():
    for k in (1, 3):
        one, two = theory.lower_bound_instances(5, 0.1, k)
        assert one.winner == 0 and two.winner == k
        np.testing.assert_allclose(np.delete(one.gaps, 0), 0.1)
        assert two.matrix[k, 0] == pytest.approx(0.6)
        others = [i for i in range(1, 5) if i != k]
        np.testing.assert_allclose(two.matrix[k, others], 0.7)
        assert (one.matrix[np.ix_(others, others)] == 0.5).all()
        same = [i for i in range(5) if i != k]
        np.testing.assert_array_equal(
            two.matrix[np.ix_(same, same)], one.matrix[np.ix_(same, same)]
        )
    one, two = theory.lower_bound_instances(2, 1 / 8)
    assert one.matrix.tolist() == [[0.5, 0.625], [0.375, 0.5]]
    assert two.matrix.tolist() == [[0.5, 0.375], [0.625, 0.5]]
    with pytest.raises(ValueError, match="n_arms"):
        theory.lower_bound_instances(1, 0.1)
    for wrong in (0, 5):
        with pytest.raises(ValueError, match="k must"):
            theory.lower_bound_instances(5, 0.1, wrong)
    with pytest.raises(ValueError, match="gap must"):
        theory.lower_bound_instances(5, 0.2)


def test_the_asymptotic_lower_bound():
    for problem in (SIX, TENNIS):
        slow = 0.0
        mu = problem.matrix
        for i in range(problem.n_arms):
            if i == problem.winner:
                continue
            ways = [
                (problem.gaps[i] + problem.gaps[j])
                / (2 * entropy([mu[i, j], 1 - mu[i, j]], [0.5, 0.5]))
                for j in range(problem.n_arms)
                if mu[i, j] < 0.5
            ]
            slow += min(ways)
        assert theory.asymptotic_lower_bound(problem, 10_000) == pytest.approx(
            slow * math.log(10_000)
        )
        whole = theory.asymptotic_lower_bound(problem, 10_000)
        for order in ("champion", "coin"):
            assert theory.asymptotic_lower_bound(
                problem, 10_000, tau_window=1.0, order=order
            ) == pytest.approx(whole)
            half = theory.asymptotic_lower_bound(problem, 10_000, tau_window=0.5, order=order)
            none = theory.asymptotic_lower_bound(problem, 10_000, tau_window=0.0, order=order)
            assert half > whole and none == math.inf
    assert theory.kl(0, 0.5) == pytest.approx(math.log(2))
    assert theory.kl(0.5, 0) == math.inf and theory.kl(0.3, 0.3) == 0


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: theory.radius(1, 1.0, 0.5), "t must"),
        (lambda: theory.coverage(0.5), "t must"),
        (lambda: theory.burn_in(0, n_arms=5, window=9), "delta"),
        (lambda: theory.burn_in(0.1, n_arms=5, window=-5), "window must"),
        (lambda: theory.burn_in(0.1, n_arms=1, window=5), "n_arms"),
        (
            lambda: theory.comparisons_bound(SIX, delay=LAW, window=9, t=9, alpha=0.3),
            "alpha",
        ),
        (
            lambda: theory.high_probability_bound(SIX, **PAPER, delta=5),
            "delta",
        ),
        (
            lambda: theory.high_probability_bound(SIX, **PAPER, delta=0.1, alpha=0.6),
            "alpha",
        ),
        (
            lambda: theory.expected_bound(SIX, delay=LAW, window=9, horizon=0, alpha=2),
            "horizon",
        ),
        (
            lambda: theory.expected_bound(
                SIX, delay=delays.ByPair((LAW,) * 4), window=9, horizon=9, alpha=2
            ),
            "delay must",
        ),
        (lambda: theory.mrr_schedule(100, 5.0, feedback="count"), "feedback"),
        (
            lambda: theory.mrr_schedule(100, 5.0, feedback="votes"),
            "feedback",
        ),
        (
            lambda: theory.mrr_bound(SIX, horizon=4, mean_delay=3.0, feedback="votes"),
            "feedback",
        ),
        (lambda: theory.mrr_schedule(100, math.inf), "mean_delay"),
        (lambda: theory.mrr_schedule(100, 1e300), "mean_delay"),
        (
            lambda: theory.mrr_schedule(100, 5.0, feedback="counts", constants=(1, 1, 1)),
            "constants belong to Equation 6",
        ),
        (
            lambda: theory.mrr_schedule(100, 5.0, constants=(1, 2)),
            "constants",
        ),
        (lambda: theory.kl(2, 0.5), "p must"),
        (lambda: theory.kl(0.5, math.nan), "q must"),
        (lambda: theory.information(2), "mu must"),
        (lambda: theory.coin_mean(3, 0.5), "mu must"),
        (lambda: theory.coin_mean(0.5, -1), "tau must"),
        (lambda: theory.coverage(10, alpha=-3), "alpha"),
        (
            lambda: theory.lower_bound_instances(4, 0.1, k=1.5),
            "k must",
        ),
        (lambda: theory.lower_bound_instances(4, 0.1, k=4), "k must"),
        (lambda: theory.mrr_bound(SIX, horizon=4, mean_delay=-3.0), "mean_delay"),
        (lambda: theory.minimax_lower_bound(0, 100), "n_arms"),
    ],
)
def test_what_a_formula_does_not_cover_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


OF_A_HORIZON = {
    "high_probability_bound": lambda problem, horizon: theory.high_probability_bound(
        problem, delay=LAW, window=9, horizon=horizon, delta=0.1
    ),
    "expected_bound": lambda problem, horizon: theory.expected_bound(
        problem, delay=LAW, window=9, horizon=horizon
    ),
    "mrr_bound": lambda problem, horizon: theory.mrr_bound(
        problem, horizon=horizon, mean_delay=math.inf
    ),
    "asymptotic_lower_bound": theory.asymptotic_lower_bound,
    "minimax_lower_bound": lambda problem, horizon: theory.minimax_lower_bound(6, horizon),
    "mrr_schedule": lambda problem, horizon: theory.mrr_schedule(horizon, 9.0),
}


def test_every_formula_with_a_horizon_is_here():
    has_one = [
        name for name in theory.__all__
        if "horizon" in inspect.signature(getattr(theory, name)).parameters
    ]  # fmt: skip
    assert sorted(OF_A_HORIZON) == sorted(has_one)


@pytest.mark.parametrize("horizon", [2.5, 0, -3, math.inf, math.nan, "9", True, None])
@pytest.mark.parametrize("name", OF_A_HORIZON)
def test_a_horizon_is_a_whole_number(name, horizon):
    with pytest.raises(ValueError, match=f"horizon must be a whole number of.*, got {horizon!r}"):
        OF_A_HORIZON[name](SIX, horizon)


@pytest.mark.parametrize("name", OF_A_HORIZON)
def test_a_whole_number_may_be_a_float(name):
    answers = [OF_A_HORIZON[name](SIX, h) for h in (100, 1e2)]
    assert np.array_equal(*answers)


@pytest.mark.parametrize(
    "call",
    [
        *(OF_A_HORIZON[name] for name in OF_A_HORIZON if "bound" in name and "max" not in name),
        lambda problem, t: theory.comparisons_bound(problem, delay=LAW, window=9, t=t),
        lambda problem, _: theory.declaration_lower_bound(problem),
        lambda problem, _: theory.fixed_sample(problem),
    ],
)
def test_a_bare_matrix_is_no_problem(call):
    with pytest.raises(ValueError, match="problem must"):
        call(SIX.matrix, 100)


@pytest.mark.compiled
@pytest.mark.parametrize(
    "law",
    [
        delays.Geometric(0.05),
        delays.Never(0.3, delays.Geometric(0.1)),
        delays.Never(0.2, delays.Uniform(1, 40)),
        delays.ByPair.of(3, lambda i, j: delays.Geometric(0.02 + 0.05 * i + 0.1 * j)),
    ],
    ids=str,
)
def test_proposition_1_and_lemma_1_for_pairs_chosen_without_looking(law):
    """mu^ is unbiased given the selections, and its radius covers (checked at t = 120)."""
    from duelay.ledger import age_to, assume, open_ledger, record
    from duelay.simulation.world import NO_ENTRY, duel, make_world, take_due

    problem = duelay.Problem([[0.5, 0.8, 0.6], [0.2, 0.5, 0.35], [0.4, 0.65, 0.5]])
    t, window, reps, alpha = 120, 25, 700, 0.5
    schedule = np.random.default_rng(7).integers(3, size=(t, 2))
    rng = np.random.default_rng(8)
    means = np.zeros((reps, 3, 3))
    for rep in range(reps):
        world = make_world(problem, law, window, t)
        ledger = open_ledger(assume(law, window, 3), 3)
        for tick in range(1, t + 1):
            while (entry := take_due(world, tick)) != NO_ENTRY:
                ledger.conversions[world.first[entry], world.second[entry]] += 1
            age_to(ledger, tick)
            if tick < t:
                i, j = schedule[tick]
                record(ledger, i, j, tick)
                duel(world, i, j, tick, rng)
        told = ledger.estimates()
        means[rep] = told.mean
    error = means.std(axis=0, ddof=1) / math.sqrt(reps)
    off = ~np.eye(3, dtype=bool)
    assert (np.abs(means.mean(axis=0) - problem.matrix)[off] <= 4 * error[off]).all()
    radius = theory.radius(told.n, told.expected, t, alpha)
    covered = np.mean(np.abs(means - problem.matrix) <= radius, axis=0)[off]
    least = theory.coverage(t, alpha)
    assert (covered >= least - 4 * math.sqrt(least * (1 - least) / reps)).all()


@pytest.mark.parametrize(
    "mean, how",
    [(2.0**53, {}), (2.0**53, {"feedback": "counts"}), (9.0, {"constants": (1e300, 1e200, 1)})],
)
def test_a_round_of_any_length_is_a_number(mean, how):
    """The first round lasts past the horizon, and K² of its pairs can still be counted."""
    (only,) = theory.mrr_schedule(10**6, mean, **how)
    assert 10**6 < only <= np.iinfo(np.int64).max // 10**8
    policy = duelay.MRRDBDelay(mean_delay=mean, horizon=10**6, **how)
    assert f"takes {int(only) * 4950} ticks" in policy.caution(100, None)
