"""What `duelay simulate` does: policies one after the other; what is finished stays."""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from duelay import text
from duelay._core.sources import sources_of
from duelay._core.user_modules import explain
from duelay.errors import InvalidValueError
from duelay.policies.policy import Policy
from duelay.problems import Problem
from duelay.show.text_table import table
from duelay.simulation import Result, Setting, simulate, write_csv
from duelay.simulation.result import days_until_declared, until_declared, write_paths, write_stops

_NAME = 22  # characters of a policy beside its bar, which leaves room for it in 80 columns


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

        If runs end when a winner is declared: the duels, and the days of traffic, until then; in
        how many runs one is declared, and in how many a wrong one.
        """
        stops = any(result.setting.stop is not None for result in self.results)
        days = stops and any(result.traffic is not None for result in self.results)
        rows = [
            [
                label,
                until_declared(result) if stops else f"{result.final.mean():,.1f}",
                f"{result.measured.std(ddof=1):,.1f}" if _has_spread(result) else "-",
                *([days_until_declared(result)] if days else []),
                *(
                    [_percent(result.is_declared.mean()), _percent(result.is_wrong.mean())]
                    if stops
                    else [_percent(result.led_by_winner)]
                ),
                f"{result.microseconds:.2f}",
            ]
            for label, result in zip(self.labels, self.results, strict=True)
        ]
        means = ["regret", "± sd", "led by winner"]
        if stops:
            means = ["duels", "± sd", *(["days"] if days else []), "declared", "wrong"]
        shown = table(["policy", *means, "µs a duel"], rows, left=(0,))
        meant = {
            label: f"{label} is {result.policy}"
            for label, result in zip(self.labels, self.results, strict=True)
            if _is_alias(label)
        }
        return "\n".join([shown, *([""] if meant else []), *meant.values()])

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
            name = form if len(form) <= _NAME else f"{form[: _NAME - 1]}…"
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
