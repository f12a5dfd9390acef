"""`duelay simulate`: policies on one problem, compared; what is finished stays after Ctrl-C."""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

from duelay import datasets, delays, policies, text
from duelay._core.feedback import FEEDBACKS
from duelay._core.sources import sources_of
from duelay._core.user_modules import explain
from duelay.cli.common import (
    EPILOG,
    Command,
    Whole,
    complain,
    feedback_option,
    import_modules,
    import_option,
)
from duelay.delays.ticks_or_clock import check_clock
from duelay.errors import InvalidValueError
from duelay.policies.policy import Policy
from duelay.problems import TARGETS, Problem
from duelay.show.text_table import table
from duelay.simulation import BANDS, Result, Setting, simulate, write_csv
from duelay.simulation.result import (
    days_until_declared,
    until_declared,
    verdicts_of,
    write_paths,
    write_stops,
)
from duelay.simulation.simulate import check_units


@click.command("simulate", cls=Command, epilog=EPILOG)
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
    help="A policy to run (see `duelay policies`), or `recommended` (see `duelay recommend`). "
    "May be given several times. A policy that assumes a delay law, or its mean, uses the "
    "true one unless the text names another.",
)
@click.option(
    "--delay",
    default="geometric:0.01",
    show_default=True,
    metavar="LAW",
    help="The law that delays follow (see `duelay delays`); in time with --traffic.",
)
@click.option("--horizon", type=Whole(), default=20_000, show_default=True, metavar="T",
              help="Duels in a run; 1e5 works too.")  # fmt: skip
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
    help="A folder for regret.csv, regret.png and regret.svg, and with --stop also stops.csv, "
    "stops.png, stops.svg and evidence.csv.",
)
@click.option("--band", type=click.Choice(BANDS), default="sd", show_default=True,
              help="What the figure's bands show: one standard deviation of the runs, or a 95 % "
              "interval for their mean.")  # fmt: skip
@click.option("--target", type=click.Choice(TARGETS), default="condorcet", show_default=True,
              help="The winner that regret is measured against.")  # fmt: skip
@feedback_option(FEEDBACKS[:2], "What is reported: a win of the first only, or both outcomes.")
@click.option("--correct-position", "corrects_position", is_flag=True,
              help="With votes, remove the advantage of being shown first.")  # fmt: skip
@click.option("--stale", type=Whole(0), default=0, show_default=True, metavar="R",
              help="The age in ticks of the evidence that a policy sees.")  # fmt: skip
@click.option("--batch", type=Whole(), default=1, show_default=True, metavar="B",
              help="The number of duels asked at a time, before any answer comes.")  # fmt: skip
@click.option("--stop", type=float, metavar="ERROR", help="End a run when its policy declares a "
              "winner, with this probability of error: 0.05 for decide.")  # fmt: skip
@click.option("--traffic", metavar="TRAFFIC", help="When duels come, such as poisson:10s (see "
              "`duelay traffic`). Delays are then in time.")  # fmt: skip
@click.option("--in-ticks", is_flag=True, help="With --traffic, play policies that count each duel "
              "as a tick, and receive answers at the next duel.")  # fmt: skip
@import_option
@click.option("--quiet", is_flag=True, help="No progress bar.")
def simulate_command(
    dataset: str,
    policy_forms: tuple[str, ...],
    delay: str,
    out: Path | None,
    band: str,
    traffic: str | None,
    in_ticks: bool,
    modules: tuple[str, ...],
    quiet: bool,
    **told: Any,
) -> None:
    """Simulate policies on a problem and compare their regret.

    Prints the mean and standard deviation of the regret over the runs, the share of runs that the
    true winner leads in the end, and the microseconds that a duel takes. With --stop: the duels
    until a winner is declared, in how many runs one is, and in how many a wrong one. After Ctrl-C
    the policies that are finished are kept.
    """
    import_modules(modules)
    if in_ticks and traffic is None:
        raise InvalidValueError("--in-ticks needs --traffic: without it all is in ticks anyway")
    names = ("target", "feedback", "corrects_position", "stale", "batch", "stop")
    settings = {name: told.pop(name) for name in names}
    setting = Setting(**settings, traffic=traffic, by_clock=not in_ticks)
    problem = datasets.find(dataset)
    law = delays.check(delay, problem.n_arms)
    check_units(law, setting)
    # Where the law depends on the pair, the largest mean: n_m must be long enough for each.
    defaults = {"delay": law, "mean_delay": float(np.max(law.mean))}
    chosen = [policies.parse(form, defaults) for form in policy_forms]
    for form, policy in zip(policy_forms, chosen, strict=True):
        _check_time(form, policy, setting, problem.n_arms)
    if out is not None:
        from duelay.show import figure_style  # needs matplotlib: say so before the work, not after

        figure_style.need_matplotlib()
        try:
            out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidValueError(
                f"--out cannot be made a folder, {out}: {error.strerror}"
            ) from None
    compared = compare(
        problem,
        list(zip(policy_forms, chosen, strict=True)),
        setting,
        quiet=quiet,
        delay=law,
        **told,
    )
    winners = "none"
    if setting.target != "condorcet" or problem.has_winner:
        winners = ", ".join(problem.arms[arm] for arm in problem.winners(setting.target))
    click.echo(f"{problem.name}: {problem.n_arms} arms, winner {winners}")
    how = f", {setting}" if str(setting) else ""
    runs = f"{told['horizon']} duels a run, runs: {told['runs']}, seed {told['seed']}"
    click.echo(f"delay {law}, {runs}{how}\n")
    click.echo(compared.table())
    if out is not None:
        compared.write(out, band)
        more = "stops.csv, stops.png, stops.svg, evidence.csv, " if setting.stop is not None else ""
        click.echo(f"\nwrote {more}regret.csv, regret.png and regret.svg to {out}")
    if compared.missing:
        done = f"{len(compared.results)} of {len(chosen)} policies"
        why = f": {compared.failure}" if compared.failure else ""
        complain(f"stopped after {done}{why}; missing: {', '.join(compared.missing)}")
        raise click.exceptions.Exit(2 if compared.failure else 130)


def _check_time(form: str, policy: Policy, setting: Setting, n_arms: int) -> None:
    """Refuse a policy whose own window or law is not in the unit of time, by its option."""
    has_clock = setting.traffic is not None and setting.by_clock
    if has_clock and not policy.goes_by_clock:
        return  # `simulate` says so
    try:
        check_clock(policy, has_clock=has_clock)
        if has_clock:
            policy.ledger(n_arms, by_clock=True)
    except ValueError as error:
        raise InvalidValueError(f"--policy {form}: {error}") from None


_MAX_NAME_LENGTH = 22  # characters of a policy beside its bar, so that both fit 80 columns


@dataclass(frozen=True)
class Comparison:
    """The results of several policies, in the order in which they were asked for."""

    forms: Sequence[str]  # as they were asked for
    results: list[Result]  # of all policies, or of those before a failure or Ctrl-C
    failure: str = ""  # why the next one failed

    @property
    def missing(self) -> list[str]:
        """The policies that were not finished."""
        return list(self.forms[len(self.results) :])

    @property
    def labels(self) -> list[str]:
        """What each result is called: an alias as it was written, without what it stands for."""
        return [
            form if _is_alias(form) else result.label
            for form, result in zip(self.forms, self.results, strict=False)
        ]

    def table(self) -> str:
        """Regret, how often the winner leads, and what a duel costs; what each alias stands for.

        If runs end with a verdict: the duels, and the days of traffic, until then; how many runs
        end with which verdict, and how many with a false one. A single run without a verdict has
        the any-time p-value of its leader below the table.
        """
        stops = any(result.setting.stop is not None for result in self.results)
        days = stops and any(result.traffic is not None for result in self.results)
        verdicts = verdicts_of(self.results)
        rows = [
            [
                label,
                until_declared(result) if stops else f"{result.final.mean():,.1f}",
                f"{result.measured.std(ddof=1):,.1f}" if _has_spread(result) else "-",
                *([days_until_declared(result)] if days else []),
                *([_percent(result.share(verdict)) for verdict in verdicts] if stops else []),
                _percent(result.is_wrong.mean() if stops else result.led_by_winner),
                f"{result.microseconds:.2f}",
            ]
            for label, result in zip(self.labels, self.results, strict=True)
        ]
        means = ["regret", "± sd", "led by winner"]
        if stops:
            words = [verdict.replace("_", " ") for verdict in verdicts]
            means = ["duels", "± sd", *(["days"] if days else []), *words, "false"]
        shown = table(["policy", *means, "µs a duel"], rows, left=(0,))
        meant = {
            label: f"{label} is {result.policy}"
            for label, result in zip(self.labels, self.results, strict=True)
            if _is_alias(label)
        }
        said = [*meant.values(), *self._p_values()]
        return "\n".join([shown, *([""] if said else []), *said])

    def _p_values(self) -> list[str]:
        """Say how strong the evidence is where a single run ended without a verdict."""
        return [
            f"{label}: undecided; {result.problem.arms[result.leader[0]]} leads, with an any-time "
            f"p-value of {result.p_value[0]:.2g}"
            for label, result in zip(self.labels, self.results, strict=True)
            if result.setting.stop is not None and result.runs == 1 and result.leader[0] >= 0
            and not result.is_declared[0]
            and result.p_value is not None and not math.isnan(result.p_value[0])
        ]  # fmt: skip

    def write(self, folder: Path, band: str) -> None:
        """Write a table and a figure of the regret; with `stop`, of stops and evidence as well."""
        from duelay.show import figure_style, plots

        if any(result.setting.stop is not None for result in self.results):
            write_stops(self.results, folder / "stops.csv", self.labels)
            write_paths(self.results, folder / "evidence.csv", self.labels)
            stops = plots.stops_figure(self.results, self.labels[: len(self.results)])
            for name in ("stops.png", "stops.svg"):
                figure_style.save(stops, folder / name)
        write_csv(self.results, folder / "regret.csv", self.labels)
        figure = plots.regret_figure(self.results, self.labels, band=band)
        for name in ("regret.png", "regret.svg"):
            figure_style.save(figure, folder / name)


def compare(
    problem: Problem,
    chosen: Sequence[tuple[str, Policy]],
    setting: Setting,
    *,
    quiet: bool,
    **options: Any,
) -> Comparison:
    """Simulate policies in turn, given with their forms.

    Ctrl-C, or a policy that fails, ends it; the results of the policies before are kept.
    """
    results: list[Result] = []
    failure = ""
    try:
        for form, policy in chosen:
            name = form if len(form) <= _MAX_NAME_LENGTH else f"{form[: _MAX_NAME_LENGTH - 1]}…"
            which = f"{len(results) + 1} of {len(chosen)}, " if len(chosen) > 1 else ""
            shown = dataclasses.replace(setting, progress=False if quiet else which + name)
            try:
                results.append(simulate(problem, policy, setting=shown, **options))
            except Exception as error:
                if not sources_of(policy) or (isinstance(error, ValueError) and not results):
                    raise
                failure = f"{form} failed: {explain(error)}"
                if not results:
                    raise InvalidValueError(failure) from error
                break
    except KeyboardInterrupt:
        if not results:
            raise
        if sys.stderr is not None and sys.stderr.isatty():
            print(file=sys.stderr)  # after the terminal's ^C
    return Comparison([form for form, _ in chosen], results, failure)


def _has_spread(result: Result) -> bool:
    """Whether runs have a standard deviation: several, none of them ended by the horizon."""
    return result.runs > 1 and (result.setting.stop is None or bool(result.is_declared.all()))


def _is_alias(form: str) -> bool:
    return form.partition(":")[0].strip() in text.aliases("policy")


def _percent(share: float) -> str:
    return "?" if math.isnan(share) else f"{100 * share:.0f} %"
