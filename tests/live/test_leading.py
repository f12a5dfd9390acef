"""Who leads, as somebody sees it who has not looked at the evidence before."""

import time
from contextlib import closing

import pytest

import duelay
from duelay.live import Experiment, PausedError, Store
from duelay.page.build import build_experiment, build_list
from live.hours import Hours


@pytest.mark.parametrize("arms", [["old", "new"], ["new", "old"]])
def test_who_opens_an_experiment_names_its_leader(tmp_path, arms):
    with closing(Store(tmp_path / "duels.db")) as store:
        experiment = Experiment.create(store, "models", arms, feedback="votes")
        experiment.tell_all([(experiment.ask(), "new") for _ in range(6)])
        standing = Experiment.open(store, "models").standing()
        assert standing.winner is None
        assert standing.arms[standing.leader] == "new"
        assert "leads" not in standing.headline  # of so few answers that is chance


def test_a_process_chooses_by_what_another_has_heard_though_it_never_looks(tmp_path):
    with closing(Store(tmp_path / "duels.db")) as store:
        one = Experiment.create(store, "models", ["a", "b", "c"], feedback="votes")
        other = Experiment.open(store, "models", freshness=1e9)  # somebody else always looks
        other.ask()
        for _ in range(8):
            duel = one.ask()
            one.tell(duel, "c" if "c" in (duel.first, duel.second) else "first")
        looked = one.standing()
        other.ask()
        doubts = other._writer.state.eprocess.doubts
        assert looked.leader == 2 and doubts[2] == doubts.min()  # another may never have met it
        assert doubts.max() > 0


CIRCLE = {"ab": "a", "bc": "b", "ac": "c"}  # who wins a pair: there is something against each


@pytest.mark.parametrize("goal", ["decide", "regret"])
def test_an_arm_that_was_never_shown_does_not_lead(tmp_path, goal):
    with closing(Store(tmp_path / "duels.db")) as store:
        experiment = Experiment.create(store, "x", list("abc"), goal=goal, feedback="votes")
        for _ in range(60):
            duel = experiment.ask()
            experiment.tell(duel, CIRCLE["".join(sorted(duel.first + duel.second))])
        experiment.add_arm("new")
        standing, page = experiment.standing(), build_experiment(experiment)
        assert standing.arms[standing.leader] != "new"
        assert not [arm for arm in page.arms if arm.name == "new" and arm.is_leader]
        assert build_list(store)[0].leader != "new"


@pytest.mark.parametrize("policy", [duelay.Decide(window="1h"), duelay.DoubleThompson()])
def test_an_arm_that_a_player_never_showed_does_not_lead(policy):
    begin = time.time() - 600.0
    player = policy.start(list("abc"), seed=0, clock="wall", feedback="votes")
    for at in range(60):
        duel = player.ask(at=begin + at)
        if duel.first != duel.second:
            winner = CIRCLE["".join(sorted(player.arms[arm] for arm in duel[1:3]))]
            player.tell(duel, player.arms.index(winner), at=begin + at)
    player.add_arm("new")
    standing = player.standing()
    assert standing.arms[standing.leader] != "new"


def test_who_asks_a_paused_experiment_is_shown_its_winner(store):
    hours = Hours()
    experiment = Experiment.create(
        store, "x", ["a", "b"], feedback="votes", share=0.9, policy="decide:wait=1h", clock=hours
    )
    with pytest.raises(PausedError):
        experiment.pause()
        experiment.ask()
    experiment.resume()
    experiment.tell_all([(experiment.ask(), "a") for _ in range(100)])
    hours.pass_by(3601)
    experiment.settle()
    experiment.pause()
    assert experiment.ask("ann", "key") == (None, None, None, True, "a")
    experiment.resume()
    assert experiment.ask().winner == "a"
    experiment.close()
