"""Text for numbers, shares, times and durations."""

from __future__ import annotations

import datetime
import math

from duelay._core.duration import in_brief
from duelay.live.summary import percent

_BIG = ((1e12, "trillion"), (1e9, "billion"), (1e6, "million"))
NONE = "–"


def count(value: float | None) -> str:
    """Return a count in full.

    >>> count(1234567), count(0), count(None)
    ('1,234,567', '0', '–')
    """
    return NONE if value is None else f"{value:,.0f}"


def about(value: float | None) -> str:
    """Return a number in short, to two or three digits.

    >>> [about(value) for value in (999, 12345, 1234567, 2.5e9, 3e20, None)]
    ['999', '12,345', '1.2 million', '2.5 billion', '3e+20', '–']
    """
    if value is None:
        return NONE
    for size, name in _BIG:
        if value >= 1000 * size:
            return f"{value:.2g}"
        if value >= size:
            return f"{value / size:.3g} {name}" if value >= 100 * size else _two(value / size, name)
    return f"{value:,.0f}"


def _two(value: float, name: str) -> str:
    return f"{value:.1f}".removesuffix(".0") + f" {name}"


def many(value: int, one: str, more: str = "") -> str:
    """Return a count and its noun.

    >>> many(1, "duel"), many(1200, "duel"), many(2, "reply", "replies")
    ('1 duel', '1,200 duels', '2 replies')
    """
    return f"{count(value)} {one if value == 1 else more or one + 's'}"


def share(value: float | None) -> str:
    """Return a share in percent; 0 % and 100 % are exact.

    >>> [share(value) for value in (0.374, 0.0123, 0.0004, 0.9996, 0.0, 1.0, None)]
    ['37 %', '1.2 %', 'less than 0.1 %', 'more than 99.9 %', '0 %', '100 %', '–']
    """
    if value is None:
        return NONE
    if 0 < value < 0.001:
        return "less than 0.1 %"
    if 0.999 < value < 1:
        return "more than 99.9 %"
    percent = 100 * value
    if 0 < percent < 9.95 or 99 < percent < 100:
        return f"{percent:.1f} %".replace(".0 %", " %")
    return f"{percent:.0f} %"


def chance(value: float | None) -> str:
    """Return an estimated chance in percent; it is never quite 0 or 100 %.

    >>> chance(0.374), chance(1.0), chance(0.0), chance(None)
    ('37 %', 'over 99 %', 'under 1 %', '–')
    """
    return NONE if value is None else percent(value)


def span(lower: float | None, upper: float | None) -> str:
    """Return an interval of shares in whole percent.

    >>> span(0.523, 0.648), span(0.0, 1.0), span(None, 0.5)
    ('52–65 %', '0–100 %', '–')
    """
    if lower is None or upper is None:
        return NONE
    return f"{100 * lower:.0f}–{100 * upper:.0f} %"


def lift(value: float | None) -> str:
    """Return a relative difference, with its sign.

    >>> lift(0.0523), lift(-0.3), lift(2.5), lift(None)
    ('+5.2 %', '-30 %', '+250 %', 'any')
    """
    if value is None or not math.isfinite(value):
        return "any"
    percent = 100.0 * value
    return f"{percent:+.1f} %" if abs(percent) < 10.0 else f"{percent:+,.0f} %"


def times(value: float | None) -> str:
    """Return evidence as a likelihood ratio.

    >>> [times(value) for value in (0.25, 1.02, 12.3, 81.6, 4.2e6, 1e30)]
    ['0.25 times', '1 time', '12 times', '82 times', '4.2 million times', '10^30 times']
    """
    if value is None:
        return NONE
    if value < 9.5:
        said = f"{value:.2g}"
        return f"{said} time{'' if said == '1' else 's'}"
    return f"{about(value)} times" if value < 1e15 else f"10^{math.log10(value):.0f} times"


def one_in(value: float) -> str:
    """Return a small share as one in how many.

    >>> one_in(0.05), one_in(0.001), one_in(0.3)
    ('1 in 20', '1 in 1,000', '30 %')
    """
    whole = 1 / value if value > 0 else math.inf
    is_close = math.isfinite(whole) and abs(whole - round(whole)) < 0.01 * whole
    return f"1 in {round(whole):,}" if is_close and whole >= 4 else share(value)


def duration(seconds: float | None) -> str:
    """Return a length of time.

    >>> duration(9019.9), duration(86400 * 7), duration(None)
    ('2h30m', '7d', '–')
    """
    return NONE if seconds is None else in_brief(seconds)


def utc(moment: float, *, to_seconds: bool = False) -> str:
    """Return a moment in UTC, to the minute or the second.

    >>> utc(1794838598.8), utc(1794838598.8, to_seconds=True)
    ('16 Nov 2026, 14:16 UTC', '16 Nov 2026, 14:16:38 UTC')
    """
    at = datetime.datetime.fromtimestamp(moment, datetime.UTC)
    return f"{at.day} {at:%b %Y}, {at:{'%H:%M:%S' if to_seconds else '%H:%M'}} UTC"


def utc_without_year(moment: float, form: str) -> str:
    """Return a moment in UTC for an axis; the form is "date", "short" or "seconds".

    >>> [utc_without_year(1794838598.8, form) for form in ("date", "short", "seconds")]
    ['16 Nov', '16 Nov, 14:16', '16 Nov, 14:16:38']
    """
    at = datetime.datetime.fromtimestamp(moment, datetime.UTC)
    clock = {"date": "", "short": f", {at:%H:%M}", "seconds": f", {at:%H:%M:%S}"}
    return f"{at.day} {at:%b}{clock[form]}"


def iso(moment: float) -> str:
    """Return a moment in ISO 8601.

    >>> iso(1794838598.8)
    '2026-11-16T14:16:38Z'
    """
    return f"{datetime.datetime.fromtimestamp(moment, datetime.UTC):%Y-%m-%dT%H:%M:%SZ}"
