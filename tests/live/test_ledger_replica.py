"""The ledger that follows a store is a player's: the same duels and answers, the same numbers."""

import numpy as np
import pytest

import duelay
from duelay.live import Experiment, verify
from duelay.live.state import ExperimentState
from live.hours import Hours, book_of, browser, settle

LEARNS = "double-thompson:delay=learn"
MU = np.array([[0.5, 0.6, 0.7], [0.4, 0.5, 0.6], [0.3, 0.4, 0.5]])


def read(experiment):
    """The ledger, brought up to date now."""
    replica = experiment._writer._selector.replica
    with experiment.store.writing() as connection:
        state = ExperimentState.load(connection, experiment.writer.read_head(connection))
        replica.read(connection, state, round(experiment._writer.clock() * 1e6))
    return replica._ledger


def player_of(experiment, hours):
    """A player of the same policy that has heard the same, at the same time."""
    history = experiment.history()
    start = experiment.policy.start
    first = [arm for arm, late in zip(history.arms, history.joined, strict=True) if not late]
    player = start(first, 0, clock="wall", feedback=history.feedback).replay(history)
    return player


def same(ours, theirs):
    """Whether two ledgers say the same."""
    for name in ("plays", "conversions"):
        off = ~np.eye(len(ours.plays), dtype=bool)
        np.testing.assert_array_equal(getattr(ours, name)[off], getattr(theirs, name)[off])
    a, b = ours.estimates(), theirs.estimates()
    np.testing.assert_allclose(a.expected, b.expected, atol=1e-9)
    np.testing.assert_allclose(a.wins, b.wins, atol=1e-9)


@pytest.mark.parametrize("policy", [LEARNS, "double-thompson",
                                    "double-thompson:delay=(exponential:5m)"])  # fmt: skip
@pytest.mark.parametrize("window", ["14d", "20m"], ids=["all open", "most closed"])
def test_a_ledger_that_has_followed_is_a_players(store, policy, window):
    """With a short window most of it comes from the counts of closed duels."""
    hours = Hours()
    policy = f"{policy}{',' if ':' in policy else ':'}window={window},self_duels=false"
    experiment = Experiment.create(store, "x", ["a", "b", "c"], policy=policy, clock=hours)
    browser(experiment, hours, 160, MU, every=20.0, mean=60.0)
    settle(experiment)
    late = Experiment.open(store, "x", clock=hours)  # begins with what is closed
    assert (book_of(late).head["closed"] > 60) == (window == "20m")
    theirs = player_of(experiment, hours)
    duel = theirs.ask(at=hours.now)  # brings its ledger to now; its own duel is taken out again
    player = theirs._ledger
    player.plays[duel.first, duel.second] -= 1
    for each in (experiment, late):
        ours = read(each)
        if "learn" in policy:
            assert ours.assumed.n_taught[0] == player.assumed.n_taught[0]
            last = -1 if window == "14d" else len(ours.assumed.ages) - 1
            np.testing.assert_array_equal(ours.assumed.events[:last], player.assumed.events[:last])
            np.testing.assert_array_equal(ours.assumed.at_risk[:last],
                                          player.assumed.at_risk[:last])  # fmt: skip
        else:
            same(ours, player)
    assert verify(store) == ()


@pytest.mark.parametrize("window", ["14d", "20m"])
def test_votes_are_followed_too(store, window):
    hours = Hours()
    experiment = Experiment.create(store, "x", ["a", "b", "c"], goal="regret", feedback="votes",
                                   window=window, clock=hours)  # fmt: skip
    browser(experiment, hours, 100, MU, every=20.0, mean=60.0, votes=True)
    settle(experiment)
    theirs = player_of(experiment, hours)._ledger
    for each in (experiment, Experiment.open(store, "x", clock=hours)):
        same(read(each), theirs)


def test_arms_that_came_and_went_are_followed(store):
    hours = Hours()
    experiment = Experiment.create(store, "x", ["a", "b", "c"], goal="regret", window="20m",
                                   clock=hours)  # fmt: skip
    browser(experiment, hours, 80, MU, every=20.0, mean=60.0)
    experiment.retire_arm("b")
    experiment.add_arm("d")
    browser(experiment, hours, 60, np.full((4, 4), 0.5), seed=1, every=20.0, mean=60.0)
    settle(experiment)
    theirs = player_of(experiment, hours)._ledger
    for each in (experiment, Experiment.open(store, "x", clock=hours)):
        ours = read(each)
        assert ours.plays.shape == theirs.plays.shape == (3, 3)
        off = ~np.eye(3, dtype=bool)
        np.testing.assert_array_equal(ours.plays[off], theirs.plays[off])
        np.testing.assert_array_equal(ours.conversions[off], theirs.conversions[off])
        assert ours.assumed.n_taught[0] == theirs.assumed.n_taught[0]


def test_repeats_of_a_unit_teach_nothing(store):
    hours = Hours()
    experiment = Experiment.create(store, "x", ["a", "b"], goal="regret", clock=hours)
    for _ in range(30):
        hours.pass_by(2)
        experiment.tell(experiment.ask(unit="same"))
    ledger = read(experiment)
    off = ~np.eye(2, dtype=bool)
    assert ledger.plays[off].sum() == ledger.conversions[off].sum() == 1
    assert ledger.assumed.n_taught[0] == 1


def test_a_policy_that_saves_regret_shows_the_better_arms_more(store):
    hours = Hours()
    mu = np.array([[0.5, 0.95, 0.95], [0.05, 0.5, 0.5], [0.05, 0.5, 0.5]])
    experiment = Experiment.create(store, "x", ["a", "b", "c"], goal="regret", error=1e-12,
                                   clock=hours)  # fmt: skip
    browser(experiment, hours, 160, mu, mean=20.0, never=0.0)
    plays = experiment.standing().plays
    assert plays.sum() > 80 and plays[0].sum() + plays[:, 0].sum() > 0.75 * plays.sum()
    assert experiment.policy == duelay.recommend(window="14d", self_duels=False).policy
