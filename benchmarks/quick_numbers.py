"""The numbers on pages that take seconds: made anew, kept, and written into the pages.

    python benchmarks/quick_numbers.py [NAME ...]

A block that is "made by: the command above" holds what the shell commands above it on its page
print, but for the time that they took. The others are made by a function below. Numbers that take
longer have commands of their own: `make help` lists them.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import duelay
import pages
from bayes_optimal import bayes_optimal_regret
from duelay import datasets, delays, ledger
from duelay.experiments.statistics import late_share
from duelay.simulation import streams
from duelay.simulation.loops.recorder import new_recorder
from duelay.simulation.loops.ticks import run_ticks
from duelay.simulation.world import make_world, with_empty_queue
from finite_horizon import finite_lower_bound

ABOVE = "the command above"
LAW = delays.Geometric(0.01)


def from_commands(page: str, name: str) -> list[pages.Part]:
    """Run the shell commands that stand above a block, and return the tables that they print."""
    before = page[: page.index(f"<!-- {name}, made by: {ABOVE} -->")]
    commands = re.findall(r"^```sh\n(.*?)^```", before, re.DOTALL | re.MULTILINE)[-1]
    with tempfile.TemporaryDirectory() as folder:
        command = Path(folder) / "duelay"
        command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m duelay "$@"\n')
        command.chmod(0o755)
        path = f"{folder}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", commands],
            cwd=folder, env=os.environ | {"PATH": path}, capture_output=True, text=True,
        )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"{name}: {commands}\n{done.stderr}")
    return printed_tables(done.stdout)


def printed_tables(printed: str) -> list[pages.Part]:
    """Read what `duelay simulate` prints, several times perhaps, as one table.

    Where the dataset or the horizon is not the same throughout, it has a column.
    """
    columns: list[str] = []
    found = []
    for one in re.split(r"^(?=\S+: \d+ arms)", printed, flags=re.MULTILINE)[1:]:
        dataset, horizon = re.search(r"(.+?): .*\n.*, (\d+) duels a run", one).groups()
        head, rule, *body = one.strip().partition("\n\n")[2].split("\n")
        places = [(place.start(), place.end()) for place in re.finditer("-+", rule)]
        columns, *rows = [
            [line[start:end].strip() for start, end in places] for line in [head, *body]
        ]
        found += [[dataset, f"{int(horizon):,}", f"`{row[0]}`", *row[1:]] for row in rows]
    columns = ["dataset", "T", *columns]
    shown = [
        n
        for n, column in enumerate(columns)
        if not column.startswith("µs") and (n > 1 or len({row[n] for row in found}) > 1)
    ]
    return [pages.table([columns[n] for n in shown], [[row[n] for n in shown] for row in found])]


def built_in() -> list[pages.Part]:
    """The built-in problems."""
    rows = []
    for name in datasets.names():
        problem = datasets.load(name)
        told = ["none", "", ""]
        if problem.has_winner:
            gap = min(gap for gap in problem.gaps if gap > 0)
            told = [problem.arms[problem.winner], str(problem.winner), f"{gap:.4f}"]
        title = datasets.describe(name).title
        rows.append([f"`{name}`", str(problem.n_arms), *told, title[0].lower() + title[1:]])
    return [pages.table(["name", "K", "winner", "index", "smallest gap", "what it is"], rows)]


@dataclass(frozen=True)
class Literal(duelay.Policy):
    """RUCB-Delay with the second arm of the paper's text: v maximises U_uv; else as the proof."""

    is_literal: bool = True
    window: int | None = 1000

    def ledger(self, n_arms: int) -> ledger.Ledger:
        """Assume the true law."""
        return ledger.open_ledger(ledger.assume(LAW, self.window, n_arms), n_arms)

    def choose(self, ledger: ledger.Ledger, t: int, rng: np.random.Generator) -> tuple[int, int]:
        """Lines 6 to 13 without B, which matters little."""
        n, heard, wins, _ = ledger.estimates()
        with np.errstate(divide="ignore", invalid="ignore"):
            bound = np.where(heard > 0, (wins + np.sqrt(n * np.log(t))) / heard, np.inf)
        np.fill_diagonal(bound, 0.5)
        pool = np.flatnonzero((bound >= 0.5).all(axis=1))
        first = rng.choice(pool if len(pool) else len(bound))
        able = bound[first] if self.is_literal else bound[:, first]
        best = np.flatnonzero(able == able.max())
        if len(best) > 1:
            best = best[best != first]
        return first, rng.choice(best)


def second_arm() -> list[pages.Part]:
    """Note 1: the second arm of the text, and of the proof."""
    rows = []
    for is_literal, words in ((True, "v maximises U_uv: the text"), (False, "U_vu: the proof")):
        result = duelay.simulate(
            datasets.load("mslr"), Literal(is_literal), delay=LAW, horizon=20_000, runs=2
        )
        itself = result.plays[:, 0, 0].sum() / result.plays.sum()
        rows.append([words, f"{result.final.mean():,.0f}", f"{late_share(result).value:.2f}",
                     f"{100 * itself:.0f} %"])  # fmt: skip
    columns = ["second arm", "regret", "share in second half", "the winner against itself"]
    return [pages.table(columns, rows)]


def numbering() -> list[pages.Part]:
    """Note 6: the same arms numbered the other way round, and smaller constants."""
    rows = []
    as_it_is = datasets.load("six-rankers")
    turned = duelay.Problem(as_it_is.matrix[::-1, ::-1], as_it_is.arms[::-1], name="turned")
    for words, problem, constants in (
        ("the winner has the smallest index", as_it_is, (0.5, 0.1, 0.1)),
        ("the winner has the largest index", turned, (0.5, 0.1, 0.1)),
        ("the smallest, constants 0.1, 0.1 and 0.1", as_it_is, (0.1, 0.1, 0.1)),
    ):
        policy = duelay.MRRDBDelay(constants=constants)
        result = duelay.simulate(problem, policy, delay=LAW, horizon=200_000, runs=200)
        rows.append([words, f"{result.final.mean():,.0f}", f"{100 * result.led_by_winner:.1f} %"])
    return [pages.table(["six rankers", "regret", "led by the winner"], rows)]


def bias() -> list[pages.Part]:
    """Note 11: how far mu^ is off on average where pairs are chosen by what has been heard."""
    problems = [datasets.load(name) for name in ("six-rankers", "mslr", "tennis")]
    rows = [
        [words, *(f"{largest_bias(policy, problem):.3f}" for problem in problems)]
        for words, policy in {
            "RR-DB-Delay": duelay.RRDBDelay(),
            "RUCB-Delay": duelay.RUCBDelay(),
            "double Thompson sampling, told the law": duelay.DoubleThompson(LAW, window=1000),
            "what `recommend()` gives": duelay.recommend(window=1000).policy,
        }.items()
    ]
    return [pages.table(["policy", *(problem.name for problem in problems)], rows)]


def largest_bias(policy: duelay.Policy, problem: duelay.Problem, t: int = 1000) -> float:
    """Return the largest |E mu^_wi - mu_wi| over the arms i, w the winner, from 500 runs."""
    world, k = make_world(problem, LAW, policy.window, t), problem.n_arms
    seen = []
    for number in range(500):
        rule, ledger = policy.rule(k), policy.ledger(k)
        recorder = new_recorder(problem.gaps, np.array([t]))
        run_ticks(rule, ledger, False, with_empty_queue(world), recorder, t, *streams(0, number))
        seen.append(ledger.estimates().mean[problem.winner])
    off = np.nanmean(seen, axis=0) - problem.matrix[problem.winner]
    return float(np.abs(off).max())


def limits() -> list[pages.Part]:
    """What no policy can have less than, beside what `recommended.py` has measured."""
    (measured,) = pages.kept("recommended")["parts"]
    rows = []
    for dataset, regret, *_ in measured["rows"][:-1]:
        bound = finite_lower_bound(datasets.load(dataset), 200_000)
        rows.append(
            [dataset, f"{int(bound)}", regret, f"{float(regret) / bound:.0f} times as much"]
        )
    columns = ["dataset", "no policy has less than", "recommended", "that is"]
    return [pages.table(columns, rows)]


def two_arm_limits() -> list[pages.Part]:
    """Two arms: the bound, the best policy, and ours."""
    horizon, runs, gaps = 5000, 400, (0.05, 0.1, 0.2)
    both = [[duelay.Problem([[0.5, 0.5 + g], [0.5 - g, 0.5]]) for g in (d, -d)] for d in gaps]
    bounds = [finite_lower_bound(one, horizon) for one, _ in both]
    best = [bayes_optimal_regret(problems, horizon) for problems in [*both, sum(both, [])]]
    policy, law = duelay.recommend().policy, delays.Constant(1)
    ours = np.array([
        duelay.simulate(one, policy, delay=law, horizon=horizon, runs=runs, seed=7).final
        for one, _ in both
    ])  # fmt: skip
    means, errors = ours.mean(axis=1), ours.std(axis=1, ddof=1) / np.sqrt(runs)
    names = [*map(str, gaps), "one of the three, each as likely"]
    bounds.append(np.mean(bounds))
    means, errors = np.append(means, means.mean()), np.append(errors, np.hypot.reduce(errors) / 3)
    rows = [
        [name, f"{bound:.1f}", f"{least:.1f}", f"{mean:.1f} ± {error:.1f}"]
        for name, bound, least, mean, error in zip(names, bounds, best, means, errors, strict=True)
    ]
    columns = ["gap", "no policy has less than", "the best policy has", "recommended"]
    return [pages.table(columns, rows)]


MAKERS: dict[str, Callable[[], list[pages.Part]]] = {
    "built-in": built_in,
    "second-arm": second_arm,
    "numbering": numbering,
    "bias": bias,
    "limits": limits,
    "two-arm-limits": two_arm_limits,
}


def quick() -> dict[str, str]:
    """Return the names of the blocks that are made here, each with its command."""
    return {
        block.name: block.command
        for block in pages.blocks()
        if block.command in (ABOVE, "python -m benchmarks numbers")
    }


def make(name: str) -> list[pages.Part]:
    """Make the parts of a block anew."""
    if name in MAKERS:
        return MAKERS[name]()
    block = next(block for block in pages.blocks() if block.name == name)
    return from_commands(block.page.read_text(encoding="utf-8"), name)


def main() -> None:
    """Make the blocks that are named, or all that are quick."""
    for name in sys.argv[1:] or quick():
        print(name, flush=True)
        pages.keep(name, quick()[name], make(name))


if __name__ == "__main__":
    main()
