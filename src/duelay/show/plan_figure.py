"""The figure of a plan: which verdicts simulated experiments have, over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from duelay._core.duration import DAY
from duelay.errors import InvalidValueError
from duelay.show.figure_style import COLOURS, frame, need_matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from duelay.planning import Plan, PlannedWorld

_BANDS = (  # of true verdicts, from below, and the false ones on top
    ("winner", COLOURS[0]),
    ("good_enough", COLOURS[5]),
    ("equivalent", COLOURS[2]),
)
_FALSE = COLOURS[1]


def draw_plan(plan: Plan, axes: Sequence[Axes] | None = None) -> list[Axes]:
    """Draw one panel for each world of a plan: the share of experiments with a verdict by day.

    Parameters
    ----------
    plan : Plan
        The plan.
    axes : sequence of matplotlib.axes.Axes, optional
        One for each world; None makes a figure.
    """
    if axes is None:
        need_matplotlib()
        import matplotlib.pyplot as plt

        n = len(plan.worlds)
        figure, shown = plt.subplots(
            1, n, figsize=(4.2 * n, 3.2), sharey=True, squeeze=False, layout="constrained"
        )
        axes = list(shown[0])
    axes = list(axes)
    if len(axes) != len(plan.worlds):
        raise InvalidValueError(
            f"axes must be one for each of the {len(plan.worlds)} worlds, got {len(axes)}",
            argument="axes",
        )
    for panel, world in zip(axes, plan.worlds, strict=True):
        _draw_world(panel, world, float(plan.horizon) / DAY)
    axes[0].set_ylabel("experiments with a verdict, %")
    return axes


def plan_figure(plan: Plan) -> Figure:
    """Return a figure of a plan that no window shows.

    Parameters
    ----------
    plan : Plan
        The plan.
    """
    n = len(plan.worlds)
    figure: Figure = need_matplotlib()(figsize=(4.2 * n, 3.2), layout="constrained")
    draw_plan(plan, list(figure.subplots(1, n, sharey=True, squeeze=False)[0]))
    return figure


def _draw_world(axes: Axes, world: PlannedWorld, horizon: float) -> None:
    """Stack the shares of the verdicts so far."""
    verdict = np.array(world.verdict)
    ends = np.unique(world.days[np.isfinite(world.days)])
    days = np.concatenate(([0.0], ends[ends < horizon], [horizon]))
    below = np.zeros(len(days))
    groups = [
        (name.replace("_", " "), colour, (verdict == name) & ~world.is_false)
        for name, colour in _BANDS
    ]
    for name, colour, is_in in [*groups, ("false", _FALSE, world.is_false)]:
        if not is_in.any():
            continue
        share = 100.0 * (world.days[is_in][None, :] <= days[:, None]).sum(axis=1) / len(verdict)
        axes.fill_between(
            days, below, below + share, step="post", color=colour, linewidth=0, label=name
        )
        below = below + share
    axes.set_xlim(0, horizon)
    axes.set_ylim(0, 100)
    axes.set_xlabel("days")
    axes.set_title(f"arms {world.name}" if world.name != "all equal" else "all arms equal")
    if axes.get_legend_handles_labels()[0]:
        axes.legend(framealpha=0.9, fontsize="small", loc="lower right")
    frame(axes)
