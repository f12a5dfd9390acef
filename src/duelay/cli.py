"""The command line."""

from __future__ import annotations

import contextlib
import math
import shutil
import sys
import warnings
from pathlib import Path
from typing import Any

import click
import numpy as np

from duelay import __version__, assumptions, datasets, delays, policies, text
from duelay._files import write_whole
from duelay._modules import bring_in
from duelay._table import table
from duelay.advice import recommend
from duelay.engine import Result, simulate, write_csv
from duelay.history import History
from duelay.problems import TARGETS
from duelay.votes import FEEDBACKS

EPILOG = """
Laws and policies are written name:argument,key=value, for example geometric:0.01,
never:0.3,geometric:0.01 or rucb-delay:alpha=1,window=500.
"""


def run() -> None:
    """Run the command: bad input is one sentence and status 2, Ctrl-C is status 130."""
    warnings.showwarning = _show_warning
    try:
        main(standalone_mode=False)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("duelay: stopped", err=True)
        sys.exit(130)
    except (ValueError, ArithmeticError, MemoryError) as error:
        click.echo(f"duelay: {error or type(error).__name__}", err=True)
        sys.exit(2)
    except OSError as error:
        click.echo(f"duelay: {error}", err=True)
        sys.exit(1)


def _import_option(command: Any) -> Any:
    """``--import``, for modules that name policies and laws of somebody's own."""
    return click.option(
        "--import",
        "modules",
        multiple=True,
        metavar="MODULE",
        help="A Python module with policies or laws of your own, sought here too; may be given "
        "several times.",
    )(command)


@click.group(epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="duelay")
def main() -> None:
    """Find the best of K arms from duels whose answers come late, or never."""


@main.command("simulate", epilog=EPILOG)
@click.option(
    "--dataset",
    required=True,
    metavar="NAME|CSV|FORM",
    help="A built-in problem (see `duelay datasets`), a CSV file with a K×K matrix, or a form such "
    "as arithmetic:5,0.1 or no-winner:10,1.",
)
@click.option(
    "--policy",
    "policy_forms",
    required=True,
    multiple=True,
    metavar="POLICY",
    help="What to run (see `duelay policies`); may be given several times. A policy that assumes a "
    "delay law, or its mean, is told the true one unless the text says another.",
)
@click.option(
    "--delay",
    default="geometric:0.01",
    show_default=True,
    metavar="LAW",
    help="The law that delays follow (see `duelay delays`).",
)
@click.option("--horizon", default=20_000, show_default=True, metavar="T", help="Duels in a run.")
@click.option("--runs", default=20, show_default=True, metavar="N", help="Independent runs.")
@click.option("--seed", default=0, show_default=True, metavar="N", help="Same seed, same numbers.")
@click.option("--workers", type=int, metavar="N", help="Threads.  [default: one a core]")
@click.option(
    "--checkpoints", default=200, show_default=True, metavar="N", help="Ticks recorded in a run."
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write regret.csv, regret.png and regret.svg there.",
)
@click.option("--target", type=click.Choice(TARGETS), default="condorcet", show_default=True,
              help="The winner that regret is measured against.")  # fmt: skip
@click.option("--feedback", type=click.Choice(FEEDBACKS), default="conversions", show_default=True,
              help="What is reported: a win of the first only, or both outcomes.")  # fmt: skip
@click.option("--stale", default=0, show_default=True, metavar="R",
              help="Ticks by which the evidence is old that a policy sees.")  # fmt: skip
@click.option("--batch", default=1, show_default=True, metavar="B",
              help="Duels that are asked before anything is heard.")  # fmt: skip
@_import_option
@click.option("--quiet", is_flag=True, help="No progress bar.")
def simulate_command(
    dataset: str,
    policy_forms: tuple[str, ...],
    delay: str,
    horizon: int,
    runs: int,
    seed: int,
    workers: int | None,
    checkpoints: int,
    out: Path | None,
    target: str,
    feedback: str,
    stale: int,
    batch: int,
    modules: tuple[str, ...],
    quiet: bool,
) -> None:
    """Simulate policies on a problem and compare their regret.

    Prints the mean and standard deviation of the regret over the runs, the share of runs whose
    standing leads with the true winner in the end, and the microseconds that a duel takes.
    """
    _bring_in(modules)
    problem = datasets.find(dataset)
    law = delays.check(delay, problem.n_arms)
    # Where the law depends on the pair, the largest mean: n_m must be long enough for each.
    defaults = {"delay": law, "mean_delay": float(np.max(law.mean))}
    chosen = [policies.parse(form, defaults) for form in policy_forms]
    if out is not None:
        from duelay import plots  # needs matplotlib: say so before the work, not after

        plots.check()
        try:
            out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ValueError(f"out cannot be made a folder, {out}: {error.strerror}") from None
    results = [
        simulate(
            problem,
            policy,
            delay=law,
            horizon=horizon,
            runs=runs,
            seed=seed,
            workers=workers,
            checkpoints=checkpoints,
            progress=False if quiet else None,
            target=target,
            feedback=feedback,
            stale=stale,
            batch=batch,
        )
        for policy in chosen
    ]
    winners = ", ".join(problem.arms[arm] for arm in problem.winners(target))
    click.echo(f"{problem.name}: {problem.n_arms} arms, winner {winners}")
    how = f", {results[0].setting}" if str(results[0].setting) else ""
    click.echo(f"delay {law}, {horizon} duels a run, runs: {runs}, seed {seed}{how}\n")
    click.echo(_summary(results))
    if out is not None:
        write_csv(results, out / "regret.csv")
        figure = plots.regret_figure(results)
        for name in ("regret.png", "regret.svg"):
            plots.save(figure, out / name)
        click.echo(f"\nwrote regret.csv, regret.png and regret.svg to {out}")


def _bring_in(modules: tuple[str, ...], *folders: Path) -> None:
    for name in modules:
        bring_in(name, [Path(), *folders])


def _experiment_options(command: Any) -> Any:
    """What `run` and `reproduce` have in common."""
    options = [
        click.option("--workers", type=int, metavar="N", help="How many.  [default: one a core]"),
        click.option(
            "--backend",
            type=click.Choice(["threads", "processes", "dask", "ray"]),
            default="threads",
            show_default=True,
            help="Where the work is done: here, or on a cluster that is running.",
        ),
        click.option("--address", metavar="URL", help="The cluster's scheduler, tcp://HOST:PORT."),
        click.option("--quick", is_flag=True, help="A tenth of the runs, a fifth of the horizon."),
        click.option("--quiet", is_flag=True, help="No progress."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


@main.command("run")
@click.argument("specification", metavar="SPEC", type=click.Path(path_type=Path))
@click.option("--out", required=True, type=click.Path(path_type=Path), metavar="DIR",
              help="Where the results go; what is there is not computed again.")  # fmt: skip
@_import_option
@_experiment_options
def run_command(specification: Path, out: Path, modules: tuple[str, ...], **options: Any) -> None:
    """Run the experiments that a TOML file specifies, or a study by name, such as never.

    Studies: ablation, arms, batches, by-pair, datasets, gap, mean-delay, misspecified, never,
    paper, position, position-votes, stale, tails, votes, window, winners.

    Writes tables (results.csv, results.parquet), figures and a report (report.md, report.html) to
    DIR. Stopped or killed, it goes on where it was when it is run again.
    """
    experiments = _experiments()
    _bring_in(modules, specification.parent)
    _experiment(experiments.read(specification), out, **options)


@main.command("reproduce")
@click.option("--out", default=Path("paper"), show_default=True, type=click.Path(path_type=Path),
              metavar="DIR", help="Where the results go.")  # fmt: skip
@_experiment_options
def reproduce_command(out: Path, **options: Any) -> None:
    """Run the paper's experiments, and say which of its claims hold.

    100 runs of nine policies on eight datasets, and four smaller comparisons: two minutes on two
    cores. With --quick about one.
    """
    experiments = _experiments()
    _experiment(experiments.built_in("paper"), out, **options)


def _experiments() -> Any:
    """Return the experiments package, or say how to install what it needs."""
    try:
        import markdown
        import pyarrow

        from duelay import experiments
    except ImportError as error:
        raise ValueError(
            f"experiments need {error.name}: install it with pip install 'duelay[experiments]'"
        ) from None
    assert markdown and pyarrow
    return experiments


def _experiment(spec: Any, out: Path, quick: bool, backend: str, **options: Any) -> None:
    experiments = _experiments()
    if options["address"] is not None and backend in ("threads", "processes"):
        raise ValueError(f"address is for the backends dask and ray, got it with {backend}")
    try:
        checked = experiments.run(spec.quick() if quick else spec, out, backend=backend, **options)
    except experiments.WorkFailedError as error:
        raise OSError(str(error)) from None
    for claim in checked:
        click.echo(f"{claim.verdict:>24}: {claim.title}")
    click.echo(f"wrote results.csv, results.parquet, figures and report.html to {out}")


@main.command("check")
@click.argument("duels", metavar="CSV", type=click.Path(path_type=Path))
@click.option("--window", type=int, metavar="M", help="Ticks after which an answer is not counted.")
@click.option("--order", type=click.Choice(["coin", "alternate", "champion"]),
              help="How the order was decided.  [default: not known]")  # fmt: skip
@click.option("--level", type=float, default=0.05, show_default=True,
              help="How often one of a sound experiment's tests may alarm.")  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Also write a report there, as Markdown.")  # fmt: skip
def check_command(
    duels: Path, window: int | None, order: str | None, level: float, out: Path | None
) -> None:
    """Say whether what policies take for granted holds in an experiment's own data.

    CSV has a row a duel: first, second, delay (empty for silence) and, for votes, winner.
    """
    history = History.from_csv(duels, window=window, order=order)
    heard = int(history.is_heard.sum())
    click.echo(
        f"{history.n} duels of {history.n_arms} arms, {heard} answers ({history.feedback})\n"
    )
    for finding in assumptions.check_assumptions(history, level=level):
        click.echo(("!" if finding.is_alarm else " ") + f" {finding}")
    if out is not None:
        write_whole(out, assumptions.report(history, level=level).encode())
        click.echo(f"\nwrote {out}")


@main.command("recommend", epilog=EPILOG)
@click.option("--delay", metavar="LAW|MEAN", help="What is known about the delay: its law, or its "
              "mean.  [default: nothing]")  # fmt: skip
@click.option("--order-given", is_flag=True, help="The champion must be shown first.")
@click.option("--anonymous", is_flag=True, help="Conversions do not say from which duel they are.")
@click.option("--arms", type=int, metavar="K", help="The number of arms.")
@click.option("--window", type=int, metavar="M", help="Ticks after which a conversion is no longer "
              "counted.  [default: wait for ever]")  # fmt: skip
@click.option("--target", type=click.Choice(TARGETS), default="condorcet", show_default=True,
              help="The winner that is sought.")  # fmt: skip
@click.option("--feedback", type=click.Choice(("conversions", "votes")), default="conversions",
              show_default=True, help="What is told: wins of the first, or who won.")  # fmt: skip
def recommend_command(
    delay: str | None,
    order_given: bool,
    anonymous: bool,
    arms: int | None,
    window: int | None,
    target: str,
    feedback: str,
) -> None:
    """Say which policy to use, and why."""
    known: Any = delay
    if delay is not None:
        with contextlib.suppress(ValueError):  # not a number: a law
            known = float(delay)
    advice = recommend(
        known,
        is_order_free=not order_given,
        is_anonymous=anonymous,
        n_arms=arms,
        window=window,
        target=target,
        feedback=feedback,
    )
    click.echo(f"{advice.policy}\n")
    click.echo(click.wrap_text(advice.reason, min(96, shutil.get_terminal_size().columns)))
    click.echo(f"\nIn Python: duelay.{advice.policy!r}")


@main.command("datasets")
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


@main.command("policies")
@_import_option
def policies_command(modules: tuple[str, ...]) -> None:
    """List the policies and their parameters."""
    _bring_in(modules)
    _list("policy")


@main.command("delays")
@_import_option
def delays_command(modules: tuple[str, ...]) -> None:
    """List the delay laws and their parameters."""
    _bring_in(modules)
    _list("law")


def _list(kind: str) -> None:
    for name, cls in sorted(text.names(kind).items()):
        does = " ".join((cls.__doc__ or "").split("\n\n")[0].replace("`", "").split())
        click.echo(f"{name}:{','.join(text.parameters(cls))}")
        width = min(96, shutil.get_terminal_size().columns)
        click.echo(click.wrap_text(does, width, initial_indent="    ", subsequent_indent="    "))


def _summary(results: list[Result]) -> str:
    rows = [
        [
            result.label,
            f"{result.final.mean():,.1f}",
            f"{result.final.std(ddof=1):,.1f}" if result.runs > 1 else "-",
            _percent(result.led_by_winner),
            f"{result.microseconds:.2f}",
        ]
        for result in results
    ]
    return table(["policy", "regret", "± sd", "led by winner", "µs a duel"], rows, left=(0,))


def _percent(share: float) -> str:
    return "?" if math.isnan(share) else f"{100 * share:.0f} %"


def _show_warning(message: Any, *_: Any, **__: Any) -> None:
    click.echo(f"duelay: warning: {message}", err=True)
