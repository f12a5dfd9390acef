"""`duelay estimate`: what a log of the past says, in one command."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import click

from duelay.cli.common import Command
from duelay.cli.log_options import log_options, skipped
from duelay.estimates import estimate, report
from duelay.logs.history import History


# fmt: off
@click.command("estimate", cls=Command)
@log_options
@click.option("--chosen-by", default="", metavar="TEXT",
              help="What chose the pairs: 'design' if they were fixed or drawn at random before "
                   "any answer came, or the text of a policy.  [default: not known]")
@click.option("--delay", metavar="LAW",
              help="The delay law, if it is known, such as never:0.2,(log-normal:10m,1).")
@click.option("--error", type=float, default=0.05, show_default=True,
              help="The share of experiments in which the intervals, or the winner, may be wrong.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
              help="A folder for report.html, estimate.json, and tables as CSV and Parquet.")
@click.option("--json", "as_json", is_flag=True, help="Print the estimate as JSON.")
# fmt: on
def estimate_command(
    log: Path, delay: str | None, error: float, out: Path | None, as_json: bool, **told: Any
) -> None:
    """Say who is best in a log of duels, how sure that is, and how long answers take.

    LOG is a CSV or Parquet file with a row a duel: shown_at, first, second, answered_at (empty for
    silence) and, for votes, winner; perhaps unit, the visitor or prompt. --column gives other
    names, --zone the zone of local times. Where a coin decided who is shown first, say --order
    coin.
    """
    if out is not None:
        report.check()  # before the work, not after it
    _say(f"reading {log}")
    history = History.read(log, **told)
    _say(f"estimating from {history.n:,} duels")
    found = estimate(history, delay=delay, error=error)
    if as_json:
        click.echo(json.dumps(found.as_data(), indent=2, ensure_ascii=False, allow_nan=False))
    else:
        click.echo(skipped(found.history), nl=False)
        click.echo(str(found))
    if out is not None:
        _say("drawing and writing the report")
        report.write(found, out)
        if not as_json:
            click.echo(f"\nwrote {out}{os.sep}: report.html, estimate.json, tables and figures")


def _say(step: str) -> None:
    """Tell a person who waits what is being done."""
    if sys.stderr.isatty():
        click.echo(f"{step} ...", err=True)
