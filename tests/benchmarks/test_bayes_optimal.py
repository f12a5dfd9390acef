import itertools

import numpy as np
import pytest

import bayes_optimal
import duelay
from bayes_optimal import bayes_optimal_regret
from duelay import Problem, delays, theory

THREE = np.array([[0.5, 0.7, 0.9], [0.3, 0.5, 0.6], [0.1, 0.4, 0.5]])


def two(gap):
    """Two arms, either of which may be better by `gap`."""
    return [Problem([[0.5, 0.5 + g], [0.5 - g, 0.5]]) for g in (gap, -gap)]


def renamed(matrix):
    """A problem under all names of its arms."""
    return [Problem(matrix[np.ix_(s, s)]) for s in itertools.permutations(range(len(matrix)))]


def slow(problems, weights, horizon):
    """The least regret by trying everything: every pair, self-duels too, at every tick."""
    total = sum(weights)
    if horizon == 0 or total == 0:
        return 0.0
    ways = []
    for i, j in itertools.combinations_with_replacement(range(problems[0].n_arms), 2):
        way = sum(w * (p.gaps[i] + p.gaps[j]) / 2 for w, p in zip(weights, problems, strict=True))
        for first_wins in (True, False):
            chances = [p.matrix[i, j] if first_wins else p.matrix[j, i] for p in problems]
            after = [w * chance for w, chance in zip(weights, chances, strict=True)]
            if i != j:
                way += slow(problems, after, horizon - 1)
        if i == j:
            way += slow(problems, weights, horizon - 1)
        ways.append(way)
    return min(ways)


@pytest.mark.long
@pytest.mark.parametrize("horizon", [1, 2, 3, 6])
@pytest.mark.parametrize(
    "problems, weights",
    [
        (two(0.1), [1, 1]),
        (two(0.3) + two(0.05), [4, 1, 2, 3]),
        (two(0.5) + two(0.1), [1, 1, 1, 1]),  # an outcome may be certain
        (two(0.2), [1, 0]),
    ],
)
def test_two_arms_are_as_by_trying_everything(problems, weights, horizon):
    prior = np.array(weights) / sum(weights)
    told = bayes_optimal_regret(problems, horizon, weights=weights)
    assert told == pytest.approx(slow(problems, prior, horizon), abs=1e-12)


@pytest.mark.long
@pytest.mark.parametrize("horizon", [1, 2, 4])
def test_three_arms_are_as_by_trying_everything(horizon):
    problems = renamed(THREE)
    told = bayes_optimal_regret(problems, horizon)
    assert told == pytest.approx(slow(problems, [1 / 6] * 6, horizon), abs=1e-12)


def test_who_knows_the_problem_has_no_regret():
    assert bayes_optimal_regret([Problem(THREE)], 50) == 0
    assert bayes_optimal_regret(two(0.1), 50, weights=[3, 0]) == 0


@pytest.mark.long
def test_two_arms_cost_what_walds_test_costs():
    """It costs g/2 a duel, and g T exp(-a) if it ends wrongly: with a = log(2 T d), the least."""
    for gap, horizon in ((0.1, 3000), (0.2, 3000)):
        d = theory.kl(0.5 + gap, 0.5 - gap)
        wald = gap / 2 * (np.log(2 * horizon * d) + 1) / d
        assert bayes_optimal_regret(two(gap), horizon) == pytest.approx(wald, rel=0.02)


def test_not_to_know_the_gap_costs_more():
    known = [bayes_optimal_regret(two(gap), 500) for gap in (0.1, 0.3)]
    assert bayes_optimal_regret(two(0.1) + two(0.3), 500) > 1.1 * np.mean(known)


@pytest.mark.compiled
def test_no_policy_has_less():
    """Four standard errors, 400 runs of each problem."""
    problems, horizon = two(0.1) + two(0.3), 500
    least = bayes_optimal_regret(problems, horizon)
    for policy in (duelay.recommend().policy, duelay.RMED(), duelay.RUCB()):
        final = np.array(
            [
                duelay.simulate(
                    problem, policy, delay=delays.Constant(1), horizon=horizon, runs=400, seed=3
                ).final
                for problem in problems
            ]
        )
        error = np.sqrt(final.var(axis=1, ddof=1).sum() / 400) / len(problems)
        assert final.mean() + 4 * error >= least


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: bayes_optimal_regret([], 5), "problems"),
        (
            lambda: bayes_optimal_regret([*two(0.1), Problem(THREE)], 5),
            "problems",
        ),
        (
            lambda: bayes_optimal_regret([Problem([[0.5, 0.6], [0.4, 0.5]], first_bonus=0.1)], 5),
            "problems",
        ),
        (
            lambda: bayes_optimal_regret(two(0.1), 5, weights=[1]),
            "weights",
        ),
        (lambda: bayes_optimal_regret(two(0.1), 5, weights=[1, -1]), "weights"),
        (lambda: bayes_optimal_regret(two(0.1), 5, weights=[0, 0]), "must not all be 0"),
        (lambda: bayes_optimal_regret(two(0.1), 0), "horizon"),
    ],
)
def test_what_it_does_not_cover_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_too_many_states_are_refused(monkeypatch):
    monkeypatch.setattr(bayes_optimal, "_MAX_STATES", 1000)
    with pytest.raises(ValueError, match="^horizon "):
        bayes_optimal_regret(renamed(THREE), 30)


@pytest.mark.parametrize("largest", [bayes_optimal._MAX_RANK, 0], ids=["ranks", "rows"])
@pytest.mark.parametrize("kinds, ways", [(2, 60), (6, 5), (12, 3)])
def test_after_one_more_outcome_every_state_is_there_once(monkeypatch, kinds, ways, largest):
    monkeypatch.setattr(bayes_optimal, "_MAX_RANK", largest)
    counts = np.zeros((1, kinds), dtype=np.int64)
    for n in range(ways):
        counts = counts[::2] if n % 3 == 2 else counts  # the others are not gone on from
        found, after = bayes_optimal._one_more(counts)
        assert len(np.unique(found, axis=0)) == len(found) == after.max() + 1
        assert (found[after] == counts[:, None, :] + np.eye(kinds, dtype=np.int64)).all()
        counts = found


@pytest.mark.parametrize("horizon", [100, 10**6])
@pytest.mark.parametrize("n_arms", [3, 4, 5])
def test_what_is_far_too_large_is_refused_before_any_state_is_listed(monkeypatch, n_arms, horizon):
    monkeypatch.delattr(bayes_optimal, "_one_more")
    problems = renamed(duelay.problems.arithmetic(n_arms, 0.1).matrix)
    with pytest.raises(ValueError, match=f"horizon must be less than {horizon} for these {n_arms}"):
        bayes_optimal_regret(problems, horizon)


@pytest.mark.parametrize("matrix", [THREE, duelay.problems.arithmetic(3, 0.02).matrix])
def test_a_sample_refuses_nothing_that_can_be_done(monkeypatch, matrix):
    monkeypatch.setattr(bayes_optimal, "_MAX_STATES", 20_000)
    sampled, found = bayes_optimal._are_too_many, []

    def note(*args):
        found.append(sampled(*args))
        return False

    monkeypatch.setattr(bayes_optimal, "_are_too_many", note)
    is_refused = []
    for horizon in range(5, 30):
        try:
            bayes_optimal_regret(renamed(matrix), horizon)
            is_refused.append(False)
        except ValueError:
            is_refused.append(True)
    assert not is_refused[0] and any(found) and not any(np.array(found) & ~np.array(is_refused))
    assert sum(is_refused) - sum(found) <= 12  # near the border, states are listed


def test_who_knows_the_winner_of_many_arms_draws_no_sample_of_states():
    known = [p for p in renamed(duelay.problems.arithmetic(5, 0.1).matrix) if p.winner == 0]
    assert bayes_optimal_regret(known, 10**6) == 0
