"""The axes of a chart: where they end, and which labels stand beside them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from duelay.page import formats
from duelay.page.view_models import Chart

LOWEST_LOG_VALUE = 1e-3  # a logarithmic axis draws anything smaller here
_LOG_RATIO = 30.0  # an axis of ages is logarithmic if the last is so many times the middle
_MINUTE, _HOUR, _DAY = 60.0, 3600.0, 86_400.0
_ROUND_SPANS = tuple(
    float(unit * times)
    for unit, multiples in (
        (1, (1, 2, 5, 10, 15, 30)),
        (_MINUTE, (1, 2, 5, 10, 15, 30)),
        (_HOUR, (1, 2, 3, 6, 12)),
        (_DAY, (1, 2, 3, 6, 12)),
    )
    for times in multiples
)
_LOG_AGES = (1e-3, 1, 10, 60, 600, 3600, 6 * _HOUR, _DAY, 7 * _DAY, 30 * _DAY, 365 * _DAY)
_CLOCK_MARGIN = 0.08  # of the width: closer to the right edge, a time of day is cut off
_MAX_AGE_TICKS, _MAX_DATE_TICKS, _MAX_CLOCK_TICKS = 7, 10, 4  # times of day have long labels


@dataclass(frozen=True)
class Tick:
    """A label of an axis."""

    value: float  # in the units of the data
    label: str
    time_form: str = ""  # for a moment: the form in which `page.js` writes it


@dataclass(frozen=True)
class Axis:
    """The two ends of an axis, in the units of the data, and its ticks."""

    low: float
    high: float
    ticks: tuple[Tick, ...]
    is_log: bool = False

    def locate(self, value: float) -> float:
        """Return the place of a value on the axis, from 0 to 1."""
        low, high, at = (self._scale(each) for each in (self.low, self.high, value))
        return min(1.0, max(0.0, (at - low) / (high - low))) if high > low else 0.5

    def _scale(self, value: float) -> float:
        return math.log10(max(value, LOWEST_LOG_VALUE)) if self.is_log else value


def make_x_axis(chart: Chart, *, is_bars: bool) -> Axis:
    """Return the axis of times or ages; that of bars counts bars, from 0 on."""
    if is_bars:
        return _make_bar_axis(chart.x)
    first, last = chart.x[0], max(chart.x[-1], chart.x[0] + 1e-3)
    if chart.x_kind == "time":
        return Axis(first, last, _tick_times(first, last))
    middle = chart.x[len(chart.x) // 2]
    if len(chart.x) > 2 and last > _LOG_RATIO * middle > 0:
        low = max(first if first > 0 else chart.x[1] / 10, LOWEST_LOG_VALUE)
        ages = [age for age in _LOG_AGES if low <= age <= last]
        return Axis(low, last, _tick_ages(ages), is_log=True)
    return Axis(first, last, _tick_ages(_multiples(last, _round_span(last - first))))


def make_y_axis(chart: Chart) -> Axis:
    """Return the axis of shares, numbers or evidence."""
    values = [value for line in chart.lines for value in line.values if value is not None]
    top = max(values, default=1.0)
    if chart.y_kind == "evidence":
        return _make_evidence_axis(chart, values)
    if chart.y_kind == "share":
        is_small = chart.x_kind == "age" and not chart.is_stacked and 0 < top <= 0.5
        high, step = _round_up(top) if is_small else (1.0, 0.25)
        return Axis(0.0, high, tuple(Tick(at, formats.share(at)) for at in _multiples(high, step)))
    high, step = _round_up(max(top, 1.0), (1, 2, 5, 10), 1.0)
    return Axis(0.0, high, tuple(Tick(at, formats.about(at)) for at in _multiples(high, step)))


def _make_bar_axis(ages: Sequence[float]) -> Axis:
    """Return an axis on which the middle of bar n is at n; ticks stand at round ages."""
    n = len(ages)

    def index(age: float) -> float:
        after = next((i for i in range(n) if ages[i] >= age), n - 1)
        if after == 0:
            return -0.5 + 0.5 * age / ages[0] if ages[0] > 0 else -0.5
        width = ages[after] - ages[after - 1]
        return after - (ages[after] - age) / width if width > 0 else float(after)

    round_ages = _multiples(ages[-1], _round_span(ages[-1]))
    ticks = tuple(Tick(index(age), formats.duration(age)) for age in round_ages)
    return Axis(-0.5, n - 0.5, ticks)


def _tick_ages(ages: Sequence[float]) -> tuple[Tick, ...]:
    return tuple(Tick(age, formats.duration(age)) for age in ages)


def _tick_times(first: float, last: float) -> tuple[Tick, ...]:
    """Return ticks at round moments of UTC."""
    width = last - first
    step = _round_span(width, _MAX_CLOCK_TICKS)
    if step >= _DAY:
        step = _round_span(max(width, _DAY * _MAX_DATE_TICKS), _MAX_DATE_TICKS)
    form = "date" if step >= _DAY else "short" if step >= _MINUTE else "seconds"
    begin, end = math.ceil(first / step), math.floor(last / step)
    times = [step * i for i in range(begin, end + 1)]
    if form != "date":
        times = [at for at in times if at <= last - _CLOCK_MARGIN * width]
    return tuple(Tick(at, formats.utc_without_year(at, form), form) for at in times)


def _round_span(width: float, max_ticks: int = _MAX_AGE_TICKS) -> float:
    """Return a round length of time which fits into another one at most so many times."""
    for span in _ROUND_SPANS:
        if width <= max_ticks * span:
            return span
    return _round_number(width / _DAY / (max_ticks - 1)) * _DAY


def _make_evidence_axis(chart: Chart, values: Sequence[float]) -> Axis:
    """Return a logarithmic axis that keeps the level of a declaration in sight.

    Lines far above that level leave the chart at the top.
    """
    levels = [v for line in chart.lines if line.role == "level" for v in line.values if v]
    level = math.log10(max(levels)) if levels else 1.0
    top = max((math.log10(v) for v in values if v > 0), default=0.0)
    high = max(1.25 * level, min(1.1 * top, 1.8 * level), 0.5)
    least = max(min(values, default=1.0), LOWEST_LOG_VALUE)
    # Leave a little room below, so that a line at the end of the axis is not cut in half.
    low = 0.0 if least >= 0.99 else math.floor(math.log10(least)) - 0.05
    step = max(1, math.ceil((high - low) / 5))
    powers = range(math.ceil(low), math.floor(high) + 1, step)
    ticks = tuple(Tick(10.0**at, _power_of_ten(at)) for at in powers)
    return Axis(10.0**low, 10.0**high, ticks, is_log=True)


def _power_of_ten(at: int) -> str:
    return formats.about(10**at) if 0 <= at < 6 else f"{10.0**at:g}" if at < 0 else f"10^{at}"


def _round_up(
    top: float, ones: Sequence[float] = (1, 2, 2.5, 5, 10), least: float = 0.0
) -> tuple[float, float]:
    """Return the end of an axis that holds a value, and the distance of its ticks."""
    step = max(least, _round_number(top / 4, ones))
    return step * math.ceil(top / step - 1e-9), step


def _multiples(high: float, step: float) -> list[float]:
    return [i * step for i in range(int(high / step + 1e-9) + 1)]


def _round_number(value: float, ones: Sequence[float] = (1, 2, 5, 10)) -> float:
    """Return the next number that is one of these times a power of ten."""
    size = 10.0 ** math.floor(math.log10(value)) if value > 0 else 1.0
    return next(size * one for one in ones if value <= size * one * (1 + 1e-9))
