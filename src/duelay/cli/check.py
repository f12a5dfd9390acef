"""`duelay check`: whether what policies assume holds in a log of duels."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from duelay import assumptions
from duelay._core.duration import Duration
from duelay._core.files import write_whole
from duelay.cli.common import Command, wrapped
from duelay.cli.log_options import log_options, skipped
from duelay.estimates.data_warnings import find_data_warnings
from duelay.logs.history import History


@click.command("check", cls=Command)
@log_options
@click.option("--level", type=float, default=0.05, show_default=True,
              help="The largest probability of any false alarm.")  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Also write a report to this file, as Markdown.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
def check_command(log: Path, level: float, out: Path | None, as_json: bool, **told: Any) -> None:
    """Test the assumptions of policies with the data of an experiment.

    LOG is a CSV or a Parquet file with a row a duel: shown_at, first, second, answered_at (empty
    for silence) and, for votes, winner. In ticks: first, second and delay. The status is 1 where a
    test alarms, 0 where none does.
    """
    history = History.read(log, **told)
    findings = assumptions.check_assumptions(history, level=level)
    heard, notes = int(history.is_heard.sum()), find_data_warnings(history)
    if out is not None:
        write_whole(out, assumptions.report(history, level=level).encode())
    if as_json:
        window = history.window
        about = {"duels": history.n, "arms": history.arms, "answers": heard, "level": level,
                 "feedback": history.feedback, "order": history.order,
                 "window": str(window) if isinstance(window, Duration) else window,
                 "skipped": history.skipped, "notes": notes}  # fmt: skip
        found = {"findings": [finding.as_data() for finding in findings]}
        click.echo(json.dumps(about | found, indent=2, ensure_ascii=False))
    else:
        click.echo(
            f"{history.n} {'duel' if history.n == 1 else 'duels'} of {history.n_arms} arms, "
            f"{heard} {'answer' if heard == 1 else 'answers'} ({history.feedback})\n"
            f"{skipped(history)}"
        )
        for note in notes:
            click.echo(f"worth a look: {note}")
        for finding in findings:
            mark = "! " if finding.is_alarm else "  "
            is_read = sys.stdout.isatty()  # by a person; a program has a line a finding
            click.echo(wrapped(mark, str(finding)) if is_read else f"{mark}{finding}")
        if out is not None:
            click.echo(f"\nwrote {out}")
    if any(finding.is_alarm for finding in findings):
        raise click.exceptions.Exit(1)
