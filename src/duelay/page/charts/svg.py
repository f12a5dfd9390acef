"""Draw charts as shapes, labels and tables, and the small graphics of tables and lists.

The server draws every chart, as SVG. Shapes stretch with their frame, and labels do not; so
shapes have coordinates from 0 to 1000 both ways, and labels stand at percentages of the frame.
`page.js` adds a tooltip, which it reads from the table.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup

from duelay.page import formats
from duelay.page.charts.axes import Axis, Tick, make_x_axis, make_y_axis
from duelay.page.glossary import strength
from duelay.page.view_models import ArmView, Chart, Line, Values
from duelay.show import html

_SIZE = 1000  # units of a frame, either way
_MAX_ROWS = 20  # of a table, and bars of a chart
_BAND_ROLES = ("low", "high")
_MARK_DISTANCE = 0.16  # of the width: labels of closer marks would overlap, and share no row
_MAX_MARK_LETTERS = 24
_MAX_MARK_ROWS = 3
_MINUTE = 60.0
_HALF_WIDTHS = (0.1, 0.2, 0.3, 0.4, 0.5)


@dataclass(frozen=True)
class Shape:
    """A path of SVG, and the CSS classes that give its colours."""

    css_class: str
    path: str


@dataclass(frozen=True)
class Label:
    """Text at a place of the frame, in percent of its width and height."""

    x: float
    y: float
    text: str
    is_left: bool = False  # the text ends at the place; otherwise it begins there
    row: int = 0  # of marks whose labels would overlap
    time: str = ""  # a moment, for machines
    time_form: str = ""


@dataclass(frozen=True)
class LegendEntry:
    """A line of a chart, with its name and its latest value."""

    line: Line
    name: str
    value: str
    title: str = ""  # the value in full, where it is said in a word


@dataclass(frozen=True)
class TableRow:
    """A row of the table below a chart."""

    x: float  # a moment or an age
    place: float  # in percent of the width
    values: tuple[str, ...]


@dataclass(frozen=True)
class Drawing:
    """A chart, ready for its template."""

    chart: Chart
    label: str  # for screen readers
    shapes: tuple[Shape, ...]
    x_labels: tuple[Label, ...]
    y_labels: tuple[Label, ...]
    marks: tuple[Label, ...]
    level: Label | None  # names the level of a declaration
    legend: tuple[LegendEntry, ...]
    rows: tuple[TableRow, ...]
    time_form: str  # with seconds if rows are less than a minute apart


def draw(chart: Chart | None) -> Drawing | None:
    """Return the drawing of a chart; None where there is nothing to draw."""
    if chart is None or not chart.x or not chart.lines:
        return None
    is_bars = chart.x_kind == "age" and chart.y_kind == "number"
    if is_bars:
        chart = _join_bars(chart)
    x_axis, y_axis = make_x_axis(chart, is_bars=is_bars), make_y_axis(chart)
    places = [x_axis.locate(i if is_bars else x) for i, x in enumerate(chart.x)]
    shapes = [_draw_bars(chart, y_axis)] if is_bars else _draw_lines(chart, places, y_axis)
    rows = _make_rows(chart, places)
    times = [row.x for row in rows]
    is_close = len(times) > 1 and (times[-1] - times[0]) / (len(times) - 1) < _MINUTE
    return Drawing(
        chart=chart,
        label=_describe(chart),
        shapes=tuple(shapes),
        x_labels=tuple(_label_x(x_axis, tick) for tick in x_axis.ticks),
        y_labels=tuple(_label_y(y_axis, tick.value, tick.label) for tick in y_axis.ticks),
        marks=tuple(_label_marks(chart, x_axis)),
        level=_label_level(chart, y_axis),
        legend=_make_legend(chart),
        rows=rows,
        time_form="seconds" if is_close else "short",
    )


def area_class(line: Line) -> str:
    """Return the CSS class of an area, which gives its colour."""
    return "others" if line.role == "others" else f"a{line.colour}"


def line_class(line: Line) -> str:
    """Return the CSS class of a line, which gives its colour and its dashes."""
    if line.role == "arm":
        return f"c{line.colour}"
    return "band" if line.role in _BAND_ROLES else line.role


def _join_bars(chart: Chart) -> Chart:
    """Return the same counts in at most as many bars as the table has rows."""
    n = len(chart.x)
    each = math.ceil(n / _MAX_ROWS)
    groups = [slice(i, i + each) for i in range(0, n, each)]
    ages = tuple(sum(chart.x[group]) / len(chart.x[group]) for group in groups)
    lines = tuple(
        replace(line, values=tuple(sum(v or 0.0 for v in line.values[group]) for group in groups))
        for line in chart.lines
    )
    return replace(chart, x=ages, lines=lines)


# Shapes


def _draw_bars(chart: Chart, y_axis: Axis) -> Shape:
    (line, *_), width = chart.lines, _SIZE / len(chart.x)
    bars = (
        f"M{(i + 0.1) * width:.1f} {_SIZE}V{_down(y_axis, value or 0.0)}h{0.8 * width:.1f}V{_SIZE}Z"
        for i, value in enumerate(line.values)
    )
    return Shape("bar", "".join(bars))


def _draw_lines(chart: Chart, places: Sequence[float], y_axis: Axis) -> Iterator[Shape]:
    columns = list(zip(*(line.values for line in chart.lines), strict=True))
    below: Values = tuple(None if all(v is None for v in column) else 0.0 for column in columns)
    low = next((line.values for line in chart.lines if line.role == "low"), below)
    for line in chart.lines:
        if chart.is_stacked:
            pairs = zip(below, line.values, strict=True)
            top = tuple(None if base is None else base + (v or 0.0) for base, v in pairs)
            shape = Shape(f"area {area_class(line)}", _area_path(places, below, top, y_axis))
            below = top
        elif line.role == "low":
            continue
        elif line.role == "high":
            shape = Shape("area band", _area_path(places, low, line.values, y_axis))
        else:
            path = _line_path(places, line.values, y_axis, is_stepped=chart.is_stepped)
            shape = Shape(f"line {line_class(line)}", path)
        if shape.path:
            yield shape


def _line_path(places: Sequence[float], values: Values, y_axis: Axis, *, is_stepped: bool) -> str:
    """Return the path along the points, interrupted where a value is missing."""
    parts, is_down = [], False
    for place, value in zip(places, values, strict=True):
        if value is None:
            is_down = False
            continue
        across, down = f"{_SIZE * place:.0f}", _down(y_axis, value)
        if is_down and is_stepped:
            parts.append(f"H{across}V{down}")
        else:
            parts.append(f"{'L' if is_down else 'M'}{across} {down}")
        is_down = True
    return "".join(parts)


def _area_path(places: Sequence[float], low: Values, high: Values, y_axis: Axis) -> str:
    """Return the area between two lines, in as many pieces as there are."""
    pieces: list[list[tuple[str, str, str]]] = [[]]
    for place, bottom, top in zip(places, low, high, strict=True):
        if bottom is None or top is None:
            pieces.append([])
        else:
            across = f"{_SIZE * place:.0f}"
            pieces[-1].append((across, _down(y_axis, bottom), _down(y_axis, top)))
    path = ""
    for piece in filter(None, pieces):
        way = [f"{x} {top}" for x, _, top in piece]
        way += [f"{x} {bottom}" for x, bottom, _ in reversed(piece)]
        path += f"M{'L'.join(way)}Z"
    return path


def _down(y_axis: Axis, value: float) -> str:
    """Return how far below the top of the frame a value is drawn."""
    return f"{_SIZE * (1 - y_axis.locate(value)):.0f}"


# Labels


def _label_x(axis: Axis, tick: Tick) -> Label:
    place = axis.locate(tick.value)
    time = formats.iso(tick.value) if tick.time_form else ""
    return Label(_percent(place), 100.0, tick.label, time=time, time_form=tick.time_form)


def _label_y(axis: Axis, value: float, text: str) -> Label:
    return Label(0.0, _percent(1 - axis.locate(value)), text)


def _label_marks(chart: Chart, axis: Axis) -> Iterator[Label]:
    """Yield a label for each thing that happened; labels of neighbours are in different rows."""
    last, row = -math.inf, 0
    for at, text in chart.marks:
        place = axis.locate(at)
        row, last = (row + 1, last) if place - last < _MARK_DISTANCE else (0, place)
        cut = f"{text[:_MAX_MARK_LETTERS]}…" if len(text) > _MAX_MARK_LETTERS else text
        yield Label(_percent(place), 0.0, cut if row < _MAX_MARK_ROWS else "", place > 0.5, row)


def _label_level(chart: Chart, axis: Axis) -> Label | None:
    if chart.y_kind != "evidence":
        return None
    for line in chart.lines:
        value = _latest(line.values)
        if line.role == "level" and value is not None:
            return _label_y(axis, value, f"{line.name}, {_format(chart, value)}")
    return None


def _percent(place: float) -> float:
    return round(100 * place, 2)


# Text


def _make_legend(chart: Chart) -> tuple[LegendEntry, ...]:
    """Return an entry for each line; a band has one. Evidence for an arm is said in a word."""
    level = next((_latest(line.values) for line in chart.lines if line.role == "level"), None)
    found = []
    for line in chart.lines:
        value = _format(chart, _latest(line.values))
        if line.role == "low":
            found.append(LegendEntry(line, "interval", ""))
        elif chart.y_kind == "evidence" and line.role == "arm" and level is not None:
            found.append(LegendEntry(line, line.name, strength(_latest(line.values), level), value))
        elif line.role != "high":
            found.append(LegendEntry(line, line.name, value))
    return tuple(found)


def _make_rows(chart: Chart, places: Sequence[float]) -> tuple[TableRow, ...]:
    """Return the values at some of the x, the last among them."""
    n = len(chart.x)
    step = max(1, math.ceil(n / _MAX_ROWS))
    return tuple(
        TableRow(
            chart.x[i],
            _percent(places[i]),
            tuple(_format(chart, line.values[i]) for line in chart.lines),
        )
        for i in range((n - 1) % step, n, step)
    )


def _describe(chart: Chart) -> str:
    """Return what a screen reader says instead of the picture."""
    latest = "; ".join(
        f"{line.name}: {_format(chart, _latest(line.values))}"
        for line in chart.lines
        if line.role not in _BAND_ROLES
    )
    return f"{chart.title}. {latest}. The numbers are in the table below."


def _format(chart: Chart, value: float | None) -> str:
    formatters = {"share": formats.share, "evidence": formats.times}
    return formatters.get(chart.y_kind, formats.about)(value)


def _latest(values: Values) -> float | None:
    return next((value for value in reversed(values) if value is not None), None)


# Graphics within a line of text or a cell of a table.


def draw_counts(values: Sequence[int], width: int = 120, height: int = 28) -> Markup:
    """Draw a line of counts, without axes."""
    if len(values) < 2:
        return Markup("")
    top = max(*values, 1)
    step = (width - 4) / (len(values) - 1)
    points = [
        (2 + i * step, height - 2 - (height - 4) * value / top) for i, value in enumerate(values)
    ]
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    area = f"M2 {height - 2}L{path}L{width - 2} {height - 2}Z"
    return Markup(
        f'<svg class="spark" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'aria-hidden="true" focusable="false"><path class="area" d="{area}"/>'
        f'<path class="line" d="M{path}"/></svg>'
    )


def find_half_width(arms: Sequence[ArmView]) -> float:
    """Return how far a scale reaches from one half to either side, to hold all intervals."""
    ends = [end for arm in arms for end in (arm.lower, arm.upper) if end is not None]
    needed = max((abs(end - 0.5) for end in ends), default=0.5)
    return next((each for each in _HALF_WIDTHS if needed <= each + 1e-9), 0.5)


def draw_interval(
    lower: float | None, mean: float | None, upper: float | None, half_width: float = 0.5
) -> Markup:
    """Draw an interval on a scale around one half, which has a mark."""
    width, height = 132, 18
    parts = [f'<path class="half" d="M{width / 2:g} 1V{height - 1}"/>']
    if lower is not None and mean is not None and upper is not None:
        side = html.side(lower, upper)
        x = html.reach((lower, mean, upper), width, 4, half_width)
        parts.append(f'<path class="reach {side}" d="M{x[0]:.1f} 9H{x[2]:.1f}"/>')
        parts.append(f'<circle class="dot {side}" cx="{x[1]:.1f}" cy="9" r="4"/>')
    return Markup(
        f'<svg class="whisker" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'aria-hidden="true" focusable="false"><path class="base" d="M4 9H{width - 4}"/>'
        f"{''.join(parts)}</svg>"
    )


def draw_bar(share: float | None, css_class: str = "") -> Markup:
    """Draw a bar from 0 to 1."""
    filled = 100 * min(1.0, max(0.0, share or 0.0))
    return Markup(
        f'<svg class="gauge {css_class}" viewBox="0 0 100 6" width="100" height="6" '
        'preserveAspectRatio="none" aria-hidden="true" focusable="false">'
        '<rect class="rest" width="100" height="6" rx="3"/>'
        f'<rect class="full" width="{filled:.1f}" height="6" rx="3"/></svg>'
    )
