"""Other winners than Condorcet's, against their definitions."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import duelay
import naive
from duelay import delays
from duelay.problems import bradley_terry, cyclic, generate, leader, mslr_like, no_winner
from test_rules import play_beside


@st.composite
def matrices(draw):
    k = draw(st.integers(2, 6))
    matrix = np.full((k, k), 0.5)
    for i in range(k):
        for j in range(i + 1, k):
            matrix[i, j] = draw(st.sampled_from([0.0, 0.2, 0.5, 0.5001, 0.7, 1.0]))
            matrix[j, i] = 1 - matrix[i, j]
    return duelay.Problem(matrix)


@given(matrices())
def test_scores_are_what_they_are_called(problem):
    k, mu = problem.n_arms, problem.matrix
    for i in range(k):
        others = [j for j in range(k) if j != i]
        beaten = sum(1.0 if mu[i, j] > 0.5 else 0.5 if mu[i, j] == 0.5 else 0.0 for j in others)
        assert problem.copeland_scores[i] == pytest.approx(beaten / (k - 1))
        assert problem.borda_scores[i] == pytest.approx(sum(mu[i, j] for j in others) / (k - 1))
    for target in ("copeland", "borda"):
        scores = getattr(problem, f"{target}_scores")
        gaps = problem.gaps_for(target)
        assert gaps == pytest.approx(scores.max() - scores)
        assert set(problem.winners(target)) == {i for i in range(k) if gaps[i] == 0}
    if problem.has_winner:
        assert problem.winners() == problem.winners("copeland") == (problem.winner,)
        assert np.array_equal(problem.gaps_for("condorcet"), problem.gaps)


@settings(deadline=None)
@given(matrices())
def test_nobody_beats_the_von_neumann_winner(problem):
    weights = problem.von_neumann()
    assert weights.sum() == pytest.approx(1) and (weights >= 0).all()
    assert (weights @ problem.matrix >= 0.5 - 1e-7).all()
    if problem.has_winner:
        assert weights[problem.winner] == pytest.approx(1, abs=1e-3)


def test_problems_without_a_winner():
    assert cyclic(7, 0.1).winners("copeland") == tuple(range(7))
    assert cyclic(4, 0.2).matrix[0].tolist() == [0.5, 0.7, 0.5, 0.3]
    for problem in (
        no_winner(30, 1),
        duelay.datasets.load("tennis-without-sampras"),
        cyclic(5, 0.2),
    ):
        assert not problem.has_winner
        with pytest.raises(duelay.NoWinnerError, match="has no Condorcet winner"):
            problem.gaps_for("condorcet")
        with pytest.raises(duelay.NoWinnerError):
            duelay.simulate(problem, duelay.RUCB(), delay="constant", horizon=10)
    tennis, rest = (duelay.datasets.load(n) for n in ("tennis", "tennis-without-sampras"))
    keep = [i for i in range(8) if i != tennis.winner]
    assert np.array_equal(rest.matrix, tennis.matrix[np.ix_(keep, keep)])
    assert rest.arms == tuple(tennis.arms[i] for i in keep)


def test_problems_with_one():
    problem = mslr_like(40, 3)
    assert np.sort(problem.gaps)[1] >= 0.02
    assert mslr_like(40, 3) == problem and mslr_like(40, 4) != problem
    assert generate("mslr-like:40,3") == problem
    assert leader(4, 1.5) == bradley_terry([1.5, 1, 0.75, 0.5])
    with pytest.raises(ValueError, match="target must be one of condorcet, copeland, borda"):
        problem.winners("plato")


@pytest.mark.parametrize("target", ["copeland", "borda"])
def test_regret_is_measured_against_the_target(target):
    problem = duelay.datasets.load("tennis-without-sampras")
    result = duelay.simulate(
        problem, duelay.DoubleThompson(), delay="geometric:0.1", horizon=400, runs=3, target=target
    )
    gaps = problem.gaps_for(target)
    expected = (result.plays * (gaps[:, None] + gaps[None, :]) / 2).sum(axis=(1, 2))
    assert result.final == pytest.approx(expected)
    assert result.setting.target == target and f"target={target}" in repr(result)


def test_borda_drops_and_chooses_as_it_says():
    law, window, alpha = delays.Geometric(0.2), 15, 0.5
    policy = duelay.Borda(delay=law, window=window, alpha=alpha, order="champion")
    active, dropped = {0, 1, 2, 3}, []

    def check(t, history, choice, player):
        nonlocal active
        n, n_tilde, s, _ = naive.estimates(history, t, 4, lambda i, j, a: law.cdf(a), window)
        expected, active = naive.borda_choice(n, n_tilde, s, active, alpha * math.log(t))
        assert choice == expected
        dropped.append(4 - len(active))

    play_beside(policy, law, 1500, check, problem=bradley_terry([60.0, 1.0, 9.0, 3.0]))
    assert dropped[0] == 0 and dropped[-1] == 3


@pytest.mark.compiled
def test_each_policy_finds_the_winner_it_is_for():
    """Copeland by double Thompson sampling, Borda by its own, where the two differ."""
    mu = np.array([[0.5, 0.55, 0.55, 0.45], [0.45, 0.5, 0.55, 0.95],
                   [0.45, 0.45, 0.5, 0.95], [0.55, 0.05, 0.05, 0.5]])  # fmt: skip
    problem = duelay.Problem(mu)
    assert not problem.has_winner and problem.winners("borda") == (1,)
    assert problem.winners("copeland") == (0, 1)
    for policy, target in ((duelay.DoubleThompson(), "copeland"), (duelay.Borda(), "borda")):
        result = duelay.simulate(
            problem, policy, delay="geometric:0.01", horizon=50_000, runs=20, target=target
        )
        assert result.led_by_winner == 1.0
        late = result.regret[:, -1] - result.regret[:, result.regret.shape[1] // 2]
        assert late.mean() < 0.2 * result.final.mean()
