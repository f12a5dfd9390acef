"""Commands of live experiments over HTTP: `serve`, `demo-live`, `key`, `ask` and `tell`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import click

from duelay._core import timestamps
from duelay.cli.common import Whole, import_option
from duelay.cli.stores import (
    StoreCommand,
    find_live,
    is_service,
    key_of_caller,
    name_argument,
    store_argument,
)
from duelay.errors import InvalidValueError
from duelay.show.text_table import table

_SCOPES = "ask, tell, administer"


def find_service() -> Any:
    """Return the room of the service, or say how to install what it needs."""
    try:
        from duelay import service
    except ImportError as error:
        raise InvalidValueError(str(error)) from None
    return service


@click.command("serve", cls=StoreCommand)
@click.option("--store", required=True, metavar="STORE", help="A SQLite file or an address.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", default=8000, show_default=True, type=Whole(1))
@click.option("--workers", default=1, show_default=True, type=Whole(1), help="Processes.")
@click.option(
    "--log-level", default="INFO", show_default=True,
    type=click.Choice(["DEBUG", "INFO", "WARNING", "ERROR"], case_sensitive=False),
)  # fmt: skip
@click.option(
    "--private-webhooks", is_flag=True,
    help="Let webhooks lead to private networks, and to this machine.",
)  # fmt: skip
@click.option(
    "--clock", metavar="SPEED",
    help="The clock of experiments that are made here, such as 1000x for trials.",
)  # fmt: skip
@import_option
@click.option("--open", "opens", is_flag=True, help="Open the page in a browser.")
def serve_command(
    store: str,
    host: str,
    port: int,
    workers: int,
    log_level: str,
    private_webhooks: bool,
    clock: str | None,
    modules: tuple[str, ...],
    opens: bool,
) -> None:
    """Serve the live experiments of a store over HTTP, until Ctrl-C.

    Its address shows them in a browser; /docs shows what programs may call. Without a key
    (`duelay key create`) it listens on this machine alone.
    """
    service = find_service()
    live = find_live()
    with closing(live.Store(store)) as opened:
        opened.need(makes=True)
        service.server.check_speed(clock)
        service.server.check_host(opened, host)
        service.server.check_port(host, port)
        has_keys = bool(service.keys.list_keys(opened))
    page = service.server.address_of(host, port)
    click.echo(f"duelay: serving {opened.name} at http://{host}:{port}, see /docs", err=True)
    click.echo(f"duelay: the page is at {page}/", err=True)
    if not has_keys:
        click.echo("duelay: there is no key: it listens on this machine alone", err=True)
    if opens:
        service.server.open_page(host, port)
    service.serve(store, host, port, workers, log_level=log_level.upper(), modules=modules,
                  private_webhooks=private_webhooks, clock=clock)  # fmt: skip


@click.group("key")
def key_command() -> None:
    """Make, list and revoke the keys of a service."""


@key_command.command("create", cls=StoreCommand)
@store_argument
@click.option("--name", default="key", show_default=True, help="A name for lists.")
@click.option(
    "--scope", "scopes", multiple=True, default=("ask", "tell"), show_default=True,
    help=f"What the key permits: {_SCOPES}; may be given several times.",
)  # fmt: skip
@click.option(
    "--experiment", "experiments", multiple=True,
    help="An experiment that the key is for; may be given several times.  [default: all]",
)  # fmt: skip
def create_key(
    store: str, name: str, scopes: tuple[str, ...], experiments: tuple[str, ...]
) -> None:
    """Make a key, and print it: it is shown this once."""
    keys = find_service().keys
    click.echo(keys.create_key(store, name, scopes, experiments or None))


@key_command.command("list", cls=StoreCommand)
@store_argument
def list_keys(store: str) -> None:
    """List the keys of a store, without their secrets."""
    rows = [
        [key.id, key.name, ", ".join(key.scopes),
         "all" if key.experiments is None else ", ".join(key.experiments),
         timestamps.iso(key.created), "revoked" if key.is_revoked else ""]
        for key in find_service().keys.list_keys(store)
    ]  # fmt: skip
    if not rows:
        click.echo("there is no key")
        return
    columns = ["id", "name", "may", "experiments", "made", ""]
    click.echo(table(columns, rows, left=range(len(columns))))


@key_command.command("revoke", cls=StoreCommand)
@store_argument
@click.argument("id", metavar="ID")
def revoke_key(store: str, id: str) -> None:
    """Let a key be good for nothing; servers know it after two seconds."""
    find_service().keys.revoke_key(store, id)
    click.echo("revoked")


@contextmanager
def _opened(store: str, name: str) -> Iterator[Any]:
    live = find_live()
    if is_service(store):
        with live.connect(store, key_of_caller()) as service:
            yield live.client.clients.RemoteExperiment(service, name)
    else:
        with closing(live.Store(store)) as opened:
            yield live.Experiment.open(opened, name)


@click.command("ask", cls=StoreCommand)
@store_argument
@name_argument(required=True)
@click.option("--unit", help="The visitor, prompt or judge that answers.")
@click.option("--key", help="A repeated call with the same key returns the same duel.")
def ask_command(store: str, name: str, unit: str | None, key: str | None) -> None:
    """Ask a live experiment for a duel, and print it as a line of JSON.

    STORE is a SQLite file, the address of a database, or that of a service, whose key is in
    DUELAY_KEY.
    """
    with _opened(store, name) as experiment:
        click.echo(json.dumps(experiment.ask(unit, key).to_json(), ensure_ascii=False))


@click.command("tell", cls=StoreCommand)
@store_argument
@click.argument("id", metavar="ID")
@click.option("--winner", help="With votes: first, second, tie, or the name of an arm.")
def tell_command(store: str, id: str, winner: str | None) -> None:
    """Record that the first arm of a duel won, or the winner that --winner names.

    It prints counted, repeated or late. To tell twice is safe.
    """
    name = "any" if is_service(store) else find_live().Experiment.name_of(store, id)
    with _opened(store, name) as experiment:
        click.echo(experiment.tell(id, winner))


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
