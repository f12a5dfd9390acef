"""Reports: the page of an experiment as one HTML file, for mail and archives."""

from __future__ import annotations

from pathlib import Path

from duelay._core.files import write_whole
from duelay.live import Experiment
from duelay.page import build, render
from duelay.page.diagnostics import diagnose


def report(experiment: Experiment) -> str:
    """Return the page of an experiment as one HTML file, which loads nothing and has no forms.

    Charts are SVG, so they show without scripts, too.
    """
    view, checked = build.build_experiment(experiment), diagnose(experiment)
    viewer = render.Viewer(may_change=False, may_keys=False, is_static=True)
    return render.experiment_page(view, checked, viewer)


def write_report(experiment: Experiment, path: str | Path) -> Path:
    """Write the report of an experiment; one that is there is replaced."""
    path = Path(path)
    write_whole(path, report(experiment).encode())
    return path
