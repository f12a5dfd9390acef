"""Write a history as a CSV with a row for each duel, and read any CSV as a table.

The parser is the csv module of the standard library: pyarrow.csv neither counts the lines of rows,
nor skips a blank after a comma, and would be needed to read any log.
"""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import itertools
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO, cast

import numpy as np

from duelay._core import timestamps
from duelay._core.feedback import OUTCOMES
from duelay._core.files import write_whole
from duelay.errors import InvalidValueError
from duelay.logs import arm_changes, metadata
from duelay.logs.table import ROWS, Chunk, Table, begins, unreadable

if TYPE_CHECKING:
    from duelay.logs.history import History

TICKS = ("first", "second", "delay")
CLOCK = ("shown_at", "first", "second", "answered_at")
_SEPARATOR_LINE = re.compile(r"sep=([,;\t])\s*", re.IGNORECASE)
ABOUT = "duelay"  # the column of what a history says beside its duels


def write(history: History, path: Path) -> None:
    """Write a history so that reading it gives the same numbers and times."""
    names, columns = history.arms, dict[str, list[Any]]()
    columns["first"] = [names[arm] for arm in history.first.tolist()]
    columns["second"] = [names[arm] for arm in history.second.tolist()]
    if history.at is None:
        shown = (repr(delay).removesuffix(".0") for delay in history.delay.tolist())
        columns["delay"] = ["" if delay == "nan" else delay for delay in shown]
    else:
        columns["shown_at"] = timestamps.write(history.asked)
        columns["answered_at"] = timestamps.write(history.answered)
    columns["winner"] = [winner or "" for winner in winners(history)]
    header = TICKS if history.at is None else CLOCK
    header = (*header, "winner") if history.feedback == "votes" else header
    if history.unit is not None:
        columns["unit"], header = history.unit.tolist(), (*header, "unit")
    about = json.dumps(metadata.describe(history) | arm_changes.describe(history))
    columns[ABOUT] = [about, *[""] * history.n][: history.n]  # so that a row is still a duel
    header = (*header, ABOUT)
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(zip(*(columns[name] for name in header), strict=True))
    write_whole(path, lines.getvalue().encode())


def read_about(name: str, text: str) -> dict[str, Any]:
    """Return the fields that the cell of `write` has; the sentence of a refusal has the name."""
    if not text.strip():
        return {}
    try:
        told = json.loads(text)
        return metadata.read_fields(told) | arm_changes.read_fields(told)
    except (ValueError, TypeError, KeyError, AttributeError):
        raise InvalidValueError(
            f"{name} must be as History.to_csv writes it, got {text!r}"
        ) from None


def winners(history: History) -> list[str | None]:
    """Return who won each duel, in words; None for silence."""
    words = {won: word for word, won in OUTCOMES.items()}
    return [words.get(won) for won in history.first_won.tolist()]


def table(path: Path, encoding: str | None = None) -> Table:
    """Return the table of a CSV, which may be packed by gzip.

    Comma, semicolon or tab separates cells; the first line shows which. Where it is no comma,
    numbers may have decimal commas.
    """
    if begins(path)[:1] in (b"{", b"["):
        raise InvalidValueError(
            f"{path} must be a CSV or Parquet file, but it looks like JSON: turn it into one of "
            "these, or pass its columns as a data frame in Python"
        )
    with _lines(path, encoding) as lines:
        header, mark, _ = _reader(lines)
    columns = [name.strip() for name in header]

    def chunks(wanted: Sequence[str]) -> Iterator[Chunk]:
        return _chunks(path, encoding, columns, wanted)

    return Table(str(path), columns, "line", chunks, has_decimal_commas=mark != ",")


def _chunks(
    path: Path, encoding: str | None, columns: list[str], wanted: Sequence[str]
) -> Iterator[Chunk]:
    places = [columns.index(name) for name in wanted]
    with _lines(path, encoding) as lines:
        _, _, rows = _reader(lines)
        while True:
            start = rows.line_num
            some = list(itertools.islice(rows, ROWS))
            if not some:
                return
            numbers: Sequence[int] = range(start + 1, start + 1 + len(some))
            if rows.line_num != start + len(some):  # a cell has a line break
                breaks = [1 + sum(map(_breaks, row)) for row in some]
                numbers = (start + np.cumsum(breaks)).tolist()
            faults = {}
            if set(map(len, some)) != {len(columns)}:
                numbers = [number for number, row in zip(numbers, some, strict=True) if row]
                some = [row for row in some if row]  # an empty line is no row
                faults = {k: _fault(row, columns) for k, row in enumerate(some)}
                faults = {k: words for k, words in faults.items() if words}
                for k in faults:
                    some[k] = (some[k] + [""] * len(columns))[: len(columns)]
            cells = list(zip(*some, strict=True)) or [()] * len(columns)
            found = {name: list(cells[place]) for name, place in zip(wanted, places, strict=True)}
            yield Chunk(numbers, found, faults)


def _fault(row: list[str], columns: list[str]) -> str:
    if len(row) == len(columns):
        return ""
    swallowed = max(map(_breaks, row), default=0)
    quote = f"; a cell has {swallowed + 1} lines: is a quote left open?" if swallowed else ""
    if len(row) < len(columns):
        return f"the row is too short, {columns[len(row)]} is missing{quote}"
    return f"the row is longer than the first line{quote}"


def _breaks(cell: str) -> int:
    """Count the ends of lines within a cell, as files do."""
    return cell.count("\n") + cell.count("\r") - cell.count("\r\n")


def _reader(lines: TextIO) -> tuple[list[str], str, Any]:
    """Return the columns, the mark between cells, and a reader of the rows below.

    A first line such as ``sep=;``, as spreadsheets write it, says the mark; the columns follow.
    """
    before, first = [], lines.readline()
    if told := _SEPARATOR_LINE.fullmatch(first):
        before, first, mark = [first], lines.readline(), told[1]
    else:
        counts = {mark: len(next(csv.reader([first], delimiter=mark), [])) for mark in ",;\t"}
        mark = max(counts, key=lambda mark: counts[mark])
    has_blanks = first.count(f"{mark} ") == first.count(mark) > 0
    whole = itertools.chain(before, [first] if first else [], lines)
    rows = csv.reader(whole, delimiter=mark, skipinitialspace=has_blanks)
    if before:
        next(rows)
    return next(rows, []), mark, rows


@contextlib.contextmanager
def _lines(path: Path, encoding: str | None) -> Iterator[TextIO]:
    """Open a CSV; whatever cannot be read is refused in one sentence."""
    most = csv.field_size_limit(2**31 - 1)  # logs of language models have long cells
    try:
        with (
            gzip.open(path, "rb") if begins(path)[:2] == b"\x1f\x8b" else path.open("rb") as file,
            io.TextIOWrapper(
                cast(BinaryIO, file), encoding=encoding or "utf-8-sig", newline=""
            ) as lines,
        ):
            yield lines
    except UnicodeDecodeError as error:
        raise InvalidValueError(
            f"cannot read duels from {path} as {encoding or 'UTF-8'}, byte {error.start}: pass "
            "its encoding, such as latin-1",
            argument="encoding",
        ) from None
    except LookupError:
        raise InvalidValueError(
            f"encoding must be one that Python knows, such as 'latin-1', got {encoding!r}",
            argument="encoding",
        ) from None
    except (OSError, EOFError, csv.Error) as error:
        raise unreadable(path, error) from None
    finally:
        csv.field_size_limit(most)
