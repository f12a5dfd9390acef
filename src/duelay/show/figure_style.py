"""Colours, panels, axes, keys and saving of all figures.

Matplotlib comes with the extra ``duelay[plots]``; `check` says so if it is missing.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from duelay._core.escapes import in_figure
from duelay._core.files import write_whole
from duelay.errors import InvalidValueError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, safe for the colour-blind, and two more that differ from them in
# lightness; each has a dash of its own for grey print.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999",
            "#8C510A")  # fmt: skip
_DASHES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)),
                            (0, (6, 2, 1, 2)), (0, (2, 2)))  # fmt: skip
_PATH = re.compile(r' d="[^"]*"')
_METADATA: dict[str, dict[str, Any]] = {
    ".svg": {"Date": None},
    ".pdf": {"CreationDate": None},
    ".png": {},
}


def style(number: int) -> dict[str, Any]:
    """The colour and the dash of the n-th line; no two of the first 81 have both in common."""
    dash = _DASHES[(number // len(COLOURS) + number) % len(_DASHES)]
    return {"color": COLOURS[number % len(COLOURS)], "linestyle": dash}


def tone(share: float) -> str:
    """A colour from dark to light, the same in grey."""
    dark, light = np.array([8, 64, 129]), np.array([190, 225, 240])
    red, green, blue = (dark + share * (light - dark)).astype(int)
    return f"#{red:02x}{green:02x}{blue:02x}"


def panels(rows: int, columns: int, n: int, title: str) -> tuple[Figure, list[Axes]]:
    """Return a figure with n panels, in rows, and room for a key below."""
    width, height = (3.6 * columns, 2.9 * rows + 0.9) if columns > 1 else (6.0, 4.5)
    figure: Figure = need_matplotlib()(figsize=(width, height), layout="constrained")
    figure.suptitle(short(title))
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes in grid[n:]:
        axes.set_visible(False)
    for axes in grid[:n]:
        axes.tick_params(labelsize="small")
        frame(axes)
    return figure, list(grid[:n])


def frame(axes: Axes, *, grid: bool = True) -> None:
    """Leave out the spines at the top and to the right; draw a faint grid."""
    axes.spines[["top", "right"]].set_visible(False)
    if grid:
        axes.grid(alpha=0.25, linewidth=0.6)


def name_axes(shown: Sequence[Axes], columns: int, x: str, y: str) -> None:
    """Name the outer axes of a figure with panels: below each column, left of each row."""
    for number, axes in enumerate(shown):
        axes.set_xlabel(in_figure(x) if number + columns >= len(shown) else "", fontsize="small")
        axes.set_ylabel(y if number % columns == 0 else "", fontsize="small")


def log_numbers(axes: Axes) -> None:
    """Make the vertical axis logarithmic, with numbers that people read: 200, 500, 1,000."""
    from matplotlib.ticker import LogLocator, NullFormatter

    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(lambda value, _: tick_words(value))
    axes.yaxis.set_minor_formatter(NullFormatter())


def one_legend(figure: Figure, axes: Axes, columns: int = 3) -> None:
    """One legend for all panels, below them."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside lower center", ncols=columns, frameon=False, fontsize="small",
        handlelength=3.5,
    )  # fmt: skip


def key(figure: Figure, entries: Sequence[tuple[str, str]], title: str) -> None:
    """A key of colours below the panels."""
    from matplotlib.patches import Patch

    patches = [Patch(color=colour, label=text) for colour, text in entries]
    figure.legend(
        handles=patches, title=short(title), loc="outside lower center", ncols=len(entries),
        frameon=False, fontsize="small",
    )  # fmt: skip


def save(figure: Figure, path: str | Path) -> None:
    """Write a figure, whole or not at all; the ending of the name says in which format.

    The file depends only on what is drawn: it has no dates and no random names.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        The figure.
    path : str or Path
        The file; its suffix determines the format.
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


def new_axes(width: float, height: float) -> Axes:
    """New axes by pyplot, so that a notebook shows them."""
    need_matplotlib()
    import matplotlib.pyplot as plt

    _, axes = plt.subplots(figsize=(width, height), layout="constrained")
    return axes


def _round(path: re.Match[str]) -> str:
    """Round a path to hundredths of a point: it looks the same, and is half as long."""
    return re.sub(r"(\.\d\d)\d+", r"\1", path.group())


def tick_words(value: float) -> str:
    """A number on an axis: 0.25, 40, 1,500, 200k, 1e40."""
    if abs(value) >= 1e9:
        return f"{value:.3g}".replace("e+0", "e").replace("e+", "e")
    if abs(value) >= 10_000:
        return f"{value / 1000:,g}k"
    return f"{value:,.0f}" if abs(value) >= 10 else f"{value:g}"


def short(text: str) -> str:
    """Words for a figure: not too many."""
    return in_figure(text if len(text) <= 70 else f"{text[:67]}...")


def arm_name(arm: str) -> str:
    """An arm's name beside a tick."""
    return in_figure(arm if len(arm) <= 20 else f"{arm[:17]}...")


def need_matplotlib() -> Any:
    """Return matplotlib's Figure, or say how to install it."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise InvalidValueError(
            "figures need matplotlib: install it with pip install 'duelay[plots]'"
        ) from None
    return Figure
