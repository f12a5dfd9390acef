"""The evidence of a store is a player's: the same duels and answers give the same bets."""

import dataclasses

import numpy as np
import pytest

import duelay
from duelay.live import Experiment, verify
from live.hours import Hours, book_of, browser, settle

MU = np.array([[0.5, 0.7, 0.6], [0.3, 0.5, 0.55], [0.4, 0.45, 0.5]])
CLEAR = np.array([[0.5, 0.95, 0.9], [0.05, 0.5, 0.6], [0.1, 0.4, 0.5]])
TIED = np.full((3, 3), 0.5)


def play(store, mu, n=160, *, seed=0, **made):
    """Visitors of an experiment that settles and looks when a player would: at each ask."""
    hours = Hours()
    made = {"window": "1h", "name": "x", "arms": ["a", "b", "c"], **made}
    experiment = Experiment.create(store, clock=hours, freshness=1e9, **made)
    experiment._writer._selector.rng = np.random.default_rng(seed)
    votes = made.get("feedback") == "votes"
    browser(
        experiment, hours, n, mu, seed, every=20.0, votes=votes, before=lambda: settle(experiment)
    )
    return experiment


@pytest.mark.parametrize("feedback", ["conversions", "votes"])
@pytest.mark.parametrize("mu", [MU, TIED], ids=["clear", "tied"])
def test_bets_are_those_of_a_player_that_heard_the_same(store, feedback, mu):
    experiment = play(store, mu, feedback=feedback, error=1e-9)
    state, history = book_of(experiment), experiment.history()
    policy = duelay.Decide(window="1h", error=1e-9, self_duels=False)
    player = policy.start(["a", "b", "c"], 0, clock="wall", feedback=feedback).replay(history)
    theirs, ours = player._ledger.assumed, state.eprocess
    for name in ("wealth", "lead", "n", "wins"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), atol=1e-9)
    for name in ("kappa", "matured", "answered", "n_heard", "refit"):
        assert getattr(ours, name)[0] == pytest.approx(getattr(theirs, name)[0]), name
    assert (ours.n_open == theirs.n_open).all()
    assert ours.n_heard[0] > 15 and ours.matured[0] > 20


@pytest.mark.parametrize("seed", range(2))
def test_a_winner_is_declared_when_a_player_declares_it(store, seed):
    experiment = play(store, CLEAR, 1000, seed=seed)
    state, history = book_of(experiment), experiment.history()
    assert history.n < 1000, "nobody was declared"
    policy = duelay.Decide(window="1h", self_duels=False)
    player = policy.start(["a", "b", "c"], 0, clock="wall")
    player.replay(dataclasses.replace(history, declared=None))
    assert player.standing().winner is None
    player.ask(at=history.now)  # it looks at what was heard since the last duel
    theirs, ours = player._ledger.assumed, state.eprocess
    assert (ours.winner[0], ours.declared[0]) == (theirs.winner[0], theirs.declared[0])
    assert ours.declared[0] == history.n == history.declared.tick
    np.testing.assert_allclose(ours.best, theirs.best, atol=1e-9)
    size = int(ours.path_size[0])
    assert (ours.path_tick[:size] == theirs.path_tick[:size]).all()
    np.testing.assert_allclose(ours.path[:size], theirs.path[:size], atol=1e-9)
    passed = state.array("passed")
    assert passed[0, 1:].all() and passed[0].max() == state.head["declared_at"]
    assert verify(store) == ()


def test_what_was_once_enough_stays_so_though_the_evidence_falls(store):
    hours = Hours()
    experiment = Experiment.create(store, "x", ["a", "b"], clock=hours, freshness=0, share=1)
    while not (duel := experiment.ask()).settled:
        hours.pass_by(1)
        if duel.first == "a":
            experiment.tell(duel)
    for _ in range(40):
        hours.pass_by(1)
        duel = experiment.ask()
        if duel.first == "b":
            experiment.tell(duel)
    state = book_of(experiment)
    assert state.eprocess.log_evidence[0, 1] < state.eprocess.level <= state.eprocess.best[0, 1]
    assert experiment.standing().winner == 0 and experiment.ask().winner == "a"


def test_a_second_process_looks_at_what_the_first_has_booked(store):
    hours = Hours()
    one = Experiment.create(store, "x", ["a", "b"], clock=hours, freshness=1e9)
    other = Experiment.open(store, "x", clock=hours, freshness=0)
    duels = [one.ask() for _ in range(60)]
    hours.pass_by(1)
    assert {one.tell(duel) for duel in duels if duel.first == "a"} == {"counted"}
    assert book_of(one).winner is None, "nobody has looked yet"
    assert other.ask().winner == one.ask().winner == "a"
    assert verify(store) == ()


def test_news_of_one_moment_is_booked_before_anybody_looks(store):
    hours = Hours()
    experiment = Experiment.create(store, "x", ["a", "b"], clock=hours, freshness=0)
    duels = [experiment.ask() for _ in range(200)]
    hours.pass_by(60)
    by_arm = sorted(duels, key=lambda duel: duel.first)  # all of one arm, then all of the other
    assert set(experiment.tell_all(duel.id for duel in by_arm)) == {"counted"}
    state = book_of(experiment)
    assert state.winner is None and state.eprocess.best.max() < 3.0
    assert state.eprocess.wins.sum() == 200


def test_a_unit_is_heard_once_on_a_pair(store):
    hours = Hours()
    experiment = Experiment.create(store, "x", ["a", "b"], clock=hours, freshness=0, window="1h")
    for _ in range(5):
        hours.pass_by(1)
        assert experiment.tell(experiment.ask(unit="same")) == "counted"
    standing, state = experiment.standing(), book_of(experiment)
    assert standing.plays.sum() == standing.conversions.sum() == 5
    assert standing.repeats.sum() == 4 and state.eprocess.wins.sum() == 1
    assert verify(store) == ()
