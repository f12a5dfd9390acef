"""`duelay demo-live`: the page with simulated visitors, from nothing."""

from __future__ import annotations

import click

from duelay.cli.common import Whole
from duelay.cli.service import find_service
from duelay.cli.stores import StoreCommand


@click.command("demo-live", cls=StoreCommand)
@click.option("--minutes", default=10.0, show_default=True, help="Minutes until it stops.")
@click.option(
    "--port", type=Whole(0), help="The port.  [default: 8123, or another one if that is taken]"
)
@click.option(
    "--seed",
    default=0,
    show_default=True,
    type=Whole(0),
    help="The seed of the simulated visitors.",
)
@click.option("--open", "opens", is_flag=True, help="Open the page in a browser.")
def demo_live_command(minutes: float, port: int | None, seed: int, opens: bool) -> None:
    """Show the page of the service with live experiments and simulated visitors.

    One experiment is soon declared, one is close, and what one takes for granted fails. Answers
    come late or never, and the clock runs a thousand times faster. All of it is in a folder that is
    removed at the end: after ten minutes, or at Ctrl-C.
    """
    find_service().demonstrate(minutes, port, seed, opens=opens, say=click.echo)
