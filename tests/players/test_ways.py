"""A player keeps the way to its machine code, and gives the same duels as without."""

import copy
import os
import pickle
import sys
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import duelay
from duelay._core import borders, numba_parts
from duelay.ledger import clock_to, hear
from duelay.players import ways as ways_module
from duelay.policies import policy as policy_module
from duelay.rules.turn import take_turn

pytestmark = [
    pytest.mark.compiled,
    pytest.mark.skipif(numba_parts.IS_PLAIN, reason="plain Numba has no other way"),
]


@pytest.fixture(autouse=True)
def compiled_at_once(monkeypatch):
    monkeypatch.setattr(borders.COMPILER, "spent", 1e9)
    monkeypatch.setattr(borders, "_MOMENT", 600.0)  # each call waits until it is done


def play(player, n):
    """Ask and tell; return the duels."""
    duels = []
    for t in range(n):
        at = {} if player._clock is None else {"at": 1.7e9 + 60.0 * (player.tick + 1)}
        duels.append(player.ask(**at))
        if t % 3 == 0:
            player.tell(duels[t // 2], **at)
    return duels


def roundabout(monkeypatch, player, n):
    """Play without any of these ways: the dispatcher finds the code at every call."""
    with monkeypatch.context() as patch:
        for module in (ways_module, policy_module):
            patch.setattr(module, "bind", lambda *given: None)
        return play(player, n)


def is_bound(player, kernel=take_turn):
    """Whether the player has the machine code of a kernel, for what it has."""
    ways = player._known_ways
    if ways is None or ways.ledger is not player._ledger:
        return False
    call = ways._turn if kernel is take_turn else ways._calls.get(kernel)
    points = [found.entry_point for found in kernel.compiled.overloads.values()]
    return call is not None and call.func in points


def test_the_machine_code_is_found_at_the_second_call_and_kept():
    player = duelay.RUCB().start(4, seed=0)
    player.tell(player.ask())
    borders.COMPILER.wait()
    player.tell(player.ask())
    assert is_bound(player) and is_bound(player, hear)
    known = player._known_ways
    play(player, 20)
    assert player._known_ways is known


def test_duels_and_draws_are_those_of_the_dispatcher(monkeypatch):
    one, two = (duelay.RUCB(order="coin").start(4, seed=3) for _ in range(2))
    assert play(one, 300) == roundabout(monkeypatch, two, 300)
    assert is_bound(one) and not is_bound(two)
    assert one._rng.bit_generator.state == two._rng.bit_generator.state


@pytest.mark.parametrize("bits", ["MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64"])
def test_every_bit_generator_of_numpy_draws_the_same(monkeypatch, bits):
    seeds = [np.random.Generator(getattr(np.random, bits)(5)) for _ in range(2)]
    one, two = (duelay.RUCB(order="coin").start(4, seed=seed) for seed in seeds)
    assert play(one, 40) == roundabout(monkeypatch, two, 40)
    assert seeds[0].random(3).tolist() == seeds[1].random(3).tolist()


def test_a_new_ledger_is_found_anew_where_arms_come_and_go(monkeypatch):
    one, two = (duelay.RUCB(order="coin").start(["a", "b"], seed=1, clock="wall") for _ in range(2))
    for n, change in ((40, None), (90, ("add_arm", "c")), (90, ("retire_arm", "a"))):
        if change is not None:
            name, arm = change
            for player in (one, two):
                getattr(player, name)(arm)
            assert not is_bound(one)
        assert play(one, n) == roundabout(monkeypatch, two, n)
        assert is_bound(one) and is_bound(one, clock_to)


def test_a_ledger_that_grows_is_let_go():
    player = duelay.DoubleThompson(delay="learn", window="30d").start(3, seed=1, clock="wall")
    play(player, 10)
    before = player._ledger
    play(player, 3000)
    assert player._ledger is not before
    assert is_bound(player) and is_bound(player, hear) and is_bound(player, clock_to)


def test_other_types_in_a_ledger_get_other_code():
    player = duelay.RUCB().start(3, seed=0)
    play(player, 5)
    plays = player._ledger.plays.astype(np.int32)
    player._ledger = player._ledger._replace(plays=plays)
    play(player, 5)
    assert is_bound(player)
    assert player._ledger.plays is plays and plays.sum() == 10


def test_a_pickle_and_a_copy_find_their_own_way():
    player = duelay.RUCB(order="coin").start(4, seed=2)
    play(player, 30)
    others = [pickle.loads(pickle.dumps(player)), copy.copy(player), copy.deepcopy(player)]
    assert all(other._known_ways is None for other in others)
    expected = play(player, 30)
    assert all(play(other, 30) == expected for other in others)
    assert all(other._known_ways.ledger is not player._ledger for other in others)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_parent_and_child_of_a_fork_go_on_with_the_same_duels():
    player = duelay.RUCB(order="coin").start(4, seed=2)
    play(player, 30)
    here, there = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(there, repr(play(player, 50)).encode())
        finally:
            os._exit(0)
    os.close(there)
    with os.fdopen(here) as told:
        assert told.read() == repr(play(player, 50))
    os.waitpid(child, 0)


def test_nobody_keeps_the_generator_or_the_ledger():
    player = duelay.RUCB(order="coin").start(4, seed=2)
    play(player, 30)
    things = [player._rng, player._rng.bit_generator, player._ledger, *player._ledger[:3]]
    before = [sys.getrefcount(thing) for thing in things]
    play(player, 300)
    assert [sys.getrefcount(thing) for thing in things] == before


def test_a_generator_lives_as_long_as_the_way_to_it():
    player = duelay.RUCB(order="coin").start(4, seed=2)
    play(player, 30)
    ways, again = player._known_ways, copy.copy(player)
    ticks = range(player.tick + 1, player.tick + 200)
    del player
    np.random.default_rng(0).random(10_000)  # would take its place in memory
    expected = [again.ask() for _ in ticks]
    assert [ways.turn(t) for t in ticks] == [(duel.first, duel.second) for duel in expected]


class Listed(NamedTuple):
    """A rule whose list may hold something else another time."""

    arms: Any


class Beyond(NamedTuple):
    """A rule that goes wrong."""

    limit: int


@duelay.rules.select.register(Beyond)
def choose(rule, ledger, t, rng):
    return (0, 1) if t < rule.limit else (0, 7)


@dataclass(frozen=True)
class GoesWrong(duelay.CompiledPolicy):
    """A policy that goes wrong at tick 10."""

    def rule(self, n_arms):
        return Beyond(10)


@dataclass(frozen=True)
class OwnTurn(duelay.RUCB):
    """A policy with a turn of its own."""

    def turn(self, rule, ledger, t, rng):
        return super().turn(rule, ledger, t, rng)[::-1]


def test_what_may_change_its_type_is_left_to_the_dispatcher():
    ledger = duelay.RUCB().ledger(3)
    assert borders._is_lasting((ledger, np.random.default_rng(0), 1, np.int64(2), 0.5))
    for thing in ([0], Listed([0]), (ledger, {}), np.zeros(3).view(np.memmap)):
        assert not borders._is_lasting(thing)


def test_a_turn_of_ones_own_is_taken():
    player, plain = OwnTurn().start(4, seed=0), duelay.RUCB().start(4, seed=0)
    for _ in range(20):
        mine, its = player.ask(), plain.ask()
        assert (mine.second, mine.first) == (its.first, its.second)


def test_without_entry_points_the_dispatcher_is_called(monkeypatch):
    one, two = (duelay.RUCB(order="coin").start(4, seed=3) for _ in range(2))
    expected = play(two, 40)
    monkeypatch.setattr(numba_parts, "entry_point", lambda compiled, types: None)
    assert play(one, 40) == expected
    assert not is_bound(one)


def test_what_the_rule_refuses_is_still_said():
    player = GoesWrong().start(3, seed=0)
    for _ in range(9):
        player.ask()
    assert player._known_ways._turn is not None
    with pytest.raises(ValueError, match="select must"):
        player.ask()
    assert player.tick == 9
