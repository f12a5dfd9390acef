"""Bets that nothing differs: their fairness, their definition, and the verdicts."""

import math

import numpy as np
import pytest

import duelay
import naive
from duelay import delays
from duelay.ledger.arms import reopen, with_arm
from duelay.ledger.evidence.eprocess import GAPS, evidence_weights, start_eprocess
from duelay.ledger.evidence.margin import (
    EQUIVALENT,
    GOOD_ENOUGH,
    RUNNING,
    WINNER,
    bet_on_ties,
    fill_tie_odds,
    find_verdict,
)
from duelay.ledger.evidence.winner_threshold import arm_evidence, need_all
from duelay.problems import Problem
from duelay.simulation import Setting
from helpers import play_beside

EVEN = Problem(np.full((3, 3), 0.5))


@pytest.mark.parametrize("margin", [0.02, 0.1, 0.3])
@pytest.mark.parametrize("phi", [0.05, 0.6, 1.0])
def test_the_bet_on_a_tie_is_fair_at_the_margin_for_every_answered_share(margin, phi):
    eprocess = start_eprocess(0.05, None, 2, margin=margin)
    fill_tie_odds(eprocess, phi / (2 - phi))
    m0 = 0.5 - margin
    for place, m1 in enumerate((0.5, 0.5 + margin)):
        odds = np.exp(eprocess.tie_odds[:, place])
        np.testing.assert_allclose(odds, naive.tie_odds(phi, m0, m1)[0], rtol=1e-9)
        for share in (0.0, 0.3, 1.0):
            means = []
            for mu in (m0, 0.7 * m0, 0.5):
                heard = np.array([share * mu, share * (1 - mu)]) / 2
                means.append((odds * np.append(heard, 0.5 - heard)).sum())
            assert means[0] == pytest.approx(1.0, abs=1e-9) and means[1] <= 1 + 1e-9
            assert share == 0.0 or means[2] > 1.0


@pytest.mark.parametrize("x", [0.0, 0.3, 0.5, 1.0])
def test_a_vote_bets_by_the_likelihood_of_its_mean(x):
    eprocess = start_eprocess(0.05, None, 2, margin=0.1)._replace(is_vote=True)
    bet_on_ties(eprocess, 0, 1, True, x, 0.5)
    bet_on_ties(eprocess, 0, 1, False, 0.0, 0.5)  # silence is no answer
    for place, h in enumerate((0.1, 0.2)):
        for i, j, won in ((0, 1, x), (1, 0, 1 - x)):
            win, loss = (0.4 + h) / 0.4, (0.6 - h) / 0.6
            assert math.exp(eprocess.tie_wealth[i, j, place]) == pytest.approx(
                won * win + (1 - won) * loss
            )


@pytest.mark.parametrize("law", ["geometric:0.3", "never:0.4,(uniform:1,15)"])
def test_the_evidence_of_a_tie_is_half_of_either_bettor(law):
    looks = []

    def check(t, history, pair, player):
        if t % 43 == 0:
            expected = naive.tie_evidence(history, t, 3, 0.2, GAPS, evidence_weights(), 9)
            found = np.exp(player._ledger.assumed.log_bar)
            off = ~np.eye(3, dtype=bool)
            np.testing.assert_allclose(found[off], expected[off], rtol=1e-8)
            looks.append(expected.max())

    play_beside(duelay.Decide(margin=0.2, wait=9), delays.parse(law), 260, check, problem=EVEN)
    assert max(looks) > 3


def says(best, best_bar, end, error=0.05):
    """The verdict on each arm, given log evidence."""
    eprocess = start_eprocess(error, None, len(best), margin=0.1, end=end)
    eprocess.best[:], eprocess.best_bar[:] = best, best_bar
    return eprocess, [find_verdict(eprocess, i) for i in range(len(best))]


@pytest.mark.parametrize("k", [2, 3, 6])
@pytest.mark.parametrize("end", ["good_enough", "equivalent"])
def test_each_verdict_needs_its_evidence_over_every_other_arm(k, end):
    none, enough = np.zeros((k, k)), np.zeros((k, k))
    level = (k if end == "good_enough" else k * (k - 1)) / 0.05
    enough[0] = math.log(level) + 1e-9
    assert says(enough, enough, end)[1] == [WINNER] + [RUNNING] * (k - 1)
    assert says(none, none, end)[1] == [RUNNING] * k
    only_good = GOOD_ENOUGH if end == "good_enough" else RUNNING
    assert says(none, enough, end)[1][0] == only_good
    lacking = enough.copy()
    lacking[0, k - 1] -= 1e-6
    assert says(lacking, lacking, end)[1][0] == RUNNING
    if end == "equivalent":
        both = enough.copy()
        both[1:, 0] = math.log(level) + 1e-9
        found = says(none, both, end)[1]
        assert found[0] == EQUIVALENT
        both[k - 1, 0] -= 1e-6
        assert says(none, both, end)[1][0] == RUNNING
        won = none.copy()
        won[0, k - 1] = math.log(level)
        assert says(won, both, end)[1][0] == (WINNER if k == 2 else EQUIVALENT)
        assert says(enough, none, end)[1][0] == WINNER  # it beats all others: nothing else matters


@pytest.mark.parametrize("end", ["good_enough", "equivalent"])
def test_the_evidence_of_an_arm_reaches_the_level_exactly_when_it_ends_the_experiment(end):
    rng, seen = np.random.default_rng(0), set()
    for _ in range(200):
        eprocess, _ = says(*rng.choice([0.0, 3.0, 9.0], p=[0.1, 0.1, 0.8], size=(2, 3, 3)), end)
        for i in range(3):
            is_enough = arm_evidence(eprocess, i) >= eprocess.level
            verdict = find_verdict(eprocess, i)
            assert verdict == WINNER or is_enough == (verdict != RUNNING)
            assert is_enough or verdict == RUNNING or end == "equivalent"
            seen.add((verdict, is_enough))
    assert len(seen) == 3


@pytest.mark.parametrize("feedback", ["votes", "conversions"])
def test_of_equal_arms_each_is_named_as_often(feedback):
    result = duelay.simulate(
        Problem(np.full((2, 2), 0.5)), duelay.Decide(margin=0.3, wait=1), delay="constant:1",
        horizon=400, runs=60, seed=0, stop=0.05, setting=Setting(feedback=feedback),
    )  # fmt: skip
    assert result.is_declared.all() and result.share("equivalent") > 0.9
    assert abs(result.leader.sum() - 30) < 4 * math.sqrt(60 / 4)
    assert 15 < (result.leader == 0).sum() < 45


def test_equal_arms_end_with_a_verdict_and_a_clear_winner_wins():
    sharp = Problem([[0.5, 0.8, 0.8], [0.2, 0.5, 0.5], [0.2, 0.5, 0.5]])
    for problem, end, verdict in (
        (EVEN, "good_enough", "good_enough"), (EVEN, "equivalent", "equivalent"),
        (sharp, "equivalent", "winner"),
    ):  # fmt: skip
        player, rng = duelay.Decide(margin=0.2, end=end, wait=1).start(
            3, seed=0, feedback="votes"
        ), np.random.default_rng(1)  # fmt: skip
        while player.standing().verdict == "running":
            assert player.tick < 3000
            for _ in range(50):
                duel = player.ask()
                won = rng.random() < problem.matrix[duel.first, duel.second]
                player.tell(duel, "first" if won else "second")
        standing = player.standing()
        assert standing.verdict == verdict and standing.is_sure
        assert (standing.winner is not None) == (verdict == "winner")
        assert standing.evidence.best == standing.leader and standing.headline
        assert (player.history().declared is not None) == (verdict == "winner")
        again = duelay.Decide(margin=0.2, end=end, wait=1).start(3, feedback="votes")
        assert again.replay(player.history()).standing().verdict == verdict


@pytest.mark.parametrize(
    "told",
    [{"margin": 0}, {"margin": 0.5}, {"margin": 0.1, "delay": "geometric:0.1"},
     {"margin": 0.1, "winner_exists": True}],
)  # fmt: skip
def test_a_margin_is_refused_where_it_cannot_be(told):
    with pytest.raises(ValueError, match="margin"):
        duelay.Decide(**told)


def test_an_end_is_one_of_two_and_arms_stay():
    with pytest.raises(ValueError, match="end"):
        duelay.Decide(margin=0.1, end="soon")
    assert duelay.policies.parse("decide:margin=0.1,end=good_enough") == duelay.Decide(
        margin=0.1, end="good_enough"
    )
    player = duelay.Decide(margin=0.1).start(3)
    with pytest.raises(ValueError, match="add_arm"):
        player.add_arm("d")
    with pytest.raises(ValueError, match="margin"):
        player.retire_arm(player.arms[0])


@pytest.mark.parametrize("k", [2, 3, 7])
@pytest.mark.parametrize("end", ["good_enough", "equivalent"])
def test_by_the_clock_all_false_statements_together_have_the_error(k, end):
    """The sum of docs/theory.md over all pairs, whoever is added and retired."""
    error, n_joined = 0.05, 30
    eprocess = start_eprocess(error, None, k, by_clock=True, margin=0.1, end=end)
    for _ in range(n_joined):
        eprocess = with_arm(eprocess, error)
    need = np.zeros((k + n_joined, k + n_joined))
    need_all(eprocess, need)
    chance = np.exp(-need)
    np.testing.assert_allclose(chance, chance.T)
    joined = 2.0 * np.triu(chance, 1)[:, k:].sum()
    first = k * math.exp(-eprocess.level)
    if end == "equivalent":
        first = 2.0 * np.triu(chance, 1)[:, :k].sum()
        assert eprocess.level_over_present == eprocess.level
    else:
        first += k * (k - 1) * math.exp(-eprocess.level_over_present)
    assert 0.9 * error - 1e-12 <= first <= 0.9 * error + 1e-12
    assert joined == pytest.approx(0.1 * error * (1 - 1 / (n_joined + 1)))


@pytest.mark.parametrize("end", ["good_enough", "equivalent"])
def test_a_retired_arm_is_to_be_passed_where_the_bound_is_not_over_pairs(end):
    eprocess = start_eprocess(0.05, None, 4, by_clock=True, margin=0.1, end=end)
    eprocess.best_bar[0, 1:3] = eprocess.best_bar[1:3, 0] = eprocess.level
    assert find_verdict(eprocess, 0) == RUNNING
    eprocess.present[3] = False
    eprocess = reopen(eprocess, 0.05)
    done = {"good_enough": GOOD_ENOUGH, "equivalent": EQUIVALENT}[end]
    assert find_verdict(eprocess, 0) == (done if end == "equivalent" else RUNNING)
    assert find_verdict(eprocess, 3) == RUNNING
    eprocess.best_bar[0, 1:3] = eprocess.best_bar[1:3, 0] = eprocess.level_over_present
    assert find_verdict(eprocess, 0) == done
    eprocess.best_bar[0, 1:3] = eprocess.best_bar[1:3, 0] = eprocess.level
    eprocess.best_bar[0, 3] = eprocess.level
    assert find_verdict(eprocess, 0) == done


@pytest.mark.compiled
@pytest.mark.parametrize("end", ["good_enough", "equivalent"])
@pytest.mark.parametrize("is_circle", [False, True])
def test_at_a_gap_of_just_the_margin_a_verdict_is_false_within_the_error(end, is_circle):
    margin, k = 0.1, 3 if is_circle else 2
    matrix = np.full((k, k), 0.5)
    for i in range(k if is_circle else 1):
        j = (i + 1) % k
        matrix[i, j], matrix[j, i] = 0.5 - margin, 0.5 + margin
    for feedback in ("votes", "conversions"):
        result = duelay.simulate(
            Problem(matrix), duelay.Decide(margin=margin, end=end, error=0.2),
            delay="geometric:0.1", horizon=3000, runs=200, seed=1, stop=0.2,
            setting=Setting(feedback=feedback),
        )  # fmt: skip
        assert result.is_wrong.mean() <= 0.2 + 3 * math.sqrt(0.2 * 0.8 / 200)
        assert set(result.verdicts) <= {"winner", "good_enough", "equivalent", "undecided"}
        assert is_circle or "winner" in result.verdicts
        if is_circle and end == "good_enough":  # each arm loses to one by just the margin
            assert result.is_wrong.sum() == sum(v != "undecided" for v in result.verdicts) > 0
