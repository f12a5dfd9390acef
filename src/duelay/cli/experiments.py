"""`duelay run` and `duelay reproduce`: experiments by a specification."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import click

from duelay.cli.common import Command, Whole, complain, import_modules, import_option, wrapped
from duelay.errors import InvalidValueError
from duelay.simulation import BANDS


def _experiment_options(command: Any) -> Any:
    """What `run` and `reproduce` have in common."""
    options = [
        click.option(
            "--workers",
            type=Whole(),
            metavar="N",
            help="The number of workers.  [default: one a core]",
        ),
        click.option(
            "--backend",
            type=click.Choice(["threads", "processes", "dask", "ray"]),
            default="threads",
            show_default=True,
            help="Where cells are computed: here, or on a running cluster.",
        ),
        click.option("--address", metavar="URL", help="The cluster's scheduler, tcp://HOST:PORT."),
        click.option(
            "--band",
            type=click.Choice(BANDS),
            help="What the bands of the figures show: one standard deviation of the runs, or a "
            "95 % interval for their mean.  [default: that of the specification]",
        ),
        click.option("--quick", is_flag=True, help="A tenth of the runs, a fifth of the horizon."),
        click.option("--quiet", is_flag=True, help="No progress."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


@click.command("run", cls=Command)
@click.argument("specification", metavar="SPEC", type=click.Path(path_type=Path))
@click.option("--out", required=True, type=click.Path(path_type=Path), metavar="DIR",
              help="A folder for the results; finished cells are kept.")  # fmt: skip
@import_option
@_experiment_options
def run_command(specification: Path, out: Path, modules: tuple[str, ...], **options: Any) -> None:
    """Run the experiments that a TOML file specifies, or a study by name, such as never.

    Studies: ablation, arms, batches, by-pair, datasets, decide, decide-arms, decide-delays,
    decide-traffic, gap, mean-delay, misspecified, never, paper, position, position-votes, stale,
    tails, traffic, votes, window, winners.

    Writes tables (results.csv, results.parquet), figures and a report (report.md, report.html) to
    DIR. If it is stopped or killed, the same command goes on where it was.
    """
    experiments = _experiments()
    import_modules(modules, specification.parent)
    _experiment(experiments.read(specification), out, **options)


@click.command("reproduce", cls=Command)
@click.option("--out", default=Path("paper"), show_default=True, type=click.Path(path_type=Path),
              metavar="DIR", help="A folder for the results.")  # fmt: skip
@_experiment_options
def reproduce_command(out: Path, **options: Any) -> None:
    """Run the paper's experiments, and say which of its claims hold.

    100 runs of nine policies on eight datasets, and four smaller comparisons: a minute or two on
    two cores. With --quick half a minute.
    """
    experiments = _experiments()
    _experiment(experiments.built_in("paper"), out, **options)


def _experiments() -> Any:
    """Return the experiments package, or say how to install what it needs."""
    try:
        from duelay import experiments
    except ImportError as error:
        raise InvalidValueError(str(error)) from None
    return experiments


def _experiment(
    spec: Any, out: Path, quick: bool, backend: str, band: str | None, **options: Any
) -> None:
    experiments = _experiments()
    if band is not None:
        spec = dataclasses.replace(spec, band=band)
    spec = spec.quick() if quick else spec
    if options["address"] is not None and backend in ("threads", "processes"):
        raise InvalidValueError(
            f"--address is for the backends dask and ray, got it with {backend}"
        )
    try:
        checked = experiments.run(spec, out, backend=backend, **options)
    except experiments.WorkFailedError as error:
        raise OSError(str(error)) from None
    except KeyboardInterrupt:
        complain(f"stopped; what is finished is kept in {out}, and the same command goes on")
        raise click.exceptions.Exit(130) from None
    for claim in checked:
        click.echo(wrapped(f"{claim.verdict:>24}: ", claim.title))
    if checked and (caveat := experiments.claims.caveat(spec.grids[0])):
        click.echo(f"\n{wrapped('', caveat)}\n")
    click.echo(f"wrote results.csv, results.parquet, figures and report.html to {out}")
