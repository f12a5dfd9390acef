"""The evidence of a store is a player's: the same duels and answers give the same bets."""

import dataclasses

import numpy as np
import pytest
from sqlalchemy import select

import duelay
from duelay.ledger.evidence.booking import NO_STAKE
from duelay.ledger.evidence.eprocess import GAPS, evidence_weights
from duelay.live import Experiment, verify
from duelay.live.audit.recount import most_evidence
from duelay.live.storage import schema
from duelay.live.storage.schema import MICRO
from duelay.live.writes.requests import Ask
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
@pytest.mark.parametrize("margin", [None, 0.1])
@pytest.mark.parametrize("mu", [MU, TIED], ids=["clear", "tied"])
def test_bets_are_those_of_a_player_that_heard_the_same(store, feedback, mu, margin):
    experiment = play(store, mu, 260, feedback=feedback, error=1e-9, margin=margin)
    state, history = book_of(experiment), experiment.history()
    policy = duelay.Decide(window="1h", error=1e-9, self_duels=False, margin=margin)
    player = policy.start(["a", "b", "c"], 0, clock="wall", feedback=feedback).replay(history)
    theirs, ours = player._ledger.assumed, state.eprocess
    for name in ("wealth", "lead", "n", "wins", "tie_wealth", "log_bar", "best_bar"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), atol=1e-9)
    for name in ("kappa", "n_booked", "n_answered", "n_heard", "refit"):
        assert getattr(ours, name)[0] == pytest.approx(getattr(theirs, name)[0]), name
    assert (ours.n_open == theirs.n_open).all()
    assert ours.n_heard[0] > 15 and ours.n_booked[0] > 20
    assert ours.wealth.any() and ours.tie_wealth.any() == (margin is not None)
    assert verify(store) == ()
    with experiment.store.reading() as connection:
        rows = connection.execute(select(schema.duels).order_by(schema.duels.c.number)).all()
    slots = np.arange(1, len(rows) + 1) % theirs.state.size
    is_bet = np.array([row.stake is not None for row in rows])
    assert (is_bet == (theirs.stake[slots] != NO_STAKE)).all() and is_bet.any()
    bets = [(row.stake, row.wait / MICRO) for row in rows if row.stake is not None]
    of_theirs = np.column_stack([theirs.stake, theirs.wait])[slots][is_bet]
    np.testing.assert_allclose(np.array(bets), of_theirs, atol=1e-6)


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


def waiting(**more):
    """A policy that knows before anything is heard how long an answer may take."""
    return duelay.Decide(window="1h", wait="30s", self_duels=False, **more)


def test_what_was_once_enough_stays_so_though_the_evidence_falls(store):
    hours = Hours()
    experiment = Experiment.create(
        store, "x", ["a", "b"], clock=hours, freshness=0, share=1, policy=waiting()
    )
    while not (duel := experiment.ask()).settled:
        hours.pass_by(1)
        if duel.first == "a":
            experiment.tell(duel)
    for _ in range(40):
        hours.pass_by(1)
        duel = experiment.ask()
        if duel.first == "b":
            experiment.tell(duel)
    hours.pass_by(60)
    settle(experiment)
    state = book_of(experiment)
    assert state.eprocess.log_evidence[0, 1] < state.eprocess.level <= state.eprocess.best[0, 1]
    assert experiment.standing().winner == 0 and experiment.ask().winner == "a"
    assert verify(store) == ()


def test_a_second_process_books_and_looks_at_what_the_first_has_recorded(store):
    hours = Hours()
    one = Experiment.create(store, "x", ["a", "b"], clock=hours, freshness=1e9, policy=waiting())
    other = Experiment.open(store, "x", clock=hours, freshness=0)
    duels = [one.ask() for _ in range(60)]
    hours.pass_by(1)
    assert {one.tell(duel) for duel in duels if duel.first == "a"} == {"counted"}
    hours.pass_by(30)
    assert book_of(one).winner is None, "nobody has booked yet"
    assert other.ask().winner == one.ask().winner == "a"
    assert verify(store) == ()


def test_duels_are_booked_in_the_order_of_asking_at_their_age(store):
    hours = Hours()
    experiment = Experiment.create(
        store, "x", ["a", "b"], clock=hours, freshness=0, policy=waiting()
    )
    duels = []
    for _ in range(4):
        duels.append(experiment.ask())
        hours.pass_by(9)  # the first is 36 seconds old at the end, the last one 9
    assert [experiment.tell(duel) for duel in reversed(duels)] == ["counted"] * 4
    state = book_of(experiment)
    assert state.head["matured"] == 1, "the first was due after 30 seconds, and so it was silent"
    assert state.eprocess.wins.sum() == 0 and state.eprocess.n_answered[0] == 0
    assert state.eprocess.n_heard[0] == 4 and state.eprocess.n_open.sum() == 0
    for booked, wins in ((2, 1), (3, 2), (4, 3)):
        hours.pass_by(9)
        settle(experiment)
        assert book_of(experiment).head["matured"] == booked
        assert book_of(experiment).eprocess.wins.sum() == wins
    assert verify(store) == ()


def test_the_age_of_an_answer_is_that_of_its_event(store):
    hours = Hours()
    experiment = Experiment.create(
        store, "x", ["a", "b"], clock=hours, freshness=1e9, policy=waiting()
    )
    duels = [experiment.ask() for _ in range(4)]
    asked = hours.now
    hours.pass_by(31)  # nobody has booked them
    ages = [30, 30.5, 0, None]
    for duel, age in zip(duels, ages, strict=True):
        assert experiment.tell(duel, at=None if age is None else asked + age) == "counted"
    settle(experiment)
    state = book_of(experiment)
    assert state.head["matured"] == 4 and state.eprocess.n_answered[0] == 2
    assert state.eprocess.wins.sum() == 2 and state.ledger.conversions.sum() == 4
    assert verify(store) == ()


def test_a_lag_lets_answers_be_told_later(store):
    hours = Hours()
    experiment = Experiment.create(
        store, "x", ["a", "b"], clock=hours, freshness=0, policy=waiting(), lag="1m"
    )
    duels = [experiment.ask() for _ in range(3)]
    asked = hours.now
    hours.pass_by(89)  # 30 seconds, and a minute
    assert experiment.tell(duels[0]) == "counted", "it may have come in time"
    assert experiment.tell(duels[1], at=asked + 29) == "counted"
    assert experiment.tell(duels[2], at=asked + 31) == "counted", "but it came too late"
    assert book_of(experiment).head["matured"] == 0
    hours.pass_by(1)
    settle(experiment)
    state = book_of(experiment)
    assert state.head["matured"] == 3 and state.eprocess.wins.sum() == 2
    assert verify(store) == ()


def test_while_booking_is_held_no_duel_is_booked_and_answers_count(store):
    hours = Hours()
    experiment = Experiment.create(
        store, "x", ["a", "b"], clock=hours, freshness=0, policy=waiting()
    )
    duels = [experiment.ask() for _ in range(3)]
    asked = hours.now
    hours.pass_by(20)
    assert experiment.booking == "running"
    experiment.hold_booking()
    experiment.hold_booking()
    assert experiment.booking == experiment.standing().booking == "held"
    assert "booking is held" in str(experiment.standing())
    duels += [experiment.ask()]
    hours.pass_by(3000)
    assert experiment.tell(duels[0]) == experiment.tell(duels[3]) == "counted"
    assert experiment.tell(duels[1], at=asked + 100) == "counted", "but it came too late"
    settle(experiment)
    assert book_of(experiment).head["matured"] == 0
    experiment.release_booking()
    settle(experiment)
    state = book_of(experiment)
    assert state.head["matured"] == 4 and state.eprocess.wins.sum() == 2
    assert experiment.booking == "running" and verify(store) == ()


def tell_sorted_backlog(store, seed, *, wait=None, hold=False, has_times=False, **made):
    """Two equal arms, and a queue of answers that is told line by line, sorted by arm, with a look
    after each. Return whether a winner is named, the answers that were booked, and those told.

    Without `wait`, answers are told for a while, and the duels that follow become due meanwhile.
    """
    hours, rng, queue, told = Hours(), np.random.default_rng(seed), [], []
    policy = duelay.Decide(window="3d", wait=wait, self_duels=False)
    experiment = Experiment.create(
        store, f"x{seed}", ["a", "b"], clock=hours, freshness=0, policy=policy, **made
    )
    experiment.writer._selector.rng = rng
    for k in range(15):
        hours.pass_by(300)
        if hold and k == 7:
            experiment.hold_booking()
        asks = [Ask(None, None) for _ in range(8)]
        experiment.submit_all(asks)
        queue += [(hours.now + rng.exponential(400.0), ask.result) for ask in asks
                  if ask.result.id is not None and rng.random() < 0.5]  # fmt: skip
        if wait is None and k < 7:
            experiment.tell_all(duel for at, duel in queue if at <= hours.now)
            queue = [each for each in queue if each[0] > hours.now]
    hours.pass_by(3 * 3600)
    for at, duel in sorted(queue, key=lambda each: each[1].first):
        hours.pass_by(30)
        assert experiment.tell(duel, at=at if has_times else None) == "counted"
        told.append(1.0 if duel.first == "a" else -1.0)
    if hold:
        experiment.release_booking()
    hours.pass_by(2 * 86_400)
    settle(experiment)
    state = book_of(experiment)
    return state.winner is not None, state.eprocess.wins.sum(), told


BACKLOGS = [
    pytest.param({"wait": "1d"}, id="within deadlines"),
    pytest.param({"lag": "12h"}, id="lag", marks=pytest.mark.long),
    pytest.param({"lag": "12h", "has_times": True}, id="lag and times", marks=pytest.mark.long),
    pytest.param({"hold": True}, id="held", marks=pytest.mark.long),
    pytest.param({"hold": True, "has_times": True}, id="held and times", marks=pytest.mark.long),
]


@pytest.mark.parametrize("made", BACKLOGS)
def test_a_backlog_may_be_sorted_by_arm(url, made):
    """Bets in the order of telling would have named a false winner in most experiments."""
    n = 60
    found = [tell_sorted_backlog(url, seed, **made) for seed in range(n)]
    hazards = sum(
        most_evidence(told, GAPS, np.log(evidence_weights())) >= np.log(40.0) for *_, told in found
    )
    assert hazards > 0.75 * n and sum(n_booked for _, n_booked, _ in found) > 20 * n
    assert sum(is_named for is_named, *_ in found) <= n * 0.05 + 3 * np.sqrt(n * 0.05 * 0.95)
    assert verify(url, "x0") == ()


def test_a_unit_is_heard_once_on_a_pair(store):
    hours = Hours()
    experiment = Experiment.create(
        store, "x", ["a", "b"], clock=hours, freshness=0, policy=waiting()
    )
    for _ in range(5):
        hours.pass_by(1)
        assert experiment.tell(experiment.ask(unit="same")) == "counted"
    hours.pass_by(30)
    settle(experiment)
    standing, state = experiment.standing(), book_of(experiment)
    assert standing.plays.sum() == standing.conversions.sum() == 5
    assert standing.repeats.sum() == 4 and state.eprocess.wins.sum() == 1
    assert verify(store) == ()
