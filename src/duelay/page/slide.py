"""The summary of an experiment as a picture of one slide, in SVG.

It has no styles, scripts or links, so that any program shows it, and a page with a strict policy,
too. SVG does not break lines: widths of text are estimated.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import replace

from duelay._core.escapes import in_html
from duelay.live.standing import StandingReport
from duelay.live.summary import ALIKE, ArmSummary, Summary, difference_words, percent
from duelay.page.formats import about, one_in, share, utc

WIDTH, HEIGHT = 1200, 675
_LEFT, _RIGHT = 72, 1128
_FONT = "system-ui, -apple-system, Segoe UI, Roboto, Noto Sans, Arial, sans-serif"
_INK, _SOFT, _RULE = "#1b1d21", "#585d66", "#e3e3de"
_COLOURS = {"winner": "#1b6e42", "good_enough": "#1b6e42", "equivalent": "#1b6e42",
            "leads": "#1a5fb4", "close": "#1a5fb4"}  # fmt: skip
_OTHER, _BAD = "#5b5468", "#a63a00"
_MAX_ARMS = 6  # bars
_MIN_STEP = 26.0  # from one bar to the next, so that none covers another
# A name between the first two does not turn the text around it; the third begins a sentence.
_OPEN, _CLOSE, _OPEN_SENTENCE = "\u2068", "\u2069", "\u2066"


def draw_slide(report: StandingReport) -> str:
    """Return the picture of a summary, 1200 by 675, as the text of an SVG file."""
    summary = report.summary
    colour = _BAD if summary.doubts or summary.harms else _COLOURS.get(summary.state, _OTHER)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
        f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="{_FONT}" role="img">',
        f"<title>{in_html(f'{report.name}: {summary.headline}')}</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        f'<rect width="16" height="{HEIGHT}" fill="{colour}"/>',
        _text(_LEFT, 78, report.name, 26, _SOFT, width=_RIGHT - _LEFT),
    ]
    y = 138
    for line in _wrap(summary.headline, 50, _RIGHT - _LEFT, 2):
        parts.append(_text(_LEFT, y, line, 50, _INK, weight=600))
        y += 60
    y -= 6
    for line in _explain(summary):
        parts.append(_text(_LEFT, y, line, 24, _BAD if summary.doubts else _INK))
        y += 34
    if summary.harms:
        more = len(summary.harms) - 1
        said = f"Guard-rail, {summary.harms[0]}{f', and {more} more' if more else ''}."
        for line in _wrap(said, 24, _RIGHT - _LEFT, 2):
            parts.append(_text(_LEFT, y, line, 24, _BAD))
            y += 34
    numbers = list(_draw_numbers(summary, y + 24))
    parts += numbers
    parts += _draw_arms(report, max(y + (156 if numbers else 56), 410.0))
    unit = "visitors" if report.display == "one" else "duels"
    said = f"{about(report.duels)} {unit} · {utc(report.now)}"
    if report.guarantee.kind != "none" and not summary.doubts:
        what = "verdict" if summary.state in ("good_enough", "equivalent") else "declared winner"
        said += f" · a {what} is wrong in at most {one_in(report.error)} experiments"
    parts.append(_text(_LEFT, HEIGHT - 28, said, 18, _SOFT))
    parts.append(_text(_RIGHT, HEIGHT - 28, "duelay", 18, _SOFT, weight=600, anchor="end"))
    return "\n".join([*parts, "</svg>"])


def _explain(summary: Summary) -> list[str]:
    """Return the sentence below the headline, in lines."""
    if summary.doubts:
        return _wrap(summary.doubts[0], 24, _RIGHT - _LEFT, 4)
    one = summary.difference
    if one is None:
        return _wrap(summary.lacks, 24, _RIGHT - _LEFT, 2)
    arm, rival = (f"{_OPEN}{_cut(name, 24, 380)}{_CLOSE}" for name in (one.arm, one.rival))
    if not one.is_stated:
        said = difference_words(replace(one, arm=arm, rival=rival))
        return _wrap(said, 24, _RIGHT - _LEFT, 2)
    said = f"Of 100 visitors, about {one.amount} choose {arm} than {rival}"
    if one.measure == "lift":
        said = f"The conversion rate of {arm} is about {one.amount} than that of {rival}"
    return _wrap(f"{said} ({one.ends}).", 24, _RIGHT - _LEFT, 2)


def _draw_numbers(summary: Summary, top: float) -> Iterator[str]:
    numbers = []
    if summary.chance is not None and summary.state in ("close", "leads"):
        numbers.append(("Chance to be the best", percent(summary.chance)))
    if summary.expected_loss is not None and summary.state not in ("winner", "equivalent"):
        numbers.append(("Loss if you stop now", summary.loss_words))
    if summary.cost is not None:
        numbers.append(("Cost so far", f"{about(summary.cost.value)} {summary.cost_unit}"))
    if summary.time_left:
        numbers.append(("Time left", summary.time_left))
    wide = (_RIGHT - _LEFT) / max(len(numbers), 1)
    for place, (name, value) in enumerate(numbers):
        x = _LEFT + place * wide
        yield _text(x, top, name, 19, _SOFT, width=wide - 20)
        for row, line in enumerate(_wrap(value, 27, wide - 20, 2)):
            yield _text(x, top + 36 + 32 * row, line, 27, _INK, weight=600)


def _draw_arms(report: StandingReport, top: float) -> Iterator[str]:
    """Yield a bar for each arm: how often it was chosen in its duels."""
    arms, shows_one = _rank(report), report.summary.shows_one
    lengths = [arm.share if arm.rate is None else arm.rate.value for arm in arms]
    if not any(lengths):
        return
    longest = max(filter(None, lengths)) if shows_one else 1.0
    y = top
    name = "Conversion rate, of visitors whose time to convert is over"
    yield _text(
        _LEFT, y - 20, name if shows_one else "Duels won, of those with an answer", 19, _SOFT
    )
    space = HEIGHT - 70.0 - top
    n_bars = min(len(arms), _MAX_ARMS, max(int(space / _MIN_STEP), 1))
    step = min(36.0, space / n_bars)
    for arm, length in list(zip(arms, lengths, strict=True))[:n_bars]:
        is_best = arm.arm == report.summary.best and report.summary.state not in ALIKE
        yield _text(_LEFT, y + 19, arm.arm, 20, _INK, width=300, weight=600 if is_best else 400)
        yield f'<rect x="390" y="{y:g}" width="500" height="24" rx="4" fill="{_RULE}"/>'
        colour = _COLOURS.get(report.summary.state, _OTHER) if is_best else "#8b8f96"
        yield (
            f'<rect x="390" y="{y:g}" width="{500 * (length or 0.0) / longest:.1f}" height="24" '
            f'rx="4" fill="{colour}"/>'
        )
        said = "not known yet"
        if length is not None:
            said = f"{share(length)} of {arm.shown if shows_one else arm.answers:,}"
        yield _text(910, y + 19, said, 20, _INK)
        y += step
    if len(arms) > n_bars:
        yield _text(_LEFT, y + 16, f"and {len(arms) - n_bars} more", 18, _SOFT)


def _rank(report: StandingReport) -> list[ArmSummary]:
    """Return the arms that are not retired: the best first, then those nearest to it."""
    present = [arm for arm, is_there in zip(report.summary.arms, report.present, strict=True)
               if is_there]  # fmt: skip

    def place(arm: ArmSummary) -> tuple[bool, float, float]:
        ahead = 2.0 if arm.ahead is None else arm.ahead.value
        return arm.arm != report.summary.best, ahead, -(arm.share or 0.0)

    return sorted(present, key=place)


# Text.


def _text(
    x: float, y: float, said: str, size: int, colour: str, *, weight: int = 400,
    anchor: str = "start", width: float | None = None,
) -> str:  # fmt: skip
    said = said if width is None else _cut(said, size, width)
    end = f' text-anchor="{anchor}"' if anchor != "start" else ""
    opening = _OPEN if width is not None else _OPEN_SENTENCE
    return (
        f'<text x="{x:g}" y="{y:g}" font-size="{size}" font-weight="{weight}" '
        f'fill="{colour}"{end}>{in_html(f"{opening}{said}{_CLOSE}")}</text>'
    )


def _measure(text: str, size: int) -> float:
    """Return about how wide a text is: wide letters are as wide as they are high."""
    ems = sum(1.0 if unicodedata.east_asian_width(c) in "WF" else 0.58 for c in text)
    return size * ems


def _cut(text: str, size: int, width: float) -> str:
    """Return as much of a text as fits, with an ellipsis where it is cut."""
    if _measure(text, size) <= width:
        return text
    while text and _measure(f"{text}…", size) > width:
        text = text[:-1]
    return f"{text.rstrip()}…"


def _wrap(text: str, size: int, width: float, most: int) -> list[str]:
    """Break a text into at most so many lines; the last one is cut."""
    lines: list[str] = []
    for word in text.split():
        if lines and _measure(f"{lines[-1]} {word}", size) <= width:
            lines[-1] = f"{lines[-1]} {word}"
        else:
            lines.append(word)
    if len(lines) > most:
        lines = [*lines[: most - 1], " ".join(lines[most - 1 :])]
    return [_cut(line, size, width) for line in lines]
