"""A report: the page of an experiment in one file, for mail and archives."""

from __future__ import annotations

from pathlib import Path

from duelay._core.files import write_whole
from duelay.live import Experiment
from duelay.page import build, render


def report(experiment: Experiment) -> str:
    """Return the page of an experiment as it is now, with all that a browser needs inside.

    It loads nothing, has no forms, and shows the tables of its charts where scripts are not run.
    """
    view, checked = build.see(experiment), build.check(experiment)
    viewer = render.Viewer(may_change=False, may_keys=False, is_static=True)
    return render.experiment_page(view, checked, viewer)


def write_report(experiment: Experiment, path: str | Path) -> Path:
    """Write the report of an experiment; one that is there is replaced."""
    path = Path(path)
    write_whole(path, report(experiment).encode())
    return path
