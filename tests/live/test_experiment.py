"""The face of a live experiment: what it gives, refuses and keeps."""

import datetime
import re

import numpy as np
import pytest

import duelay
from duelay.live import (
    Experiment,
    LiveDuel,
    PausedError,
    StoreError,
    UnknownDuelError,
    UnknownExperimentError,
    export,
    verify,
)
from live.hours import Hours, book_of, browser, settle

ARMS = ["red", "green", "blue"]


@pytest.fixture
def hours():
    return Hours()


@pytest.fixture
def experiment(store, hours):
    return Experiment.create(store, "x", ARMS, clock=hours, window="1h")


def test_it_never_shows_an_arm_against_itself(experiment):
    duels = [experiment.ask() for _ in range(30)]
    assert all(duel.first != duel.second for duel in duels)
    assert len({duel.id for duel in duels}) == 30


def test_an_arm_duels_itself_where_that_is_asked_for(store):
    experiment = Experiment.create(store, "x", ARMS, goal="regret", self_duels=True)
    assert experiment.policy.self_duels
    assert not Experiment.create(store, "y", ARMS, goal="regret").policy.self_duels


def test_the_order_is_a_fair_coin(experiment):
    shown = [experiment.ask() for _ in range(400)]
    firsts = sum(duel.first < duel.second for duel in shown)
    assert abs(firsts - 200) < 5 * 10  # five standard errors


def test_tell_is_idempotent_and_says_so(experiment):
    duel = experiment.ask()
    assert [experiment.tell(duel.id), experiment.tell(duel), experiment.tell(duel.id)] == [
        "counted", "repeated", "repeated",
    ]  # fmt: skip
    assert experiment.standing().conversions.sum() == 1


def test_an_answer_after_the_window_is_recorded_and_not_counted(store, experiment, hours):
    duels = [experiment.ask() for _ in range(3)]
    hours.pass_by(3600)
    assert experiment.tell(duels[0]) == "counted"  # at the end of the window
    hours.pass_by(1)
    assert [experiment.tell(duels[1]), experiment.tell(duels[1])] == ["late", "late"]
    standing = experiment.standing()
    assert standing.conversions.sum() == 1 and standing.late == 1
    assert standing.pending.sum() == 0
    assert verify(store) == ()


def test_at_says_when_an_answer_was_heard(store, experiment, hours):
    duels = [experiment.ask() for _ in range(4)]
    asked = hours.now
    hours.pass_by(5000)  # a queue is drained after the window
    settle(experiment)
    when = datetime.datetime.fromtimestamp(asked + 60, datetime.UTC)
    assert experiment.tell(duels[0], at=when) == "counted"
    assert experiment.tell(duels[1], at=asked - 0.5) == "counted"  # clocks differ a little
    with pytest.raises(ValueError, match="before"):
        experiment.tell(duels[3], at=asked - 9)
    assert experiment.tell(duels[2], at=asked + 3601) == "late"
    history = experiment.history()
    assert history.delay[:2].tolist() == [60.0, 0.0] and np.isnan(history.delay[2])
    assert verify(store) == ()
    with pytest.raises(ValueError, match="^at .*future"):
        experiment.tell(duels[3], at=hours.now + 10)


def test_a_duel_that_was_never_asked_is_an_error(store, experiment):
    for id in ("nobody", "x" * 300, "", None, 7, "a\0b"):
        with pytest.raises((UnknownDuelError, ValueError), match="duel"):
            experiment.tell(id)
    other = Experiment.create(store, "other", ARMS)
    with pytest.raises(UnknownDuelError):
        other.tell(experiment.ask())


def test_a_unit_has_its_duel_until_it_is_answered_or_closed(experiment, hours):
    duel = experiment.ask(unit="v")
    hours.pass_by(60)
    assert experiment.ask(unit="v") == duel
    assert experiment.ask(unit="w") != duel
    experiment.tell(duel)
    after = experiment.ask(unit="v")
    assert after.id != duel.id
    hours.pass_by(3601)
    assert experiment.ask(unit="v").id != after.id


def test_a_unit_of_a_retired_arm_gets_another_duel(experiment):
    duel = experiment.ask(unit="v")
    experiment.retire_arm(duel.first)
    after = experiment.ask(unit="v")
    assert after.id != duel.id and duel.first not in (after.first, after.second)
    assert experiment.tell(duel) == "counted"


def test_a_key_gives_the_same_duel_again_whatever_became_of_it(experiment, hours):
    duel = experiment.ask(key="k")
    experiment.tell(duel)
    hours.pass_by(10_000)
    assert experiment.ask(key="k") == duel
    assert experiment.standing().tick == 1


def test_units_and_keys_may_be_numbers(experiment):
    assert experiment.ask(unit=7) == experiment.ask(unit="7")


def test_once_declared_the_winner_is_shown_alone(store, hours):
    experiment = Experiment.create(store, "x", ["a", "b"], clock=hours, window="1h")
    shown = browser(experiment, hours, 500, [[0.5, 1.0], [0.0, 0.5]])
    assert shown < 500
    assert experiment.ask() == LiveDuel(None, None, None, True, "a")
    assert experiment.standing().winner == 0
    assert experiment.standing().headline.startswith("a wins: declared after")


def test_a_share_of_duels_goes_on_after_the_declaration(store, hours):
    experiment = Experiment.create(store, "x", ["a", "b"], clock=hours, share=0.3)
    browser(experiment, hours, 500, [[0.5, 1.0], [0.0, 0.5]])
    asks = [experiment.ask() for _ in range(200)]
    shown = [duel for duel in asks if duel.id is not None]
    assert 30 <= len(shown) <= 90  # 60 expected, five standard errors
    assert all(duel.settled and duel.winner == "a" and duel.first != duel.second for duel in asks
               if duel.id)  # fmt: skip


def test_a_pause_asks_nothing_and_hears_all(store, experiment, hours):
    duel = experiment.ask()
    experiment.pause()
    with pytest.raises(PausedError, match="resume"):
        experiment.ask()
    with pytest.raises(PausedError):
        Experiment.open(store, "x", clock=hours).ask()
    assert experiment.tell(duel) == "counted"
    assert experiment.status == "paused" and experiment.standing().headline.endswith("paused")
    experiment.resume()
    assert experiment.ask().id is not None


def test_arms_come_and_go_in_all_processes(store, experiment, hours):
    other = Experiment.open(store, "x", clock=hours)
    browser(experiment, hours, 30, np.full((3, 3), 0.5))
    experiment.add_arm("yellow")
    other.retire_arm("red")
    experiment.retire_arm("red")  # again: nothing changes
    assert other.arms == experiment.arms == ("red", "green", "blue", "yellow")
    shown = {arm for k in range(60) for arm in (other if k % 2 else experiment).ask()[1:3]}
    assert shown == {"green", "blue", "yellow"}
    standing = experiment.standing()
    assert standing.present.tolist() == [False, True, True, True]
    assert standing.joined.tolist() == [0, 0, 0, 1]
    assert verify(store) == ()
    with pytest.raises(ValueError, match="two arms"):
        for arm in ("green", "blue"):
            experiment.retire_arm(arm)
    with pytest.raises(ValueError, match="^name"):
        experiment.retire_arm("purple")


def test_a_declaration_is_withdrawn_when_an_arm_joins(store, hours):
    experiment = Experiment.create(store, "x", ["a", "b"], clock=hours)
    browser(experiment, hours, 500, [[0.5, 1.0], [0.0, 0.5]])
    experiment.add_arm("c")
    assert experiment.standing().winner is None
    assert not experiment.ask().settled
    assert verify(store) == ()


@pytest.mark.parametrize("winner", ["first", "second", "tie", "red", "green"])
def test_votes_say_who_won(store, winner):
    experiment = Experiment.create(store, "x", ["red", "green"], feedback="votes")
    duel = experiment.ask()
    assert experiment.tell(duel, winner) == "counted"
    won = {"tie": 0.5, "first": 1.0, "second": 0.0, duel.first: 1.0, duel.second: 0.0}[winner]
    assert experiment.history().first_won.tolist() == [won]
    for bad in (None, "blue", 1, ""):
        with pytest.raises(ValueError, match="^winner"):
            experiment.tell(experiment.ask(), bad)
    assert verify(store) == ()


def test_a_conversion_is_of_the_first_alone(experiment):
    duel = experiment.ask()
    with pytest.raises(ValueError, match="^winner"):
        experiment.tell(duel, "second")
    with pytest.raises(ValueError, match="^winner"):
        experiment.tell(duel, duel.second)
    assert experiment.tell(duel, duel.first) == "counted"


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_an_export_is_what_estimate_reads(store, hours, tmp_path, ending):
    experiment = Experiment.create(store, "x", ["a", "b", "c"], clock=hours, window="1h")
    browser(experiment, hours, 60, np.full((3, 3), 0.5), units=lambda k: f"v{k % 50}")
    experiment.add_arm("d")
    browser(experiment, hours, 20, np.full((4, 4), 0.5), seed=1)
    path = experiment.export(tmp_path / f"x.{ending}")
    told = experiment.history()
    history = duelay.History.read(path, window="1h", arms=told.arms)
    assert 60 < history.n == told.n <= 80 and history.arms == told.arms
    np.testing.assert_array_equal(history.first, told.first)
    np.testing.assert_allclose(history.delay, told.delay)
    assert len(set(history.unit.tolist())) == len(set(told.unit.tolist()))
    with pytest.raises(ValueError, match=r"\.csv or \.parquet"):
        experiment.export(tmp_path / "x.txt")


def test_delete_removes_all_of_it_and_nothing_else(store, experiment):
    other = Experiment.create(store, "other", ARMS)
    other.tell(other.ask())
    experiment.tell(experiment.ask())
    experiment.delete()
    assert Experiment.names(store) == ("other",)
    assert verify(store) == () and other.standing().conversions.sum() == 1
    with pytest.raises(UnknownExperimentError, match="deleted"):
        experiment.ask()
    Experiment.create(store, "x", ARMS)


@pytest.mark.parametrize("name", ["buttons", "another"])
def test_a_deleted_experiment_is_not_the_next_one_that_has_its_number(store, name):
    """SQLite gives the number away again: who has the old one open must not write to the new."""
    old = Experiment.create(store, "buttons", ["red", "green"])
    duel = old.ask()
    Experiment.open(store, "buttons").delete()
    new = Experiment.create(store, name, ["a", "b", "c"])
    new.ask()
    for call in (old.ask, lambda: old.tell(duel), old.standing, old.pause, old.history, old.delete,
                 lambda: old.arms):  # fmt: skip
        with pytest.raises(UnknownExperimentError, match="deleted"):
            call()
    assert new.standing().tick == 1 and verify(store) == ()


def test_names_are_unique_and_unknown_ones_are_listed(store, experiment):
    with pytest.raises(ValueError, match="^name"):
        Experiment.create(store, "x", ARMS)
    with pytest.raises(UnknownExperimentError, match="there are: x"):
        Experiment.open(store, "y")


@pytest.mark.parametrize(
    ("made", "words"),
    [
        ({"name": ""}, "name"),
        ({"name": "a/b"}, "name"),
        ({"name": ".."}, "name"),
        ({"name": "n" * 201}, "200"),
        ({"name": "a\0b"}, "NUL"),
        ({"arms": ["a"]}, "at least 2"),
        ({"arms": ["a", "a"]}, "different names"),
        ({"arms": ["a", "\ud800"]}, "can be written"),
        ({"goal": "win"}, "goal"),
        ({"window": 14}, "window"),
        ({"feedback": "counts"}, "feedback"),
        ({"error": 1.5}, "error"),
        ({"share": 2}, "share"),
        ({"forget_after": "1h"}, "forget_after"),
        ({"window": None, "forget_after": "1h"}, "forget_after"),
        ({"policy": "rr-db-delay"}, "clock"),
        ({"policy": duelay.RUCBDelay(delay="exponential:1h", window="1d")}, "many processes"),
        ({"policy": duelay.DoubleThompson(order="alternate")}, "order='coin'"),
        ({"policy": duelay.Decide(delay="exponential:1h", window="1d")}, "leave the law out"),
        ({"policy": duelay.Decide(winner_exists=True)}, "winner_exists"),
        ({"policy": duelay.Decide(margin=0.05), "margin": 0.1}, "margin"),
        ({"policy": 7}, "policy"),
        ({"freshness": -1}, "freshness"),
        ({"clock": "wall"}, "clock"),
        ({"policy": "decide", "goal": "regret"}, "goal"),
        ({"policy": "decide:window=3d", "window": "5d"}, "window"),
        ({"policy": "decide:error=0.01", "error": 0.2}, "error"),
        ({"arms": ["first", "b"], "feedback": "votes"}, "arms"),
    ],
)
def test_bad_input_is_refused_in_a_sentence_and_leaves_nothing(store, made, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        Experiment.create(store, **{"name": "x", "arms": ARMS, **made})
    Experiment.create(store, "there", ARMS)
    assert Experiment.names(store) == ("there",)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("mysql://host/name", "store"),
        ("sqlite://", "store"),
        ("sqlite:///:memory:", "store"),
        ("no://such", "store"),
        (7, "store"),
    ],
)
def test_bad_addresses_are_refused(url, words):
    with pytest.raises(ValueError, match=words):
        Experiment.create(url, "x", ARMS)


def test_what_a_policy_does_not_say_is_filled_in(store):
    first = Experiment.create(store, "x", ARMS, policy="decide", window="3d", error=0.3)
    assert str(first.policy) == "decide:window=3d,error=0.3,self_duels=false"
    second = Experiment.create(store, "y", ARMS, policy="decide:window=3d,error=0.01")
    assert str(second.policy) == "decide:window=3d,error=0.01,self_duels=false"
    assert second.standing().error == 0.01
    third = Experiment.create(store, "z", ARMS, policy="double-thompson", self_duels=True)
    assert str(third.policy) == "double-thompson:window=14d"


def test_alarms_are_of_what_enters_the_evidence(store, hours):
    experiment = Experiment.create(store, "x", ["a", "b"], feedback="votes", clock=hours)
    rng = np.random.default_rng(0)
    for k in range(150):  # three answers of each unit, all of one taste
        taste = ("a", "b")[rng.integers(2)]
        for _ in range(3):
            hours.pass_by(2)
            experiment.tell(experiment.ask(unit=k), taste)
    assert [alarm.name for alarm in experiment.standing().alarms] == []


def test_a_folder_or_store_that_is_not_there_is_said(tmp_path):
    with pytest.raises(StoreError, match="no folder"):
        Experiment.create(f"sqlite:///{tmp_path}/no/duels.db", "x", ARMS)
    with pytest.raises(StoreError, match="no file"):
        Experiment.open(f"sqlite:///{tmp_path}/duels.db", "x")
    assert list(tmp_path.iterdir()) == []


def test_a_path_is_a_file_of_sqlite(tmp_path):
    Experiment.create(tmp_path / "duels.db", "x", ARMS)
    assert Experiment.names(str(tmp_path / "duels.db")) == ("x",)


def test_what_is_told_survives_a_restart(store, hours):
    experiment = Experiment.create(store, "x", ARMS, clock=hours, window="1h")
    browser(experiment, hours, 40, np.full((3, 3), 0.5))
    before = book_of(experiment)
    experiment.close()
    after = Experiment.open(store, "x", clock=hours)
    browser(after, hours, 40, np.full((3, 3), 0.5), seed=1)
    assert (book_of(after).ledger.plays >= before.ledger.plays).all()
    assert after.standing().tick == 80 and after.policy == experiment.policy
    assert verify(store) == ()


def test_many_repeats_are_warned_of(store, hours):
    experiment = Experiment.create(store, "x", ["a", "b"], clock=hours)
    for _ in range(30):
        hours.pass_by(1)
        experiment.tell(experiment.ask(unit="same"))
    assert any("had had the pair before" in words for words in experiment.standing().warnings)


@pytest.mark.parametrize("goal", ["decide", "regret"])
@pytest.mark.parametrize("n_arms", [2, 30])
def test_odd_sizes(store, hours, goal, n_arms):
    experiment = Experiment.create(store, "x", n_arms, goal=goal, clock=hours, window=None)
    browser(experiment, hours, 20, np.full((n_arms, n_arms), 0.5), never=1.0)
    standing = experiment.standing()
    assert standing.tick == 20 and standing.winner is None
    assert "nothing has been heard" in str(standing)
    assert verify(store) == ()


def test_a_history_is_read_in_parts(store, monkeypatch):
    experiment = Experiment.create(store, "x", ["a", "b"])
    for n in range(21):
        duel = experiment.ask()
        if n % 2:
            experiment.tell(duel)
    whole = experiment.history()
    for size in (1, 7, 20, 21):
        monkeypatch.setattr(export, "_MAX_ROWS_PER_READ", size)
        found = experiment.history()
        assert found.first.tolist() == whole.first.tolist() and found.n == 21
        assert np.array_equal(found.delay, whole.delay, equal_nan=True)
    assert experiment.latest(5).n == 5
    experiment.close()
