"""The report of a plan, as plain data: the service sends it as JSON, and the page shows it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from duelay._core.duration import DAY
from duelay.planning.result import Plan, PlannedWorld

QUANTILES = (0.1, 0.5, 0.9)
_POINTS = 56  # times at which shares are counted: of eight weeks, every day
_HOUR = DAY / 24.0


@dataclass(frozen=True)
class WorldReport:
    """What happened in the simulated experiments of one world."""

    name: str  # "as stated" or "all equal"
    words: str  # how long until which verdict, in a sentence or two
    days: list[float | None]  # until 10, 50 and 90 % have a verdict; None if it takes longer
    lost: float | None  # lost conversions, or regret, until the verdict, on average
    false: float  # the share of experiments with a false verdict
    # The shares of experiments with each verdict by these days, false verdicts apart.
    by_days: list[float]
    winner: list[float]
    good_enough: list[float]
    equivalent: list[float]
    wrong: list[float]


@dataclass(frozen=True)
class PlanReport:
    """How long an experiment will take."""

    about: str
    runs: int  # simulated experiments in each world
    horizon: float  # days that they last at most
    losses: str  # what `lost` counts
    worlds: list[WorldReport]
    notes: list[str]

    @classmethod
    def of(cls, plan: Plan) -> PlanReport:
        """Return the report of a plan."""
        horizon = float(plan.horizon) / DAY
        return cls(
            about=plan.about,
            runs=len(plan.stated.days),
            horizon=horizon,
            losses=plan.losses,
            worlds=[_report(world, horizon) for world in plan.worlds],
            notes=plan.notes(),
        )

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> PlanReport:
        """Return the report that `to_json` has made."""
        worlds = [WorldReport(**world) for world in found["worlds"]]
        return cls(**{**found, "worlds": worlds})

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON has them."""
        return asdict(self)


def _report(world: PlannedWorld, horizon: float) -> WorldReport:
    by = np.linspace(0.0, horizon, _POINTS + 1)
    is_given = world.days[:, None] <= by
    verdict = np.array(world.verdict)

    def share(which: Any) -> list[float]:
        return [float(n) for n in is_given[which].sum(axis=0) / len(verdict)]

    true = {name: share((verdict == name) & ~world.is_false)
            for name in ("winner", "good_enough", "equivalent")}  # fmt: skip
    days = [world.quantile(q) for q in QUANTILES]
    lost = float(world.lost.mean())
    return WorldReport(
        name=world.name,
        words=_describe(world, horizon),
        days=[each if math.isfinite(each) else None for each in days],
        lost=None if math.isnan(lost) else lost,
        false=float(world.is_false.mean()),
        by_days=by.tolist(),
        wrong=share(world.is_false),
        **true,
    )


def _describe(world: PlannedWorld, horizon: float) -> str:
    """Say how long it takes until a verdict, and which one."""
    _, half, most = (world.quantile(q) for q in QUANTILES)
    if math.isfinite(most):
        words = f"Half of the experiments have a verdict within {describe_days(half)}, nine in "
        words += f"ten within {describe_days(most)}."
    elif math.isfinite(half):
        words = f"Half of the experiments have a verdict within {describe_days(half)}, and "
        words += f"{_percent(world.share())} within {describe_days(horizon)}."
    else:
        some = f"Only {_percent(world.share())} of the experiments have"
        words = f"{some if world.share() else 'No experiment has'} a verdict within "
        words += f"{describe_days(horizon)}."
    ends = {
        "find the best arm": world.share("winner") - _false(world, "winner"),
        "find that no arm beats the chosen one by the smallest difference that matters":
            world.share("good_enough") - _false(world, "good_enough"),
        "find that nothing differs by as much as matters":
            world.share("equivalent") - _false(world, "equivalent"),
        "are wrong": float(world.is_false.mean()),
    }  # fmt: skip
    said = [f"{_percent(share)} {what}" for what, share in ends.items() if share > 0]
    return f"{words} {_listed(said)}." if said else words


def _false(world: PlannedWorld, verdict: str) -> float:
    return float((world.is_false & (np.array(world.verdict) == verdict)).mean())


def _listed(parts: list[str]) -> str:
    return " and ".join(", ".join(parts).rsplit(", ", 1)) if len(parts) > 1 else "".join(parts)


def describe_days(days: float) -> str:
    """Return a length of time in words.

    >>> [describe_days(days) for days in (0.02, 0.2, 1.04, 7.76, 18.2)]
    ['less than an hour', '5 hours', '1 day', '7.8 days', '18 days']
    """
    if days * DAY < _HOUR:
        return "less than an hour"
    if days < 0.98:
        hours = round(days * 24)
        return f"{hours} hour{'s' if hours != 1 else ''}"
    said = f"{days:.0f}" if days >= 10 else f"{days:.1f}".removesuffix(".0")
    return f"{said} day{'s' if said != '1' else ''}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
