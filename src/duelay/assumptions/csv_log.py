"""A history as a CSV: a row a duel, arms by name, in ticks or by the clock."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from duelay._core import checks, times
from duelay._core.files import write_whole
from duelay.assumptions import changes

if TYPE_CHECKING:
    from duelay.assumptions.history import History

WORDS = {"first": 1.0, "second": 0.0, "tie": 0.5}
TICKS = ("first", "second", "delay")
CLOCK = ("shown_at", "first", "second", "answered_at")
ABOUT = "duelay"  # a column: what a history says beside its duels
SILENCE = (math.nan, math.nan)


def write(history: History, path: Path) -> None:
    """Write a history; numbers and times are such that `read` gives the same ones."""
    names, columns = history.arms, {}
    columns["first"] = [names[arm] for arm in history.first.tolist()]
    columns["second"] = [names[arm] for arm in history.second.tolist()]
    if history.at is None:
        shown = (repr(delay).removesuffix(".0") for delay in history.delay.tolist())
        columns["delay"] = ["" if delay == "nan" else delay for delay in shown]
    else:
        columns["shown_at"] = times.write(history.asked)
        columns["answered_at"] = times.write(history.answered)
    columns["winner"] = [winner or "" for winner in winners(history)]
    header = TICKS if history.at is None else CLOCK
    header = (*header, "winner") if history.feedback == "votes" else header
    if history.first_led is not None:
        header, columns["led"] = (*header, "led"), [word or "" for word in leaders(history)]
    if happened := changes.to_text(history):  # in the first row, so that a row is still a duel
        header, columns[ABOUT] = (*header, ABOUT), [happened, *[""] * history.n][: history.n]
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(zip(*(columns[name] for name in header), strict=True))
    write_whole(path, lines.getvalue().encode())


def winners(history: History) -> list[str | None]:
    """Return who won each duel, in words; None for silence."""
    words = {won: word for word, won in WORDS.items()}
    return [words.get(won) for won in history.first_won.tolist()]


def leaders(history: History) -> list[str | None]:
    """Return who led each duel, in words; None where nobody says."""
    led = [] if history.first_led is None else history.first_led.tolist()
    return [{1.0: "first", 0.0: "second"}.get(one) for one in led]


def read_leaders(words: list[str | None]) -> Any:
    """Return `History.first_led` of words."""
    return np.array([{"first": 1.0, "second": 0.0}.get(word or "", math.nan) for word in words])


def read(path: Path, *, window: Any, arms: tuple[str, ...], now: float | None) -> dict[str, Any]:
    """Return the fields of a history; refuse a bad row with its line and column."""
    rows, columns = _rows(path)
    by_clock = "delay" not in columns and not {"shown_at", "answered_at"}.isdisjoint(columns)
    for column in CLOCK if by_clock else TICKS:
        if column not in columns:
            found = ", ".join(columns) or "none"
            raise ValueError(f"{path}: the column {column!r} is missing; it has: {found}")
    is_vote = "winner" in columns
    for column in columns:
        if not is_vote and checks.nearest(column, ["winner"]):
            raise ValueError(f"{path}: unknown column {column!r} (did you mean winner?)")
    if not rows:
        raise ValueError(f"{path}: there are no duels in it")
    if now is not None and not by_clock:
        raise ValueError(f"{path}: now needs times, and this log counts ticks")
    places = {name: place for place, name in enumerate(arms)}
    for line, row in rows:
        for side in ("first", "second"):
            if arms and row[side] not in places:
                hint = checks.nearest(row[side], arms)
                raise ValueError(
                    f"{path}, line {line}: {side} must be one of the arms given{hint}, got "
                    f"{row[side]!r}"
                )
            places.setdefault(row[side], len(places))
    if len(places) < 2:
        raise ValueError(f"{path}: there must be two arms, got {next(iter(places))!r} alone")
    told = changes.from_text(f"{path}: {ABOUT}", rows[0][1].get(ABOUT, ""))
    for change in told.get("changes", ()):
        places.setdefault(change.arm, len(places))
    longest = math.inf if window is None else float(window)
    reader = _by_clock(path, rows, is_vote, longest, now) if by_clock else None
    answers = list(reader or _in_ticks(path, rows, is_vote, longest))
    at, delay, won = (np.array(column, dtype=np.float64) for column in zip(*answers, strict=True))
    if ABOUT in columns and "led" in columns:
        told["first_led"] = read_leaders([row["led"] for _, row in rows])
    return told | {
        "n_arms": len(places),
        "first": np.array([places[row["first"]] for _, row in rows], dtype=np.int64),
        "second": np.array([places[row["second"]] for _, row in rows], dtype=np.int64),
        "delay": delay,
        "first_won": won,
        "feedback": "votes" if is_vote else "conversions",
        "arms": tuple(places),
        "at": at if by_clock else None,
        "now": now,
    }


def _rows(path: Path) -> tuple[list[tuple[int, dict[str, str]]], list[str]]:
    """Return every row with the number of its last line, and the columns."""
    rows = []
    try:
        with path.open(newline="", encoding="utf-8-sig") as lines:
            table = csv.DictReader(lines)
            for row in table:
                rows.append((table.line_num, row))
            columns = list(table.fieldnames or ())
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or error
        raise ValueError(f"cannot read duels from {path}: {reason}") from None
    for line, row in rows:
        for column, value in row.items():
            if value is None:
                raise ValueError(f"{path}, line {line}: the row is too short, {column} is missing")
            if column is None:
                raise ValueError(f"{path}, line {line}: the row is longer than the first line")
    return rows, columns


def _in_ticks(path: Path, rows: Any, is_vote: bool, window: float) -> Iterator[Any]:
    """Yield the tick, the delay and who won of each duel."""
    for number, (line, row) in enumerate(rows):
        where = f"{path}, line {line}"
        won = _winner(row, "delay", is_vote, where)
        delay = _delay(row["delay"].strip(), where)
        is_late = math.isnan(delay) or delay > min(len(rows) - number, window)
        yield number + 1, *(SILENCE if is_late else (delay, won))


def _delay(said: str, where: str) -> float:
    if not said:
        return math.nan
    try:
        delay = float(said)
    except ValueError:
        raise ValueError(
            f"{where}: delay must be a number of ticks or empty, got {said!r}"
        ) from None
    if not delay >= 1:  # also refuses nan
        raise ValueError(f"{where}: delay must be from 1 to the duel's age, or empty, got {said!r}")
    return delay


def _by_clock(
    path: Path, rows: Any, is_vote: bool, window: float, now: float | None
) -> Iterator[Any]:
    """Yield the time, the delay and who won of each duel."""
    last, end = -math.inf, math.inf if now is None else round(now * 1e6)
    for line, row in rows:
        where = f"{path}, line {line}"
        won = _winner(row, "answered_at", is_vote, where)
        at = times.read(f"{where}: shown_at", row["shown_at"])
        if at < last or at > end:
            why = "that of the row before" if at < last else "now"
            side = "before" if at < last else "after"
            raise ValueError(f"{where}: shown_at must not be {side} {why}, got {row['shown_at']!r}")
        last, said = at, row["answered_at"].strip()
        heard = times.read(f"{where}: answered_at", said) if said else end + 1
        if heard < at:
            raise ValueError(f"{where}: answered_at must not be before shown_at, got {said!r}")
        delay = (heard - at) / 1e6
        is_late = not said or heard > end or delay > window
        yield at / 1e6, *(SILENCE if is_late else (delay, won))


def _winner(row: dict[str, str], answer: str, is_vote: bool, where: str) -> float:
    """Return who won; `answer` is the column that is empty for silence."""
    if not is_vote:
        return 1.0
    said, winner = row[answer].strip(), row["winner"].strip()
    if winner not in WORDS if said else winner != "":
        needs = "first, second or tie" if said else f"empty where {answer} is"
        raise ValueError(f"{where}: winner must be {needs}, got {winner!r}")
    return WORDS.get(winner, math.nan)
