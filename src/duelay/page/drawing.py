"""Charts: from the numbers of a `Chart` to its scales, its first picture and its table.

The picture is SVG, for the first paint and for who has no JavaScript. `page.js` then draws the same
with uPlot, on the scales that are made here: nothing jumps. No style attribute: the policy of the
page forbids them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from markupsafe import Markup

from duelay._core.words import in_html
from duelay.page import words
from duelay.page.views import Arm, Chart, Line
from duelay.show import html

_WIDE = 1000  # units of the picture's own scale, either way
_ROWS = 20  # of the table at most
_AREA = ("low", "high")
_FAR = 30.0  # a scale of ages is logarithmic where the last is so many times the middle one
_FLOOR = 1e-3  # evidence below it is drawn there
_APART = 0.16  # of the width: words of marks that are closer would cover each other
_LONGEST = 24  # letters of such words
_ROOM = 3  # rows of them
_MINUTE = 60.0
_DIGITS = 4


@dataclass(frozen=True)
class Ends:
    """The ends of a scale, in the units that are drawn, and its ticks with their words."""

    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]

    def at(self, value: float) -> float:
        """Where a value stands, from 0 to 1."""
        wide = self.high - self.low
        return min(1.0, max(0.0, (value - self.low) / wide)) if wide > 0 else 0.5


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
            return words.NONE
        if self.chart.y_kind == "share":
            return words.share(value)
        return words.times(value) if self.chart.y_kind == "evidence" else words.about(value)

    @property
    def form(self) -> str:
        """How its times are written: with seconds where rows of the table would say the same."""
        x = [at for at, _ in self.rows]
        return "seconds" if len(x) > 1 and (x[-1] - x[0]) / (len(x) - 1) < _MINUTE else "short"

    @property
    def legend(self) -> list[tuple[Line, str, str]]:
        """The lines, each with its name and its latest value; of a band, one entry."""
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
        """The table: some x of all, the last among them, with the values of each line."""
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
        """Upright lines, what happened there, and the row of these words, below those close by."""
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
        return self.y.at(math.log10(max(value, _FLOOR)) if is_log else value)

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
    return Drawing(chart, _x_ends(chart, is_bars, is_far), _y_ends(chart), is_bars, is_far)


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


def spark(values: Sequence[int], wide: int = 120, tall: int = 28) -> Markup:
    """A small line of counts, without scales."""
    if len(values) < 2:
        return Markup("")
    top = max(*values, 1)
    step = (wide - 4) / (len(values) - 1)
    at = [(2 + i * step, tall - 2 - (tall - 4) * v / top) for i, v in enumerate(values)]
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in at)
    area = f"M2 {tall - 2}L{path}L{wide - 2} {tall - 2}Z"
    return Markup(
        f'<svg class="spark" viewBox="0 0 {wide} {tall}" width="{wide}" height="{tall}" '
        f'aria-hidden="true" focusable="false"><path class="area" d="{area}"/>'
        f'<path class="line" d="M{path}"/></svg>'
    )


def reach(arms: Sequence[Arm]) -> float:
    """How far whiskers reach from one half to either side, so that all arms are within."""
    ends = [end for arm in arms for end in (arm.lower, arm.upper) if end is not None]
    far = max((abs(end - 0.5) for end in ends), default=0.5)
    return next(wide for wide in (0.1, 0.2, 0.3, 0.4, 0.5) if far <= wide + 1e-9 or wide == 0.5)


def whisker(
    lower: float | None, mean: float | None, upper: float | None, far: float = 0.5
) -> Markup:
    """An interval with a mark at one half; the ends are `far` from it."""
    wide, tall = 132, 18
    parts = [f'<path class="half" d="M{wide / 2:g} 1V{tall - 1}"/>']
    if lower is not None and mean is not None and upper is not None:
        name, x = html.side(lower, upper), html.reach((lower, mean, upper), wide, 4, far)
        parts.append(f'<path class="reach {name}" d="M{x[0]:.1f} 9H{x[2]:.1f}"/>')
        parts.append(f'<circle class="dot {name}" cx="{x[1]:.1f}" cy="9" r="4"/>')
    return Markup(
        f'<svg class="whisker" viewBox="0 0 {wide} {tall}" width="{wide}" height="{tall}" '
        f'aria-hidden="true" focusable="false"><path class="base" d="M4 9H{wide - 4}"/>'
        f"{''.join(parts)}</svg>"
    )


def gauge(value: float | None, name: str = "") -> Markup:
    """A bar from 0 to 1."""
    filled = 100 * min(1.0, max(0.0, value or 0.0))
    return Markup(
        f'<svg class="gauge {name}" viewBox="0 0 100 6" width="100" height="6" '
        'preserveAspectRatio="none" aria-hidden="true" focusable="false">'
        '<rect class="rest" width="100" height="6" rx="3"/>'
        f'<rect class="full" width="{filled:.1f}" height="6" rx="3"/></svg>'
    )


def _x_ends(chart: Chart, is_bars: bool, is_far: bool) -> Ends:
    if is_bars:
        ages = _steps(chart.x[-1], _age_step(chart.x[-1]))
        ticks = tuple((_index(chart.x, age), words.duration(age)) for age in ages)
        return Ends(-0.5, len(chart.x) - 0.5, ticks)
    first, last = chart.x[0], max(chart.x[-1], chart.x[0] + 1e-3)
    if chart.x_kind == "time":
        return Ends(first, last, ())  # in the viewer's zone, which the browser knows
    sizes = (1e-3, 1, 10, 60, 600, 3600, 6 * 3600, 86400, 7 * 86400, 30 * 86400, 365 * 86400)
    if is_far:
        low = math.log10(max(first if first > 0 else chart.x[1] / 10, 1e-3))
        high = math.log10(last)
        logs = [(math.log10(size), words.duration(size)) for size in sizes]
        return Ends(low, high, tuple((at, said) for at, said in logs if low <= at <= high))
    step = _age_step(last - first)
    return Ends(first, last, tuple((at, words.duration(at)) for at in _steps(last, step)))


def _index(ages: Sequence[float], age: float) -> float:
    """Where an age is among those of bars, whose middles have the numbers 0, 1, ..."""
    n = len(ages)
    after = next((i for i in range(n) if ages[i] >= age), n - 1)
    if after == 0:
        return -0.5 + 0.5 * age / ages[0] if ages[0] > 0 else -0.5
    wide = ages[after] - ages[after - 1]
    return after - (ages[after] - age) / wide if wide > 0 else float(after)


def _age_step(wide: float) -> float:
    """A distance of ticks that people count in, for at most seven."""
    units = (1, 60, 3600, 86400)
    for unit in units:
        for times in (1, 2, 5, 10, 15, 30) if unit in (1, 60) else (1, 2, 3, 6, 12):
            if wide <= 7 * unit * times:
                return float(unit * times)
    return _nice(wide / 86400 / 6) * 86400


def _y_ends(chart: Chart) -> Ends:
    values = [value for line in chart.lines for value in line.values if value is not None]
    top = max(values, default=1.0)
    if chart.y_kind == "evidence":
        return _evidence_ends(chart, values)
    if chart.y_kind == "share":
        is_part = chart.x_kind == "age" and not chart.is_stacked and 0 < top <= 0.5
        high, step = _round_up(top) if is_part else (1.0, 0.25)
        return Ends(0.0, high, tuple((at, words.share(at)) for at in _steps(high, step)))
    high, step = _round_up(max(top, 1.0), (1, 2, 5, 10), 1.0)
    return Ends(0.0, high, tuple((at, words.about(at)) for at in _steps(high, step)))


def _round_up(
    top: float, ones: Sequence[float] = (1, 2, 2.5, 5, 10), least: float = 0.0
) -> tuple[float, float]:
    """The end of a scale that holds a value, and the distance of its ticks."""
    step = max(least, _nice(top / 4, ones))
    return step * math.ceil(top / step - 1e-9), step


def _evidence_ends(chart: Chart, values: Sequence[float]) -> Ends:
    """On a logarithmic scale; far beyond the line of declaration lines leave at the top."""
    levels = [v for line in chart.lines if line.role == "level" for v in line.values if v]
    level = math.log10(max(levels)) if levels else 1.0
    top = max((math.log10(v) for v in values if v > 0), default=0.0)
    high = max(1.25 * level, min(1.1 * top, 1.8 * level), 0.5)
    least = max(min(values, default=1.0), _FLOOR)
    # A little room, so that a line at the end of the scale is not cut in half.
    low = 0.0 if least >= 0.99 else math.floor(math.log10(least)) - 0.05
    step = max(1, math.ceil((high - low) / 5))
    ticks = [float(at) for at in range(math.ceil(low), math.floor(high) + 1, step)]
    return Ends(low, high, tuple((at, _decade(at)) for at in ticks))


def _decade(at: float) -> str:
    return words.about(10**at) if 0 <= at < 6 else f"{10**at:g}" if at < 0 else f"10^{at:.0f}"


def _steps(high: float, step: float) -> list[float]:
    return [i * step for i in range(int(high / step + 1e-9) + 1)]


def _nice(value: float, ones: Sequence[float] = (1, 2, 5, 10)) -> float:
    """The next number that is one of these times a power of ten."""
    size = 10.0 ** math.floor(math.log10(value)) if value > 0 else 1.0
    return next(size * one for one in ones if value <= size * one * (1 + 1e-9))


def _last(values: Sequence[float | None]) -> float | None:
    return next((value for value in reversed(values) if value is not None), None)


def _place(ends: Ends, at: float) -> str:
    return f"{100 * (1 - ends.at(at)):.2f}%"


def _round(value: float | None, digits: int) -> Any:
    if value is None or not math.isfinite(value):
        return None
    rounded = float(f"{value:.{digits}g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e15 else rounded
