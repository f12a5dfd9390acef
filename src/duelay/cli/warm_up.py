"""`duelay warm-up`: compile all kernels in advance."""

from __future__ import annotations

import importlib.util
import time

import click

import duelay
from duelay._core.jit import decorators
from duelay.cli.common import Command, Whole
from duelay.precompilation import FEW


@click.command("warm-up", cls=Command)
@click.option(
    "--arms",
    type=Whole(2),
    default=FEW,
    metavar="K",
    help="The largest number of arms: from 32 on there is more to compile.",
)
def warm_up_command(arms: int) -> None:
    """Compile what the recommended policies need, and keep it.

    For an image, a CI machine or a server before its first visitor: players, the simulator and,
    where its extra is installed, live experiments. What has been compiled before is loaded.
    """
    start = time.perf_counter()
    duelay.warm_up(arms)
    if importlib.util.find_spec("sqlalchemy") and importlib.util.find_spec("alembic"):
        from duelay import live

        live.warm_up(arms)
    click.echo(f"ready after {time.perf_counter() - start:.1f} seconds, {decorators.where_kept()}")
