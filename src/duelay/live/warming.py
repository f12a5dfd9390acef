"""Warming up: compile what live experiments need before somebody waits for it."""

from __future__ import annotations

import tempfile

from duelay._core.borders import COMPILER
from duelay.advice import GOALS
from duelay.live.experiment import Experiment


def warm_up() -> None:
    """Compile, or load, what many visitors would wait for; the first ones need not."""
    with tempfile.TemporaryDirectory() as folder:
        for goal in GOALS:
            experiment = Experiment.create(f"{folder}/warm.db", goal, 3, goal=goal)
            experiment.tell(experiment.ask())
            experiment.standing()
            experiment.close()
    COMPILER.wait()
