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
from duelay.simulation import streams
from duelay.simulation.loops.recorder import new_recorder
from duelay.simulation.loops.ticks import run_ticks
from duelay.simulation.world import make_world
from helpers import play_beside


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


@pytest.mark.long
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
    with pytest.raises(ValueError, match="target"):
        problem.winners("plato")


@pytest.mark.long
@pytest.mark.parametrize("target", ["copeland", "borda"])
def test_regret_is_measured_against_the_target(target):
    problem = duelay.datasets.load("tennis-without-sampras")
    result = duelay.simulate(
        problem, duelay.DoubleThompson(), delay="geometric:0.1", horizon=400, runs=3,
        setting=duelay.Setting(target=target),
    )  # fmt: skip
    gaps = problem.gaps_for(target)
    expected = (result.plays * (gaps[:, None] + gaps[None, :]) / 2).sum(axis=(1, 2))
    assert result.final == pytest.approx(expected)
    assert result.setting.target == target and f"target={target}" in repr(result)


@pytest.mark.long
def test_borda_drops_and_chooses_as_it_says():
    law, window, delta = delays.Geometric(0.2), 15, 0.2
    policy = duelay.Borda(delay=law, window=window, delta=delta, order="champion")
    active, dropped, look, number = {0, 1, 2, 3}, [], 40, 0

    def check(t, history, choice, player):
        nonlocal active, look, number
        n, n_tilde, s, _ = naive.estimates(history, t, 4, lambda i, j, a: law.cdf(a), window)
        error = None
        if t == look:
            look, number = t + t // 10, number + 1
            error = 6 / math.pi**2 * delta / number**2 / 3
        expected, active = naive.borda_choice(n, n_tilde, s, active, error, t)
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
            problem, policy, delay="geometric:0.01", horizon=100_000, runs=20,
            setting=duelay.Setting(target=target),
        )  # fmt: skip
        assert result.led_by_winner == 1.0
        late = result.regret[:, -1] - result.regret[:, result.regret.shape[1] // 2]
        assert late.mean() < 0.2 * result.final.mean()


def test_the_errors_of_all_looks_add_up_to_delta():
    from duelay.policies.borda import log_error_at

    spent = sum(4 * math.exp(-log_error_at(0.05, 5, look)) for look in range(1, 100_000))
    assert spent == pytest.approx(0.05, rel=1e-4) and spent <= 0.05


def test_a_standing_follows_the_policys_target():
    """Arm 0 beats the others narrowly; arm 1 loses to it and beats arm 2 by far: Borda's winner."""
    mu = np.array([[0.5, 0.52, 0.52], [0.48, 0.5, 0.98], [0.48, 0.02, 0.5]])
    player = duelay.Borda(delay=None).start(["narrow", "wide", "weak"], seed=3)
    rng = np.random.default_rng(0)
    for _ in range(3000):
        duel = player.ask()
        if rng.random() < mu[duel.first, duel.second]:
            player.tell(duel)
    standing = player.standing()
    scores = (mu.sum(axis=1) - 0.5) / 2
    assert standing.target == "borda" and standing.leader == 1
    assert standing.scores.score == pytest.approx(scores, abs=0.05)
    assert (standing.scores.lower < scores).all() and (scores < standing.scores.upper).all()
    assert standing.is_sure and standing.candidates.tolist() == [False, True, False]
    assert "wide leads" in standing.headline and "Borda score" in str(standing)
    assert [row.arm for row in standing.rows()] == [1, 0, 2]
    assert "Borda score" in standing._repr_html_()
    assert standing.plot().get_xlabel().startswith("Borda score")
    few = duelay.Borda(delay=None).start(3, seed=3)
    few.tell(few.ask())
    assert not few.standing().is_sure and few.standing().candidates.all()


def test_live_and_simulated_borda_name_the_same_leader():
    mu = np.array([[0.5, 0.55, 0.55, 0.45], [0.45, 0.5, 0.55, 0.95],
                   [0.45, 0.45, 0.5, 0.95], [0.55, 0.05, 0.05, 0.5]])  # fmt: skip
    problem, policy = duelay.Problem(mu), duelay.Borda(delay=delays.Constant(1))
    result = duelay.simulate(
        problem, policy, delay="constant:1", horizon=600, runs=3,
        setting=duelay.Setting(target="borda"),
    )  # fmt: skip
    for number in range(3):
        world_rng, policy_rng = streams(0, number)
        player = policy.start(4, seed=policy_rng)
        for _ in range(600):
            duel = player.ask()
            won, _ = world_rng.random() < mu[duel.first, duel.second], world_rng.random()
            if won:
                player.tell(duel)
        assert player.standing().leader == result.leader[number] == 1


def test_borda_drops_nothing_before_the_law_is_learned():
    player = duelay.Borda().start(3, seed=0)
    for _ in range(400):  # arm 0 seems to lose every duel, but nothing is known of the delays
        duel = player.ask()
        if duel.second == 0 and player.tick % 8 == 0:
            player.tell(duel)
    assert player.standing().is_learning and player.standing().active.all()
    for order in ("champion", "alternate"):
        with pytest.raises(ValueError, match="Borda .*order"):
            duelay.Borda(delay="learn-from-self-duels", order=order)
    with pytest.raises(ValueError, match="order='coin'"):
        duelay.Borda(order="champion")


@pytest.mark.compiled
@pytest.mark.parametrize("n_arms", [2, 5])
@pytest.mark.parametrize(
    "told, law",
    [
        ("constant:1", "constant:1"),
        ("geometric:0.01", "geometric:0.01"),
        ("learn", "geometric:0.01"),
        ("learn", "never:0.3,geometric:0.01"),
    ],
)
def test_borda_drops_its_winner_as_seldom_as_it_says(n_arms, told, law):
    """Arms that are all but equal, so that nothing but the radius keeps the winner in play."""
    matrix = np.full((n_arms, n_arms), 0.5)
    matrix[0, 1:], matrix[1:, 0] = 0.505, 0.495
    problem, law = duelay.Problem(matrix), delays.parse(law)
    policy = duelay.Borda(delay=told, window=1000, delta=0.1)
    runs, wrong = 300, 0
    for number in range(runs):
        rule, ledger = policy.rule(n_arms), policy.ledger(n_arms)
        recorder = new_recorder(problem.gaps, np.array([20_000]))
        world = make_world(problem, law, policy.window, 20_000)
        run_ticks(rule, ledger, False, world, recorder, 20_000, *streams(5, number))
        wrong += not rule.active[0]
    print(f"{policy}, {n_arms} arms, {law}: the winner is dropped in {wrong / runs:.1%}")
    assert wrong <= 0.1 * runs + 3 * math.sqrt(0.1 * 0.9 * runs)


@pytest.mark.compiled
def test_the_intervals_of_scores_hold_under_delay():
    from duelay.inference.borda_scores import score_bounds

    mu = np.array([[0.5, 0.7, 0.9], [0.3, 0.5, 0.6], [0.1, 0.4, 0.5]])
    truth = (mu.sum(axis=1) - 0.5) / 2
    problem, law = duelay.Problem(mu), delays.Geometric(0.05)
    policy = duelay.Borda(delay=law)
    missed = 0
    for number in range(300):
        rule, ledger = policy.rule(3), policy.ledger(3)
        recorder = new_recorder(problem.gaps_for("borda"), np.array([400]))
        run_ticks(
            rule, ledger, False, make_world(problem, law, None, 400), recorder, 400,
            *streams(9, number),
        )  # fmt: skip
        scores = score_bounds(ledger, 0.8)
        missed += bool(((truth < scores.lower) | (truth > scores.upper)).any())
        assert scores.is_candidate[0]
    assert missed <= 300 * 0.2
