"""`duelay warm-up`: compile now, so that nobody waits later."""

from __future__ import annotations

import importlib.util
import time

import click

import duelay
from duelay._core import jit
from duelay.cli.shell import Command


@click.command("warm-up", cls=Command)
def warm_up_command() -> None:
    """Compile what the recommended policies need, and keep it.

    For an image, a CI machine or a server before its first visitor: players, the simulator and,
    where its extra is installed, live experiments. What has been compiled before is loaded.
    """
    start = time.perf_counter()
    duelay.warm_up()
    if importlib.util.find_spec("sqlalchemy") and importlib.util.find_spec("alembic"):
        from duelay import live

        live.warm_up()
    click.echo(f"ready after {time.perf_counter() - start:.1f} seconds, {jit.where_kept()}")
