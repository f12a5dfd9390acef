"""What commands that read a log have in common: their options, and which rows were bad."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from duelay.cli.common import Window
from duelay.errors import InvalidValueError
from duelay.ledger.display_order import ORDERS
from duelay.logs.column_roles import ROLES
from duelay.logs.history import History

C = TypeVar("C", bound=Callable[..., Any])
MOST = 20  # bad rows that are listed


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
    listed = [f"  {sentence}" for sentence in history.skipped[:MOST]]
    more = [f"  and {n - MOST} more: --json has all"] if n > MOST else []
    return "\n".join([f"{n} bad {'row' if n == 1 else 'rows'} left out:", *listed, *more, ""])
