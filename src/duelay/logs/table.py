"""A table from a file, a frame or columns, in chunks of rows."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from duelay.errors import InvalidValueError

ROWS = 20_000  # of a chunk, which bounds the memory for the cells of a file
FORMS = "a path of a CSV or Parquet file, a pandas or polars DataFrame, a pyarrow Table or columns"


class Chunk(NamedTuple):
    """Some rows, column by column."""

    lines: Sequence[int]  # the number of each row, as a person counts
    columns: dict[str, Any]  # lists, arrays, or slices of what was given
    faults: dict[int, str]  # rows without the right number of cells, by their place


class Table(NamedTuple):
    """Where rows come from."""

    name: str  # what a sentence calls it
    columns: list[str]
    word: str  # for the number of a row: "line" or "row"
    chunks: Callable[[Sequence[str]], Iterator[Chunk]]  # of these columns
    has_decimal_commas: bool = False  # whether a comma in a number may be the decimal mark


def is_path(source: Any) -> bool:
    """Whether a source is the path of a file."""
    return isinstance(source, str | os.PathLike)


def begins(path: Path) -> bytes:
    """Return the first bytes of a file, which say what it is."""
    try:
        with path.open("rb") as file:
            return file.read(4)
    except OSError as error:
        raise unreadable(path, error) from None


def unreadable(path: Path, error: Exception) -> ValueError:
    """Return the sentence for a file that cannot be read."""
    return ValueError(f"cannot read duels from {path}: {getattr(error, 'strerror', None) or error}")


def of_columns(source: Any) -> Table:
    """Return a frame, an Arrow table or a mapping of columns as a table."""
    if hasattr(source, "collect_schema") and not hasattr(source, "height"):  # polars is lazy
        source = source.collect()
    names = getattr(source, "column_names", None)  # of Arrow
    if names is None:
        names = source if isinstance(source, Mapping) else getattr(source, "columns", None)
    if names is None or callable(names) or not hasattr(source, "__getitem__"):
        raise InvalidValueError(f"source must be {FORMS}, got {type(source).__name__}")
    by_name = {str(name): name for name in names}
    shown = [str(name) for name in names]

    def chunks(wanted: Sequence[str]) -> Iterator[Chunk]:
        columns = {name: _column(source[by_name[name]]) for name in wanted}
        lengths = {len(column) for column in columns.values()}
        if len(lengths) > 1:
            raise InvalidValueError(f"columns must be of one length, got {sorted(lengths)}")
        (n,) = lengths
        for start in range(0, n, ROWS):
            end = min(n, start + ROWS)
            parts = {name: part(column, start, end) for name, column in columns.items()}
            yield Chunk(range(start, end), parts, {})

    return Table("the table", shown, "row", chunks)


def part(column: Any, start: int, end: int) -> Any:
    """Return some cells of a column; those of pandas have an index of their own."""
    return getattr(column, "iloc", column)[start:end]


def _column(column: Any) -> Any:
    return column if hasattr(column, "__getitem__") else list(column)
