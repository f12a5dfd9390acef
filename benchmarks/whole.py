"""How long the whole of it takes, once each, with nothing compiled: the reproduction, the tests.

    python benchmarks/whole.py [--write]

Beside the seconds stands how many times as long as importing numba that is, measured before and
after each: the yardstick of `starts.py`. With --write the table of docs/benchmarks.md is written
anew, if all of them passed.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import pages
from duelay.show.text_table import table

HEADS = ["the whole of", "s", "processor, s", "importing numba, s", "times that"]
REPRODUCE = [sys.executable, "-m", "duelay", "reproduce", "--quiet", "--out"]


def imports(n: int = 5) -> list[float]:
    """Seconds that new processes take to import numba."""
    found = []
    for _ in range(n):
        begin = time.perf_counter()
        subprocess.run([sys.executable, "-c", "import numba"], check=True)
        found.append(time.perf_counter() - begin)
    return found


def measure(command: list[str]) -> list[str]:
    """Run a command with an empty cache; return its seconds beside the yardstick."""
    plain = {key: value for key, value in os.environ.items() if not key.startswith("MAKE")}
    before = imports()
    with tempfile.TemporaryDirectory() as empty:
        begin, used = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            command, check=True, cwd=pages.ROOT, stdout=sys.stderr,
            env={**plain, "XDG_CACHE_HOME": empty},
        )  # fmt: skip
        seconds, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime
    yardstick = statistics.median(before + imports())
    found = [f"{seconds:.0f}", f"{processor:.0f}", f"{yardstick:.2f}", f"{seconds / yardstick:.0f}"]
    print(*found, sep=" | ", file=sys.stderr, flush=True)
    return found


def main() -> None:
    """Measure, print, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--write", action="store_true", help="write the results into the page")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        rows.append(["`duelay reproduce`", *measure([*REPRODUCE, f"{folder}/here"])])
        rows.append(["`make test`", *measure(["make", "test"])])
    print(table(HEADS, rows, left=(0,)))
    if options.write:
        pages.keep("bench-whole", "python -m benchmarks bench", [pages.table(HEADS, rows)])


if __name__ == "__main__":
    main()
