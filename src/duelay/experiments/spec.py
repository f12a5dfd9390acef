"""Specifications: which policies on which problems under which laws, and what varies."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from duelay import policies, text
from duelay.delays import Delay
from duelay.policies.policy import Policy
from duelay.problems import Problem
from duelay.simulation.setting import Setting


@dataclass(frozen=True)
class Choice:
    """A policy of a grid, and what it is called in figures."""

    form: str
    label: str
    by_clock: bool | None = None  # with traffic: whether by the clock; None for the grid's

    @property
    def text(self) -> str:
        """Its form, and its `by_clock` where it has one of its own."""
        return self.form if self.by_clock is None else f"{self.form}, by_clock={self.by_clock}"

    def within(self, setting: Setting) -> Setting:
        """The setting of a grid, for this policy."""
        if self.by_clock is None:
            return setting
        return dataclasses.replace(setting, by_clock=self.by_clock)

    def under(self, law: Delay, horizon: int) -> Any:
        """The policy, told the true law (or its largest mean) and the horizon where it asks."""
        known = {"delay": law, "mean_delay": float(np.max(law.mean))}
        policy = policies.parse(self.form, known)
        return policy.for_horizon(horizon) if hasattr(policy, "for_horizon") else policy


@dataclass(frozen=True)
class Grid:
    """Every problem with every policy under every law."""

    name: str
    title: str
    problems: tuple[Problem, ...]
    policies: tuple[Choice, ...]
    delays: tuple[Delay, ...]
    horizon: int
    runs: int
    seed: int
    checkpoints: int
    block: int  # runs in a cell
    setting: Setting = Setting()  # whose regret, and how answers come


@dataclass(frozen=True)
class Sweep:
    """What a study varies: the horizontal axis of its figure."""

    over: str  # "delays", "problems" or "grids"
    axis: str  # its label
    ticks: tuple[str, ...]  # a label for each law, problem or grid


class Caution(NamedTuple):
    """A warning that a policy's horizon is too short on a problem."""

    problem: str
    label: str
    sentence: str

    @property
    def brief(self) -> str:
        """The sentence up to its first comma."""
        return self.sentence.partition(",")[0]

    def __str__(self) -> str:
        return f"{self.problem}, {self.label}: {self.sentence}"


@dataclass(frozen=True)
class Specification:
    """What to run.

    Attributes
    ----------
    name, title : str
        The name, and the title of the report.
    claims : str
        Whose claims the report checks, ``"paper"`` or ``"none"``.
    grids : tuple of Grid
        The problems, policies and delays to combine.
    sweep : Sweep, optional
        The parameter that varies between the grids.
    modules : tuple of str
        Modules of the user that the specification imports.
    band : str
        What the bands of figures show, ``"sd"`` or ``"mean"``.
    """

    name: str
    title: str
    claims: str  # whose claims the report checks
    grids: tuple[Grid, ...]
    sweep: Sweep | None = None
    modules: tuple[str, ...] = ()  # the user's, imported before it was read
    band: str = "sd"  # what the figures' bands show

    def quick(self) -> Specification:
        """The same with a tenth of the runs and a fifth of the horizon."""
        grids = tuple(
            dataclasses.replace(
                grid,
                runs=max(1, grid.runs // 10),
                horizon=max(1, grid.horizon // 5),
                block=max(1, min(grid.block, grid.runs // 10) // 2),
            )
            for grid in self.grids
        )
        return dataclasses.replace(self, name=f"{self.name}-quick", grids=grids)

    def cautions(self) -> list[Caution]:
        """Return the warnings of horizons too short for a policy, once each, sorted."""
        found = {
            Caution(problem.name, choice.label, sentence)
            for grid in self.grids
            for problem in grid.problems
            for choice in grid.policies
            if isinstance(policy := choice.under(grid.delays[0], grid.horizon), Policy)
            and (sentence := policy.caution(problem.n_arms, grid.horizon))
        }
        return sorted(found)

    def normal_form(self) -> dict[str, Any]:
        """The specification as plain data, every default spelled out."""
        return {
            "name": self.name,
            "title": self.title,
            "import": list(self.modules),
            "claims": self.claims,
            "band": self.band,
            "grids": [
                {
                    "name": grid.name,
                    "title": grid.title,
                    "problems": {
                        problem.name: problem_digest(problem) for problem in grid.problems
                    },
                    "policies": {choice.label: choice.text for choice in grid.policies},
                    "delays": [text.form(law) for law in grid.delays],
                    "horizon": grid.horizon,
                    "runs": grid.runs,
                    "seed": grid.seed,
                    "checkpoints": grid.checkpoints,
                    "block": grid.block,
                    "setting": str(grid.setting),
                }
                for grid in self.grids
            ],
        }


def problem_digest(problem: Problem) -> str:
    """Name a problem by its content."""
    content = json.dumps([list(problem.arms), problem.matrix.tolist()])
    if problem.first_bonus:
        content += f" {problem.first_bonus!r}"
    if problem.rates is not None:
        content += f" {problem.rates.tolist()!r}"
    return hashlib.sha256(content.encode()).hexdigest()[:16]


def slug(name: str) -> str:
    """A name for files: letters, digits and dashes; cut and told apart by a digest if long."""
    plain = re.sub(r"[^A-Za-z0-9.]+", "-", name).strip("-")
    if len(plain) <= 60:
        return plain
    return f"{plain[:50]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
