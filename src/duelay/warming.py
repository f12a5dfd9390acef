"""Warming up: compile what the recommended policies need before somebody waits for it."""

from __future__ import annotations

from duelay._core.borders import COMPILER
from duelay.advice import recommend
from duelay.datasets import load
from duelay.engine.simulate import compile_ahead


def warm_up() -> None:
    """Compile what the recommended policies need, in players and in the simulator, or load it.

    It is kept on disk, so that once is enough on a machine or in an image. Without it the first
    asks of a player are interpreted, while a thread compiles; a first simulation waits, unless it
    has few duels.
    """
    policies = [recommend(goal=goal).policy for goal in ("regret", "decide")]
    for policy in policies:
        for clock in (None, "wall"):
            player = policy.start(3, seed=0, clock=clock)
            player.tell(player.ask())
            str(player.standing())
    COMPILER.wait()
    compile_ahead(load("six-rankers"), policies[0], delay="geometric:0.01")
