"""Experiments: a specification run to the end, resumably, with tables, figures and a report."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

from duelay.experiments import _extra as _extra  # first: it says what to install
from duelay.experiments.claims import Claim
from duelay.experiments.reading import built_in, parse, read
from duelay.experiments.results import Results, export, load
from duelay.experiments.spec import Specification
from duelay.experiments.watch import watched
from duelay.experiments.work import BACKENDS, WorkFailedError, execute, opened

__all__ = [
    "BACKENDS",
    "Claim",
    "Results",
    "Specification",
    "WorkFailedError",
    "built_in",
    "load",
    "parse",
    "read",
    "run",
]


def _caution(spec: Specification) -> None:
    """Warn of policies whose horizon is too short, in a line each; the report has the details."""
    cautions = spec.cautions()
    problems = {problem.name for grid in spec.grids for problem in grid.problems}
    if len(cautions) == 1:
        warnings.warn(str(cautions[0]), stacklevel=3)
        return
    by_brief: dict[str, set[str]] = {}
    for caution in cautions:
        by_brief.setdefault(caution.brief, set()).add(caution.problem)
    for brief, affected in sorted(by_brief.items()):
        warnings.warn(f"{brief} ({len(affected)} of {len(problems)} problems)", stacklevel=3)


def run(
    spec: Specification,
    folder: str | Path,
    *,
    workers: int | None = None,
    backend: str = "threads",
    address: str | None = None,
    quiet: bool = False,
    say: Callable[[str], None] | None = None,
) -> list[Claim]:
    """Run a specification: compute what is missing, then write tables, figures and the report.

    Returns the claims that the report checks, with their verdicts.
    """
    from duelay.experiments import figures, report
    from duelay.show import canvas

    canvas.check()
    _caution(spec)
    with opened(Path(folder), spec) as place:
        execute(
            spec, place, workers=workers, backend=backend, address=address, quiet=quiet, say=say
        )
        results = load(spec, place)
        n_figures = len(figures.plan(spec)) or 1
        with watched(n_figures + 2, " files", quiet=quiet, say=say) as step:
            export(results, place)
            step("results.csv, results.parquet")
            drawn = figures.draw_all(results, place / "figures", step)
            checked = report.write(results, place, drawn)
            step("report.md, report.html")
        return checked
