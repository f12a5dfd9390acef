"""From 5 to 1000 arms: regret, time and memory of policies that know nothing, or the law.

    python benchmarks/scaling.py [FOLDER]

Five strong arms among weak ones (Bradley-Terry), ten duels a pair and at least 50,000, geometric
delays of mean 100. What the folder has (`scaling`, unless told) is not computed again. The table
and the figure of docs/studies.md are written anew.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

import duelay
import pages
from duelay._core.files import write_whole
from duelay.problems import bradley_terry
from duelay.show import figure_style

LAW = "geometric:0.01"
STRONG = (4.0, 3.0, 2.5, 2.0, 2.0)
RUNS = {5: 20, 20: 20, 100: 10, 200: 4, 500: 2, 1000: 1}  # a run of many arms takes minutes
POLICIES = {
    "recommended": "recommended",
    "double Thompson by coin": "double-thompson",
    "RUCB-Delay, told the law": f"rucb-delay:delay={LAW},window=1000",
    "RR-DB-Delay, told the law": f"rr-db-delay:delay={LAW},window=1000",
    "MRR-DB-Delay, brief": "mrr-db-delay:constants=0.5/0.1/0.1",
}

SLOW = ("RUCB-Delay, told the law", "RR-DB-Delay, told the law")  # slow with 1000 arms


def horizon(n_arms: int) -> int:
    """Ten duels a pair, and at least 50,000."""
    return max(50_000, 5 * n_arms * (n_arms - 1))


def megabytes(state: Any) -> float:
    """What the arrays of a rule and a ledger take."""
    if isinstance(state, tuple):
        return sum(megabytes(part) for part in state)
    return state.nbytes / 1e6 if isinstance(state, np.ndarray) else 0.0


def cell(n_arms: int, form: str) -> dict[str, Any]:
    """Simulate one policy among so many arms."""
    strengths = np.array([*STRONG, *[1.0] * (n_arms - len(STRONG))])
    np.random.default_rng(n_arms).shuffle(strengths)  # how arms are numbered must not matter
    problem = bradley_terry(strengths)
    policy = duelay.policies.parse(form)
    result = duelay.simulate(
        problem, policy, delay=LAW, horizon=horizon(n_arms), runs=RUNS[n_arms], seed=7, workers=1,
        checkpoints=2, setting=duelay.Setting(progress=False, cautious=False),
    )  # fmt: skip
    made = policy.for_horizon(horizon(n_arms)) if hasattr(policy, "for_horizon") else policy
    return {
        "final": result.final.tolist(),
        "led": float(np.mean(result.led_by_winner)),
        "microseconds": result.microseconds,
        "megabytes": megabytes((made.rule(n_arms), made.ledger(n_arms))),
    }


def draw(found: dict[str, dict[int, dict[str, Any]]]) -> Any:
    """Regret, time and memory over the number of arms, a line a policy."""
    figure, shown = figure_style.panels(
        1, 3, 3, "Five strong arms among weak ones, ten duels a pair"
    )
    for axes, name, words in zip(
        shown, ("final", "microseconds", "megabytes"),
        ("regret at the end", "µs a duel", "MB of arrays"), strict=True,
    ):  # fmt: skip
        for number, (label, cells) in enumerate(found.items()):
            values = [float(np.mean(one[name])) for one in cells.values()]
            axes.plot(list(cells), values, marker=".", label=label, **figure_style.style(number))
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_title(words, fontsize="medium")
        axes.set_xlabel("arms", fontsize="small")
    figure_style.one_legend(figure, shown[0])
    return figure


def shown_cell(one: dict[str, Any]) -> list[str]:
    """Regret with its standard error, whether the winner led, time and memory, as words."""
    final = np.array(one["final"])
    error = final.std(ddof=1) / math.sqrt(final.size) if final.size > 1 else None
    return [
        f"{final.mean():,.0f}" + ("" if error is None else f" ± {error:,.0f}"),
        f"{100 * one['led']:.0f} %",
        f"{one['microseconds']:.3g}",
        f"{one['megabytes']:.3g}",
    ]


def main() -> None:
    """Compute what is missing, write the page and the figure."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("scaling")
    folder.mkdir(exist_ok=True)
    found: dict[str, dict[int, dict[str, Any]]] = {label: {} for label in POLICIES}
    rows = []
    todo = [
        (n_arms, label, form)
        for n_arms in RUNS
        for label, form in POLICIES.items()
        if n_arms < 1000 or label not in SLOW
    ]
    for n_arms, label, form in tqdm(todo, disable=None):
        kept = folder / f"{n_arms}-{form.partition(':')[0]}.json"
        if not kept.exists():
            write_whole(kept, json.dumps(cell(n_arms, form)).encode())
        one = found[label][n_arms] = json.loads(kept.read_text("utf-8"))
        rows.append(
            [str(n_arms), f"{horizon(n_arms):,}", str(RUNS[n_arms]), label, *shown_cell(one)]
        )
    heads = ["arms", "T", "runs", "policy", "regret", "led", "µs a duel", "MB"]
    figure_style.save(draw(found), pages.ROOT / "docs" / "studies" / "scaling.svg")
    picture = "![Regret, time and memory from 5 to 1000 arms](studies/scaling.svg)"
    parts = [pages.text(picture), pages.table(heads, rows)]
    pages.keep("scaling", "python -m benchmarks scaling", parts)


if __name__ == "__main__":
    main()
