"""How long a simulated duel takes, on one core, and how long a new process takes to answer.

    python benchmarks/duel_cost.py [--runs N] [--horizon T]

Numbers of one machine at one moment: compare them as ratios within a run.
"""

import argparse
import platform
import subprocess
import sys
import time

import numba
import numpy as np

import duelay
from duelay import delays
from duelay._table import table

START = """
import time; begin = time.perf_counter()
import numba; imported = time.perf_counter()
import duelay
duelay.simulate(duelay.datasets.load("six-rankers"), duelay.RUCBDelay(), delay="geometric:0.01",
                horizon=1000)
print(time.perf_counter() - begin, imported - begin)
"""


def cases():
    geometric, zipf = delays.Geometric(0.01), delays.Zipf(1.2, 1000)
    for dataset in ("six-rankers", "sushi"):
        for law in (geometric, zipf):
            yield dataset, law, duelay.RUCBDelay(delay=law, window=1000, alpha=1.0)
        yield dataset, geometric, duelay.RUCB(alpha=1.0)
        yield dataset, geometric, duelay.RRDBDelay(delay=geometric)
        yield dataset, geometric, duelay.MRRDBDelay(constants=(0.5, 0.1, 0.1))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--horizon", type=int, default=200_000)
    options = parser.parse_args()
    print(
        f"duelay {duelay.__version__}, Python {platform.python_version()}, numba "
        f"{numba.__version__}, numpy {np.__version__}, {platform.machine()}"
    )
    rows, yardstick = [], None
    for dataset, law, policy in cases():
        problem = duelay.datasets.load(dataset)
        result = duelay.simulate(
            problem, policy, delay=law, horizon=options.horizon, runs=options.runs, workers=1
        )
        yardstick = yardstick or result.microseconds
        ratio = f"{result.microseconds / yardstick:.2f}"
        name = type(policy).__name__
        rows.append(
            [dataset, str(problem.n_arms), name, str(law), f"{result.microseconds:.3f}", ratio]
        )
    columns = ["dataset", "arms", "policy", "law", "µs a duel", "ratio"]
    print(table(columns, rows, left=(0, 2, 3)))

    many = 8
    problem = duelay.datasets.load("six-rankers")
    seconds = {}
    for workers in (1, 2):
        start = time.perf_counter()
        duelay.simulate(
            problem,
            duelay.RUCBDelay(),
            delay="geometric:0.01",
            horizon=options.horizon,
            runs=many,
            workers=workers,
        )
        seconds[workers] = time.perf_counter() - start
    print(f"\n{many} runs with 2 threads: {seconds[1] / seconds[2]:.2f} times as fast as with 1")

    done = subprocess.run([sys.executable, "-c", START], capture_output=True, text=True, check=True)
    total, numba_alone = map(float, done.stdout.split())
    print(
        f"a new process answers after {total:.2f} s from the cache, "
        f"{numba_alone:.2f} s of it importing numba"
    )


if __name__ == "__main__":
    main()
