"""What a call of a kernel leaves behind: nothing. Native memory, which tracemalloc does not see."""

import gc
import os
import sys
from pathlib import Path

import numpy as np
import pytest

import duelay
from duelay._core.jit.background import COMPILER

PROBLEM = duelay.datasets.load("mslr")


def references(rng):
    return sys.getrefcount(rng), sys.getrefcount(rng.bit_generator)


@pytest.mark.compiled
@pytest.mark.parametrize(
    "policy", [duelay.RUCBDelay(), duelay.DoubleThompson(delay="learn")], ids=str
)
def test_a_thousand_asks_take_no_reference_to_the_generator(policy):
    rng = np.random.default_rng(0)
    player = policy.start(5, rng)
    player.ask()
    COMPILER.wait()
    player.ask()  # from now on compiled
    before = references(rng)
    for _ in range(1000):
        player.ask()
    assert references(rng) == before


class Made:
    """Every generator that a simulation makes; somebody else should hold none of them after it."""

    def __init__(self, monkeypatch):
        self.all = []
        module = sys.modules["duelay.simulation.runs"]
        make = module.streams

        def remember(seed, run):
            pair = make(seed, run)
            self.all += pair
            return pair

        monkeypatch.setattr(module, "streams", remember)

    def held(self):
        gc.collect()
        fresh = [np.random.default_rng(0)]
        alone = [references(rng) for rng in fresh]
        return [references(rng) for rng in self.all if [references(rng)] != alone]


@pytest.mark.compiled
@pytest.mark.parametrize(
    "policy, how",
    [
        (duelay.RUCBDelay(), {}),
        (duelay.MRRDBDelay(schedule=(5, 10)), {}),
        (duelay.RUCBDelay(), {"stale": 3}),
    ],
    ids=["ticks", "rounds", "held"],
)
def test_no_generator_outlives_its_run(policy, how, monkeypatch):
    made = Made(monkeypatch)
    duelay.simulate(
        PROBLEM, policy, delay="geometric:0.1", horizon=300, runs=3,
        setting=duelay.Setting(cautious=False, **how),
    )  # fmt: skip
    assert len(made.all) >= 6 and not made.held()


def test_no_generator_outlives_the_run_of_a_policy_in_plain_python(monkeypatch):
    class Anyone(duelay.Policy):
        def choose(self, ledger, t, rng):
            return rng.integers(5), rng.integers(5)

    made = Made(monkeypatch)
    duelay.simulate(PROBLEM, Anyone(), delay="geometric:0.1", horizon=50, runs=3)
    assert len(made.all) == 6 and not made.held()


def resident():
    """Bytes that the process holds."""
    if not Path("/proc/self/statm").exists():
        pytest.skip("no /proc to read memory from")
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.compiled
def test_a_player_grows_by_what_it_remembers():
    """17 bytes a duel, in arrays that grow by a part of their size; it was 81 and more."""
    player = duelay.RUCBDelay().start(5, seed=0)
    player.ask()
    COMPILER.wait()  # which takes memory, too
    for _ in range(20_000):
        player.ask()
    before = resident()
    for _ in range(80_000):
        player.ask()
    assert (resident() - before) / 80_000 < 45


@pytest.mark.compiled
def test_the_memory_of_the_process_does_not_grow_with_the_runs():
    def grown(runs):
        COMPILER.wait()
        before = resident()
        duelay.simulate(
            PROBLEM, duelay.RUCBDelay(), delay="geometric:0.1", horizon=20, runs=runs, workers=1,
            checkpoints=1,
        )  # fmt: skip
        return (resident() - before) / runs

    grown(2000)
    assert min(grown(2000) for _ in range(3)) < 500  # bytes a run; it was 5700
