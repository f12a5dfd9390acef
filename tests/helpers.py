"""What tests of several rooms have in common."""

import hashlib
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import duelay
import naive
from duelay import policies
from duelay.policies.double_thompson.many_arms import many_arms_rule
from duelay.problems import bradley_terry

PROBLEM = bradley_terry([5.0, 1.0, 3.0, 2.0])

BUILT_IN = [getattr(policies, name)() for name in policies.__all__]
VOTED = [
    duelay.DoubleThompson(),
    duelay.DoubleThompson(delay="learn", order="alternate", window=30),
    duelay.RUCBDelay(),
    duelay.RUCB(order="coin"),
    duelay.RRDBDelay(delta=0.5),
    duelay.RMED(),
    duelay.MRRDBDelay(schedule=(5, 20, 60)),
    duelay.Borda(),
]
SAMPLE = (VOTED[0], VOTED[3], VOTED[6])  # of rules, ledgers and orders, where one kernel is for all


@dataclass(frozen=True)
class Live:
    """A policy that the simulator meets through ask and tell only."""

    policy: Any

    @property
    def window(self):
        return self.policy.window

    def start(self, arms, seed=None, **told):
        return self.policy.start(arms, seed, **told)


@dataclass(frozen=True, kw_only=True)
class Rows(duelay.DoubleThompson):
    """Double Thompson sampling with the rule for many arms, however few there are."""

    def rule(self, n_arms):
        return many_arms_rule(self.alpha, n_arms)


SMALL = """
name = "small"
problems = ["mslr", "arithmetic:3,0.1"]
policies = ["rucb-delay:window=50", { policy = "rucb:alpha=1", label = "the baseline" }]
delays = ["geometric:0.1"]
horizon = 300
runs = 5
block = 2
checkpoints = 10
seed = 3
"""


def spec(source=SMALL):
    from duelay.experiments import spec_parser

    return spec_parser.parse(source, "small.toml", Path())


def fingerprint(folder):
    """Every file of a results folder by its content; logs and locks have none."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != ".lock"
    }


def play_beside(policy, law, ticks, check, problem=PROBLEM, seed=0):
    """Run a player; before each tick hand the history to `check`, which sees the choice."""
    rng = np.random.default_rng(seed)
    player = policy.start(problem.arms, seed=rng.spawn(1)[0])
    history = []
    for t in range(1, ticks + 1):
        for s, past in enumerate(history, start=1):
            if past.won and past.delay == t - s:
                player.tell(s - 1)
        duel = player.ask()
        check(t, history, (duel.first, duel.second), player)
        won = rng.random() < problem.chances[duel.first, duel.second]
        delay = float(law.at(duel.first, duel.second).sample(seed=rng))
        history.append(naive.Past(duel.first, duel.second, bool(won), delay))


CODE = """
import duelay
from duelay._core.jit.background import COMPILER
COMPILER.stop()  # callers compile what they call: nothing is interpreted
player = duelay.{policy}().start(5, seed=1)
for duel in [player.ask() for _ in range(50)][::2]:
    player.tell(duel)
print([tuple(player.ask()) for _ in range(50)], player.standing().mean.tolist())
"""  # which compiles little


def answer(policy="RUCB", **env):
    """What a process of its own prints, in an environment."""
    done = subprocess.run(
        [sys.executable, "-c", CODE.format(policy=policy)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **env},
    )
    return done.stdout


def calls(work):
    """How many functions are called while it works: a measure that no machine changes."""
    n = 0

    def count(frame, event, argument):
        nonlocal n
        n += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return n


# Checks of the contract of policies that are not for every policy: they would only be skipped.
FOR_SOME = {
    "test_the_order_is_as_the_policy_says": lambda p: (
        getattr(p, "order", None) in ("alternate", "coin")
    ),
    "test_a_conversion_told_twice_counts_once": lambda p: not getattr(p, "counts_only", False),
    "test_an_unknown_duel_raises": lambda p: not getattr(p, "counts_only", False),
    "test_a_late_conversion_is_not_counted": lambda p: (getattr(p, "window", 0) or 6000) <= 5000,
    "test_live_and_simulated_runs_agree_duel_for_duel": lambda p: isinstance(
        p, duelay.CompiledPolicy
    ),
    "test_the_standing_adds_up": lambda p: isinstance(p, duelay.Policy),
}


def is_for(check, policy):
    """Whether the contract has something to check there."""
    return check not in FOR_SOME or FOR_SOME[check](policy)


def with_its_checks(contract):
    """A contract of one policy without the checks that are not for it."""
    for check in FOR_SOME:
        if not is_for(check, contract.policy):
            setattr(contract, check, None)
    return contract


class Fixed:
    """A generator that draws the same number again and again, and counts what it is asked."""

    def __init__(self, value):
        self.value, self.coins, self.betas = value, 0, []

    def random(self):
        self.coins += 1
        return self.value

    def beta(self, a, b):
        self.betas.append((a, b))
        return self.value
