"""Charts: from the numbers of a `Chart` to its scales, its first picture and its table.

The picture is SVG, for the first paint and for browsers without JavaScript. `page.js` then draws
the same with uPlot, on the scales that are made here: nothing jumps. There is no style
attribute: the policy of the page forbids them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from markupsafe import Markup

from duelay._core.words import in_html
from duelay.page import formats
from duelay.page.charts.axes import FLOOR, Ends, x_ends, y_ends
from duelay.page.view_models import Chart, Line

_WIDE = 1000  # units of the picture's own scale, either way
_ROWS = 20  # of the table at most
_AREA = ("low", "high")
_FAR = 30.0  # a scale of ages is logarithmic if the last is so many times the middle
_APART = 0.16  # of the width: the words of closer marks would overlap
_LONGEST = 24  # letters of such words
_ROOM = 3  # rows of them
_MINUTE = 60.0
_DIGITS = 4


@dataclass(frozen=True)
class Drawing:
    """A chart, ready for the template."""

    chart: Chart
    x: Ends
    y: Ends
    is_bars: bool
    is_far: bool  # ages on a logarithmic scale

    @property
    def _values(self) -> list[Sequence[float | None]]:
        return [line.values for line in self.chart.lines]

    @property
    def label(self) -> str:
        """What a screen reader says instead of the picture."""
        chart = self.chart
        last = "; ".join(
            f"{line.name}: {self.say(_last(line.values))}"
            for line in chart.lines
            if line.role not in _AREA
        )
        return f"{chart.title}. {last}. The numbers are in the table below."

    def say(self, value: float | None) -> str:
        """A value, in words."""
        if value is None:
            return formats.NONE
        if self.chart.y_kind == "share":
            return formats.share(value)
        return formats.times(value) if self.chart.y_kind == "evidence" else formats.about(value)

    @property
    def form(self) -> str:
        """How its times are written: with seconds if rows are less than a minute apart."""
        x = [at for at, _ in self.rows]
        return "seconds" if len(x) > 1 and (x[-1] - x[0]) / (len(x) - 1) < _MINUTE else "short"

    @property
    def legend(self) -> list[tuple[Line, str, str]]:
        """The lines, each with its name and its latest value; a band has one entry."""
        found = []
        for line in self.chart.lines:
            if line.role == "high":
                continue
            is_band = line.role == "low"
            name = "interval" if is_band else line.name
            found.append((line, name, "" if is_band else self.say(_last(line.values))))
        return found

    @property
    def rows(self) -> list[tuple[float, list[str]]]:
        """The table: some of the x, the last among them, and the values of each line there."""
        n = len(self.chart.x)
        step = max(1, math.ceil(n / _ROWS))
        picked = range((n - 1) % step, n, step)
        return [
            (self.chart.x[i], [self.say(line.values[i]) for line in self.chart.lines])
            for i in picked
        ]

    @property
    def data(self) -> Markup:
        """What `page.js` reads, as JSON that is safe within a script element."""
        chart = self.chart
        said = {
            "x": [_round(value, 12) for value in chart.x],
            "xKind": chart.x_kind,
            "form": self.form,
            "yKind": chart.y_kind,
            "isStacked": chart.is_stacked,
            "isStepped": chart.is_stepped,
            "marks": self.marks,
            "isBars": self.is_bars,
            "isFar": self.is_far,
            "xEnds": [self.x.low, self.x.high],
            "xTicks": self.x.ticks,
            "yEnds": [self.y.low, self.y.high],
            "yTicks": self.y.ticks,
            "lines": [
                {
                    "name": line.name,
                    "role": line.role,
                    "colour": line.colour % 12,
                    "fill": fill(line),
                    "values": [_round(value, _DIGITS) for value in line.values],
                }
                for line in chart.lines
            ],
        }
        text = json.dumps(said, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        for character, escaped in (("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026")):
            text = text.replace(character, escaped)
        return Markup(text)

    @property
    def marks(self) -> list[tuple[float, str, int]]:
        """Upright lines: where, what happened, and the row of its words; neighbours differ."""
        found: list[tuple[float, str, int]] = []
        last, row = -math.inf, 0
        for at, said in self.chart.marks:
            place = self.x.at(at)
            row, last = (row + 1, last) if place - last < _APART else (0, place)
            cut = f"{said[:_LONGEST]}…" if len(said) > _LONGEST else said
            found.append((at, cut if row < _ROOM else "", row))
        return found

    @property
    def picture(self) -> Markup:
        """The first picture: lines that stretch with their frame, ticks that do not."""
        grid = "".join(
            f'<line x1="0" x2="100%" y1="{_place(self.y, at)}" y2="{_place(self.y, at)}"/>'
            f'<text x="0" dx="-8" y="{_place(self.y, at)}" dy="4" text-anchor="end">'
            f"{in_html(said)}</text>"
            for at, said in self.y.ticks
        )
        for at, said, row in self.marks:
            across = f"{100 * self.x.at(at):.2f}%"
            end = ' text-anchor="end" dx="-4"' if self.x.at(at) > 0.5 else ' dx="4"'
            grid += f'<line class="upright" x1="{across}" x2="{across}" y1="0" y2="100%"/>'
            grid += f'<text x="{across}" y="{12 + 15 * row}"{end}>{in_html(said)}</text>'
        paths = "".join(self._paths())
        inner = (
            f'<svg x="0" y="0" width="100%" height="100%" viewBox="0 0 {_WIDE} {_WIDE}" '
            f'preserveAspectRatio="none">{paths}</svg>'
        )
        return Markup(
            '<svg class="first" width="100%" height="100%" aria-hidden="true" focusable="false">'
            f'<g class="grid">{grid}</g>{inner}</svg>'
        )

    def _paths(self) -> Iterator[str]:
        chart = self.chart
        along = [self.x.at(self.place(i)) for i in range(len(chart.x))]
        if self.is_bars:
            yield from self._bars()
            return
        are_there = [any(v is not None for v in at) for at in zip(*self._values, strict=True)]
        below: list[float | None] = [0.0 if is_there else None for is_there in are_there]
        for i, line in enumerate(chart.lines):
            if line.role == "low":
                continue
            if chart.is_stacked:
                pairs = zip(below, line.values, strict=True)
                top = [None if b is None else b + (v or 0.0) for b, v in pairs]
                yield self._area(along, below, top, fill(line))
                below = top
            elif line.role == "high":
                low = next((one for one in chart.lines if one.role == "low"), chart.lines[i])
                yield self._area(along, low.values, line.values, "band")
            else:
                path = self._along(along, line.values)
                yield f'<path class="line {kind(line)}" d="{path}"/>' if path else ""

    def _bars(self) -> Iterator[str]:
        (line, *_), n = self.chart.lines, len(self.chart.x)
        wide = _WIDE / max(n, 1)
        for i, value in enumerate(line.values):
            tall = _WIDE * self.y.at(value or 0.0)
            where = f'x="{i * wide + 0.1 * wide:.1f}" y="{_WIDE - tall:.1f}"'
            yield f'<rect class="bar" {where} width="{0.8 * wide:.1f}" height="{tall:.1f}"/>'

    def place(self, i: int) -> float:
        """Where the i-th x is, in the units of the scale."""
        if self.is_bars:
            return i
        value = self.chart.x[i]
        return math.log10(max(value, 1e-3)) if self.is_far else value

    def height(self, value: float) -> float:
        """Where a value stands, from 0 to 1."""
        is_log = self.chart.y_kind == "evidence"
        return self.y.at(math.log10(max(value, FLOOR)) if is_log else value)

    def _along(self, along: Sequence[float], values: Sequence[float | None]) -> str:
        """The way along the points, interrupted where a value is missing."""
        parts, is_down = [], False
        for x, value in zip(along, values, strict=True):
            if value is None:
                is_down = False
                continue
            across, down = f"{_WIDE * x:.0f}", f"{_WIDE * (1 - self.height(value)):.0f}"
            if is_down and self.chart.is_stepped:
                parts.append(f"H{across}V{down}")
            else:
                parts.append(f"{'L' if is_down else 'M'}{across} {down}")
            is_down = True
        return "".join(parts)

    def _area(
        self,
        along: Sequence[float],
        low: Sequence[float | None],
        high: Sequence[float | None],
        name: str,
    ) -> str:
        """What is between two lines, in as many pieces as there are."""
        pieces: list[list[tuple[float, float, float]]] = [[]]
        for x, a, b in zip(along, low, high, strict=True):
            if a is None or b is None:
                pieces.append([])
            else:
                pieces[-1].append((x, a, b))
        path = ""
        for piece in filter(None, pieces):
            way = [(x, b) for x, _, b in piece] + [(x, a) for x, a, _ in reversed(piece)]
            ends = (f"{_WIDE * x:.0f} {_WIDE * (1 - self.height(y)):.0f}" for x, y in way)
            path += f"M{'L'.join(ends)}Z"
        return f'<path class="area {name}" d="{path}"/>' if path else ""


def draw(chart: Chart | None) -> Drawing | None:
    """A chart with its scales; None where there is nothing to draw."""
    if chart is None or not chart.x or not chart.lines:
        return None
    is_bars = chart.x_kind == "age" and chart.y_kind == "number"
    if is_bars:
        chart = _fewer(chart)
    middle = chart.x[len(chart.x) // 2]
    is_far = (
        chart.x_kind == "age"
        and not is_bars
        and chart.x[-1] > _FAR * middle > 0
        and len(chart.x) > 2
    )
    return Drawing(chart, x_ends(chart, is_bars, is_far), y_ends(chart), is_bars, is_far)


def _fewer(chart: Chart) -> Chart:
    """The same counts in at most as many bars as the table has rows: neighbours are added up."""
    n = len(chart.x)
    each = math.ceil(n / _ROWS)
    groups = [slice(i, i + each) for i in range(0, n, each)]
    ages = tuple(sum(chart.x[group]) / len(chart.x[group]) for group in groups)
    lines = tuple(
        replace(line, values=tuple(sum(v or 0.0 for v in line.values[group]) for group in groups))
        for line in chart.lines
    )
    return replace(chart, x=ages, lines=lines)


def fill(line: Line) -> str:
    """The class of an area, which gives its colour."""
    return "others" if line.role == "others" else f"a{line.colour % 12}"


def kind(line: Line) -> str:
    """The class of a line, which gives its colour and its dashes."""
    if line.role == "arm":
        return f"c{line.colour % 12}"
    return "band" if line.role in _AREA else line.role


def _last(values: Sequence[float | None]) -> float | None:
    return next((value for value in reversed(values) if value is not None), None)


def _place(ends: Ends, at: float) -> str:
    return f"{100 * (1 - ends.at(at)):.2f}%"


def _round(value: float | None, digits: int) -> Any:
    if value is None or not math.isfinite(value):
        return None
    rounded = float(f"{value:.{digits}g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e15 else rounded
