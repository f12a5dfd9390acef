"""HTML building blocks of notebook views: escaped text, tables, and small SVG charts.

Colours are translucent, and lines have the colour of the text, so that they suit light and dark
pages.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from duelay._core.escapes import in_html as escape

BLUE, ORANGE = "38,139,210", "213,94,0"  # as in the figures; the blue is lighter, for dark pages
_COLOURS = {"above": f"rgb({BLUE})", "below": f"rgb({ORANGE})", "open": "currentColor"}
_WIDTH, _HEIGHT = 240, 80  # of a chart's frame, in pixels
_LEFT, _TOP, _RIGHT, _BOTTOM = 44, 8, 14, 20  # its margins
_CELL = "text-align:{};padding:2px 7px;border:none;white-space:nowrap;"


def short(text: str, most: int = 70) -> str:
    """Text for a small place, cut in the middle; pointing at it shows the whole."""
    if len(text) <= most:
        return escape(text)
    tail = most // 3
    cut = f"{text[: most - 1 - tail]}…{text[len(text) - tail :]}"
    return f'<span title="{escape(text[:1000])}">{escape(cut)}</span>'


def heading(text: str) -> str:
    """A name above a column: broken into lines where it is long, not cut."""
    return (
        '<span style="display:inline-block;max-width:8em;white-space:normal;'
        f'overflow-wrap:anywhere;text-align:inherit">{short(text, 60)}</span>'
    )


def number(value: float) -> str:
    """A number of any size: 0.25, 12.3, 1,500, 2.1e+09, ∞.

    >>> [number(value) for value in (0.25, 12.34, 1500.0, 2.1e9, math.inf, math.nan)]
    ['0.25', '12.3', '1,500', '2.1e+09', '∞', '–']
    """
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e7 else f"{value:.3g}"


def percent(share: float) -> str:
    """A share, as HTML: 30 %, 0.5 %; never 0 % or 100 % where it is not quite.

    >>> [percent(share) for share in (0.3, 0.005, 1.0, 0.99999, 1e-9)]
    ['30 %', '0.5 %', '100 %', '&gt; 99.9 %', '&lt; 0.1 %']
    """
    if 0 < share < 0.001:
        return "&lt; 0.1 %"
    return "&gt; 99.9 %" if 0.999 < share < 1 else f"{100 * share:.3g} %"


def block(*parts: str) -> str:
    """One element around all parts; in it MathJax leaves names like "$5" alone."""
    inside = "".join(parts)
    return f'<div class="tex2jax_ignore mathjax_ignore" style="max-width:100%">{inside}</div>'


def line(content: str, *, is_faint: bool = False) -> str:
    """A line of text, already HTML."""
    faint = ";opacity:0.7;font-size:90%" if is_faint else ""
    return f'<div style="margin:2px 0{faint}">{content}</div>'


def side_by_side(*parts: str) -> str:
    """Parts beside each other while there is room."""
    inside = "".join(f"<div>{part}</div>" for part in parts)
    return (
        f'<div style="display:flex;flex-wrap:wrap;gap:4px 24px;align-items:center">{inside}</div>'
    )


def td(content: str, *, align: str = "right", style: str = "", title: str = "") -> str:
    """A cell; its content is HTML already."""
    told = f' title="{escape(title[:200])}"' if title else ""
    return f'<td style="{_CELL.format(align)}{style}"{told}>{content}</td>'


def table(head: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int] = ()) -> str:
    """A table of cells made by `td`, under a head of HTML; columns in `left` stand to the left."""
    cells = [
        f'<th style="{_CELL.format("left" if column in left else "right")}vertical-align:bottom;">'
        f"{title}</th>"
        for column, title in enumerate(head)
    ]
    lines = [f"<tr>{''.join(row)}</tr>" for row in rows]
    return (
        '<div style="overflow-x:auto">'
        '<table style="border-collapse:collapse;margin:4px 0;color:inherit;font-size:inherit">'
        f"<thead><tr>{''.join(cells)}</tr></thead><tbody>{''.join(lines)}</tbody></table></div>"
    )


def shade(share: float) -> str:
    """A background from orange at -1, over none at 0, to blue at 1."""
    strength = 0.6 * min(1.0, abs(share))
    return f"background-color:rgba({BLUE if share > 0 else ORANGE},{strength:.2f});"


def reach(ends: Sequence[float], width: float, margin: float, far: float = 0.5) -> list[float]:
    """Where the ends and the middle of an interval stand on a strip whose middle is 1/2.

    The strip reaches `far` to either side of 1/2; what is beyond stands at its end.

    >>> reach([0.4, 0.5, 0.9], 100, 0), reach([0.4, 0.5, 0.9], 100, 0, 0.1)
    ([40.0, 50.0, 90.0], [0.0, 50.0, 100.0])
    """
    at = (0.5 + (end - 0.5) / (2.0 * far) for end in ends)
    return [round(margin + (width - 2 * margin) * min(1.0, max(0.0, one)), 1) for one in at]


def side(low: float, high: float) -> str:
    """Whether an interval is above 1/2, below it, or open: the colour of all that shows it."""
    return "above" if low > 0.5 else "below" if high < 0.5 else "open"


def whisker(low: float, middle: float, high: float) -> str:
    """An interval on [0, 1] with a mark at 1/2; blue above it, orange below, and else grey.

    Where there is nothing to show (nan) only the mark is left.
    """
    width, height = 120, 14
    parts = [f'<path d="M{width / 2:g} 0V{height}" stroke="currentColor" opacity="0.4"/>']
    if not math.isnan(middle):
        colour = _COLOURS[side(low, high)]
        x = reach((low, middle, high), width, 2)
        parts.append(f'<path d="M{x[0]:g} 7H{x[2]:g}" stroke="{colour}" stroke-width="2"/>')
        parts.append(f'<circle cx="{x[1]:g}" cy="7" r="3.5" fill="{colour}"/>')
    return _svg(width, height, "".join(parts), "display:block")


def chart(
    title: str,
    lines: Sequence[tuple[ArrayLike, ArrayLike]],
    *,
    x_ends: tuple[str, str],
    y_end: str,
    y_begin: str = "0",
    band: tuple[ArrayLike, ArrayLike, ArrayLike] | None = None,
    level: float | None = None,
) -> str:
    """A small chart of lines on the unit square; `x_ends`, `y_begin` and `y_end` label its ends.

    `band` is xs, lows and highs; `level` a dashed line across. Many lines are drawn fainter.
    """
    parts = [f"<title>{escape(title)}</title>"]
    if band is not None:
        x, low, high = (np.asarray(values, dtype=np.float64) for values in band)
        around = _path(np.concatenate((x, x[::-1])), np.concatenate((high, low[::-1])))
        parts.append(f'<path d="{around}Z" fill="rgba({BLUE},0.25)"/>')
    frame = f"M{_LEFT} {_TOP}V{_TOP + _HEIGHT}H{_LEFT + _WIDTH}"
    parts.append(f'<path d="{frame}" fill="none" stroke="currentColor" opacity="0.5"/>')
    if level is not None:
        across = _path(np.array([0.0, 1.0]), np.array([level, level]))
        dashes = 'stroke="currentColor" stroke-dasharray="4 3" opacity="0.6"'
        parts.append(f'<path d="{across}" fill="none" {dashes}/>')
    faint = 1.0 if len(lines) <= 6 else 0.5
    for xs, ys in lines:
        d = _path(np.asarray(xs, dtype=np.float64), np.asarray(ys, dtype=np.float64))
        look = f'stroke="rgb({BLUE})" stroke-width="1.6" opacity="{faint}"'
        parts.append(f'<path d="{d}" fill="none" {look}/>')
    below, right = _TOP + _HEIGHT + 14, _LEFT + _WIDTH
    for x_at, y_at, anchor, words in (
        (_LEFT - 5, _TOP + 8, "end", y_end),
        (_LEFT - 5, _TOP + _HEIGHT, "end", y_begin),
        (_LEFT, below, "start", x_ends[0]),
        (right, below, "end", x_ends[1]),
    ):
        place = f'x="{x_at}" y="{y_at}" text-anchor="{anchor}"'
        parts.append(f'<text {place} font-size="11" fill="currentColor">{escape(words)}</text>')
    return _svg(_LEFT + _WIDTH + _RIGHT, _TOP + _HEIGHT + _BOTTOM, "".join(parts))


def _path(x: NDArray[np.float64], y: NDArray[np.float64]) -> str:
    """The way along the points, in pixels."""
    left = np.round(_LEFT + _WIDTH * np.clip(x, 0, 1), 1)
    top = np.round(_TOP + _HEIGHT * (1 - np.clip(y, 0, 1)), 1)
    return "M" + "L".join(f"{a:g} {b:g}" for a, b in zip(left, top, strict=True))


def _svg(width: int, height: int, inside: str, style: str = "max-width:100%") -> str:
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    return f'<svg {size} role="img" style="{style}">{inside}</svg>'
