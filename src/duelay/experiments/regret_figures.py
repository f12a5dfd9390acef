"""The figures of a grid: regret, regret on a logarithmic clock, and the pairs played over time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from duelay import theory
from duelay._core.escapes import in_figure
from duelay.delays import Delay
from duelay.experiments import sweep
from duelay.experiments.results import Results
from duelay.experiments.spec import Grid, Specification, slug
from duelay.experiments.statistics import converged_at, has_converged
from duelay.show import figure_style, plots
from duelay.simulation import Result

_MAX_REGRET_MULTIPLE = 4.5  # of the least regret: a panel is scaled to results within it
_CAPTIONS = {
    "regret": "Cumulative regret, {band}, delay {law}. A panel is made for "
    "what converges: it ends where that has, and what goes on rising, or converges at more than "
    "4.5 times the least, leaves it at the top.",
    "log": "The same on a logarithmic clock, delay {law}, beside the asymptotic lower bound "
    "without delay.",
    "pairs": "What {label} spends its duels on, delay {law}: share of the duels since the "
    "checkpoint before.",
    "stops": "The share of runs that have ended with a verdict by then, thin a false one, delay "
    "{law}.",
}
_BANDS = {"sd": "mean and standard deviation", "mean": "mean with its 95 % interval"}
FORMATS = ("svg", "pdf", "png")


class Planned(NamedTuple):
    """A figure of a grid that is to be drawn."""

    grid: Grid
    law: Delay
    kind: str
    name: str  # of its files, without the ending


def plan(spec: Specification) -> list[Planned]:
    """Return the figures of every grid; none for a sweep, which has a figure of its own."""
    return [
        Planned(grid, law, kind, f"{slug(grid.name)}-{kind}{suffix}")
        for grid in (() if spec.sweep is not None else spec.grids)
        for law in grid.delays
        for suffix in ["" if len(grid.delays) == 1 else f"-{slug(str(law))}"]
        # Most figures need a Condorcet winner, for the lower bound and for its rivals.
        for kind in _kinds(grid)
    ]


def _kinds(grid: Grid) -> list[str]:
    if grid.setting.stop is not None:
        return ["stops"]
    if grid.setting.target != "condorcet":
        return ["regret"]
    return [kind for kind in KINDS if kind != "stops"]


def draw_all(
    results: Results, folder: Path, step: Callable[[str], None] = lambda _: None
) -> dict[str, list[tuple[str, str]]]:
    """Draw every figure of every grid into the folder; return names and captions by grid.

    `step` is called after each, with its name.
    """
    folder.mkdir(exist_ok=True)
    if results.spec.sweep is not None:
        _save(sweep.draw(results), folder, "sweep")
        step("figure sweep")
        return {}
    drawn: dict[str, list[tuple[str, str]]] = {grid.name: [] for grid in results.spec.grids}
    for grid, law, kind, name in plan(results.spec):
        _save(KINDS[kind](results, grid, str(law)), folder, name)
        caption = _CAPTIONS[kind].format(
            law=law, label=grid.policies[0].label, band=_BANDS[results.spec.band]
        )
        drawn[grid.name].append((name, caption))
        step(f"figure {name}")
    return drawn


def _save(figure: Any, folder: Path, name: str) -> None:
    for ending in FORMATS:
        figure_style.save(figure, folder / f"{name}.{ending}")
        figure.set_layout_engine(None)  # laid out for the first: that takes half of the time


def regret(results: Results, grid: Grid, law: str) -> Any:
    """Draw the mean regret and a band, one panel for each problem, like the paper's figure.

    A panel is scaled to the policies that converge, except those at several times the least regret.
    All others leave it at the top.
    """
    figure, panels = _panels(grid)
    for axes, _, panel in _each(results, grid, law, panels):
        plots.draw_regret(axes, list(panel.values()), list(panel), band=results.spec.band)
        right, top = _extent(list(panel.values()))
        axes.set_xlim(0, right)
        axes.set_ylim(0, top or 1.0)  # nothing to regret: every arm is a winner
    _name_regret(results, grid, panels, "duels")
    figure_style.one_legend(figure, panels[0])
    return figure


def log_clock(results: Results, grid: Grid, law: str) -> Any:
    """Draw mean regret over log t, beside the asymptotic lower bound."""
    figure, panels = _panels(grid)
    for axes, problem, panel in _each(results, grid, law, panels):
        plots.draw_regret(axes, list(panel.values()), list(panel), band=results.spec.band)
        t = next(iter(panel.values())).t
        rate = theory.asymptotic_lower_bound(problem, 2) / math.log(2)  # in proportion to log t
        bound = [rate * math.log(tick) for tick in t]
        axes.plot(t, bound, color="black", linewidth=0.8, label="lower bound without delay")
        axes.set_xscale("log")
        if len(t) > 1:
            axes.set_xlim(t[0], t[-1])
        axes.set_ylim(0, _extent(list(panel.values()))[1])
    _name_regret(results, grid, panels, "duels, logarithmic")
    figure_style.one_legend(figure, panels[0])
    return figure


def pairs(results: Results, grid: Grid, law: str) -> Any:
    """Draw the shares of the duels that the first policy spends on each pair, over time."""
    label = grid.policies[0].label
    figure, panels = _panels(grid)
    for axes, _, panel in _each(results, grid, law, panels):
        t, shares = pair_shares(panel[label])
        rivals = shares.shape[1] - 2
        tones = [figure_style.tone(place / max(1, rivals - 1)) for place in range(rivals)]
        axes.stackplot(t, *shares.T, colors=["#222222", *tones, "#d9d9d9"], linewidth=0)
        if len(t) > 1:
            axes.set_xlim(t[0], t[-1])
        axes.set_xscale("log")
        axes.set_ylim(0, 1)
    figure_style.name_axes(panels, min(3, len(panels)), "duels, logarithmic", "share of the duels")
    figure_style.key(
        figure,
        [
            ("#222222", "the winner with itself"),
            (figure_style.tone(0.0), "with its closest rival"),
            (figure_style.tone(1.0), "with its weakest"),
            ("#d9d9d9", "without the winner"),
        ],
        f"{label}: who duels",
    )
    return figure


def pair_shares(result: Result) -> tuple[Any, Any]:
    """Return ticks, and at each the shares of recent duels.

    The columns: the winner with itself, the winner with each rival from the closest on, and duels
    without the winner. "Recent" is since the checkpoint before.
    """
    assert result.pairs is not None
    winner = result.problem.winner
    counts = result.pairs + result.pairs.transpose(0, 2, 1)  # unordered; self-duels twice
    rivals = [arm for arm in np.argsort(result.problem.gaps, kind="stable") if arm != winner]
    own = counts[:, winner, winner] / 2
    against = counts[:, winner, :][:, rivals]
    total = result.runs * result.t.astype(np.float64)
    others = total - own - against.sum(axis=1)
    stacked = np.column_stack([own, against, others])
    recent = np.diff(stacked, axis=0, prepend=0.0)
    return result.t, recent / recent.sum(axis=1, keepdims=True)


def _name_regret(results: Results, grid: Grid, panels: list[Any], x: str) -> None:
    words = plots.BAND_WORDS[results.spec.band] if grid.runs > 1 else "one run"
    figure_style.name_axes(panels, min(3, len(panels)), x, f"regret ({words})")


def _panels(grid: Grid) -> tuple[Any, list[Any]]:
    n = len(grid.problems)
    columns = min(3, n)
    return figure_style.panels(math.ceil(n / columns), columns, n, grid.title)


def _each(results: Results, grid: Grid, law: str, panels: list[Any]) -> Iterator[Any]:
    """Yield each panel with its problem and the results in it by label, and name it."""
    for axes, problem in zip(panels, grid.problems, strict=True):
        yield axes, problem, results.panel(grid, problem.name, law)
        axes.set_title(in_figure(f"{problem.name} (K = {problem.n_arms})"), fontsize="medium")


def _extent(several: list[Result]) -> tuple[float, float]:
    """Return the limits of a panel, to the right and at the top.

    They fit the results that converge, except those above `_MAX_REGRET_MULTIPLE` the least regret.
    """
    converged = [result for result in several if has_converged(result)]
    least = min((float(result.mean[-1]) for result in converged), default=0.0)
    converged = [result for result in converged if result.mean[-1] <= _MAX_REGRET_MULTIPLE * least]
    if not converged:
        return several[0].horizon, 1.05 * max(float(r.mean[-1] + r.band()[-1]) for r in several)
    right = min(several[0].horizon, 1.25 * max(converged_at(result) for result in converged))
    top = 0.0
    for result in converged:
        place = min(int(np.searchsorted(result.t, right)), len(result.t) - 1)
        top = max(top, float(result.mean[place] + result.band()[place]))
    return right, 1.15 * top


def stops(results: Results, grid: Grid, law: str) -> Any:
    """Draw the share of runs that have ended with a verdict by then; a panel a problem."""
    figure, panels = _panels(grid)
    for axes, _, panel in _each(results, grid, law, panels):
        plots.draw_stops(axes, list(panel.values()), list(panel))
    figure_style.name_axes(panels, min(3, len(panels)), "duels", "share of runs with a verdict")
    figure_style.one_legend(figure, panels[0])
    return figure


KINDS: dict[str, Callable[[Results, Grid, str], Any]] = {
    "regret": regret,
    "log": log_clock,
    "pairs": pairs,
    "stops": stops,
}
