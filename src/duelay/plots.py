"""Pictures. The only file that imports matplotlib, which the extra ``duelay[plots]`` brings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from duelay.engine.result import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, safe for the colour-blind, each with a dash of its own for grey print.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_DASHES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)))


def regret_figure(results: Sequence[Result]) -> Figure:
    """Draw mean regret over time, with a band of one standard deviation, a line a policy."""
    figure_class = check()
    if not results:
        raise ValueError("results must hold at least one result, got none")
    figure: Figure = figure_class(figsize=(7.2, 4.5), layout="constrained")
    axes = figure.subplots()
    draw_regret(axes, results)
    first = results[0]
    runs = "1 run" if first.runs == 1 else f"{first.runs} runs"
    axes.set_title(f"{first.problem.name}, delay {first.delay}, {runs}")
    axes.legend(frameon=False, loc="upper left", fontsize="small")
    return figure


def draw_regret(axes: Axes, results: Sequence[Result]) -> None:
    """Draw the lines and bands of some results on one pair of axes."""
    for number, result in enumerate(results):
        colour = _COLOURS[number % len(_COLOURS)]
        dash = _DASHES[(number // len(_COLOURS) + number) % len(_DASHES)]
        t = np.concatenate(([0], result.t))
        mean = np.concatenate(([0.0], result.mean))
        std = np.concatenate(([0.0], result.std))
        axes.plot(t, mean, color=colour, linestyle=dash, linewidth=1.8, label=label(result))
        low, high = np.maximum(mean - std, 0), mean + std
        axes.fill_between(t, low, high, color=colour, alpha=0.15, linewidth=0)
    axes.set_xlabel("duels")
    axes.set_ylabel("cumulative regret (mean ± standard deviation)")
    axes.set_xlim(left=0, right=max(result.horizon for result in results))
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25, linewidth=0.6)


def label(result: Result) -> str:
    """A policy's text, without what the title and the axis already say."""
    text = str(result.policy)
    parts = [
        part
        for part in (
            f"delay={result.delay}",
            f"delay=({result.delay})",
            f"horizon={result.horizon}",
        )
        if part in text
    ]
    for part in parts:
        text = text.replace(part, "")
    while ",," in text:
        text = text.replace(",,", ",")
    return text.replace(":,", ":").rstrip(",:")


def save(figure: Figure, path: str | Path) -> None:
    """Write a figure, whole or not at all; the ending of the name says in which format."""
    path = Path(path)
    draft = path.with_name(f".draft.{path.name}")
    try:
        figure.savefig(draft, dpi=150)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def check() -> Any:
    """Return matplotlib's Figure, or say how to install it."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ValueError(
            "figures need matplotlib: install it with pip install 'duelay[plots]'"
        ) from None
    return Figure
