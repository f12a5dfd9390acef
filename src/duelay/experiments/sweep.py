"""The sweep of a study: its figure and its tables."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from duelay._core.escapes import in_figure
from duelay.experiments.results import Results
from duelay.show import figure_style
from duelay.simulation import Result
from duelay.simulation.result import half_width as half_width_of


def panels_of(results: Results) -> dict[str, dict[str, list[Result]]]:
    """Return the results by panel, then by label of the policy, in the order of the ticks."""
    spec = results.spec
    assert spec.sweep is not None
    first = spec.grids[0]
    labels = [choice.label for choice in first.policies]
    panels: dict[str, dict[str, list[Result]]] = {}
    if spec.sweep.over == "problems":
        for law in first.delays:
            panels[str(law)] = {
                label: [results.get(first.name, p.name, label, str(law)) for p in first.problems]
                for label in labels
            }
    elif spec.sweep.over == "delays":
        for grid in spec.grids:
            for problem in grid.problems:
                among = f"{grid.title}, {problem.name}" if len(spec.grids) > 1 else problem.name
                panels[among] = {
                    choice.label: [
                        results.get(grid.name, problem.name, choice.label, str(law))
                        for law in grid.delays
                    ]
                    for choice in grid.policies
                }
    else:
        for number in range(len(first.problems)):
            panels[_common([grid.problems[number].name for grid in spec.grids])] = {
                label: [
                    results.get(grid.name, grid.problems[number].name, label) for grid in spec.grids
                ]
                for label in labels
            }
    return panels


def _common(names: list[str]) -> str:
    """Name a panel by its one problem, by the problem under the bonus, or by the problems' kind."""
    if len(set(names)) == 1:
        return names[0]
    kind, _, rest = names[0].partition(":")
    return rest.partition(",")[2] if kind == "first-bonus" else kind


def draw(results: Results) -> Any:
    """Draw what is measured over what varies, a line a policy, with 95 % intervals.

    The mean regret at the horizon, or the mean number of duels until a winner was declared.
    """
    sweep = results.spec.sweep
    assert sweep is not None
    panels = panels_of(results)
    columns = min(3, len(panels))
    stop, rows = results.spec.grids[0].setting.stop, math.ceil(len(panels) / columns)
    parts = 1 if stop is None else 2
    figure, shown = figure_style.panels(
        parts * rows, columns, (parts - 1) * rows * columns + len(panels), results.spec.title
    )
    wrong, shown = shown[rows * columns :], shown[: len(panels)]
    places = np.arange(len(sweep.ticks))
    for axes, (title, lines) in zip(shown, panels.items(), strict=True):
        for number, (label, several) in enumerate(lines.items()):
            mean = np.array([result.measured.mean() for result in several])
            half = np.array([half_width(result) for result in several])
            axes.errorbar(
                places, mean, yerr=[np.minimum(half, 0.9 * mean), half], label=in_figure(label),
                linewidth=1.5, marker=".", capsize=2, **figure_style.style(number),
            )  # fmt: skip
        figure_style.log_numbers(axes)
        ticks = [in_figure(tick) for tick in sweep.ticks]
        is_long = sum(len(tick) for tick in sweep.ticks) > 24
        axes.set_xticks(
            places, ticks, rotation=30 if is_long else 0, ha="right" if is_long else "center"
        )
        short = title if len(title) < 40 else f"{title[:37]}..."
        axes.set_title(in_figure(short), fontsize="medium")
    measured = "regret at the horizon" if stop is None else "duels until declared"
    figure_style.name_axes(shown, columns, sweep.axis, measured)
    for axes, lines in zip(wrong, panels.values(), strict=False):
        _draw_wrong(axes, lines, float(stop or 0.0))
        axes.set_xticks(places, [in_figure(tick) for tick in sweep.ticks], rotation=30, ha="right")
    figure_style.name_axes(wrong, columns, sweep.axis, "share wrong")
    figure_style.one_legend(figure, shown[0])
    return figure


def _draw_wrong(axes: Any, lines: dict[str, list[Result]], promised: float) -> None:
    """Draw the share of runs with a false verdict, beside what was promised."""
    axes.axhline(promised, color="#000000", linewidth=1, linestyle="--")
    axes.text(0.0, promised, f"{100 * promised:g} % promised", va="bottom", fontsize="small")
    for number, several in enumerate(lines.values()):
        share = [result.is_wrong.mean() for result in several]
        axes.plot(range(len(share)), share, marker=".", **figure_style.style(number))
    axes.set_ylim(-0.002, max(1.6 * promised, axes.get_ylim()[1]))
    axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:g} %")


def half_width(result: Result) -> float:
    """Half of a 95 % interval for the mean of what is measured."""
    return float(half_width_of(result.measured))


def marked(result: Result, beside: Iterable[Result]) -> str:
    """Return the mean of what is measured as a cell of a table.

    Bold if it is the least of its column, or if its interval overlaps with that of the least. If a
    winner leads fewer than 95 % of the runs in the end, that share follows. Where runs end when a
    winner is declared, the shares of runs with a wrong winner, and with none, follow.
    """
    least = min(beside, key=lambda other: other.measured.mean())
    mean = result.measured.mean()
    cell = f"{mean:,.0f}"
    if mean <= least.measured.mean() + half_width(least) + half_width(result):
        cell = f"**{cell}**"
    if result.setting.stop is not None:
        wrong, none = result.is_wrong.mean(), 1.0 - result.is_declared.mean()
        cell = cell if none == 0 else f">{cell}"
        said = [f"{100 * wrong:.3g} % wrong"] if wrong > 0 else []
        said += [f"{100 * none:.3g} % undeclared"] if none > 0 else []
        return f"{cell} ({', '.join(said)})" if said else cell
    if not result.led_by_winner >= 0.95:
        cell += f" ({100 * result.led_by_winner:.0f} %)"
    return cell


def tables(results: Results) -> dict[str, tuple[list[str], list[list[str]]]]:
    """Return, for each panel, the columns and rows of its table, a row a policy."""
    sweep = results.spec.sweep
    assert sweep is not None
    made = {}
    for title, lines in panels_of(results).items():
        columns = list(zip(*lines.values(), strict=True))
        rows = [
            [label, *(marked(r, column) for r, column in zip(several, columns, strict=True))]
            for label, several in lines.items()
        ]
        made[title] = ([sweep.axis, *sweep.ticks], rows)
    return made
