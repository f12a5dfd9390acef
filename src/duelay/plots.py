"""Pictures. The only file that imports matplotlib, which the extra ``duelay[plots]`` brings."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from duelay._files import write_whole
from duelay.engine.result import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, safe for the colour-blind, and two more that differ from them in
# lightness; each has a dash of its own for grey print.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999",
            "#8C510A")  # fmt: skip
_DASHES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)),
                            (0, (6, 2, 1, 2)), (0, (2, 2)))  # fmt: skip
_PATH = re.compile(r' d="[^"]*"')
_METADATA: dict[str, dict[str, Any]] = {
    ".svg": {"Date": None},
    ".pdf": {"CreationDate": None},
    ".png": {},
}


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
    axes.set_title(_short(f"{first.problem.name}, delay {first.delay}, {runs}"))
    if len(results) > 6:
        one_legend(figure, axes)
    else:
        axes.legend(frameon=False, loc="upper left", fontsize="small")
    return figure


def draw_regret(axes: Axes, results: Sequence[Result], labels: Sequence[str] | None = None) -> None:
    """Draw the lines and bands of some results on one pair of axes."""
    labels = [_short(label) for label in labels or [result.label for result in results]]
    for number, result in enumerate(results):
        look = style(number)
        t = np.concatenate(([0], result.t))
        mean = np.concatenate(([0.0], result.mean))
        std = np.concatenate(([0.0], result.std))
        axes.plot(t, mean, linewidth=1.8, label=labels[number], **look)
        low, high = np.maximum(mean - std, 0), mean + std
        axes.fill_between(t, low, high, color=look["color"], alpha=0.15, linewidth=0)
    axes.set_xlabel("duels")
    axes.set_ylabel("cumulative regret (mean ± standard deviation)")
    axes.set_xlim(left=0, right=max(result.horizon for result in results))
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_formatter(lambda value, _: _tick(value))
    axes.yaxis.set_major_formatter(lambda value, _: _tick(value))
    axes.locator_params(axis="both", nbins=5)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25, linewidth=0.6)


def style(number: int) -> dict[str, Any]:
    """The colour and the dash of the n-th line; no two of the first 81 have both in common."""
    dash = _DASHES[(number // len(_COLOURS) + number) % len(_DASHES)]
    return {"color": _COLOURS[number % len(_COLOURS)], "linestyle": dash}


def tone(share: float) -> str:
    """A colour from dark to light, the same in grey."""
    dark, light = np.array([8, 64, 129]), np.array([190, 225, 240])
    red, green, blue = (dark + share * (light - dark)).astype(int)
    return f"#{red:02x}{green:02x}{blue:02x}"


def panels(rows: int, columns: int, n: int, title: str) -> tuple[Figure, list[Axes]]:
    """Return a figure with n panels, in rows, and room for a key below."""
    width, height = (3.6 * columns, 2.9 * rows + 0.9) if columns > 1 else (6.0, 4.5)
    figure: Figure = check()(figsize=(width, height), layout="constrained")
    figure.suptitle(_short(title))
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes in grid[n:]:
        axes.set_visible(False)
    for axes in grid[:n]:
        axes.tick_params(labelsize="small")
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25, linewidth=0.6)
    return figure, list(grid[:n])


def name_axes(shown: Sequence[Axes], columns: int, x: str, y: str) -> None:
    """Name the outer axes of a figure with panels: below each column, left of each row."""
    for number, axes in enumerate(shown):
        axes.set_xlabel(x if number + columns >= len(shown) else "", fontsize="small")
        axes.set_ylabel(y if number % columns == 0 else "", fontsize="small")


def one_legend(figure: Figure, axes: Axes) -> None:
    """One legend for all panels, below them."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize="small",
        handlelength=3.5,
    )  # fmt: skip


def key(figure: Figure, entries: Sequence[tuple[str, str]], title: str) -> None:
    """A key of colours below the panels."""
    from matplotlib.patches import Patch

    patches = [Patch(color=colour, label=text) for colour, text in entries]
    figure.legend(
        handles=patches, title=title, loc="outside lower center", ncols=len(entries),
        frameon=False, fontsize="small",
    )  # fmt: skip


def save(figure: Figure, path: str | Path) -> None:
    """Write a figure, whole or not at all; the ending of the name says in which format.

    The file depends on what is drawn alone: no dates, no random names in it.
    """
    import matplotlib

    path, content = Path(path), io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "duelay", "svg.fonttype": "path"}):
        figure.savefig(
            content, format=path.suffix[1:], dpi=150, metadata=_METADATA.get(path.suffix, {})
        )
    if path.suffix == ".svg":
        content = io.BytesIO(_PATH.sub(_round, content.getvalue().decode()).encode())
    write_whole(path, content.getvalue())


def _round(path: re.Match[str]) -> str:
    """A path with a hundredth of a point is as good as one with a millionth, and half as long."""
    return re.sub(r"(\.\d\d)\d+", r"\1", path.group())


def _tick(value: float) -> str:
    """A number on an axis: 0.25, 40, 1,500, 200k."""
    if abs(value) >= 10_000:
        return f"{value / 1000:,g}k"
    return f"{value:,.0f}" if abs(value) >= 10 else f"{value:g}"


def _short(text: str) -> str:
    """Words for a figure: not too many, and nothing in them is mathematics or hidden."""
    text = text if len(text) <= 70 else f"{text[:67]}..."
    return text.replace("$", r"\$").removeprefix("_")


def check() -> Any:
    """Return matplotlib's Figure, or say how to install it."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ValueError(
            "figures need matplotlib: install it with pip install 'duelay[plots]'"
        ) from None
    return Figure
