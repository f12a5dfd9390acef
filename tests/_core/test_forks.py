"""A child process goes on with a player that threads of its parent were using."""

import gc
import os
import signal
import threading
import time
import warnings
import weakref

import pytest

import duelay
from duelay._core import forks
from duelay._core.jit import private_numba

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")


def fork(work):
    """Run something in a child for at most five minutes; return how it ended, 0 for well."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python's own, of threads and forks
        child = os.fork()
    if child == 0:
        status = 1
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(300)
            status = 0 if work() else 2
        finally:
            os._exit(status)
    until = time.monotonic() + 600  # it may hang before it has set its alarm
    while time.monotonic() < until:
        if (ended := os.waitpid(child, os.WNOHANG))[0]:
            return ended[1]
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1]


@pytest.mark.compiled  # coverage has a lock of its own, which a child may find taken for ever
def test_a_fork_while_threads_use_a_player_leaves_it_whole_in_the_child(monkeypatch):
    monkeypatch.setattr(forks, "_MAX_WAIT_SECONDS", 600.0)
    player = duelay.RUCBDelay().start(4, seed=0)
    player.tell(player.ask())
    stop = threading.Event()

    def hammer():
        while not stop.is_set():
            player.tell(player.ask())

    def go_on():
        tick = player.tick
        player.tell(player.ask())
        plays = player._ledger.plays.sum()
        told = len(player._duels._told), len(player._duels._heard)
        return plays == player.tick == tick + 1 and told == (tick + 1, tick + 1)

    threads = [threading.Thread(target=hammer) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        ended = [fork(go_on) for _ in range(10)]
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert ended == [0] * 10
    assert player._ledger.plays.sum() == player.tick  # nor is the parent's harmed


class Owner:
    def __init__(self):
        self._lock = forks.lock(self)

    def _forked(self, is_whole):
        self.is_whole = is_whole


def test_a_fork_waits_for_threads_that_hold_one_lock_and_want_another(monkeypatch):
    """Whichever of the two the fork takes first."""
    monkeypatch.setattr(forks, "_MAX_WAIT_SECONDS", 600.0)
    one, two = Owner(), Owner()
    for outer, inner in ((one, two), (two, one)):
        has_outer, asked = threading.Event(), threading.Event()

        def work(outer=outer, inner=inner, has_outer=has_outer, asked=asked):
            with outer._lock:
                has_outer.set()
                asked.wait()
                with inner._lock:
                    pass

        thread = threading.Thread(target=work)
        thread.start()
        has_outer.wait()
        # The fork holds the other lock by now, and waits for this one.
        take = forks._takes
        monkeypatch.setattr(
            forks,
            "_takes",
            lambda lock, taken, outer=outer, asked=asked, take=take: (
                take(lock, taken) or (lock is outer._lock and asked.set())
            ),
        )
        assert fork(lambda: one.is_whole and two.is_whole) == 0
        thread.join()


@pytest.mark.compiled
def test_a_fork_waits_for_llvm(monkeypatch):
    """Threads free what they have compiled without the lock of the compiler."""
    from llvmlite.binding import ffi

    is_held, forks_now = threading.Event(), threading.Event()

    def free():
        with ffi.lib._lock:
            is_held.set()
            forks_now.wait()

    thread = threading.Thread(target=free)
    thread.start()
    is_held.wait()
    acquire = private_numba.global_compiler_lock.acquire
    monkeypatch.setattr(
        private_numba.global_compiler_lock, "acquire", lambda: (acquire(), forks_now.set())
    )
    assert fork(lambda: ffi.lib._lock._lock.acquire(timeout=600.0)) == 0
    thread.join()


class Forks(duelay.Policy):
    """Forks while it chooses: the thread that holds the lock is the one that goes on."""

    def choose(self, ledger, t, rng):
        self.__class__.ended = fork(lambda: True)
        return 0, 1


def test_a_policy_may_fork_while_it_chooses():
    player = Forks().start(2, seed=0)
    assert (player.ask(), Forks.ended) == ((0, 0, 1), 0)
    done = []
    other = threading.Thread(target=lambda: done.append(player.standing()), daemon=True)
    other.start()
    other.join(600)
    assert done  # the lock was given back


def test_a_lock_that_is_not_given_back_delays_a_fork_and_no_more(monkeypatch):
    monkeypatch.setattr(forks, "_MAX_WAIT_SECONDS", 0.05)
    player = duelay.RUCB().start(2, seed=0)
    player.ask()
    taken, done = threading.Event(), threading.Event()

    def hold():
        with player._lock:
            taken.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    taken.wait()
    try:
        assert fork(lambda: player.ask().id == 1) == 0
    finally:
        done.set()
        thread.join()
    assert player.ask().id == 1


def test_a_player_that_nobody_holds_is_forgotten():
    player = duelay.RUCB().start(2, seed=0)
    key, gone = id(player), weakref.ref(player)
    assert forks._OWNERS[key] is player
    del player
    gc.collect()
    assert gone() is None and key not in forks._OWNERS
