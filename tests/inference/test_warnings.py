"""What a standing warns of, each against a program that does it, and one that does not."""

import numpy as np
import pytest

import duelay
from duelay.assumptions import check_assumptions

MU = np.array([[0.5, 0.56, 0.65], [0.44, 0.5, 0.6], [0.35, 0.4, 0.5]])


def play(policy, n, *, seed=0, tells=None, feedback="conversions", late=5, **how):
    """A program whose answers take a few ticks; `tells(duel, won, rng)` says what it does."""
    player = policy.start(["sun", "sea", "hill"], seed=seed, feedback=feedback, **how)
    rng = np.random.default_rng(seed + 1000)
    due = {}
    for tick in range(n):
        for duel, words in due.pop(tick, []):
            player.tell(duel, *words)
        duel = player.ask()
        won = rng.random() < MU[duel.first, duel.second]
        words = (tells or only_wins)(duel, won, rng)
        if words is not None:
            due.setdefault(tick + 1 + int(rng.integers(late)), []).append((duel, words))
    return player


def only_wins(duel, won, rng):
    return () if won else None


def found_of(player):
    return {finding.name: finding for finding in check_assumptions(player.history())}


def warnings_of(player):
    return " | ".join(player.standing().warnings)


@pytest.mark.long
@pytest.mark.interpreted
def test_all_is_well_by_coin_with_self_duels_silent():
    def tells(duel, won, rng):
        return () if won and duel.first != duel.second else None

    player = play(duelay.RMED(delay="learn", window=50), 4000, tells=tells)
    assert player.standing().plays.trace() > 100
    assert warnings_of(player) == ""
    assert not [str(f) for f in check_assumptions(player.history()) if f.is_alarm]


def test_every_answer_told_as_a_conversion_is_noticed():
    player = play(duelay.RMED(), 800, tells=lambda duel, won, rng: ())
    assert "duels of two arms convert, and half is the most" in warnings_of(player)
    position = found_of(player)["position effect"]
    assert position.is_alarm and "wins of the second are told too" in position.sentence


@pytest.mark.long
@pytest.mark.interpreted
def test_self_duels_that_convert_too_often_are_noticed():
    policy = duelay.RMED(delay="learn-from-self-duels", order="champion", window=50)

    def tells(duel, won, rng):
        return () if won or (duel.first == duel.second and rng.random() < 0.8) else None

    assert "self-duels convert, and half is the most" in warnings_of(
        play(policy, 2000, tells=tells)
    )
    assert "self-duels convert" not in warnings_of(play(policy, 2000))


def test_a_law_from_self_duels_that_nobody_shows_says_how_many_were_asked():
    policy = duelay.RMED(delay="learn-from-self-duels", order="champion", window=50)

    def tells(duel, won, rng):
        return () if won and duel.first != duel.second else None

    player = play(policy, 1500, tells=tells)
    asked = int(player.standing().plays.trace())
    assert f"0 of 100 conversions of self-duels have been heard, of {asked} asked" in warnings_of(
        player
    )


@pytest.mark.long
@pytest.mark.interpreted
def test_answers_after_the_window_are_counted_and_said():
    player = play(duelay.RMED(delay="learn", window=4), 2000, late=8)
    standing = player.standing()
    assert standing.late > 100 and f"{standing.late} answers came after" in warnings_of(player)
    assert play(duelay.RMED(delay="learn", window=8), 2000, late=8).standing().late == 0


def test_beside_late_votes_all_that_were_counted_are_said_whoever_won():
    def tells(duel, won, rng):
        return ("first" if won else "second",)

    policy = duelay.RMED(delay="learn", window=4)
    player = play(policy, 1500, tells=tells, feedback="votes", late=8)
    standing = player.standing()
    assert standing.heard + standing.late > 1480 and standing.heard > standing.conversions.sum()
    assert f"not counted ({standing.heard} were)" in warnings_of(player)


def test_where_every_arm_is_beaten_it_says_so():
    circle = np.array([[0.5, 0.9, 0.1], [0.1, 0.5, 0.9], [0.9, 0.1, 0.5]])
    player = duelay.RMED().start(3, seed=0)
    rng = np.random.default_rng(0)
    for _ in range(1500):
        duel = player.ask()
        if rng.random() < circle[duel.first, duel.second]:
            player.tell(duel)
    assert not player.standing().candidates.any()
    assert "every arm is beaten by another one" in warnings_of(player)


def test_a_bonus_is_not_learned_from_an_arm_shown_alone():
    """Told "first" every time, self-duels used to teach a bonus of one half."""

    def tells(duel, won, rng):
        return ("first",) if won or duel.first == duel.second else ("second",)

    player = play(duelay.RMED(), 3000, tells=tells, feedback="votes", corrects_position=True)
    standing = player.standing()
    assert standing.plays.trace() > 100 and standing.leader == 0
    assert standing.mean[0, 1] == pytest.approx(MU[0, 1], abs=0.05)  # the pair played most


def test_a_champion_first_by_design_is_no_alarm():
    player = play(duelay.RMED(delay="constant:3", order="champion"), 1500)
    finding = found_of(player)["order balance"]
    assert finding.p_value < 1e-6 and not finding.is_alarm and "by design" in finding.sentence


@pytest.mark.parametrize("feedback", ["conversions", "votes"])
def test_a_history_is_written_and_read_back(tmp_path, feedback):
    def votes(duel, won, rng):
        return None if rng.random() < 0.2 else (rng.choice(["first", "second", "tie"]),)

    tells = votes if feedback == "votes" else None
    history = play(duelay.RMED(), 300, tells=tells, feedback=feedback).history()
    history.to_csv(tmp_path / "duels.csv")
    again = duelay.History.from_csv(tmp_path / "duels.csv", order="coin")
    assert again.feedback == history.feedback and set(again.arms) == set(history.arms)
    for name in ("first", "second"):
        ours, theirs = getattr(history, name), getattr(again, name)
        assert [history.arms[a] for a in ours] == [again.arms[a] for a in theirs]
    np.testing.assert_array_equal(again.delay, history.delay)
    np.testing.assert_array_equal(again.first_won, history.first_won)


def test_two_arms_always_can_be_asked_for():
    assert duelay.recommend(self_duels=False).policy == duelay.DoubleThompson(
        delay="learn", self_duels=False
    )
    with pytest.raises(ValueError, match="delay must"):
        duelay.recommend(self_duels=False, order_free=False)
    with pytest.raises(ValueError, match="^feedback"):
        duelay.recommend(100, feedback="counts", order_free=False)
    reason = duelay.recommend(feedback="votes", order_free=False).reason
    assert "advantage of the first place" in reason
