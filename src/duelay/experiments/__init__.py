"""Experiments: execute a specification, which can be resumed; write tables, figures, a report."""

# ruff: noqa: E402

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

from duelay._core.extras import need

# Before the imports that would fail without the packages.
need("experiments", ("filelock", "joblib", "markdown", "matplotlib", "pyarrow"), "experiments")

from duelay.errors import WorkFailedError
from duelay.experiments.claims import Claim
from duelay.experiments.execution import BACKENDS, execute, opened, report_progress
from duelay.experiments.results import Results, export, load
from duelay.experiments.spec import Specification
from duelay.experiments.spec_parser import built_in, parse, read

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
    """Warn of policies whose horizon is too short; the report has the details."""
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
    """Compute the missing cells of a specification, then write tables, figures and the report.

    Parameters
    ----------
    spec : Specification
        The simulations to run; see `read`, `parse` and `built_in`.
    folder : str or Path
        The folder for the results. An interrupted run continues there; a folder of another
        specification is refused.
    workers : int, optional
        Processes or threads; None for one a core.
    backend : str
        One of `BACKENDS`: ``"threads"``, ``"processes"``, ``"dask"`` or ``"ray"``.
    address : str, optional
        The address of the cluster, with ``"dask"`` or ``"ray"``; None starts one on this machine.
    quiet : bool
        Whether to write nothing about the progress.
    say : callable, optional
        A function that is called with each line about the progress; by default the line is written
        to standard error.

    Returns
    -------
    The claims that the report checks, with their verdicts.

    Raises
    ------
    WorkFailedError
        If a cell fails or a cluster is lost; finished cells are kept.
    """
    from duelay.experiments import regret_figures, report
    from duelay.show import figure_style

    figure_style.need_matplotlib()
    _caution(spec)
    with opened(Path(folder), spec) as place:
        execute(
            spec, place, workers=workers, backend=backend, address=address, quiet=quiet, say=say
        )
        results = load(spec, place)
        n_figures = len(regret_figures.plan(spec)) or 1
        with report_progress(n_figures + 2, " files", quiet=quiet, say=say) as step:
            export(results, place)
            step("results.csv, results.parquet")
            drawn = regret_figures.draw_all(results, place / "figures", step)
            checked = report.write(results, place, drawn)
            step("report.md, report.html")
        return checked
