"""Votes, and the bonus of the first, against their definitions; live and simulated alike."""

import numpy as np
import pytest

import duelay
import naive
from duelay import delays
from duelay.ledger import assume, for_votes, hear_vote, open_ledger
from duelay.ledger.delay_models.base import drifts, final_age, share_first, stands_still
from duelay.ledger.position_effect import first_bonus
from duelay.problems import arithmetic
from duelay.testing import live_duels
from helpers import SAMPLE, VOTED, Live

PROBLEM = arithmetic(4, 0.12)
LAW = delays.Never(0.3, delays.Geometric(0.1))


def test_only_answered_duels_count():
    player = duelay.DoubleThompson().start(3, seed=0, feedback="votes")
    rng = np.random.default_rng(1)
    n, s = np.zeros((3, 3)), np.zeros((3, 3))
    for _ in range(300):
        duel = player.ask()
        i, j = duel.first, duel.second
        said = rng.choice(["first", "second", "tie", "nothing"])
        if said != "nothing":
            assert player.tell(duel, winner=str(said)) == "counted"
            assert player.tell(duel, winner="tie") == "repeated"
            if i != j:
                won = {"first": 1.0, "second": 0.0, "tie": 0.5}[said]
                n[i, j] += 1
                n[j, i] += 1
                s[i, j] += won
                s[j, i] += 1 - won
    told = player._ledger.estimates()
    assert np.array_equal(told.n, n) and np.array_equal(told.expected, n)
    np.testing.assert_allclose(told.wins, s)
    standing = player.standing()
    assert not standing.takes_silence_for_defeat
    assert "feedback='votes'" in repr(player)


@pytest.mark.long
@pytest.mark.interpreted
@pytest.mark.parametrize(
    "policy, corrects",
    [
        pytest.param(policy, corrects, marks=[] if policy in SAMPLE else pytest.mark.interpreted)
        for corrects in (False, True)
        for policy in VOTED
    ],
    ids=str,
)
def test_live_and_simulated_votes_agree_duel_for_duel(policy, corrects):
    setting = duelay.Setting(feedback="votes", corrects_position=corrects)
    kwargs = {"delay": LAW, "horizon": 400, "runs": 2, "seed": 5, "setting": setting}
    simulated = duelay.simulate(PROBLEM, policy, **kwargs)
    live = duelay.simulate(PROBLEM, Live(policy.for_horizon(400)), **kwargs)
    assert np.array_equal(simulated.plays, live.plays)
    assert np.array_equal(simulated.regret, live.regret)


def test_an_arm_may_be_named_by_its_number():
    player = duelay.DoubleThompson().start(["a", "b", "c"], seed=0, feedback="votes")
    duel = player.ask()
    assert player.tell(duel, winner=duel.second) == "counted"
    assert player.standing().mean[duel.second, duel.first] == 1.0
    while (duel := player.ask()).first != duel.second:
        pass
    assert player.tell(duel, winner=duel.first) == "counted"  # in a self-duel: a tie
    assert player.history().first_won[duel.id] == 0.5
    with pytest.raises(ValueError, match="with votes no law is needed"):
        duelay.DoubleThompson(delay="learn").start(3, feedback="votes").learned_law()


@pytest.mark.parametrize(
    "winner, message",
    [
        (None, "winner"),
        ("blue", "winner"),
        (17, "got 17"),
        (True, "got True"),
    ],
)
def test_a_vote_must_be_for_somebody(winner, message):
    player = duelay.RUCB().start(3, seed=0, feedback="votes")
    duel = player.ask()
    with pytest.raises(ValueError, match=message):
        player.tell(duel, winner=winner)
    assert player.tell(duel, winner="tie") == "counted"  # nothing was half done


def test_what_does_not_fit_is_refused():
    player = duelay.RUCB().start(3, seed=0)
    duel = player.ask()
    with pytest.raises(ValueError, match="winner must"):
        player.tell(duel, winner="second")
    assert player.tell(duel, winner="first") == "counted"
    with pytest.raises(ValueError, match="feedback must"):
        duelay.RUCB().start(3, feedback="gossip")
    counted = duelay.MRRDBDelay(schedule=(2, 4), feedback="counts")
    with pytest.raises(ValueError, match=r"feedback must"):
        counted.start(3, feedback="votes")
    votes = duelay.Setting(feedback="votes")
    with pytest.raises(ValueError, match="feedback must"):
        duelay.simulate(PROBLEM, counted, delay=LAW, horizon=50, setting=votes)


def test_a_bonus_is_in_the_world_and_not_in_the_regret():
    problem = duelay.Problem(PROBLEM.matrix, first_bonus=0.2)
    assert problem != PROBLEM and hash(problem) != hash(PROBLEM)
    assert problem.chances == pytest.approx(np.clip(PROBLEM.matrix + 0.2, 0, 1))
    assert np.array_equal(problem.gaps, PROBLEM.gaps)
    import pickle

    assert pickle.loads(pickle.dumps(problem)) == problem
    with pytest.raises(ValueError, match="first_bonus must"):
        duelay.Problem(PROBLEM.matrix, first_bonus=0.7)
    law = delays.Constant(1)
    duels = {p: live_duels(duelay.RUCB(), p, law, 200) for p in (problem, PROBLEM)}
    assert duels[problem] != duels[PROBLEM]


@pytest.mark.parametrize("bonus, is_known", [(0.0, False), (0.3, True), (-0.3, True)])
def test_the_bonus_is_estimated_and_taken_out_as_it_says(bonus, is_known):
    """What is within two standard errors of none is left in, what is beyond is shrunk by them."""
    ledger = for_votes(open_ledger(assume(None, None, 3), 3), corrects_position=True)
    assert first_bonus(ledger.assumed) == 0.0
    rng = np.random.default_rng(7)
    votes, taken_out = [], 0
    for _ in range(250):
        i, j = (int(arm) for arm in rng.choice(3, size=2, p=[0.5, 0.3, 0.2]))
        won = 0.5 if rng.random() < 0.1 else float(rng.random() < 0.5 + bonus)
        votes.append((i, j, won))
        hear_vote(ledger, i, j, won, 1, 2)
        estimate, weight = naive.first_bonus(votes, 3)
        is_sure = estimate**2 * weight > 4
        expected = estimate * (1 - 4 / (estimate**2 * weight)) if is_sure else 0.0
        assert first_bonus(ledger.assumed) == pytest.approx(expected, abs=1e-9)
        taken_out += is_sure
    assert 200 < taken_out < 250 if is_known else taken_out < 50
    expected = first_bonus(ledger.assumed)
    told = ledger.estimates()
    for i in range(3):
        for j in range(3):
            shown = [w for first, second, w in votes if (first, second) == (i, j)]
            turned = [1 - w for first, second, w in votes if (first, second) == (j, i)]
            share = share_first(ledger.assumed, ledger.plays, ledger.conversions, i, j)
            assert share == pytest.approx(np.mean(shown) - expected)
            if i != j:
                wins = sum(shown) + sum(turned) - expected * (len(shown) - len(turned))
                assert told.wins[i, j] == pytest.approx(wins)
    assert not stands_still(ledger.assumed, ledger.plays, 0, 1) and drifts(ledger.assumed)
    assert final_age(ledger.assumed) > 10**9


def test_without_an_answer_either_arm_is_as_good_and_one_answer_counts():
    ledger = for_votes(open_ledger(assume(None, None, 2), 2))
    assert share_first(ledger.assumed, ledger.plays, ledger.conversions, 0, 1) == 0.5
    hear_vote(ledger, 0, 1, 1.0, 1, 2)
    assert share_first(ledger.assumed, ledger.plays, ledger.conversions, 0, 1) == 1.0
    assert share_first(ledger.assumed, ledger.plays, ledger.conversions, 1, 0) == 0.5


@pytest.mark.compiled
def test_votes_corrected_for_position_find_the_bonus_and_take_it_out():
    problem = duelay.Problem(PROBLEM.matrix, first_bonus=0.15)
    player = duelay.RUCB().start(4, seed=0, feedback="votes", corrects_position=True)
    rng = np.random.default_rng(2)
    for _ in range(20_000):
        duel = player.ask()
        won = rng.random() < problem.chances[duel.first, duel.second]
        player.tell(duel, winner="first" if won else "second")
    assert first_bonus(player._ledger.assumed) == pytest.approx(0.15, abs=0.02)
    mean, plays = player.standing().mean, player.standing().plays
    for j in range(1, 4):
        n = plays[0, j] + plays[j, 0]
        assert mean[0, j] == pytest.approx(problem.matrix[0, j], abs=4 * 0.5 / n**0.5 + 0.02)


@pytest.mark.compiled
def test_the_coin_cancels_a_bonus_and_champion_first_does_not():
    problem = duelay.Problem(arithmetic(4, 0.06).matrix, first_bonus=-0.2)
    kwargs = {"delay": "constant:1", "horizon": 20_000, "runs": 10, "seed": 0}
    led = [
        duelay.simulate(problem, duelay.RUCB(order=order), **kwargs).final.mean()
        for order in ("champion", "coin")
    ]
    assert led[1] < 0.5 * led[0]


@pytest.mark.parametrize(
    "winner", [True, np.True_, np.False_, np.array([1]), np.array([0, 1]), "1", None, 2, 1.5, [1]]
)
def test_what_names_no_winner_is_refused(winner):
    player = duelay.DoubleThompson(order="champion").start(2, seed=0, feedback="votes")
    while (duel := player.ask()).first == duel.second:
        pass
    with pytest.raises(ValueError, match="winner must"):
        player.tell(duel, winner=winner)
    assert player.tell(duel, winner=np.int64(duel.first)) == "counted"
    assert player.standing().conversions[duel.first, duel.second] == 1


@pytest.mark.parametrize("winner", [True, np.True_, np.array([0, 1]), 0, "second"])
def test_where_only_conversions_are_told_a_winner_is_refused(winner):
    player = duelay.RUCBDelay().start(2, seed=0)
    duel = player.ask()
    with pytest.raises(ValueError, match="winner must"):
        player.tell(duel, winner=winner)
    assert player.tell(duel, winner="first") == "counted"
