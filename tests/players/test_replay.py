"""A history replayed: the player stands where the one stood that the history came from."""

import heapq
import math

import numpy as np
import pytest

import duelay
from duelay import delays

MU = np.array([[0.5, 0.7, 0.8], [0.3, 0.5, 0.6], [0.2, 0.4, 0.5]])
ARMS = ("red", "green", "blue")
EPOCH = 1.7e9
LAW = delays.Never(0.2, delays.LogNormal("10m", 1.0))
IN_TICKS = {
    "none": duelay.DoubleThompson(),
    "append-only": duelay.RUCB(counting="append-only"),
    "conversions only": duelay.RUCB(counting="conversions"),
    "learned": duelay.DoubleThompson(delay="learn", window=60),
    "learned from self-duels": duelay.DoubleThompson(
        delay="learn-from-self-duels", order="champion", window=60
    ),
    "geometric": duelay.RUCBDelay(delay="geometric:0.1"),
    "table": duelay.RRDBDelay(delay="uniform:1,9", order="coin", window=8),
    "turns": duelay.RMED(order="alternate", window=30),
    "rounds": duelay.MRRDBDelay(schedule=(20, 80)),
    "borda": duelay.Borda(),
    "bets": duelay.Decide(window=40),
    "bets on a law": duelay.Decide(delay="geometric:0.1"),
}  # fmt: skip
BY_CLOCK = {
    "none": duelay.DoubleThompson(),
    "learned": duelay.DoubleThompson(delay="learn"),
    "told": duelay.DoubleThompson(delay=LAW, window="2h"),
    "turns": duelay.RMED(order="alternate", window="30m"),
    "bets": duelay.Decide(),
    "borda": duelay.Borda(),
}
SIZES = {"learned": 1100, "bets": 1100}  # more than there is room for at first


def in_ticks(policy, n=400, seed=0, feedback="conversions"):
    """A player after n duels, some of their answers told after the last."""
    rng = np.random.default_rng(seed)
    player, due = policy.start(ARMS, seed=seed, feedback=feedback), []
    for t in range(n + 6):
        while due and due[0][0] <= t:
            tell(player, *heapq.heappop(due)[1:])
        if t < n:
            ask(player, rng, due, t + rng.geometric(0.1))
    return player


def by_clock(policy, n=500, seed=0, feedback="conversions", arms=ARMS, start=EPOCH):
    """As `in_ticks`, in bursts, many duels at one time, and pauses; now is after the last duel."""
    rng = np.random.default_rng(seed)
    player, due = policy.start(arms, seed=seed, feedback=feedback, clock="wall"), []
    at = start + np.cumsum(rng.choice([0.0, 0.01, 300.0], p=[0.5, 0.4, 0.1], size=n))
    for now in at:
        while due and due[0][0] <= now:
            when, *what = heapq.heappop(due)
            tell(player, *what, at=when)
        late = float(LAW.sample(1, seed=rng)[0])
        ask(player, rng, due, now + late, at=now)
    while due and due[0][0] <= at[-1] + 400:
        when, *what = heapq.heappop(due)
        tell(player, *what, at=when)
    return player


def ask(player, rng, due, when, **at):
    duel = player.ask(**at)
    won = rng.random() < MU[duel.first, duel.second]
    if math.isfinite(when) and (won or player.feedback == "votes"):
        heapq.heappush(due, (when, duel, "first" if won else "second"))


def tell(player, duel, winner, **at):
    player.tell(duel, winner=winner if player.feedback == "votes" else None, **at)


def again(player, policy=None, **more):
    """A new player with the history of another."""
    clock = "wall" if player.history().at is not None else None
    policy = policy or player.policy
    started = policy.start(player.arms, seed=9, feedback=player.feedback, clock=clock, **more)
    return started.replay(player.history())


def assert_same_history(found, wanted):
    for name in ("first", "second", "delay", "first_won", "at"):
        np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name), err_msg=name)
    for name in ("n_arms", "arms", "window", "feedback", "order", "now", "chosen_by"):
        assert getattr(found, name) == getattr(wanted, name), name


def assert_same_standing(found, wanted):
    for name in ("plays", "conversions", "pending"):
        np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name), err_msg=name)
    for name in ("mean", "lower", "upper"):
        np.testing.assert_allclose(getattr(found, name), getattr(wanted, name), rtol=1e-9)
    for name in ("tick", "told", "is_learning", "guarantee", "winner", "leader"):
        assert getattr(found, name) == getattr(wanted, name), name
    assert (found.evidence is None) == (wanted.evidence is None)
    if wanted.evidence is not None:
        for name in ("log_evidence", "arm", "path", "lead", "n", "n_open"):
            one, other = getattr(found.evidence, name), getattr(wanted.evidence, name)
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9, err_msg=name)
        assert found.evidence.declared == wanted.evidence.declared


@pytest.mark.parametrize("feedback", ["conversions", "votes"])
@pytest.mark.parametrize("kind", IN_TICKS)
def test_in_ticks_a_replayed_player_stands_where_the_first_one_stood(kind, feedback):
    player = in_ticks(IN_TICKS[kind], feedback=feedback)
    found = again(player)
    assert_same_standing(found.standing(), player.standing())
    assert_same_history(found.history(), player.history())
    if kind == "learned" and feedback == "conversions":
        assert found.learned_law() == player.learned_law()
    found.tell(found.ask(), winner="first" if feedback == "votes" else None)
    assert found.tick == player.tick + 1


@pytest.mark.parametrize("feedback", ["conversions", "votes"])
@pytest.mark.parametrize("kind", BY_CLOCK)
def test_by_the_clock_a_replayed_player_stands_where_the_first_one_stood(kind, feedback):
    player = by_clock(BY_CLOCK[kind], n=SIZES.get(kind, 300), feedback=feedback)
    found = again(player)
    assert_same_standing(found.standing(), player.standing())
    assert_same_history(found.history(), player.history())
    if kind == "learned" and feedback == "conversions":
        assert player.learned_law().never > 0
        assert found.learned_law() == player.learned_law()
    found.tell(found.ask(), winner="first" if feedback == "votes" else None)
    assert found.tick == player.tick + 1
