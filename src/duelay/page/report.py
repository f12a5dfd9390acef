"""Reports: the page of an experiment as one HTML file, for mail and archives."""

from __future__ import annotations

from pathlib import Path

from duelay._core.files import write_whole
from duelay.live import Experiment
from duelay.page import build, render
from duelay.page.diagnostics import diagnose
from duelay.page.slide import draw_slide


def report(experiment: Experiment) -> str:
    """Return the page of an experiment as one HTML file, which loads nothing and has no forms.

    Charts are SVG, so they show without scripts, too.
    """
    checked = diagnose(experiment)  # its alarms are part of the view
    view = build.build_experiment(experiment)
    viewer = render.Viewer(may_change=False, may_keys=False, is_static=True)
    return render.experiment_page(view, checked, viewer)


def picture(experiment: Experiment) -> str:
    """Return the summary of an experiment as a picture of one slide, in SVG."""
    diagnose(experiment)  # its alarms are part of the summary
    return draw_slide(build.build_experiment(experiment).standing)


def write_report(experiment: Experiment, path: str | Path) -> Path:
    """Write the report of an experiment, or its picture if the file is an SVG file.

    A file that is there is replaced.
    """
    path = Path(path)
    write = picture if path.suffix.lower() == ".svg" else report
    write_whole(path, write(experiment).encode())
    return path
