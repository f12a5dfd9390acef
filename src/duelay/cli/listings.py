"""`duelay datasets`, `policies`, `delays` and `traffic`: what there is."""

from __future__ import annotations

import click

from duelay import datasets, text
from duelay.cli.common import Command, import_modules, import_option, wrapped
from duelay.show.text_table import table


@click.command("datasets", cls=Command)
def datasets_command() -> None:
    """List the built-in problems."""
    rows = []
    for name in datasets.names():
        problem = datasets.load(name)
        winner, least = "none", ""
        if problem.has_winner:
            winner = problem.arms[problem.winner]
            least = f"{min(gap for gap in problem.gaps if gap > 0):.3f}"
        rows.append([name, str(problem.n_arms), winner, least])
    click.echo(table(["dataset", "arms", "winner", "smallest gap"], rows, left=(0, 2)))
    click.echo()
    for name in datasets.names():
        click.echo(f"{name}: {datasets.describe(name).title}")


@click.command("policies", cls=Command)
@import_option
def policies_command(modules: tuple[str, ...]) -> None:
    """List the policies and their parameters."""
    import_modules(modules)
    _list("policy")
    for name, policy in text.aliases("policy").items():
        click.echo(f"{name}\n{wrapped('    ', f'What `duelay recommend` gives: {policy}')}")


@click.command("delays", cls=Command)
@import_option
def delays_command(modules: tuple[str, ...]) -> None:
    """List the delay laws and their parameters."""
    import_modules(modules)
    _list("law")


@click.command("traffic", cls=Command)
@import_option
def traffic_command(modules: tuple[str, ...]) -> None:
    """List the kinds of traffic and their parameters."""
    import_modules(modules)
    _list("traffic")


def _list(kind: str) -> None:
    for name, cls in sorted(text.names(kind).items()):
        does = " ".join((cls.__doc__ or "").split("\n\n")[0].replace("`", "").split())
        click.echo(f"{name}:{','.join(text.parameters(cls))}")
        click.echo(wrapped("    ", does))
