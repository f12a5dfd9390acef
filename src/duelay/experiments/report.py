"""The report: what was run, every claim with its verdict, the bounds; Markdown and one page."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from duelay import __version__, text, theory
from duelay._core.escapes import in_code as _code
from duelay._core.escapes import in_markdown as _text
from duelay._core.files import write_whole
from duelay.experiments import claims, sweep
from duelay.experiments.results import Results
from duelay.experiments.spec import Grid
from duelay.experiments.statistics import late_share
from duelay.policies import MRRDBDelay, RUCBDelay
from duelay.show.html_report import page
from duelay.show.text_table import markdown as _table
from duelay.simulation import Result
from duelay.simulation.result import longest, until_declared, verdicts_of

Drawn = dict[str, list[tuple[str, str]]]


def write(results: Results, folder: Path, drawn: Drawn) -> list[claims.Claim]:
    """Write report.md and report.html; return the claims that were checked."""
    checked = claims.check_claims(results) if results.spec.claims == "paper" else []
    source = compose(results, checked, drawn)
    write_whole(folder / "report.md", source.encode())
    write_whole(folder / "report.html", page(source, results.spec.title, folder).encode())
    return checked


def compose(results: Results, checked: list[claims.Claim], drawn: Drawn) -> str:
    """Return the report as Markdown."""
    spec = results.spec
    parts = [f"# {_text(spec.title)}", _what_was_run(results)]
    if checked:
        parts.append(_verdicts(checked, spec.grids[0]))
    if spec.sweep is not None:
        parts.append(_sweep(results))
    for grid in spec.grids:
        parts.append(_grid(results, grid, drawn.get(grid.name, [])))
    for number, claim in enumerate(checked, start=1):
        parts.append(_claim(number, claim))
    first = spec.grids[0].setting
    if first.target == "condorcet" and first.stop is None and first.traffic is None:
        parts.append(_bounds(results, spec.grids[0]))
    return "\n\n".join(parts) + "\n"


def _what_was_run(results: Results) -> str:
    lines = [f"Made by duelay {__version__} from the specification {_code(results.spec.name)}.", ""]
    for grid in results.spec.grids:
        laws = ", ".join(_code(str(law)) for law in grid.delays)
        names = ", ".join(_text(problem.name) for problem in grid.problems)
        setting = f"; {_text(str(grid.setting))}" if str(grid.setting) else ""
        lines.append(
            f"- **{_text(grid.title)}**: {names}; delay {laws}; {grid.horizon:,} duels a run, "
            f"{grid.runs} runs, seed {grid.seed}{setting}."
        )
    lines += ["", "The policies, with all that they were told:", ""]
    forms = {
        (grid.title, choice.label): text.form(
            results.get(grid.name, grid.problems[0].name, choice.label).policy, full=True
        )
        for grid in results.spec.grids
        for choice in grid.policies
    }
    seen: set[tuple[str, str]] = set()
    for (title, label), form in forms.items():
        if (label, form) not in seen:
            where = "" if label not in {known for known, _ in seen} else f" ({title})"
            lines.append(f"- {_text(label + where)}: {_code(form)}")
            seen.add((label, form))
    if cautions := results.spec.cautions():
        lines += ["", "With a horizon too short for them:", ""]
        lines += [f"- {_text(str(caution))}." for caution in cautions]
    return "\n".join(lines)


def _sweep(results: Results) -> str:
    """The sweep of a study: a figure, and a table for each of its panels."""
    assert results.spec.sweep is not None
    stop, axis = results.spec.grids[0].setting.stop, results.spec.sweep.axis
    caption = (
        f"Mean regret at the horizon over {axis}, with 95 % intervals, on a logarithmic axis."
        if stop is None
        else f"Mean duels until a verdict over {axis}, with 95 % intervals, on a logarithmic axis; "
        f"below, the share of runs with a false verdict, and the {100 * stop:g} % promised. "
        "Where the horizon ended runs, the mean is more than is shown."
    )
    parts = [f"![{_text(caption)}](figures/sweep.svg)\n\n*{_text(caption)}*"]
    for title, (columns, rows) in sweep.tables(results).items():
        body = [[_text(row[0]), *row[1:]] for row in rows]
        parts.append(f"{_text(title)}:\n\n" + _table([_text(c) for c in columns], body))
    parts.append(
        "Bold is the least of a column, and every cell whose interval overlaps with that of the "
        "least. In brackets is "
        + (
            "the share of runs that a winner leads in the end, if below 95 %."
            if stop is None
            else "the share of runs with a false verdict, or with no verdict by the horizon."
        )
    )
    return "\n\n".join(parts)


def _verdicts(checked: list[claims.Claim], grid: Grid) -> str:
    rows = [
        [str(number), claim.title, f"**{claim.verdict}**"]
        for number, claim in enumerate(checked, start=1)
    ]
    note = "Each interval is at 95 % by itself; nothing is corrected for their number. "
    note = (note + claims.caveat(grid)).strip()
    return "## The paper's claims\n\n" + _table(["", "claim", "verdict"], rows) + f"\n\n{note}"


def _means(result: Result) -> tuple[str, str]:
    """Mean and standard deviation, and the worst run.

    Where the horizon has ended a run before a winner was declared, the numbers of duels are lower
    bounds, and no deviation is given.
    """
    spread = f"{result.measured.std(ddof=1):,.0f}" if result.runs > 1 else "-"
    if result.setting.stop is None:
        return f"{result.final.mean():,.0f} ± {spread}", f"{result.final.max():,.0f}"
    is_whole = result.is_declared.all()
    return until_declared(result) + (f" ± {spread}" if is_whole else ""), longest(result)


def _ends(result: Result, verdicts: list[str]) -> list[str]:
    """How a policy's runs end: by whom they are led, or with which verdict."""
    if result.setting.stop is not None:
        nobody = 0.0 if result.nobody is None else float(result.nobody.mean())
        shares = (*map(result.share, verdicts), float(result.is_wrong.mean()), nobody)
        return [*(f"{100 * share:.3g} %" for share in shares), _p_value(result)]
    late = late_share(result).value
    shown = "?" if math.isnan(late) else f"{late:.2f}"
    return [shown, f"{100 * result.led_by_winner:.0f} %"]


def _p_value(result: Result) -> str:
    """The median any-time p-value of the leader, over the runs that the horizon ended."""
    if result.p_value is None or result.is_declared.all() or np.isnan(result.p_value).all():
        return "-"
    return f"{np.median(result.p_value[~result.is_declared]):.2g}"


def _grid(results: Results, grid: Grid, drawn: list[tuple[str, str]]) -> str:
    parts = [f"## {_text(grid.title)}"]
    for name, caption in drawn:
        parts.append(f"![{_text(caption)}](figures/{name}.svg)\n\n*{_text(caption)}*")
    for law in grid.delays:
        rows = []
        panels = [results.panel(grid, problem.name, str(law)) for problem in grid.problems]
        verdicts = verdicts_of(result for panel in panels for result in panel.values())
        for problem, panel in zip(grid.problems, panels, strict=True):
            for label, result in panel.items():
                words = (_text(problem.name), _text(label))
                rows.append([*words, *_means(result), *_ends(result, verdicts)])
        columns = ["dataset", "policy", "regret (mean ± sd)", "worst run", "share in second half",
                   "led by the winner"]  # fmt: skip
        if grid.setting.stop is not None:
            ends = [verdict.replace("_", " ") for verdict in verdicts]
            columns[2:] = ["duels until a verdict (mean ± sd)", "longest run", *ends, "false",
                           "no arm beats all", "p-value if undecided (median)"]  # fmt: skip
        parts.append(f"Delay {_code(str(law))}:\n\n" + _table(columns, rows))
    return "\n\n".join(parts)


def _claim(number: int, claim: claims.Claim) -> str:
    parts = [
        f"## Claim {number}: {claim.title}",
        f"> {claim.quote}",
        f"Verdict: **{claim.verdict}**.",
    ]
    if claim.verdict == "holds under this reading":
        parts.append("It holds for:\n\n" + "\n".join(f"- {reading}" for reading in claim.readings))
    parts += [claim.test, _table(claim.columns, claim.rows), claim.explanation]
    return "\n\n".join(parts)


def _bounds(results: Results, grid: Grid) -> str:
    """The theorems' bounds beside the measured regret of the policies that they are about."""
    law = grid.delays[0]
    first = results.panel(grid, grid.problems[0].name, str(law))
    rucb = next((name for name, r in first.items() if isinstance(r.policy, RUCBDelay)), None)
    mrr = next((name for name, r in first.items() if isinstance(r.policy, MRRDBDelay)), None)
    policy = first[rucb].policy if rucb else RUCBDelay(law)
    window, alpha = policy.window or grid.horizon, max(1.0, policy.alpha)
    mean, heard = float(np.max(law.mean)), float(np.min(law.cdf(window)))
    rows = []
    for problem in grid.problems:
        given: dict[str, Any] = {"delay": law, "window": window, "horizon": grid.horizon}
        first_bound = theory.high_probability_bound(problem, **given, delta=0.05, alpha=alpha)
        third_bound = theory.mrr_bound(problem, horizon=grid.horizon, mean_delay=mean)
        hardest = theory.minimax_lower_bound(problem.n_arms, grid.horizon, heard)
        rows.append({
            "dataset": _text(problem.name),
            f"{_text(rucb or 'RUCB-Delay')} measured": _measured(
                results, grid, problem.name, rucb),
            "Theorem 1 (delta 0.05)": _number(first_bound),
            "Theorem 2": _number(theory.expected_bound(problem, **given, alpha=alpha)),
            f"{_text(mrr or 'MRR-DB-Delay')} measured": _measured(results, grid, problem.name, mrr),
            "Theorem 3": _number(third_bound),
            "asymptotic lower bound": _number(theory.asymptotic_lower_bound(problem, grid.horizon)),
            "minimax lower bound": _number(hardest),
            "trivial bound": _number(grid.horizon * float(problem.gaps.max())),
        })  # fmt: skip
    return (
        f"## The theorems beside the measurements\n\n{_text(grid.title)}, delay {_code(str(law))}:"
        "\n\n"
        + _table(list(rows[0]), [list(row.values()) for row in rows])
        + f"\n\nTheorems 1 and 2 for alpha = {alpha:g} and a window of {window}; Theorem 2 is "
        "infinite at alpha = 1. Where the law depends on the pair: its largest mean, its slowest "
        "pair. The asymptotic lower bound is Komiyama et al.'s, without delay, times log T; the "
        "minimax one is of the hardest problem with as many arms. The trivial bound is the horizon "
        "times the largest gap: a bound above it says nothing at this horizon."
    )


def _measured(results: Results, grid: Grid, problem: str, label: str | None) -> str:
    if label is None:
        return "not run"
    return _number(float(results.get(grid.name, problem, label).final.mean()))


def _number(value: float) -> str:
    if math.isinf(value):
        return "infinite"
    return f"{value:,.0f}" if abs(value) < 1e6 else f"{value:.1e}"
