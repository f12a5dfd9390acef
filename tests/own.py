"""A policy of somebody's own as a module, a specification that names it, and how to run it."""

from duelay import experiments
from duelay.experiments import execution

MINE = """
from dataclasses import dataclass

import duelay


@duelay.text.named("policy", "{name}")
@dataclass(frozen=True)
class Mine(duelay.Policy):
    '''One arm after the other against a fixed one.'''

    rival: int = 0
    order: str = "alternate"

    def state(self, n_arms):
        return {{"next": 0}}

    def choose(self, state, n_arms):
        state["next"] = (state["next"] + {step}) % n_arms
        return state["next"], self.rival
"""
SMALL = """
import = ["{module}"]
problems = ["mslr"]
policies = ["rucb", "{name}", {{ policy = "{name}:rival=2", label = "the second" }}]
delays = ["geometric:0.1"]
horizon = 60
runs = 4
block = 2
checkpoints = 3
"""


def small(name="mine"):
    return SMALL.format(module=name, name=name)


def finish(spec, folder, **options):
    """Run it without its figures; return the regrets of one's own policies."""
    with execution.opened(folder, spec) as place:
        execution.execute(spec, place, quiet=True, **options)
    results = experiments.load(spec, folder)
    return [results.get("small", "mslr", label).regret.tolist() for label in ("mine", "the second")]
