"""A preference matrix from a CSV, as spreadsheets of any country write it."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from duelay._core import checks
from duelay.errors import InvalidValueError

_MARKS = ",;\t"
_NEEDS = (
    "matrix must be K rows of K numbers, separated by commas, semicolons or tabs, below a row of "
    "names or without one, but"
)


def read_matrix(path: Path) -> tuple[NDArray[np.float64], list[str] | None]:
    """Return the matrix of a file and the names above it, None if there are none.

    Cells are separated by the mark that makes a matrix of them, a comma if it does. Without it, a
    comma within a cell is that of a decimal.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as lines:
            content = lines.read()
        tables = {mark: _rows(content, mark) for mark in _MARKS if mark in content or mark == ","}
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or error
        raise InvalidValueError(f"cannot read a matrix from {path}: {reason}") from None
    first = content.partition("\n")[0]
    likely = next((mark for mark in ";\t" if mark in first), ",")
    mark = next((mark for mark, rows in tables.items() if _is_matrix(rows)), likely)
    rows = tables[mark]
    if mark != ",":
        rows = [[_with_point(cell) for cell in row] for row in rows]
    names = None
    if rows and (len(rows) == len(rows[0]) + 1 or _are_names(rows[0])):
        names = [cell.strip() for cell in rows.pop(0)]
    for number, row in enumerate(rows, start=1):
        if len(row) != len(rows[0]):
            raise InvalidValueError(
                f"{path}: matrix must be square, but its rows differ in length: row 1 has "
                f"{len(rows[0])} and row {number} has {len(row)}"
            )
    for number, row in enumerate(rows, start=1):
        for cell in row:
            if not checks.is_number(cell):
                raise InvalidValueError(f"{path}: {_NEEDS} row {number} has {cell!r}")
    if names is not None and len(rows) != len(names):
        below = "1 row is" if len(rows) == 1 else f"{len(rows)} rows are"
        raise InvalidValueError(f"{path}: {_NEEDS} {below} below {len(names)} names")
    return np.array([[float(cell) for cell in row] for row in rows]), names


def _rows(content: str, mark: str) -> list[list[str]]:
    """Return the rows that are not blank."""
    rows = csv.reader(io.StringIO(content, newline=""), delimiter=mark)
    return [row for row in rows if any(cell.strip() for cell in row)]


def _is_matrix(rows: list[list[str]]) -> bool:
    """Whether there are K rows of K cells, at least two, or one more."""
    widths = {len(row) for row in rows}
    return len(widths) == 1 and 1 < max(widths) <= len(rows) <= max(widths) + 1


def _are_names(row: list[str]) -> bool:
    return all(cell.strip() and not checks.is_number(cell) for cell in row)


def _with_point(cell: str) -> str:
    """Return 0,6 as 0.6, and any other cell as it is."""
    point = cell.replace(",", ".", 1)
    return point if checks.is_number(point) else cell
