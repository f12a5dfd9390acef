"""Finished cells put together: a result for each problem, policy and law, and tidy tables."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from duelay._core.escapes import in_cell
from duelay._core.files import write_whole
from duelay.errors import InvalidValueError
from duelay.experiments.cells import BY_RUN, Cell, OtherSourcesError, blocks_of, read
from duelay.experiments.spec import Grid, Specification
from duelay.simulation import Result
from duelay.simulation.result import COLUMNS, head, write_stops


@dataclass(frozen=True)
class Results:
    """All results of a specification, by grid, problem, label of the policy, and law.

    Attributes
    ----------
    spec : Specification
        What was run.
    by_key : dict
        The results by the names of the grid, the problem, the policy's label and the law.
    """

    spec: Specification
    by_key: dict[tuple[str, str, str, str], Result]

    def get(self, grid: str, problem: str, label: str, law: str | None = None) -> Result:
        """Return one result; the grid's first law where none is given.

        Parameters
        ----------
        grid, problem, label : str
            The names of the grid and the problem, and the label of the policy.
        law : str, optional
            The delay law, as text; the first of the grid if None.
        """
        if law is None:
            law = str(self.grid(grid).delays[0])
        return self.by_key[grid, problem, label, law]

    def grid(self, name: str) -> Grid:
        """Return a grid by its name.

        Parameters
        ----------
        name : str
            The name of the grid.
        """
        return next(grid for grid in self.spec.grids if grid.name == name)

    def panel(self, grid: Grid, problem: str, law: str) -> dict[str, Result]:
        """Return the results of one problem under one law, by label.

        Parameters
        ----------
        grid : Grid
            The grid.
        problem, law : str
            The name of the problem, and the delay law as text.
        """
        return {
            choice.label: self.by_key[grid.name, problem, choice.label, law]
            for choice in grid.policies
        }

    def _repr_html_(self) -> str:
        from duelay.show import notebook

        return notebook.show_results(self)


def load(spec: Specification, folder: str | Path) -> Results:
    """Read the results of a specification from its folder.

    Parameters
    ----------
    spec : Specification
        The specification.
    folder : str or Path
        The folder to which `run` has written the results. All cells must be there.
    """
    folder = Path(folder)
    by_key = {}
    for grid in spec.grids:
        for problem in grid.problems:
            for law in grid.delays:
                for choice in grid.policies:
                    cells = blocks_of(grid, problem, law, choice)
                    blocks = [_read_sound(cell, folder) for cell in cells]
                    every: dict[str, Any] = {
                        name: np.concatenate([block[name] for block in blocks]) for name in BY_RUN
                    }
                    every["verdicts"] = tuple(map(str, every["verdicts"]))
                    by_key[grid.name, problem.name, choice.label, str(law)] = Result(
                        problem=problem,
                        policy=cells[0].policy,
                        delay=law,
                        horizon=grid.horizon,
                        seed=grid.seed,
                        t=blocks[0]["t"],
                        pairs=np.sum([block["pairs"] for block in blocks], axis=0),
                        seconds=0.0,
                        setting=cells[0].setting,
                        **every,
                    )
    return Results(spec, by_key)


def _read_sound(cell: Cell, folder: Path) -> dict[str, Any]:
    try:
        arrays = read(cell, folder / "cells")
    except OtherSourcesError as error:
        raise InvalidValueError(
            f"{error}: run the specification again, or read results.parquet as it is"
        ) from None
    if arrays is None:
        raise InvalidValueError(f"{folder} lacks a cell: {cell}; run the specification again")
    return arrays


def _distinct(results: Results) -> dict[tuple[str, ...], Result]:
    """Return each problem, policy, label and law once, keyed by the first columns of its rows.

    If grids share one, the result with the most runs is taken: `reading` has checked that they
    agree on seed, horizon, checkpoints and matrix.
    """
    most: dict[tuple[str, ...], Result] = {}
    for (_, _, label, _), result in results.by_key.items():
        key = head(result, label)
        if key not in most or result.runs > most[key].runs:
            most[key] = result
    return most


def _tables(results: Results) -> Iterator[Any]:
    """Yield tidy Arrow tables, each result once."""
    import pyarrow as pa

    for names, result in _distinct(results).items():
        runs, n = result.regret.shape
        columns: dict[str, Any] = {
            name: pa.DictionaryArray.from_arrays(
                pa.array(np.zeros(runs * n, dtype=np.int32)), [value]
            ).cast(pa.string())
            for name, value in zip(COLUMNS, names, strict=False)
        }
        columns["run"] = np.repeat(np.arange(runs, dtype=np.int64), n)
        columns["t"] = np.tile(result.t.astype(np.int64), runs)
        columns["regret"] = result.regret.ravel()
        yield pa.table(columns)


def _for_spreadsheets(table: Any) -> Any:
    """Return a table with texts that are safe in a CSV; a column of text has one value."""
    import pyarrow as pa

    for place, field in enumerate(table.schema):
        if pa.types.is_string(field.type) and len(table):
            words = table.column(place)[0].as_py()
            if in_cell(words) != words:
                table = table.set_column(place, field, pa.array([in_cell(words)] * len(table)))
    return table


def export(results: Results, folder: Path) -> None:
    """Write results.csv and results.parquet, which have the columns of `write_csv`.

    If runs end with a verdict, stops.csv says when, with which verdict, and on which arm.
    """
    import pyarrow.csv
    import pyarrow.parquet

    csv, parquet = io.BytesIO(), io.BytesIO()
    csv_writer = parquet_writer = None
    for table in _tables(results):
        if csv_writer is None or parquet_writer is None:
            csv_writer = pyarrow.csv.CSVWriter(csv, table.schema)
            parquet_writer = pyarrow.parquet.ParquetWriter(parquet, table.schema)
        csv_writer.write(_for_spreadsheets(table))
        parquet_writer.write(table)
    for writer in (csv_writer, parquet_writer):
        if writer is not None:
            writer.close()
    stopped = {key: result for key, result in _distinct(results).items()
               if result.setting.stop is not None}  # fmt: skip
    if stopped:
        labels = [key[2] for key in stopped]
        write_stops(list(stopped.values()), folder / "stops.csv", labels)
    write_whole(folder / "results.csv", csv.getvalue())
    write_whole(folder / "results.parquet", parquet.getvalue())
