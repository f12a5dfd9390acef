"""The command `duelay`: its subcommands, its exit statuses and how it reports errors."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import click

from duelay import __version__
from duelay.cli.common import EPILOG, complain, complain_of_usage
from duelay.cli.experiments import reproduce_command, run_command
from duelay.cli.listings import (
    datasets_command,
    delays_command,
    policies_command,
    traffic_command,
)
from duelay.cli.logs import check_command, estimate_command
from duelay.cli.recommend import recommend_command
from duelay.cli.service import (
    ask_command,
    demo_live_command,
    key_command,
    serve_command,
    tell_command,
)
from duelay.cli.simulate import simulate_command
from duelay.cli.stores import (
    backup_command,
    export_command,
    hold_command,
    migrate_command,
    release_command,
    report_command,
    standing_command,
    upkeep_command,
    verify_command,
)
from duelay.cli.warm_up import warm_up_command
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


for command in (
    simulate_command,
    run_command,
    reproduce_command,
    check_command,
    estimate_command,
    serve_command,
    demo_live_command,
    key_command,
    ask_command,
    tell_command,
    recommend_command,
    datasets_command,
    policies_command,
    delays_command,
    traffic_command,
    standing_command,
    report_command,
    export_command,
    verify_command,
    migrate_command,
    backup_command,
    upkeep_command,
    hold_command,
    release_command,
    warm_up_command,
):
    main.add_command(command)
