"""Live experiments from a shell: `duelay standing`, `report`, `export`, `verify`, `upkeep` ..."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click
from tqdm import tqdm

from duelay.cli.common import Command, import_modules, import_option, wrapped
from duelay.errors import InvalidValueError

C = TypeVar("C", bound=Callable[..., Any])


def find_live() -> Any:
    """Return the package of live experiments, or say how to install what it needs."""
    try:
        from duelay import live
    except ImportError as error:
        raise InvalidValueError(str(error)) from None
    return live


class StoreCommand(Command):
    """A command on a store, which exits with status 1 if the store does not answer."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run it."""
        live = find_live()
        try:
            return super().invoke(ctx)
        except live.StoreError as error:
            raise OSError(str(error)) from None
        except ImportError as error:  # a package that only some stores or files need
            raise InvalidValueError(str(error)) from None


def store_argument(command: C) -> C:
    """Add the argument STORE to a command."""
    return click.argument("store", metavar="STORE")(command)


def name_argument(*, required: bool) -> Callable[[C], C]:
    """Add the argument NAME of an experiment to a command."""
    return click.argument("name", metavar="NAME" if required else "[NAME]", required=required)


def is_service(store: str) -> bool:
    """Whether an address is that of a service."""
    return store.startswith(("http://", "https://"))


def key_of_caller() -> str | None:
    """Return the key for a service that the environment has."""
    return os.environ.get("DUELAY_KEY") or None


def _bar(**shown: Any) -> Any:
    """Return a progress bar, which a terminal shows after two seconds."""
    return tqdm(delay=2, disable=None, leave=False, **shown)


def _counting(bar: Any) -> Callable[[int], None]:
    """Return a function that moves a bar to a number; a smaller one begins the next experiment."""
    last = 0

    def move(n: int) -> None:
        nonlocal last
        bar.update(n - last if n > last else n)
        last = n

    return move


@click.command("standing", cls=StoreCommand)
@store_argument
@name_argument(required=False)
@click.option("--archived", is_flag=True, help="List experiments that are archived as well.")
@import_option
def standing_command(
    store: str, name: str | None, archived: bool, modules: tuple[str, ...]
) -> None:
    """Print the standing of a live experiment; without NAME, list all experiments of a store.

    STORE is a SQLite file or an address, such as duels.db, postgresql+psycopg://user@host/name, or
    http://127.0.0.1:8000 for a service, whose key is read from DUELAY_KEY.
    """
    import_modules(modules)
    live = find_live()
    if is_service(store):
        with live.connect(store, key_of_caller()) as service:
            names = service.names(archived=archived) if name is None else (name,)
            for each in names:
                found = service.open(each).standing()
                click.echo(f"{each}: {found.headline}" if name is None else _describe(found))
        return
    with closing(live.Store(store)) as opened:
        if name is not None:
            click.echo(_describe(live.Experiment.open(opened, name).standing()))
            return
        for each in live.Experiment.names(opened, archived=archived):
            headline = live.Experiment.open(opened, each).standing().headline
            is_read = sys.stdout.isatty()  # by a person; a program has a line an experiment
            click.echo(wrapped(f"{each}: ", headline) if is_read else f"{each}: {headline}")


def _describe(standing: Any) -> str:
    """Return the summary of a standing, its table, and its guard-rails."""
    return "\n\n".join([standing.summary.text, str(standing), *map(str, standing.guardrails)])


@click.command("report", cls=StoreCommand)
@store_argument
@name_argument(required=True)
@click.option(
    "--out", required=True, metavar="FILE", help="The file, which is replaced if it exists.",
    type=click.Path(path_type=Path, dir_okay=False),
)  # fmt: skip
@import_option
def report_command(store: str, name: str, out: Path, modules: tuple[str, ...]) -> None:
    """Write the page of a live experiment as one file of HTML, for mail and archives.

    It is the page that `duelay serve` shows now, with its charts and without forms. The file loads
    nothing from other addresses. If the name of FILE ends in .svg, it is a picture of the summary
    instead, for a slide.
    """
    import_modules(modules)
    live = find_live()
    if is_service(store):
        raise InvalidValueError(
            f"STORE must be a file or a database, got {store!r}: see its page itself"
        )
    from duelay.page.report import write_report

    with closing(live.Store(store)) as opened:
        write_report(live.Experiment.open(opened, name), out)
    click.echo(f"wrote {out}")


@click.command("export", cls=StoreCommand)
@store_argument
@name_argument(required=True)
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False))
@import_option
def export_command(store: str, name: str, path: Path, modules: tuple[str, ...]) -> None:
    """Write every duel of a live experiment as CSV or Parquet, by the ending of FILE.

    `duelay estimate` and `duelay check` read the file. It lacks duels that have been folded into
    the counters.
    """
    import_modules(modules)
    live = find_live()
    with closing(live.Store(store)) as opened:
        live.Experiment.open(opened, name).export(path)
    click.echo(f"wrote {path}")


@click.command("verify", cls=StoreCommand)
@store_argument
@name_argument(required=False)
def verify_command(store: str, name: str | None) -> None:
    """Recount a store from its duels; name each counter and each evidence that differs.

    The experiment may go on meanwhile. The exit status is 1 if there is a difference, otherwise 0.
    """
    live = find_live()
    with closing(live.Store(store)) as opened:
        with _bar(desc="recounting", unit=" duels", unit_scale=True) as bar:
            found = live.verify(opened, name, progress=_counting(bar))
        names = live.Experiment.names(opened) if name is None else (name,)
    for sentence in found:
        click.echo(sentence)
    if found:
        raise click.exceptions.Exit(1)
    click.echo(f"nothing differs: {', '.join(names) or 'there is no experiment'}")


@click.command("migrate", cls=StoreCommand)
@store_argument
def migrate_command(store: str) -> None:
    """Convert the tables of a store to this version of duelay, or make them.

    Make a backup first, and stop the programs that use the store.
    """
    with closing(find_live().Store(store)) as opened:
        before, after = opened.migrate()
    did = f"is now of schema {after}, and was of {before}"
    if before is None:
        did = f"is new, of schema {after}"
    elif before == after:
        did = f"is of schema {after} already"
    click.echo(f"{opened.name} {did}")


@click.command("backup", cls=StoreCommand)
@store_argument
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path))
def backup_command(store: str, path: Path) -> None:
    """Copy a store to FILE while it runs, completely or not at all.

    The copy of SQLite is a store. The copy of PostgreSQL is a file of pg_dump, for pg_restore.
    """
    live = find_live()
    with closing(live.Store(store)) as opened:
        with _bar(desc="copying", total=100, bar_format="{desc}: {n:.0f} % |{bar}|") as bar:
            live.backup(opened, path, progress=lambda share: bar.update(100 * share - bar.n))
    click.echo(f"wrote {path}, {path.stat().st_size:,} bytes")


@click.command("upkeep", cls=StoreCommand)
@store_argument
@name_argument(required=False)
@click.option(
    "--forget-after",
    metavar="TIME",
    help="Also fold duels that are older than this, such as 90d, and whose window is closed.",
)
@import_option
def upkeep_command(
    store: str, name: str | None, forget_after: str | None, modules: tuple[str, ...]
) -> None:
    """Settle what is due in one experiment or in all, and fold old duels into the counters.

    Any ask and any tell settles silence, and so does `duelay serve`. Where nobody does, a winner is
    declared by this command. Counts, evidence, the delay law and the pairs of each unit are kept. A
    later answer to a folded duel is refused as unknown, and an export lacks the duel.
    """
    import_modules(modules)
    live = find_live()
    with closing(live.Store(store)) as opened:
        with _bar(desc="folding", unit=" duels", unit_scale=True) as bar:
            names = live.Experiment.names(opened) if name is None else (name,)
            folded: dict[str, int] = {}
            for each in names:
                if forget_after is None:
                    live.Experiment.open(opened, each).settle()
                else:
                    folded |= live.forget(opened, forget_after, each, progress=_counting(bar))
    if forget_after is None:
        click.echo(f"settled: {', '.join(names) or 'there is no experiment'}")
    for each, n in folded.items():
        did = f"{n:,} {'duel' if n == 1 else 'duels'} folded" if n else "no duel is that old"
        click.echo(f"{each}: {did}")


@click.command("hold", cls=StoreCommand)
@store_argument
@name_argument(required=True)
@import_option
def hold_command(store: str, name: str, modules: tuple[str, ...]) -> None:
    """Enter no duels into the evidence of a live experiment, until `duelay release`.

    Use it while answers cannot be told, for example in an outage: hold, tell what has waited, and
    release. STORE may be the address of a service.
    """
    _set_booking(store, name, modules, is_held=True)


@click.command("release", cls=StoreCommand)
@store_argument
@name_argument(required=True)
@import_option
def release_command(store: str, name: str, modules: tuple[str, ...]) -> None:
    """Go on entering duels into the evidence of a live experiment, after `duelay hold`."""
    _set_booking(store, name, modules, is_held=False)


def _set_booking(store: str, name: str, modules: tuple[str, ...], *, is_held: bool) -> None:
    with _opened(store, name, modules) as experiment:
        (experiment.hold_booking if is_held else experiment.release_booking)()
    click.echo(f"{name}: booking is {'held' if is_held else 'running'}")


@contextmanager
def _opened(store: str, name: str, modules: tuple[str, ...]) -> Iterator[Any]:
    """Give an experiment of a store or of a service."""
    import_modules(modules)
    live = find_live()
    opened = live.connect(store, key_of_caller()) if is_service(store) else live.Store(store)
    with closing(opened):
        yield opened.open(name) if is_service(store) else live.Experiment.open(opened, name)


@click.command("finish", cls=StoreCommand)
@store_argument
@name_argument(required=True)
@click.argument("arm", metavar="[ARM]", required=False)
@import_option
def finish_command(store: str, name: str, arm: str | None, modules: tuple[str, ...]) -> None:
    """End a live experiment, and show ARM to everybody: by default the winner, or the leader.

    Every later ask returns the arm. Answers are still recorded. `duelay reopen` goes on with the
    experiment. STORE may be the address of a service.
    """
    with _opened(store, name, modules) as experiment:
        experiment.finish(arm)
        click.echo(f"{name}: finished, {experiment.standing().choice} is shown to everybody")


@click.command("add-arm", cls=StoreCommand)
@store_argument
@name_argument(required=True)
@click.argument("arm", metavar="ARM")
@click.option("--yes", is_flag=True, help="Do not ask before.")
@import_option
def add_arm_command(store: str, name: str, arm: str, modules: tuple[str, ...], yes: bool) -> None:
    """Add an arm to a live experiment, or bring a retired one back.

    Prints a forecast of what it costs, in duels and days until a verdict, and asks before anything
    is changed. A declared winner is withdrawn until it beats the new arm as well. STORE may be the
    address of a service.
    """
    with _opened(store, name, modules) as experiment:
        click.echo(wrapped("", experiment.cost_of_arm(arm).words))
        if not yes:
            click.confirm(f"Add {arm} to {name}?", abort=True)
        experiment.add_arm(arm)
    click.echo(f"{name}: {arm} is compared from now on")


@click.command("reopen", cls=StoreCommand)
@store_argument
@name_argument(required=True)
@import_option
def reopen_command(store: str, name: str, modules: tuple[str, ...]) -> None:
    """Go on with a live experiment after `duelay finish`."""
    with _opened(store, name, modules) as experiment:
        experiment.reopen()
    click.echo(f"{name}: running")


@click.command("archive", cls=StoreCommand)
@store_argument
@name_argument(required=True)
@click.option("--undo", is_flag=True, help="Put it on the lists again.")
@import_option
def archive_command(store: str, name: str, undo: bool, modules: tuple[str, ...]) -> None:
    """Leave a live experiment that is finished out of lists; it still answers."""
    with _opened(store, name, modules) as experiment:
        experiment.archive(archived=not undo)
    click.echo(f"{name}: {'on the lists' if undo else 'archived'}")
