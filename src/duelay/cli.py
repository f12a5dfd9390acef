"""The command line."""

from __future__ import annotations

import dataclasses
import json
import shutil
import sys
import warnings
from pathlib import Path
from typing import Any

import click
import numpy as np

from duelay import __version__, _checks, assumptions, datasets, delays, policies, text
from duelay._compare import compare
from duelay._files import write_whole
from duelay._modules import bring_in
from duelay._shell import Group, Whole
from duelay._table import table
from duelay.advice import recommend
from duelay.engine import BANDS
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
        status = main(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("duelay: stopped", err=True)
        sys.exit(130)
    except (ValueError, ArithmeticError, MemoryError) as error:
        _complain(str(error) or type(error).__name__)
        sys.exit(2)
    except OSError as error:
        _complain(error)
        sys.exit(1)
    if status:  # of a command that ended by Exit
        sys.exit(status)


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


@click.group(cls=Group, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
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
    help="What to run (see `duelay policies`); `recommended` is what `duelay recommend` gives. May "
    "be given several times. A policy that assumes a delay law, or its mean, is told the true one "
    "unless the text says another.",
)
@click.option(
    "--delay",
    default="geometric:0.01",
    show_default=True,
    metavar="LAW",
    help="The law that delays follow (see `duelay delays`).",
)
@click.option("--horizon", type=Whole(), default=20_000, show_default=True, metavar="T",
              help="Duels in a run; 1e5 is a number, too.")  # fmt: skip
@click.option("--runs", type=Whole(), default=20, show_default=True, metavar="N",
              help="Independent runs.")  # fmt: skip
@click.option("--seed", type=Whole(0), default=0, show_default=True, metavar="N",
              help="Same seed, same numbers.")  # fmt: skip
@click.option("--workers", type=Whole(), metavar="N", help="Threads.  [default: one a core]")
@click.option("--checkpoints", type=Whole(), default=200, show_default=True, metavar="N",
              help="Ticks recorded in a run.")  # fmt: skip
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write regret.csv, regret.png and regret.svg there.",
)
@click.option("--band", type=click.Choice(BANDS), default="sd", show_default=True,
              help="What the figure's bands show: one standard deviation of the runs, or where the "
              "mean is, with 95 % confidence.")  # fmt: skip
@click.option("--target", type=click.Choice(TARGETS), default="condorcet", show_default=True,
              help="The winner that regret is measured against.")  # fmt: skip
@click.option("--feedback", type=click.Choice(FEEDBACKS), default="conversions", show_default=True,
              help="What is reported: a win of the first only, or both outcomes.")  # fmt: skip
@click.option("--stale", type=Whole(0), default=0, show_default=True, metavar="R",
              help="Ticks by which the evidence is old that a policy sees.")  # fmt: skip
@click.option("--batch", type=Whole(), default=1, show_default=True, metavar="B",
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
    band: str,
    target: str,
    feedback: str,
    stale: int,
    batch: int,
    modules: tuple[str, ...],
    quiet: bool,
) -> None:
    """Simulate policies on a problem and compare their regret.

    Prints the mean and standard deviation of the regret over the runs, the share of runs whose
    standing leads with the true winner in the end, and the microseconds that a duel takes. Ctrl-C
    keeps the policies that are finished.
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
    compared = compare(
        problem,
        list(zip(policy_forms, chosen, strict=True)),
        quiet=quiet,
        delay=law,
        horizon=horizon,
        runs=runs,
        seed=seed,
        workers=workers,
        checkpoints=checkpoints,
        target=target,
        feedback=feedback,
        stale=stale,
        batch=batch,
    )
    winners = ", ".join(problem.arms[arm] for arm in problem.winners(target))
    click.echo(f"{problem.name}: {problem.n_arms} arms, winner {winners}")
    setting = str(compared.results[0].setting)
    how = f", {setting}" if setting else ""
    click.echo(f"delay {law}, {horizon} duels a run, runs: {runs}, seed {seed}{how}\n")
    click.echo(compared.table())
    if out is not None:
        compared.write(out, band)
        click.echo(f"\nwrote regret.csv, regret.png and regret.svg to {out}")
    if compared.missing:
        done = f"{len(compared.results)} of {len(chosen)} policies"
        _complain(f"stopped after {done}; missing: {', '.join(compared.missing)}")
        raise click.exceptions.Exit(130)


def _bring_in(modules: tuple[str, ...], *folders: Path) -> None:
    for name in modules:
        bring_in(name, [Path(), *folders])


def _experiment_options(command: Any) -> Any:
    """What `run` and `reproduce` have in common."""
    options = [
        click.option(
            "--workers", type=Whole(), metavar="N", help="How many.  [default: one a core]"
        ),
        click.option(
            "--backend",
            type=click.Choice(["threads", "processes", "dask", "ray"]),
            default="threads",
            show_default=True,
            help="Where the work is done: here, or on a cluster that is running.",
        ),
        click.option("--address", metavar="URL", help="The cluster's scheduler, tcp://HOST:PORT."),
        click.option(
            "--band",
            type=click.Choice(BANDS),
            help="What the bands of the figures show: one standard deviation of the runs, or where "
            "the mean is, with 95 % confidence.  [default: as the specification has it]",
        ),
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
        from duelay import experiments
    except ImportError as error:
        raise ValueError(str(error)) from None
    return experiments


def _experiment(
    spec: Any, out: Path, quick: bool, backend: str, band: str | None, **options: Any
) -> None:
    experiments = _experiments()
    if band is not None:
        spec = dataclasses.replace(spec, band=band)
    spec = spec.quick() if quick else spec
    if options["address"] is not None and backend in ("threads", "processes"):
        raise ValueError(f"address is for the backends dask and ray, got it with {backend}")
    try:
        checked = experiments.run(spec, out, backend=backend, **options)
    except experiments.WorkFailedError as error:
        raise OSError(str(error)) from None
    except KeyboardInterrupt:
        _complain(f"stopped; what is finished is kept in {out}, and the same command goes on")
        raise click.exceptions.Exit(130) from None
    for claim in checked:
        click.echo(_wrapped(f"{claim.verdict:>24}: ", claim.title))
    if checked and (caveat := experiments.claims.caveat(spec.grids[0])):
        click.echo(f"\n{_wrapped('', caveat)}\n")
    click.echo(f"wrote results.csv, results.parquet, figures and report.html to {out}")


@main.command("check")
@click.argument("duels", metavar="CSV", type=click.Path(path_type=Path))
@click.option("--window", type=Whole(), metavar="M",
              help="Ticks after which an answer is not counted.")  # fmt: skip
@click.option("--order", type=click.Choice(["coin", "alternate", "champion"]),
              help="How the order was decided.  [default: not known]")  # fmt: skip
@click.option("--level", type=float, default=0.05, show_default=True,
              help="How often one of a sound experiment's tests may alarm.")  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Also write a report there, as Markdown.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
def check_command(
    duels: Path,
    window: int | None,
    order: str | None,
    level: float,
    out: Path | None,
    as_json: bool,
) -> None:
    """Say whether what policies take for granted holds in an experiment's own data.

    CSV has a row a duel: first, second, delay (empty for silence) and, for votes, winner. The
    status is 1 where a test alarms, 0 where none does.
    """
    history = History.from_csv(duels, window=window, order=order)
    findings = assumptions.check_assumptions(history, level=level)
    heard = int(history.is_heard.sum())
    if out is not None:
        write_whole(out, assumptions.report(history, level=level).encode())
    if as_json:
        about = {"duels": history.n, "arms": history.arms, "answers": heard, "level": level,
                 "feedback": history.feedback, "window": window, "order": order}  # fmt: skip
        told = {"findings": [finding.as_data() for finding in findings]}
        click.echo(json.dumps(about | told, indent=2, ensure_ascii=False))
    else:
        click.echo(
            f"{history.n} duels of {history.n_arms} arms, {heard} answers ({history.feedback})\n"
        )
        for finding in findings:
            mark = "! " if finding.is_alarm else "  "
            is_read = sys.stdout.isatty()  # by a person; a program has a line a finding
            click.echo(_wrapped(mark, str(finding)) if is_read else f"{mark}{finding}")
        if out is not None:
            click.echo(f"\nwrote {out}")
    if any(finding.is_alarm for finding in findings):
        raise click.exceptions.Exit(1)


@main.command("recommend", epilog=EPILOG)
@click.option("--delay", metavar="LAW", help="The law of the delay, where it is known (see `duelay "
              "delays`).  [default: nothing is known]")  # fmt: skip
@click.option("--mean-delay", type=float, metavar="TICKS",
              help="The mean of the delay, where that alone is known.")  # fmt: skip
@click.option("--order-given", is_flag=True, help="The champion must be shown first.")
@click.option("--anonymous", is_flag=True, help="Conversions do not say from which duel they are.")
@click.option("--arms", type=Whole(2), metavar="K", help="The number of arms.")
@click.option("--window", type=Whole(), metavar="M", help="Ticks after which a conversion is no "
              "longer counted.  [default: 10000 where the law is learned]")  # fmt: skip
@click.option("--target", type=click.Choice(TARGETS), default="condorcet", show_default=True,
              help="The winner that is sought.")  # fmt: skip
@click.option("--feedback", type=click.Choice(FEEDBACKS), default="conversions", show_default=True,
              help="What is told: wins of the first, or who won.")  # fmt: skip
@click.option("--two-arms", is_flag=True, help="Two different arms must always be shown.")
def recommend_command(
    delay: str | None,
    mean_delay: float | None,
    order_given: bool,
    anonymous: bool,
    arms: int | None,
    window: int | None,
    target: str,
    feedback: str,
    two_arms: bool,
) -> None:
    """Say which policy to use, and why."""
    if delay is not None and _checks.is_number(delay):
        raise ValueError(
            f"--delay must be a delay law, got the number {delay}: write --mean-delay {delay} for "
            f"a mean of {delay}, --delay constant:{delay} for {delay} every time"
        )
    if mean_delay is not None:
        _checks.number("--mean-delay", mean_delay, least=1)
    if delay is not None and mean_delay is not None:
        raise ValueError("--mean-delay is for where the law is not known: give it or --delay alone")
    if anonymous and delay is None and mean_delay is None:
        raise ValueError(
            "--anonymous needs --mean-delay, or --delay for the law: the policy's rounds are made "
            "from the mean"
        )
    advice = recommend(
        mean_delay if delay is None else delays.check(delay),
        is_order_free=not order_given,
        is_anonymous=anonymous,
        n_arms=arms,
        window=window,
        target=target,
        feedback=feedback,
        self_duels=not two_arms,
    )
    click.echo(f"{advice.policy}\n")
    click.echo(_wrapped("", advice.reason))
    click.echo(f'\nIn Python: duelay.policies.parse("{advice.policy}")')


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
    for name, policy in text.aliases("policy").items():
        click.echo(f"{name}\n{_wrapped('    ', f'What `duelay recommend` gives: {policy}')}")


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
        click.echo(_wrapped("    ", does))


def _show_warning(message: Any, *_: Any, **__: Any) -> None:
    _complain(f"warning: {message}")


def _complain(sentence: object) -> None:
    """Say a sentence on standard error; on a terminal it is broken between words."""
    line = f"duelay: {sentence}"
    click.echo(_wrapped("", line) if sys.stderr.isatty() else line, err=True)


def _wrapped(head: str, words: str) -> str:
    """Words behind a head, broken between words where the terminal ends."""
    width = min(96, shutil.get_terminal_size().columns)
    return click.wrap_text(words, width, initial_indent=head, subsequent_indent=" " * len(head))
