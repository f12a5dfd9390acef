"""Run every study that comes with duelay, and write their figures and tables into the docs.

    python benchmarks/studies.py [--out studies] [--docs docs] [NAME ...]

What is in the folder already is not computed again. In docs/studies.md, what stands between
``<!-- NAME -->`` and ``<!-- end -->`` is written anew; the words around it are somebody's.
"""

from __future__ import annotations

import argparse
import re
import time
from pathlib import Path
from typing import Any

from duelay import experiments
from duelay.experiments import sweep
from duelay.experiments.reading import BUILT_IN

NAMES = [name for name in BUILT_IN if name not in ("paper", "ablation")]


def tables(results: Any) -> str:
    """A sweep's tables, or the mean regrets of each grid, a column a problem."""
    if results.spec.sweep is not None:
        made = sweep.tables(results)
    else:
        made = {grid.title: _by_problem(results, grid) for grid in results.spec.grids}
    parts = []
    for title, (columns, rows) in made.items():
        lines = [[columns[0], *columns[1:]], ["---"] * len(columns), *rows]
        body = "\n".join("| " + " | ".join(line) + " |" for line in lines)
        parts.append(f"*{title}*\n\n{body}")
    return "\n\n".join(parts)


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


def write(name: str, folder: Path, docs: Path) -> None:
    """Put a study's figure and tables into the page."""
    spec = experiments.built_in(name)
    results = experiments.load(spec, folder)
    figures = docs / "studies"
    figures.mkdir(exist_ok=True)
    pictures = ["sweep"] if spec.sweep else [f"{grid.name}-regret" for grid in spec.grids]
    shown = []
    for picture in pictures:
        target = f"{name}.svg" if picture == "sweep" else f"{name}-{picture}.svg"
        (figures / target).write_bytes((folder / "figures" / f"{picture}.svg").read_bytes())
        shown.append(f"![{spec.title}](studies/{target})")
    body = "\n\n".join([*shown, tables(results)])
    page = docs / "studies.md"
    text = page.read_text(encoding="utf-8")
    marked = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
    if not marked.search(text):
        raise SystemExit(f"{page} has no place for {name}: <!-- {name} --> ... <!-- end -->")
    text = marked.sub(lambda found: f"{found[1]}\n{body}\n\n{found[2]}", text)
    page.write_text(text, encoding="utf-8")


def main() -> None:
    """Run what is missing, write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--out", type=Path, default=Path("studies"), help="where the results go")
    parser.add_argument("--docs", type=Path, help="write figures and tables there")
    parser.add_argument("names", nargs="*", help="which studies; all where none are named")
    options = parser.parse_args()
    for name in options.names or NAMES:
        begin = time.perf_counter()
        experiments.run(experiments.built_in(name), options.out / name, quiet=True)
        print(f"{name}: {time.perf_counter() - begin:.0f} s", flush=True)
        if options.docs is not None:
            write(name, options.out / name, options.docs)


if __name__ == "__main__":
    main()
