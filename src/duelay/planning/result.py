"""The result of a plan: what happened in the simulated experiments of each world."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from duelay._core import checks
from duelay._core.duration import DAY, Duration, in_brief
from duelay._core.escapes import in_cell
from duelay._core.files import write_whole
from duelay.show.text_table import table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

VERDICTS = ("winner", "equivalent", "good_enough", "undecided")
_QUANTILES = (0.1, 0.5, 0.9)


@dataclass(frozen=True, eq=False)
class PlannedWorld:
    """What happened in the simulated experiments of one world.

    Parameters
    ----------
    name : str
        ``"as stated"`` or ``"all equal"``.
    days : ndarray of float
        (runs,), the days until the verdict; infinite if there is none within the horizon.
    verdict : tuple of str
        (runs,), ``"winner"``, ``"equivalent"``, ``"good_enough"`` or ``"undecided"``.
    arm : tuple of str
        (runs,), the arm that is named; empty if none is.
    is_false : ndarray of bool
        (runs,), whether the verdict is false.
    lost : ndarray of float
        (runs,), the conversions lost until the verdict or the horizon, compared with showing the
        best arm to all visitors, also before it joins; with preferences, the regret.
    """

    name: str
    days: NDArray[np.float64]
    verdict: tuple[str, ...]
    arm: tuple[str, ...]
    is_false: NDArray[np.bool_]
    lost: NDArray[np.float64]

    def quantile(self, q: float) -> float:
        """Return the days by which a share q of the experiments has its verdict.

        Parameters
        ----------
        q : float
            The share, above 0 and at most 1.

        Returns
        -------
        float
            The days; infinite if fewer have a verdict within the horizon.
        """
        q = checks.number("q", q, above=0, most=1)
        return float(np.sort(self.days)[math.ceil(q * len(self.days)) - 1])

    def share(self, verdict: str | None = None, by: float = math.inf) -> float:
        """Return the share of experiments with a verdict.

        Parameters
        ----------
        verdict : str, optional
            A verdict, ``"undecided"`` among them; None for any except ``"undecided"``.
        by : float
            The days by which it is given.
        """
        if verdict is not None:
            checks.one_of("verdict", verdict, VERDICTS)
        is_given = self.days <= by if by < math.inf else np.isfinite(self.days)
        if verdict == "undecided":
            return float(1.0 - is_given.mean())
        which = [verdict in (None, name) for name in self.verdict]
        return float((is_given & which).mean())


@dataclass(frozen=True, eq=False)
class Plan:
    """How long an experiment will take, from simulations of it; `plan` makes it.

    Parameters
    ----------
    about : str
        What was planned.
    horizon : Duration
        The length of a simulated experiment.
    by : tuple of Duration
        The times for which shares of verdicts are shown.
    worlds : tuple of PlannedWorld
        The simulated experiments: as stated, and with all arms equal.
    losses : str
        What `PlannedWorld.lost` counts.
    without : PlannedWorld, optional
        With `add_arm_at`, the same experiments if the last arm does not join.
    add_arm_at : Duration, optional
        When the last arm joins.
    """

    about: str
    horizon: Duration
    by: tuple[Duration, ...]
    worlds: tuple[PlannedWorld, ...]
    losses: str
    without: PlannedWorld | None = None
    add_arm_at: Duration | None = None

    @property
    def stated(self) -> PlannedWorld:
        """The world with the rates or preferences that were stated."""
        return self.worlds[0]

    @property
    def equal(self) -> PlannedWorld:
        """The world in which no arm is better."""
        return self.worlds[-1]

    def __str__(self) -> str:
        n = len(self.stated.days)
        worlds = "two worlds" if len(self.worlds) == 2 else "one world"
        lines = [self.about, f"{n} simulated experiments in each of {worlds}", ""]
        names = [world.name for world in self.worlds]
        rows = [
            [f"days until a verdict, {q:.0%} of experiments".replace("%", " %")]
            + [self._days(world.quantile(q)) for world in self.worlds]
            for q in _QUANTILES
        ]
        lost = [float(world.lost.mean()) for world in self.worlds]
        shown = ["-" if math.isnan(mean) else f"{mean:,.0f}" for mean in lost]
        rows.append([f"{self.losses} until then (mean)", *shown])
        rows.append(["false verdicts", *(_percent(w.is_false.mean()) for w in self.worlds)])
        lines += [table(["", *names], rows, left=(0,)), "", self._shares()]
        return "\n".join([*lines, *(["", *notes] if (notes := self.notes()) else [])])

    def _days(self, days: float) -> str:
        horizon = float(self.horizon) / DAY
        return f"{days:,.3g}" if math.isfinite(days) else f"more than {horizon:,.3g}"

    def _shares(self) -> str:
        """Which verdicts are given by each time, as a table."""
        shown = [v for v in VERDICTS if any(v in world.verdict for world in self.worlds)]
        if "undecided" not in shown:
            shown.append("undecided")
        rows = [
            [world.name, in_brief(float(by))]
            + [_percent(world.share(verdict, float(by) / DAY)) for verdict in shown]
            for world in self.worlds
            for by in self.by
        ]
        names = [verdict.replace("_", " ") for verdict in shown]
        return table(["arms", "by", *names], rows, left=(0,))

    def notes(self) -> list[str]:
        """Return sentences on what cannot be decided, and on what a further arm costs."""
        notes = []
        for world in self.worlds:
            undecided = world.share("undecided")
            if undecided > 0.1:
                state = "are equal" if world.name == "all equal" else f"differ {world.name}"
                share, time = _percent(undecided), in_brief(float(self.horizon))
                notes.append(
                    f"If the arms {state}, {share} of experiments are undecided after {time}. "
                    f"{self._help(world)}"
                )
        if self.without is not None and self.add_arm_at is not None:
            notes.append(self._cost())
        return notes

    def _help(self, world: PlannedWorld) -> str:
        if world.name == "all equal" and "margin" not in self.about:
            return "Without a margin, nothing ends an experiment in which no arm is better."
        if world.name == "all equal":
            return "A larger margin, more visitors or more time decide more of them."
        return "More visitors or more time decide more of them; a margin ends the others."

    def _cost(self) -> str:
        """What the arm that joins costs, in the experiments that are still running then."""
        assert self.without is not None and self.add_arm_at is not None
        joins = float(self.add_arm_at) / DAY
        runs_on = self.without.days > joins
        when = in_brief(float(self.add_arm_at))
        if not runs_on.any():
            return f"All experiments have ended when the last arm would join, after {when}."
        medians = [
            self._days(float(np.sort(world.days[runs_on])[(int(runs_on.sum()) - 1) // 2]))
            for world in (self.without, self.stated)
        ]
        more = float((self.stated.lost - self.without.lost)[runs_on].mean())
        return (
            f"{_percent(runs_on.mean())} of experiments are still running after {when}. In these, "
            f"the last arm changes the median from {medians[0]} to {medians[1]} days, and "
            f"{self.losses} by {more:+,.0f} on average."
        )

    def __repr__(self) -> str:
        return str(self)

    def plot(self, axes: Sequence[Axes] | None = None) -> Any:
        """Draw the share of experiments with each verdict over time; needs matplotlib.

        Parameters
        ----------
        axes : sequence of matplotlib.axes.Axes, optional
            One for each world; None makes a figure.

        Returns
        -------
        list of matplotlib.axes.Axes
            The axes.
        """
        from duelay.show.plan_figure import draw_plan

        return draw_plan(self, axes)

    def write(self, folder: str | Path) -> None:
        """Write ``plan.csv``, a row for each simulated experiment, and the figure as PNG and SVG.

        Parameters
        ----------
        folder : str or Path
            The folder, which is made if it does not exist.
        """
        from duelay.show import figure_style
        from duelay.show.plan_figure import plan_figure

        folder = Path(folder)
        figure = plan_figure(self)
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("plan.png", "plan.svg"):
            figure_style.save(figure, folder / name)
        lines = io.StringIO()
        writer = csv.writer(lines, lineterminator="\n")
        writer.writerow(("world", "run", "days", "verdict", "arm", "false", "lost"))
        for world in self.worlds:
            rows = zip(
                world.days, world.verdict, world.arm, world.is_false, world.lost, strict=True
            )
            for run, (days, verdict, arm, is_false, lost) in enumerate(rows):
                shown = f"{days:.4f}" if math.isfinite(days) else ""
                row = (run, shown, verdict, in_cell(arm), bool(is_false), f"{lost:.6g}")
                writer.writerow((world.name, *row))
        write_whole(folder / "plan.csv", lines.getvalue().encode())


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
