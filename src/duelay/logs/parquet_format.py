"""Write and read a history as Parquet: columns as in the CSV, and the rest as metadata."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from duelay._core import timestamps
from duelay._core.feedback import OUTCOMES
from duelay._core.files import write_whole
from duelay._version import __version__
from duelay.errors import MissingExtraError
from duelay.logs import arm_changes, metadata
from duelay.logs.csv_format import winners
from duelay.logs.table import ROWS, Chunk, Table, unreadable

if TYPE_CHECKING:
    from duelay.logs.history import History

_KEY = b"duelay"


def write(history: History, path: Path) -> None:
    """Write a history, nothing left out."""
    pa = _pyarrow("writing")
    by_clock = history.at is not None
    columns = {
        side: pa.DictionaryArray.from_arrays(
            pa.array(getattr(history, side), type=pa.int32()), pa.array(history.arms, pa.string())
        )
        for side in ("first", "second")
    }
    if by_clock:
        kind, silent = pa.timestamp("us", tz="UTC"), ~history.is_heard
        answered = timestamps.microseconds(np.nan_to_num(history.answered))
        columns["shown_at"] = pa.array(timestamps.microseconds(history.asked), type=kind)
        columns["answered_at"] = pa.array(answered, type=kind, mask=silent)
    else:
        columns["delay"] = pa.array(history.delay, mask=~history.is_heard)
    if history.feedback == "votes":
        columns["winner"] = pa.array(winners(history), type=pa.string())
    if history.unit is not None:
        columns["unit"] = pa.array(history.unit)
    about = {
        "version": __version__,
        "clock": "wall" if by_clock else None,
        "feedback": history.feedback,
        "skipped": history.skipped,
        "happened": json.dumps(arm_changes.describe(history)),
    } | metadata.describe(history)
    table = pa.table(columns).replace_schema_metadata({_KEY: json.dumps(about).encode()})
    into = pa.BufferOutputStream()
    pa.parquet.write_table(table, into)
    write_whole(path, into.getvalue().to_pybytes())


def table(path: Path) -> Table:
    """Return the table of any Parquet file."""
    with _opened(path) as file:
        columns = list(file.schema_arrow.names)
    return Table(str(path), columns, "row", lambda wanted: _chunks(path, wanted))


def _chunks(path: Path, wanted: Sequence[str]) -> Iterator[Chunk]:
    start = 0
    with _opened(path) as file:
        for batch in file.iter_batches(batch_size=ROWS, columns=list(wanted)):
            lines = range(start, start + batch.num_rows)
            yield Chunk(lines, {name: batch.column(name) for name in wanted}, {})
            start = lines.stop


def is_own(path: Path) -> bool:
    """Whether `write` has written a file."""
    with _opened(path) as file:
        return _KEY in (file.schema_arrow.metadata or {})


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[Any]:
    pa = _pyarrow("reading")
    try:
        with pa.parquet.ParquetFile(path) as file:
            yield file
    except (OSError, pa.ArrowException) as error:
        raise unreadable(path, error) from None


def read(path: Path) -> dict[str, Any]:
    """Return the fields of a history that `write` has written."""
    pa = _pyarrow("reading")
    with _opened(path) as file:
        table = file.read()
    about = table.schema.metadata[_KEY]
    told = json.loads(about)
    by_clock, is_vote = told["clock"] is not None, told["feedback"] == "votes"
    fields = metadata.read_fields(told)
    fields |= {"feedback": told["feedback"], "n_arms": len(told["arms"])}
    fields["skipped"] = tuple(told.get("skipped", ()))  # older files have none
    fields["unit"] = table["unit"].to_numpy() if "unit" in table.column_names else None
    for side in ("first", "second"):
        names = table[side].cast(pa.string())
        found = pa.compute.index_in(names, value_set=pa.array(told["arms"], pa.string()))
        fields[side] = found.fill_null(-1).to_numpy().astype(np.int64)
    if by_clock:
        shown, answered = (_microseconds(pa, table[name]) for name in ("shown_at", "answered_at"))
        silent = table["answered_at"].is_null().to_numpy()
        fields["at"] = shown / 1e6
        fields["delay"] = np.where(silent, np.nan, (answered - shown) / 1e6)
    else:
        silent = table["delay"].is_null().to_numpy()
        fields["delay"] = np.where(silent, np.nan, table["delay"].fill_null(0).to_numpy())
    fields["first_won"] = np.where(silent, np.nan, 1.0)
    if is_vote:
        fields["first_won"] = np.array(
            [OUTCOMES.get(word, np.nan) for word in table["winner"].to_pylist()]
        )
    if happened := told.get("happened"):
        fields |= arm_changes.read_fields(json.loads(happened))
    return fields


def _microseconds(pa: Any, column: Any) -> Any:
    return column.cast(pa.int64()).fill_null(0).to_numpy()


def _pyarrow(doing: str) -> Any:
    """Return pyarrow, or say what to install."""
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.parquet
    except ModuleNotFoundError:
        raise MissingExtraError(
            f"{doing} Parquet needs pyarrow: install it with pip install 'duelay[logs]', or use a "
            "CSV",
            name="pyarrow",
        ) from None
    return pyarrow
