"""Who is shown first by coin, or in turns? Double Thompson sampling with a learned law, 1000 runs.

    python benchmarks/coin_or_turns.py [RUNS]

prints a row for each law and dataset: mean regret with its standard error, the 99th percentile and
the worst run of either, and by how many standard errors the means differ.
"""

from __future__ import annotations

import sys

import numpy as np
from tqdm import tqdm

import duelay

LAWS = ("geometric:0.01", "never:0.3,geometric:0.01", "geometric:0.001")
DATASETS = ("six-rankers", "mslr", "tennis", "arithmetic", "car", "sushi")
HORIZON = 200_000


def compare(law: str, dataset: str, runs: int) -> list[str]:
    """Return a row of the table."""
    finals = [
        duelay.simulate(
            duelay.datasets.load(dataset), duelay.DoubleThompson(delay="learn", order=order),
            delay=law, horizon=HORIZON, runs=runs, seed=77, progress=False,
        ).final
        for order in ("coin", "alternate")
    ]  # fmt: skip
    errors = [final.std(ddof=1) / np.sqrt(runs) for final in finals]
    apart = (finals[0].mean() - finals[1].mean()) / np.hypot(*errors)
    row = [law, dataset]
    for final, error in zip(finals, errors, strict=True):
        row += [f"{final.mean():.1f} ± {error:.1f}"]
        row += [f"{np.quantile(final, 0.99):,.0f}", f"{final.max():,.0f}"]
    return [*row, f"{apart:+.1f}"]


def main() -> None:
    """Print the table."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    cells = [(law, dataset) for law in LAWS for dataset in DATASETS]
    rows = [compare(*cell, runs) for cell in tqdm(cells, leave=False, disable=None)]
    head = ["delay", "dataset", "coin", "99 %", "worst", "turns", "99 %", "worst", "apart"]
    for row in [head, ["---"] * len(head), *rows]:
        print(f"| {' | '.join(row)} |")


if __name__ == "__main__":
    main()
