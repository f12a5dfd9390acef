"""The command `duelay`: its subcommands, its exit statuses and how it reports errors."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import click

from duelay import __version__
from duelay.cli import (
    experiments,
    listings,
    logs,
    plan,
    recommend,
    service,
    simulate,
    stores,
    warm_up,
)
from duelay.cli.common import EPILOG, complain, complain_of_usage
from duelay.errors import MissingExtraError


def run() -> None:
    """Run the command line: bad input is one sentence and status 2, Ctrl-C is status 130."""
    warnings.showwarning = _show_warning
    try:
        status = main(standalone_mode=False)
    except click.ClickException as error:
        complain_of_usage(error)
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("duelay: stopped", err=True)
        sys.exit(130)
    except (ValueError, ArithmeticError, MemoryError, MissingExtraError) as error:
        complain(str(error) or type(error).__name__)
        sys.exit(2)
    except OSError as error:
        complain(error)
        sys.exit(1)
    if status:  # of a command that ended by Exit
        sys.exit(status)


def _show_warning(message: Any, *_: Any, **__: Any) -> None:
    complain(f"warning: {message}")


@click.group(epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="duelay")
def main() -> None:
    """Find the best of K arms from duels whose answers come late, or never."""


# Each function `NAME_command` of these modules is a command.
for module in (simulate, plan, experiments, logs, service, recommend, listings, stores, warm_up):
    for name, command in vars(module).items():
        if name.endswith("_command"):
            main.add_command(command)
