"""Warming up: what is compiled beforehand is all that a first use needs."""

import os
import subprocess
import sys

import pytest

FIRST = """
import duelay
from duelay._core import jit
from duelay._core.borders import COMPILER
from numba.core import event

class Compiled(event.Listener):
    names = []
    def on_start(self, happening): self.names.append(happening.data["dispatcher"].py_func.__name__)
    def on_end(self, happening): ...

event.register("numba:compile", Compiled())
for goal in ("regret", "decide"):
    for clock in (None, "wall"):
        player = duelay.recommend(goal=goal).policy.start(5, seed=0, clock=clock)
        player.tell(player.ask())
        str(player.standing())
COMPILER.wait()
print(*Compiled.names)
"""


@pytest.mark.kept
@pytest.mark.compiled
@pytest.mark.slow
def test_after_a_warm_up_a_first_use_compiles_nothing(tmp_path):
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-m", "duelay", "warm-up"]
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=True)
    assert done.stdout.startswith("ready after ") and str(tmp_path) in done.stdout
    code = [sys.executable, "-c", FIRST]
    done = subprocess.run(code, capture_output=True, text=True, env=env, check=True)
    assert done.stdout.split() == []
