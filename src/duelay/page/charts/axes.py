"""The scales of a chart: where they end, and which numbers stand beside them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from duelay.page import formats
from duelay.page.view_models import Chart

FLOOR = 1e-3  # evidence below it is drawn there


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


def x_ends(chart: Chart, is_bars: bool, is_far: bool) -> Ends:
    """The scale of times or ages; `is_far` for a logarithmic one."""
    if is_bars:
        ages = _steps(chart.x[-1], _age_step(chart.x[-1]))
        ticks = tuple((_index(chart.x, age), formats.duration(age)) for age in ages)
        return Ends(-0.5, len(chart.x) - 0.5, ticks)
    first, last = chart.x[0], max(chart.x[-1], chart.x[0] + 1e-3)
    if chart.x_kind == "time":
        return Ends(first, last, ())  # ticks of times are left to the browser, which knows the zone
    sizes = (1e-3, 1, 10, 60, 600, 3600, 6 * 3600, 86400, 7 * 86400, 30 * 86400, 365 * 86400)
    if is_far:
        low = math.log10(max(first if first > 0 else chart.x[1] / 10, 1e-3))
        high = math.log10(last)
        logs = [(math.log10(size), formats.duration(size)) for size in sizes]
        return Ends(low, high, tuple((at, said) for at, said in logs if low <= at <= high))
    step = _age_step(last - first)
    return Ends(first, last, tuple((at, formats.duration(at)) for at in _steps(last, step)))


def _index(ages: Sequence[float], age: float) -> float:
    """Where an age is among the bars; the middle of the n-th bar, from 0 on, is at n."""
    n = len(ages)
    after = next((i for i in range(n) if ages[i] >= age), n - 1)
    if after == 0:
        return -0.5 + 0.5 * age / ages[0] if ages[0] > 0 else -0.5
    wide = ages[after] - ages[after - 1]
    return after - (ages[after] - age) / wide if wide > 0 else float(after)


def _age_step(wide: float) -> float:
    """A distance between ticks in round units of time, for at most seven ticks."""
    units = (1, 60, 3600, 86400)
    for unit in units:
        for times in (1, 2, 5, 10, 15, 30) if unit in (1, 60) else (1, 2, 3, 6, 12):
            if wide <= 7 * unit * times:
                return float(unit * times)
    return _nice(wide / 86400 / 6) * 86400


def y_ends(chart: Chart) -> Ends:
    """The scale of shares, numbers or evidence."""
    values = [value for line in chart.lines for value in line.values if value is not None]
    top = max(values, default=1.0)
    if chart.y_kind == "evidence":
        return _evidence_ends(chart, values)
    if chart.y_kind == "share":
        is_part = chart.x_kind == "age" and not chart.is_stacked and 0 < top <= 0.5
        high, step = _round_up(top) if is_part else (1.0, 0.25)
        return Ends(0.0, high, tuple((at, formats.share(at)) for at in _steps(high, step)))
    high, step = _round_up(max(top, 1.0), (1, 2, 5, 10), 1.0)
    return Ends(0.0, high, tuple((at, formats.about(at)) for at in _steps(high, step)))


def _round_up(
    top: float, ones: Sequence[float] = (1, 2, 2.5, 5, 10), least: float = 0.0
) -> tuple[float, float]:
    """The end of a scale that holds a value, and the distance of its ticks."""
    step = max(least, _nice(top / 4, ones))
    return step * math.ceil(top / step - 1e-9), step


def _evidence_ends(chart: Chart, values: Sequence[float]) -> Ends:
    """A logarithmic scale; lines far above the level of a declaration leave it at the top."""
    levels = [v for line in chart.lines if line.role == "level" for v in line.values if v]
    level = math.log10(max(levels)) if levels else 1.0
    top = max((math.log10(v) for v in values if v > 0), default=0.0)
    high = max(1.25 * level, min(1.1 * top, 1.8 * level), 0.5)
    least = max(min(values, default=1.0), FLOOR)
    # A little room, so that a line at the end of the scale is not cut in half.
    low = 0.0 if least >= 0.99 else math.floor(math.log10(least)) - 0.05
    step = max(1, math.ceil((high - low) / 5))
    ticks = [float(at) for at in range(math.ceil(low), math.floor(high) + 1, step)]
    return Ends(low, high, tuple((at, _decade(at)) for at in ticks))


def _decade(at: float) -> str:
    return formats.about(10**at) if 0 <= at < 6 else f"{10**at:g}" if at < 0 else f"10^{at:.0f}"


def _steps(high: float, step: float) -> list[float]:
    return [i * step for i in range(int(high / step + 1e-9) + 1)]


def _nice(value: float, ones: Sequence[float] = (1, 2, 5, 10)) -> float:
    """The next number that is one of these times a power of ten."""
    size = 10.0 ** math.floor(math.log10(value)) if value > 0 else 1.0
    return next(size * one for one in ones if value <= size * one * (1 + 1e-9))
