"""`duelay check`: whether what policies assume holds in a log of duels."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from duelay import assumptions
from duelay._core.duration import Duration
from duelay._core.files import write_whole
from duelay.cli.shell import Command, Window, wrapped
from duelay.ledger.order import ORDERS
from duelay.logs.history import History


@click.command("check", cls=Command)
@click.argument("duels", metavar="CSV", type=click.Path(path_type=Path))
@click.option("--window", type=Window(), metavar="M",
              help="Ticks, or 14d, after which an answer is not counted.")  # fmt: skip
@click.option("--order", type=click.Choice(ORDERS),
              help="How the order was decided.  [default: not known]")  # fmt: skip
@click.option("--level", type=float, default=0.05, show_default=True,
              help="The probability of any false alarm, at most.")  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Also write a report there, as Markdown.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
def check_command(
    duels: Path,
    window: int | Duration | None,
    order: str | None,
    level: float,
    out: Path | None,
    as_json: bool,
) -> None:
    """Say whether what policies take for granted holds in an experiment's own data.

    CSV has a row a duel: first, second, delay (empty for silence) and, for votes, winner. With
    times: shown_at, first, second, answered_at, in the order of time. The status is 1 where a test
    alarms, 0 where none does.
    """
    history = History.from_csv(duels, window=window, order=order)
    findings = assumptions.check_assumptions(history, level=level)
    heard = int(history.is_heard.sum())
    if out is not None:
        write_whole(out, assumptions.report(history, level=level).encode())
    if as_json:
        about = {"duels": history.n, "arms": history.arms, "answers": heard, "level": level,
                 "feedback": history.feedback, "order": order,
                 "window": str(window) if isinstance(window, Duration) else window}  # fmt: skip
        told = {"findings": [finding.as_data() for finding in findings]}
        click.echo(json.dumps(about | told, indent=2, ensure_ascii=False))
    else:
        click.echo(
            f"{history.n} duels of {history.n_arms} arms, {heard} answers ({history.feedback})\n"
        )
        for finding in findings:
            mark = "! " if finding.is_alarm else "  "
            is_read = sys.stdout.isatty()  # by a person; a program has a line a finding
            click.echo(wrapped(mark, str(finding)) if is_read else f"{mark}{finding}")
        if out is not None:
            click.echo(f"\nwrote {out}")
    if any(finding.is_alarm for finding in findings):
        raise click.exceptions.Exit(1)
