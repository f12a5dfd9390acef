"""Experiments: a specification run to the end, resumably, with tables, figures and a report."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

from duelay.experiments.claims import Claim
from duelay.experiments.reading import built_in, parse, read
from duelay.experiments.results import Results, export, load
from duelay.experiments.spec import Specification
from duelay.experiments.work import BACKENDS, WorkFailedError, execute, opened
from duelay.policies.policy import Policy

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
    """Warn, once each, of policies that cannot work well with the horizon they are given."""
    cautions = {
        f"{problem.name}, {choice.label}: {caution}"
        for grid in spec.grids
        for problem in grid.problems
        for choice in grid.policies
        if isinstance(policy := choice.under(grid.delays[0], grid.horizon), Policy)
        and (caution := policy.caution(problem.n_arms, grid.horizon))
    }
    for caution in sorted(cautions):
        warnings.warn(caution, stacklevel=3)


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
    from duelay import plots
    from duelay.experiments import figures, report

    plots.check()
    _caution(spec)
    with opened(Path(folder), spec) as place:
        execute(
            spec, place, workers=workers, backend=backend, address=address, quiet=quiet, say=say
        )
        results = load(spec, place)
        export(results, place)
        drawn = figures.draw_all(results, place / "figures")
        return report.write(results, place, drawn)
