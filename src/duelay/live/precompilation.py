"""Compile the kernels of live experiments in advance."""

from __future__ import annotations

import tempfile

from duelay._core.jit.background import COMPILER
from duelay.live.experiment import Experiment
from duelay.precompilation import FEW, sizes
from duelay.recommendation import GOALS


def warm_up(n_arms: int = FEW) -> None:
    """Compile, or load from disk, all kernels of live experiments, so that the first ask is quick.

    Parameters
    ----------
    n_arms : int
        The largest number of arms of an experiment: from 32 on there is more to compile.
    """
    with tempfile.TemporaryDirectory() as folder:
        for goal in GOALS:
            for n in sizes(n_arms):
                store = f"{folder}/warm.db"
                experiment = Experiment.create(store, f"{goal} {n}", n, goal=goal)
                experiment.tell(experiment.ask())
                experiment.standing()
                experiment.close()
    COMPILER.wait()
