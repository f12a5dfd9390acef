"""Warming up: what is compiled beforehand is all that a first use needs."""

import os
import subprocess
import sys

import pytest

FIRST = """
import itertools
import duelay
from duelay._core import jit
from duelay._core.jit.background import COMPILER
from numba.core import event

class Compiled(event.Listener):
    names = []
    def on_start(self, happening): self.names.append(happening.data["dispatcher"].py_func.__name__)
    def on_end(self, happening): ...

event.register("numba:compile", Compiled())
for goal, clock, n_arms in itertools.product(("regret", "decide"), (None, "wall"), {n_arms}):
    player = duelay.recommend(goal=goal).policy.start(n_arms, seed=0, clock=clock)
    player.tell(player.ask())
    str(player.standing())
COMPILER.wait()
print(*Compiled.names)
"""


@pytest.mark.kept
@pytest.mark.compiled
@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "n_arms"), [([], [5]), (["--arms", "300"], [5, 40])], ids=["few", "many"]
)
def test_after_a_warm_up_a_first_use_compiles_nothing(tmp_path, options, n_arms):
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-m", "duelay", "warm-up", *options]
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=True)
    assert done.stdout.startswith("ready after ") and str(tmp_path) in done.stdout
    code = [sys.executable, "-c", FIRST.replace("{n_arms}", str(n_arms))]
    done = subprocess.run(code, capture_output=True, text=True, env=env, check=True)
    assert done.stdout.split() == []
