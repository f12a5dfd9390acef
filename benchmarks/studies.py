"""Run every study that comes with duelay, and write their figures and tables into the docs.

    python benchmarks/studies.py [--out studies] [--no-docs] [NAME ...]

What is in the folder already is not computed again. The tables are kept in docs/numbers and stand
in docs/studies.md and docs/choosing.md between marks (`pages`); the words around them are
somebody's.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

import pages
from duelay import experiments
from duelay._core.files import write_whole
from duelay.experiments import sweep
from duelay.experiments.spec_parser import BUILT_IN

NAMES = [name for name in BUILT_IN if name != "paper"]
COMMAND = "python -m benchmarks studies"


def tables(results: Any) -> list[pages.Part]:
    """A sweep's tables, or the mean regrets of each grid, a column a problem."""
    if results.spec.sweep is not None:
        made = sweep.tables(results)
    else:
        made = {grid.title: _by_problem(results, grid) for grid in results.spec.grids}
    return [pages.table(columns, rows, title) for title, (columns, rows) in made.items()]


def _by_problem(results: Any, grid: Any) -> tuple[list[str], list[list[str]]]:
    law = str(grid.delays[0])
    panels = {problem.name: results.panel(grid, problem.name, law) for problem in grid.problems}
    rows = [
        [
            choice.label,
            *(sweep.marked(panel[choice.label], panel.values()) for panel in panels.values()),
        ]
        for choice in grid.policies
    ]
    return ["", *panels], rows


def ablation(results: Any) -> list[pages.Part]:
    """Geometric means over the problems of the mean regret, a column a grid, and the worst run."""
    grids = results.spec.grids
    rows = []
    for choice in grids[0].policies:
        finals = [
            [results.get(grid.name, problem.name, choice.label).final for problem in grid.problems]
            for grid in grids
        ]
        means = [np.exp(np.mean([np.log(final.mean()) for final in grid])) for grid in finals]
        worst = max(final.max() for grid in finals for final in grid)
        rows.append([choice.label, *(f"{mean:,.0f}" for mean in means), f"{worst:,.0f}"])
    return [pages.table(["", *(grid.title for grid in grids), "worst run"], rows)]


def write(name: str, folder: Path) -> None:
    """Put a study's figure and tables into its page."""
    spec = experiments.built_in(name)
    results = experiments.load(spec, folder)
    if name == "ablation":
        pages.keep(name, COMMAND, ablation(results))
        return
    figures = pages.ROOT / "docs" / "studies"
    pictures = ["sweep"] if spec.sweep else [f"{grid.name}-regret" for grid in spec.grids]
    shown = []
    for picture in pictures:
        target = f"{name}.svg" if picture == "sweep" else f"{name}-{picture}.svg"
        write_whole(figures / target, (folder / "figures" / f"{picture}.svg").read_bytes())
        shown.append(pages.text(f"![{spec.title}](studies/{target})"))
    pages.keep(name, COMMAND, [*shown, *tables(results)])


def main() -> None:
    """Run what is missing, write the pages."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--out", type=Path, default=Path("studies"), help="where the results go")
    parser.add_argument("--no-docs", action="store_true", help="leave the pages as they are")
    parser.add_argument("names", nargs="*", help="which studies; all where none are named")
    options = parser.parse_args()
    for name in options.names or NAMES:
        begin = time.perf_counter()
        experiments.run(experiments.built_in(name), options.out / name, quiet=True)
        print(f"{name}: {time.perf_counter() - begin:.0f} s", flush=True)
        if not options.no_docs:
            write(name, options.out / name)


if __name__ == "__main__":
    main()
