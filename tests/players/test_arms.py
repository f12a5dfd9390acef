"""Arms that come and go: who is asked, what stays, and what a standing says of it."""

import pickle

import numpy as np
import pytest

import duelay
from duelay import delays
from duelay.ledger.evidence.winner_threshold import needed

STRENGTH = {"a": 4.0, "b": 2.0, "c": 1.0, "d": 6.0}


def play(player, n, start, rng, law="exponential:1m"):
    """Ask n duels a second apart; `due` of the player's own keeps what is still to be told."""
    law = delays.check(law)
    due = player.__dict__.setdefault("_due", [])
    for now in start + np.arange(n, dtype=float):
        for heard, number in sorted(one for one in due if one[0] <= now):
            player.tell(number, at=heard)
        due[:] = [one for one in due if one[0] > now]
        duel = player.ask(at=now)
        one, other = (STRENGTH[player.arms[arm]] for arm in (duel.first, duel.second))
        if rng.random() < one / (one + other):
            due.append((now + float(law.sample(seed=rng)), duel.id))
    return start + n


POLICIES = ["decide", "decide:winner_exists=true", "double-thompson:delay=learn", "double-thompson",
            "double-thompson:delay=exponential:1m", "rmed", "rucb:order=coin", "borda",
            "double-thompson:order=alternate", "maillard"]  # fmt: skip


@pytest.mark.long
@pytest.mark.interpreted
@pytest.mark.parametrize("policy", POLICIES)
def test_an_arm_joins_another_is_retired_and_comes_back_with_its_past(policy):
    rng = np.random.default_rng(1)
    player = duelay.policies.parse(policy).start(["a", "b", "c"], seed=0, clock="wall")
    now = play(player, 80, 0.0, rng)
    before = player.standing()
    player.add_arm("d")
    after = player.standing()
    assert player.arms == ("a", "b", "c", "d") and after.present.all()
    assert after.joined.tolist() == [0, 0, 0, 1]
    np.testing.assert_array_equal(after.plays[:3, :3], before.plays)
    np.testing.assert_array_equal(after.conversions[:3, :3], before.conversions)
    if before.winner is None:
        np.testing.assert_allclose(after.mean[:3, :3], before.mean, atol=0.1)
    now = play(player, 80, now, rng)
    assert player.standing().plays[3].sum() + player.standing().plays[:, 3].sum() > 5
    player.retire_arm("a")
    last = player.tick
    now = play(player, 40, now, rng)
    history = player.history()
    assert 0 not in history.first[last:] and 0 not in history.second[last:]
    standing = player.standing()
    assert standing.present.tolist() == [False, True, True, True]
    assert not standing.candidates[0] and standing.leader != 0
    assert standing.plays.sum() == 200
    assert "a (retired)" in str(standing)
    player.add_arm("a")
    standing = player.standing()
    assert standing.present.all() and standing.joined.tolist() == [0, 0, 0, 1]
    np.testing.assert_array_equal(standing.plays[:3, :3] >= before.plays, True)
    now = play(player, 30, now, rng)
    copy = pickle.loads(pickle.dumps(player))
    assert copy.ask(at=now) == player.ask(at=now)
    assert copy.standing().present.all()


@pytest.mark.parametrize("policy", ["decide", "double-thompson:delay=learn"])
def test_an_open_duel_of_a_retired_arm_is_still_heard(policy):
    player = duelay.policies.parse(policy).start(["a", "b", "c"], seed=0, clock="wall")
    duels = [player.ask(at=0.0) for _ in range(30)]
    mine = next(duel for duel in duels if 0 in (duel.first, duel.second))
    player.retire_arm("a")
    assert player.tell(mine, at=5.0) == "counted"
    assert player.tell(mine, at=5.0) == "repeated"
    assert player.standing().conversions[mine.first, mine.second] == 1
    player.add_arm("a")
    assert player.standing().conversions[mine.first, mine.second] == 1
    assert player._ledger.conversions[mine.first, mine.second] == 1


def test_in_ticks_arms_come_and_go_too_but_not_for_a_policy_that_decides():
    player = duelay.DoubleThompson().start(["a", "b", "c"], seed=0)
    for _ in range(40):
        player.tell(player.ask())
    player.retire_arm("b")
    assert all(1 not in tuple(player.ask())[1:] for _ in range(40))
    player.add_arm("d")
    assert player.standing().plays.sum() == 80
    deciding = duelay.Decide().start(["a", "b", "c"], seed=0)
    with pytest.raises(ValueError, match='`error`.*clock="wall"'):
        deciding.add_arm("d")
    deciding.retire_arm("c")
    assert all(2 not in tuple(deciding.ask())[1:] for _ in range(20))


def test_the_duels_left_are_those_to_the_dearer_threshold():
    rng = np.random.default_rng(0)
    player = duelay.Decide().start(["a", "b", "c"], seed=0, clock="wall")
    now = play(player, 600, 0.0, rng)
    assert player.standing().duels_left == (0, 0, 0) and player.standing().winner == 0
    player.retire_arm("c")  # passed: the next ask declares anew
    assert player.standing().winner is None and player.standing().duels_left == (0, 0, 0)
    player.ask(at=now)
    assert player.standing().winner == 0
    early = duelay.Decide().start(["a", "b", "c"], seed=0, clock="wall")
    play(early, 60, 0.0, rng)
    eprocess = early._ledger.assumed
    before = early.standing().evidence
    early.retire_arm("b")  # not passed: a needs more over c
    after = early.standing().evidence
    more = needed(early._ledger.assumed, 0, 2) - eprocess.level
    assert more == pytest.approx(np.log(16 / 0.005) - eprocess.level) and more > 1
    assert after.lacks[0, 2] == pytest.approx(before.lacks[0, 2] + more)
    assert (after.lacks[:, 1] == 0).all() and (np.diag(after.lacks) == 0).all()
    copy = duelay.Decide().start(early.arms, clock="wall").replay(early.history())
    np.testing.assert_allclose(copy.standing().evidence.lacks, after.lacks)
    assert copy.standing().duels_left == early.standing().duels_left


def test_a_late_comer_can_win_and_a_winner_is_declared_anew():
    rng = np.random.default_rng(3)
    player = duelay.Decide().start(["a", "b", "c"], seed=0, clock="wall")
    now = play(player, 700, 0.0, rng)
    assert player.standing().winner == 0
    player.add_arm("d")
    assert player.standing().winner is None
    play(player, 2500, now, rng)
    assert player.arms[player.standing().winner] == "d"
    assert player.standing().guarantee.kind == "proved" and player.standing().error == 0.05


def test_once_arms_change_a_winner_that_was_taken_for_granted_costs_twice_the_error():
    player = duelay.Decide(winner_exists=True).start(["a", "b", "c"], seed=0, clock="wall")
    assert player.standing().error == 0.05
    player.retire_arm("c")
    assert player.standing().error == 0.1
    assert "if one arm beats all others" not in player.standing().guarantee.words


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda player: player.add_arm(""), "name must"),
        (lambda player: player.add_arm(3), "name must"),
        (lambda player: player.retire_arm("z"), "name must"),
        (lambda player: (player.retire_arm("a"), player.retire_arm("b")), "two arms must stay"),
    ],
)
@pytest.mark.parametrize("policy", ["decide", "double-thompson"])
def test_a_change_that_cannot_be_is_refused_and_changes_nothing(policy, change, words):
    player = duelay.policies.parse(policy).start(["a", "b", "c"], seed=0, clock="wall")
    with pytest.raises(ValueError, match=words):
        change(player)
    assert player.arms == ("a", "b", "c") and player.standing().present.sum() >= 2
    player.ask(at=5.0)


@pytest.mark.parametrize("policy", ["decide", "double-thompson"])
def test_what_is_so_already_changes_nothing(policy):
    """A program that starts again says again who is there."""
    player = duelay.policies.parse(policy).start(["a", "b", "c"], seed=0, clock="wall")
    play(player, 60, 0.0, np.random.default_rng(0))
    winner, history = player.standing().winner, player.history()
    player.add_arm("a")
    assert player.history().changes == () and player.standing().winner == winner
    player.retire_arm("c")
    player.retire_arm("c")
    player.add_arm("d")
    player.add_arm("d")
    changes = player.history().changes
    assert [change[:3] for change in changes] == [(60, "c", "retired"), (60, "d", "joined")]
    assert {change.at for change in changes} == {history.now}


def test_an_arm_that_went_and_came_back_has_changed_what_is_taken_for_granted():
    player = duelay.Decide(winner_exists=True).start(["a", "b", "c"], seed=0, clock="wall")
    player.retire_arm("c")
    player.add_arm("c")
    assert player.standing().error == 0.1 and player.standing().confidence == 0.95


def test_a_law_by_pair_does_not_lose_an_arm():
    law = delays.ByPair.of(3, lambda i, j: delays.Exponential("1m"))
    player = duelay.DoubleThompson(delay=law).start(["a", "b", "c"], seed=0, clock="wall")
    with pytest.raises(ValueError, match="delay must"):
        player.retire_arm("a")
    assert player.standing().present.all() and player.ask(at=1.0).id == 0


def test_a_law_by_pair_has_no_room_for_another_arm():
    law = delays.ByPair.of(3, lambda i, j: delays.Exponential("1m"))
    player = duelay.DoubleThompson(delay=law).start(["a", "b", "c"], seed=0, clock="wall")
    with pytest.raises(ValueError, match="delay must"):
        player.add_arm("d")
    assert player.arms == ("a", "b", "c") and player.ask(at=1.0).id == 0


def test_rounds_do_not_change_their_arms():
    with pytest.warns(UserWarning, match="horizon"):
        player = duelay.MRRDBDelay(mean_delay=2, horizon=50).start(["a", "b", "c"], seed=0)
    with pytest.raises(ValueError, match="cannot change"):
        player.add_arm("d")


@pytest.mark.long
@pytest.mark.interpreted
@pytest.mark.parametrize("is_by_clock", [True, False])
def test_duels_of_a_retired_arm_still_teach_the_law(is_by_clock):
    policy = duelay.DoubleThompson(delay="learn", window=None if is_by_clock else 50)
    player = policy.start(["a", "b", "c"], seed=0, **({"clock": "wall"} if is_by_clock else {}))
    rng = np.random.default_rng(0)

    def ask_and_tell(n, start):
        for k in range(n):
            at = {"at": start + 10.0 * k} if is_by_clock else {}
            duel = player.ask(**at)
            if rng.random() < 0.5:
                player.tell(duel, **({"at": at["at"] + 5.0} if is_by_clock else {}))

    ask_and_tell(300, 0.0)
    open_duel = next(d for d in range(290, 300) if not player._duels.is_answered(d))
    before = int(player._ledger.assumed.n_taught[0])
    player.retire_arm("a")
    assert int(player._ledger.assumed.n_taught[0]) == before
    player.tell(open_duel, **({"at": 3001.0} if is_by_clock else {}))
    is_of_two = len({*player._duels.arms_of(open_duel)}) == 2
    assert int(player._ledger.assumed.n_taught[0]) == before + is_of_two
    ask_and_tell(60, 3010.0)
    assert np.diag(player.standing().mean).tolist() == [0.5, 0.5, 0.5]
