"""`duelay check` and `duelay estimate`: assumptions and estimates from a log of duels."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from duelay import assumptions
from duelay._core.duration import Duration
from duelay._core.feedback import DISPLAYS
from duelay._core.files import write_whole
from duelay.cli.common import Command, Window, wrapped
from duelay.errors import InvalidValueError
from duelay.estimates import estimate, report
from duelay.estimates.data_warnings import find_data_warnings
from duelay.ledger.display_order import ORDERS
from duelay.logs.column_roles import ROLES
from duelay.logs.history import History

C = TypeVar("C", bound=Callable[..., Any])
MAX_LISTED_ROWS = 20  # bad rows that are listed


def _columns(ctx: Any, param: Any, pairs: tuple[str, ...]) -> dict[str, str | None] | None:
    """Return ROLE=NAME as a mapping; without a name there is no such column."""
    for pair in pairs:
        if "=" not in pair:
            raise InvalidValueError(
                f"--column must be ROLE=NAME, such as shown_at=ts, got {pair!r}"
            )
    return {role: name or None for role, _, name in (pair.partition("=") for pair in pairs)} or None


def log_options(command: C) -> C:
    """Options of `History.read`: the path of a log, and what the log does not say itself."""
    options = [
        click.argument("log", metavar="LOG", type=click.Path(path_type=Path)),
        click.option("--column", "columns", multiple=True, callback=_columns, metavar="ROLE=NAME",
                     help=f"A column that has another name; roles are {', '.join(ROLES)}. May be "
                          "given several times."),  # fmt: skip
        click.option("--zone", metavar="NAME",
                     help="The time zone of times that have none, such as Europe/Berlin."),
        click.option("--time-format", metavar="FORMAT",
                     help="The format of times, if not ISO 8601, such as '%d.%m.%Y %H:%M'."),
        click.option("--encoding", metavar="NAME",
                     help="The encoding of a CSV, if not UTF-8, such as latin-1."),
        click.option("--now", metavar="TIME",
                     help="The time at which the log was written.  [default: its last time]"),
        click.option("--window", type=Window(), metavar="M",
                     help="A time such as 14d, or ticks, after which an answer is not counted."),
        click.option("--order", type=click.Choice(ORDERS),
                     help="How the first arm was chosen.  [default: not known]"),
        click.option("--display", type=click.Choice(DISPLAYS),
                     help="one: a visitor saw the first arm alone, as in an A/B test.  [default: "
                          "pair]"),
        click.option("--skip-bad", is_flag=True,
                     help="Leave bad rows out, and list them."),
    ]  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


def skipped(history: History) -> str:
    """Say which rows were left out: how many, and the first of them."""
    n = len(history.skipped)
    if not n:
        return ""
    listed = [f"  {sentence}" for sentence in history.skipped[:MAX_LISTED_ROWS]]
    more = [f"  and {n - MAX_LISTED_ROWS} more: --json has all"] if n > MAX_LISTED_ROWS else []
    return "\n".join([f"{n} bad {'row' if n == 1 else 'rows'} left out:", *listed, *more, ""])


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
        report.need_packages()  # before the work, not after it
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
