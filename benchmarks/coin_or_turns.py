"""Who is shown first by coin, or in turns? Double Thompson sampling with a learned law.

    python benchmarks/coin_or_turns.py [RUNS]

A row for each law and dataset: mean regret with its standard error, the 99th percentile and the
worst run of either, and by how many standard errors the means differ. It is written into the docs
(`pages`).
"""

from __future__ import annotations

import sys

import numpy as np
from tqdm import tqdm

import duelay
import pages

LAWS = ("geometric:0.01",)
DATASETS = ("six-rankers", "mslr", "tennis", "arithmetic", "car", "sushi")
HORIZON = 200_000


def row(law: str, dataset: str, finals: list[np.ndarray]) -> list[str]:
    """Return a row of the table from the final regrets by coin and in turns."""
    errors = [final.std(ddof=1) / np.sqrt(len(final)) for final in finals]
    apart = (finals[0].mean() - finals[1].mean()) / np.hypot(*errors)
    shown = [f"`{law}`", dataset]
    for final, error in zip(finals, errors, strict=True):
        shown += [f"{final.mean():.1f} ± {error:.1f}"]
        shown += [f"{np.quantile(final, 0.99):,.0f}", f"{final.max():,.0f}"]
    return [*shown, f"{apart:+.1f}"]


def main() -> None:
    """Make the table."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    cells = [(law, dataset) for law in LAWS for dataset in DATASETS]
    rows = []
    for law, dataset in tqdm(cells, leave=False, disable=None):
        finals = [
            duelay.simulate(
                duelay.datasets.load(dataset), duelay.DoubleThompson(delay="learn", order=order),
                delay=law, horizon=HORIZON, runs=runs, seed=77,
                setting=duelay.Setting(progress=False),
            ).final
            for order in ("coin", "alternate")
        ]  # fmt: skip
        rows.append(row(law, dataset, finals))
    columns = ["delay", "dataset", "coin", "99 %", "worst", "turns", "99 %", "worst", "apart"]
    pages.keep("coin-or-turns", "python -m benchmarks turns", [pages.table(columns, rows)])


if __name__ == "__main__":
    main()
