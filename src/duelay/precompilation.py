"""Compile the code of the recommended policies before a program needs it."""

from __future__ import annotations

from duelay._core import checks
from duelay._core.jit.background import COMPILER
from duelay.policies.double_thompson.many_arms import MANY_ARMS_FROM
from duelay.problems import arithmetic
from duelay.recommendation import recommend
from duelay.simulation.simulate import compile_ahead

FEW = 3  # arms


def warm_up(n_arms: int = FEW) -> None:
    """Compile the code of the recommended policies, for players and the simulator, or load it.

    Compiled code is kept on disk, so that one call is enough on a machine or in an image. Without
    it the first asks of a player are interpreted while a thread compiles, and the first simulation
    waits for the compiler unless it has few duels.

    Parameters
    ----------
    n_arms : int
        The largest number of arms that will be compared: from 32 on there is more to compile.
    """
    policies = [recommend(goal=goal).policy for goal in ("regret", "decide")]
    for policy in policies:
        for clock in (None, "wall"):
            for n in sizes(n_arms):
                player = policy.start(n, seed=0, clock=clock)
                player.tell(player.ask())
                str(player.standing())
    COMPILER.wait()
    for n in sizes(n_arms):
        compile_ahead(arithmetic(n, 0.5 / n), policies[0], delay="geometric:0.01")


def sizes(n_arms: int) -> tuple[int, ...]:
    """Return numbers of arms that together need all code that any number up to `n_arms` needs."""
    n_arms = checks.whole("n_arms", n_arms, least=2)
    return (FEW, MANY_ARMS_FROM) if n_arms >= MANY_ARMS_FROM else (FEW,)
