"""Convert the cells of a column to texts or numbers, and find the empty ones.

A column is a list, an array, or a slice of a pandas, polars or Arrow column. None of these packages
is required.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

NOTHING = frozenset({"", "null", "none", "nan", "nat", "na", "n/a", "<na>", r"\n"})  # in any case
_LONGEST_EMPTY = 8  # characters: a longer text is not empty, unless it is blank
_DECIMAL_COMMA = re.compile(r"\s*[+-]?\d+,\d+\s*\Z")
_NO_TIME = np.iinfo(np.int64).min  # NaT


def is_nothing(cell: Any) -> bool:
    """Whether a cell is empty: none, nan, or a text that says so."""
    if isinstance(cell, str):
        return cell.strip().lower() in NOTHING
    if cell is None or type(cell).__name__ in ("NAType", "NaTType"):
        return True
    return bool(cell != cell)  # nan, and NaT of NumPy


def nothings(texts: Iterable[str]) -> set[str]:
    """Return the texts that say nothing."""
    return {text for text in texts if text.strip().lower() in NOTHING}


def are_known(cells: list[Any]) -> NDArray[np.bool_]:
    """Return for each cell whether it is not empty."""
    known = [
        (type(cell) is str and len(cell) > _LONGEST_EMPTY and not cell.isspace())
        or not is_nothing(cell)
        for cell in cells
    ]
    return np.array(known, dtype=np.bool_)


def as_list(column: Any) -> list[Any]:
    """Return a column as Python has it."""
    for name in ("to_pylist", "tolist", "to_list"):
        if hasattr(column, name):
            found: list[Any] = getattr(column, name)()
            return found
    return list(column)


def as_texts(column: Any) -> list[str]:
    """Return the cells as texts, empty ones for None and nan.

    A whole number has no point: pandas has 3.0 where some of a column are missing.
    """
    cells = as_list(column)
    return cells if _all_are(str, cells) else [_text(cell) for cell in cells]


def as_text(cells: Any) -> str:
    """Return the one cell of a slice as a person reads it."""
    (cell,) = cells if isinstance(cells, np.ndarray) else as_list(cells)
    return "" if cell is None else str(cell)


def _text(cell: Any) -> str:
    if isinstance(cell, str):
        return cell
    if is_nothing(cell):
        return ""
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)


def as_array(column: Any) -> NDArray[Any] | None:
    """Return numbers or points in time as an array, nan or NaT for nothing; None for others."""
    kind = str(getattr(column, "type", ""))  # of Arrow
    if kind.startswith("timestamp"):
        whole = column.cast("int64").fill_null(_NO_TIME)
        return np.asarray(whole.to_numpy(zero_copy_only=False)).view(f"M8[{column.type.unit}]")
    if kind.startswith(("int", "uint", "float", "double")):
        return np.asarray(column.to_numpy(zero_copy_only=False))
    if kind or not hasattr(column, "dtype"):
        return None
    if getattr(column.dtype, "tz", None) is not None:  # of pandas
        column = column.dt.tz_convert(None)  # to UTC
    found = column if isinstance(column, np.ndarray) else np.asarray(column.to_numpy())
    return found if found.dtype.kind in "Miuf" else None


def has_zone(column: Any) -> bool:
    """Whether a column of points in time knows its time zone; `as_array` has it in UTC."""
    kind = getattr(column, "type", None) or getattr(column, "dtype", None)
    return any(getattr(kind, name, None) is not None for name in ("tz", "time_zone"))


def as_numbers(column: Any) -> tuple[NDArray[np.float64], list[int]]:
    """Return numbers, nan for empty cells, and the places of cells that are not numbers."""
    found = as_array(column)
    if found is not None and found.dtype.kind in "iuf":
        return found.astype(np.float64), []
    cells, numbers, wrong = as_list(column), [], []
    for place, cell in enumerate(cells):
        try:
            numbers.append(np.nan if is_nothing(cell) else float(cell))
        except (TypeError, ValueError):
            numbers.append(np.nan)
            wrong.append(place)
    return np.array(numbers, dtype=np.float64), wrong


def with_decimal_points(cells: list[Any]) -> list[Any]:
    """Return cells in which numbers with a decimal comma have a point."""
    return [
        cell.replace(",", ".") if isinstance(cell, str) and _DECIMAL_COMMA.match(cell) else cell
        for cell in cells
    ]


def _all_are(kind: type, cells: list[Any]) -> bool:
    return set(map(type, cells)) <= {kind}
