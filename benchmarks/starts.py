"""How long a new process takes to its first answer: medians of seven processes, on one core.

    python benchmarks/starts.py [--processes N] [--write]

Either with nothing compiled on disk, or with all of it. How long importing numba takes is measured
in every process, and is the yardstick. With --write the table of docs/benchmarks.md is written
anew.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile

import pages
from duelay.show.text_table import table

BEGIN = """
import os, time
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
begin, used = time.perf_counter(), time.process_time()
import numba
imported = time.perf_counter()
import duelay
"""
END = """
print(imported - begin, time.perf_counter() - imported, time.process_time() - used, flush=True)
os._exit(0)  # what a thread still compiles is not the first answer's
"""
ASK = 'duelay.recommend().policy.start(["red", "green", "blue"], seed=0).ask()\n'
SIMULATE = """
duelay.simulate(duelay.datasets.load("six-rankers"), duelay.recommend().policy,
                delay="geometric:0.01", horizon={horizon}, runs={runs},
                setting=duelay.Setting(progress=False))
"""
SHOW = """
player = duelay.recommend().policy.start(["red", "green", "blue"], seed=0)
for _ in range(20):
    player.tell(player.ask())
str(player.standing())
"""
ANSWERS = {
    "a first `ask()` of the recommended policy": ASK,
    "20 duels of it, and its standing printed": SHOW,
    "a first `simulate` of it, 1000 duels": SIMULATE.format(horizon=1000, runs=1),
    "a first `simulate` of it, 20 runs of 100,000": SIMULATE.format(horizon=100_000, runs=20),
}


def median(code: str, processes: int, folder: str | None) -> list[float]:
    """Seconds of importing numba, seconds after that, and of the processor's in all.

    Without a folder every process has an empty one of its own.
    """
    found = []
    for _ in range(processes):
        with tempfile.TemporaryDirectory() as empty:
            done = subprocess.run(
                [sys.executable, "-c", BEGIN + code + END], capture_output=True, text=True,
                check=True, env={**os.environ, "XDG_CACHE_HOME": folder or empty},
            )  # fmt: skip
        found.append([float(word) for word in done.stdout.split()])
    return [statistics.median(column) for column in zip(*found, strict=True)]


def main() -> None:
    """Measure, print, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--processes", type=int, default=7)
    parser.add_argument("--write", action="store_true", help="write the results into the page")
    options = parser.parse_args()
    heads = ["the first answer", "on disk", "importing numba, s", "then, s", "processor, in all, s"]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        median("duelay.warm_up()\n", 1, folder)
        kinds = [("nothing", None), ("what `duelay warm-up` compiles", folder)]
        for name, code in ANSWERS.items():
            for words, place in kinds:
                took = median(code, options.processes, place)
                rows.append([name, words, *(f"{seconds:.2f}" for seconds in took)])
                print(*rows[-1], sep=" | ", file=sys.stderr, flush=True)
    print(table(heads, rows, left=(0, 1)))
    if options.write:
        pages.keep("bench-start", "python -m benchmarks bench", [pages.table(heads, rows)])


if __name__ == "__main__":
    main()
