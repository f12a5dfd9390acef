"""How often the intervals of `duelay.estimate` cover the truth: the table of docs/howto/log.md.

    python benchmarks/logs.py [--logs 500] [--write]

Each kind of log is made anew, with another truth, as often as is said.
"""

from __future__ import annotations

import argparse

import numpy as np
from joblib import Parallel, delayed

import duelay
import made_logs
import pages

COMMAND = "python -m benchmarks logs"
SHARES = (0.1, 0.3, 0.6, 0.9)  # of the answers that come: the curve is looked at there
FITTED = 5  # every so manieth log has laws fitted to it


def look(kind: str, seed: int) -> tuple[bool, bool, bool, float, float]:
    """Return whether everything is covered, and how far the estimates are off."""
    made = made_logs.make(kind, seed)
    found = duelay.estimate(made.history)
    pairs = ~np.eye(len(made.matrix), dtype=bool)
    is_in = (found.lower <= made.matrix) & (made.matrix <= found.upper)
    is_wrong = found.winner is not None and found.winner != np.argmax(made.matrix.sum(axis=1))
    assert found.delays is not None
    ages = np.asarray(made.law.quantile((1.0 - made.law.never) * np.array(SHARES)))
    tau, error = found.delays.learned.at(ages)
    band = float((np.abs(tau - made.law.cdf(ages)) <= 1.96 * error).mean())
    never = np.nan
    if seed % FITTED == 0:
        low, high = found.delays.fits[0].never_range or (0.0, 1.0)
        never = float(low - 1e-9 <= made.law.never <= high + 1e-9)
    return bool(is_in[pairs].all()), is_wrong, found.winner is not None, band, never


def main() -> None:
    """Make the logs, print the table, and write the page."""
    reader = argparse.ArgumentParser()
    reader.add_argument("--logs", type=int, default=500)
    reader.add_argument("--write", action="store_true")
    told = reader.parse_args()
    rows = []
    for kind in made_logs.LAWS:
        seen = Parallel(n_jobs=2)(delayed(look)(kind, seed) for seed in range(told.logs))
        covered, wrong, declared, band, never = np.array(seen, dtype=np.float64).T
        rows.append(
            [kind, f"{100 * covered.mean():.1f} %", f"{100 * band.mean():.1f} %",
             f"{100 * np.nanmean(never):.0f} %", f"{int(wrong.sum())} of {int(declared.sum())}"]
        )  # fmt: skip
        print(*rows[-1], sep=" | ", flush=True)
    columns = ["log", "all preferences", "the curve, at an age", "share that never answers",
               "wrong winners"]  # fmt: skip
    if told.write:
        pages.keep("logs", COMMAND, [pages.table(columns, rows)])


if __name__ == "__main__":
    main()
