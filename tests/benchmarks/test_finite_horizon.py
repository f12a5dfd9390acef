import itertools
import math
import warnings

import numpy as np
import pytest
from scipy.optimize import minimize

import duelay
import finite_horizon
from bayes_optimal import bayes_optimal_regret
from duelay import Problem, delays, theory
from finite_horizon import finite_lower_bound

THREE = np.array([[0.5, 0.7, 0.9], [0.3, 0.5, 0.6], [0.1, 0.4, 0.5]])
SIX = duelay.datasets.load("six-rankers")


def two(gap, **more):
    return Problem([[0.5, 0.5 + gap], [0.5 - gap, 0.5]], **more)


def renamed(problem):
    orders = itertools.permutations(range(problem.n_arms))
    return [Problem(problem.matrix[np.ix_(s, s)]) for s in orders]


def by_minimizer(problem, horizon, tau=1.0):
    """The convex program, given to a general minimizer with all names of the arms."""
    k, mu = problem.n_arms, problem.matrix
    pairs = list(itertools.combinations_with_replacement(range(k), 2))
    cost = np.array([horizon * (problem.gaps[a] + problem.gaps[b]) / 2 for a, b in pairs])

    def room(shares, s):
        told = apart = 0.0
        for share, (a, b) in zip(shares, pairs, strict=True):
            other = shares[pairs.index(tuple(sorted((s[a], s[b]))))]
            ways = [(mu[a, b], mu[s[a], s[b]]), (mu[b, a], mu[s[b], s[a]])]
            told += horizon * share * max(theory.kl(tau * p, tau * q) for p, q in ways)
            apart += share * math.log(share / other)
        return told - apart

    rules = [{"type": "eq", "fun": lambda shares: shares.sum() - 1}]
    for s in itertools.permutations(range(k)):
        if s != tuple(range(k)):
            rules.append({"type": "ineq", "fun": lambda shares, s=s: room(shares, s)})
    w = problem.winner
    start = np.array([0.7 if a == b == w else 0.2 if a == b else 0.4 for a, b in pairs])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of SciPy 1.13, where a step ends at a bound
        found = minimize(
            cost.__matmul__, start / start.sum(), method="SLSQP", constraints=rules,
            bounds=[(1e-9, 1)] * len(pairs), options={"ftol": 1e-10, "maxiter": 1000},
        )  # fmt: skip
    assert found.success or found.status == 8  # 8: no step within rounding is better
    return found.fun


@pytest.mark.parametrize("horizon, tau", [(1, 1.0), (10, 1.0), (30, 1.0), (30, 0.5)])
@pytest.mark.parametrize("problem", [two(0.1), two(0.3), Problem(THREE)], ids=["1", "3", "three"])
def test_the_bound_is_the_value_of_its_program(problem, horizon, tau):
    told = finite_lower_bound(problem, horizon, tau_window=tau)
    assert told == pytest.approx(by_minimizer(problem, horizon, tau), rel=5e-3)


@pytest.mark.parametrize("horizon", [1, 3, 6, 10])
@pytest.mark.parametrize("problem", [two(0.05), two(0.3), Problem(THREE)], ids=["1", "3", "three"])
def test_the_bound_is_below_the_best_policys_regret(problem, horizon):
    least = bayes_optimal_regret(renamed(problem), horizon)
    assert 0.65 * least < finite_lower_bound(problem, horizon) <= least


@pytest.mark.long
def test_with_two_arms_and_many_duels_it_is_nearly_reached():
    least = bayes_optimal_regret(renamed(two(0.2)), 5000)
    assert 0.98 * least < finite_lower_bound(two(0.2), 5000) <= least


@pytest.mark.compiled
@pytest.mark.parametrize("policy", [duelay.recommend().policy, duelay.RMED()], ids=str)
def test_policies_that_know_no_names_have_more(policy):
    """At a horizon where both have less than the asymptotic bound."""
    result = duelay.simulate(SIX, policy, delay=delays.Constant(1), horizon=2000, runs=100, seed=1)
    asymptotic = theory.asymptotic_lower_bound(SIX, 2000)
    assert finite_lower_bound(SIX, 2000) < result.final.mean() < asymptotic


def test_it_grows_like_the_logarithm_of_the_horizon():
    """Two arms: by g / (2 d) times log 10 from one power of ten to the next, d told by a duel."""
    bounds = [finite_lower_bound(two(0.2), 10.0**power) for power in (5, 6, 7)]
    step = 0.1 / theory.kl(0.7, 0.3) * math.log(10)
    assert np.diff(bounds) == pytest.approx([step, step], rel=0.01)


def test_silence_makes_it_larger_and_no_answer_at_all_is_guessing():
    problem = Problem(THREE)
    bounds = [finite_lower_bound(problem, 900, tau_window=tau) for tau in (1.0, 0.5, 0.1)]
    assert bounds == sorted(bounds) and bounds[2] > 2 * bounds[0]
    guessing = finite_lower_bound(problem, 900, tau_window=0)
    assert 0.97 * 900 * problem.gaps.mean() < guessing <= 900 * problem.gaps.mean()


def test_the_bonus_of_the_first_is_part_of_what_a_duel_tells():
    plain, helped = (finite_lower_bound(two(0.1, first_bonus=b), 1000) for b in (0, 0.3))
    assert helped < plain  # d(0.7, 0.9) is more than d(0.4, 0.6)


@pytest.mark.long
def test_names_of_the_arms_do_not_change_it():
    order = [3, 5, 0, 1, 4, 2]
    other = Problem(SIX.matrix[np.ix_(order, order)])
    assert finite_lower_bound(other, 10_000) == pytest.approx(
        finite_lower_bound(SIX, 10_000), rel=5e-3
    )


def test_a_search_finds_nearly_what_trying_all_names_does(monkeypatch):
    every = finite_lower_bound(SIX, 10_000)
    monkeypatch.setattr(finite_horizon, "_MAX_ARMS_ENUMERATED", 2)
    assert finite_lower_bound(SIX, 10_000) == pytest.approx(every, rel=5e-3)


@pytest.mark.parametrize("name", ["arithmetic", "tennis"])  # in the second, some are certain
def test_a_search_ends_where_no_swap_is_harder_to_tell(name):
    problem = duelay.datasets.load(name)
    renamed = finite_horizon._Renamed(problem, 10_000, 1.0)
    rng = np.random.default_rng(3)
    shares = rng.exponential(size=len(renamed.a)) ** 4  # few are large, as at a corner
    shares = np.where(rng.random(len(shares)) < 0.5, 0.0, shares / shares.sum() / 1000)
    shares[renamed.place[problem.winner, problem.winner]] += 1 - shares.sum()
    starts = np.concatenate(list(renamed.starts.values()))
    ends = renamed.climb(shares, starts)
    assert ((ends == problem.winner) == (starts == problem.winner)).all()
    assert (renamed.excess(shares, ends) > renamed.excess(shares, starts)).any()
    for end in ends:
        excess = renamed.excess(shares, end)
        for x, y in itertools.combinations(np.flatnonzero(end != problem.winner), 2):
            swapped = end.copy()
            swapped[[x, y]] = end[[y, x]]
            rounding = 1e-9 + 1e-15 * abs(excess)
            assert renamed.excess(shares, swapped) <= excess + rounding


def test_who_waits_at_a_terminal_sees_how_far_it_is(monkeypatch, capsys):
    finite_lower_bound(SIX, 1000)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with monkeypatch.context() as patch:
        patch.setattr("tqdm.std.time", lambda: 0.0)  # as if it took no time at all
        finite_lower_bound(SIX, 1000)
        assert capsys.readouterr().err == ""  # what is quick says nothing
    seconds = itertools.count()
    monkeypatch.setattr("tqdm.std.time", lambda: float(next(seconds)))
    finite_lower_bound(SIX, 1000)
    assert "finite lower bound" in capsys.readouterr().err


@pytest.mark.long
def test_outcomes_that_are_certain_leave_a_bound():
    tennis = duelay.datasets.load("tennis")
    assert (tennis.matrix == 0).any()
    assert 0 < finite_lower_bound(tennis, 10_000) < 144
    assert finite_lower_bound(two(0.5), 100) == 0  # one duel may tell all


def test_what_it_does_not_cover_is_refused():
    with pytest.raises(ValueError, match="horizon"):
        finite_lower_bound(SIX, 0)
    with pytest.raises(ValueError, match="tau_window"):
        finite_lower_bound(SIX, 10, tau_window=2)
    with pytest.raises(duelay.NoWinnerError):
        finite_lower_bound(duelay.problems.cyclic(3, 0.1), 10)


def test_beyond_a_hundred_million_duels_it_does_not_fall():
    problem = two(0.04)
    bounds = [finite_lower_bound(problem, horizon) for horizon in (1e7, 1e8, 1e9, 1e12)]
    assert bounds == sorted(bounds) and bounds[0] > 5


@pytest.mark.parametrize(
    "problem", [np.full((2, 2), 0.5), [[0.5]], "sushi"], ids=["array", "list", "text"]
)
def test_what_is_no_problem_is_refused(problem):
    with pytest.raises(ValueError, match=r"must be a duelay\.Problem"):
        finite_lower_bound(problem, 100)
    for problems in (problem, [problem]):
        with pytest.raises(ValueError, match=r"duelay\.Problem"):
            bayes_optimal_regret(problems, 100)
    with pytest.raises(ValueError, match=r"duelay\.Problem"):
        bayes_optimal_regret(duelay.datasets.load("sushi"), 100)
