"""What the page of a million duels costs: ``python -m benchmarks page``.

That it does not grow with the duels is tested, by what is counted: `tests/page/test_budget.py`.

It needs a Chromium, as the tests of the page do.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import pages

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from page.browsers import Served, Window, chromium
from page.counting import looks
from page.million import fill, updates

N, ARMS, LOADS = 1_000_000, (6, 300), 7


def measure(folder: Path, k: int) -> list[str]:
    """Return a row: bytes and seconds of a first view, and seconds of updates."""
    experiment = fill(f"sqlite:///{folder}/{k}.db", n=N, k=k)
    with (
        chromium() as browser,
        Served(experiment.store, clock=experiment._writer.clock) as served,
    ):
        views = []
        for _ in range(LOADS):
            window = Window(browser, served.url)
            views.append(window.first_view("/e/million"))
            window.close()
        parts = updates(served.url, experiment, LOADS)
    experiment.close()
    kilobytes, seconds = np.array(views).T
    return [
        f"{N:,}", str(k), f"{kilobytes.max():.0f}", f"{seconds[0]:.2f}",
        f"{np.median(seconds[1:]):.2f}", f"{1000 * np.median(parts):.0f}",
        f"{1000 * np.min(parts):.0f}",
    ]  # fmt: skip


def processor(folder: Path, k: int) -> list[str]:
    """Return a row: milliseconds of the processor for each look in process, the best of some."""
    store, go_on, all_looks = looks(folder / f"looks-{k}.db", N, k)
    best = dict.fromkeys(all_looks, float("inf"))
    for _ in range(LOADS):
        go_on()
        for name, do in all_looks.items():
            begun = time.process_time()
            do()
            best[name] = min(best[name], time.process_time() - begun)
    store.close()
    return [f"{N:,}", str(k), *(f"{1000 * seconds:.0f}" for seconds in best.values())]


def main() -> None:
    """Measure, and keep the table; seconds of the processor are shown alone."""
    with tempfile.TemporaryDirectory() as folder:
        rows = [measure(Path(folder), k) for k in ARMS]
        costs = [processor(Path(folder), k) for k in ARMS]
    columns = ["duels", "arms", "first view, KB over the wire", "loaded, s: the first of all",
               "the others", "an update, ms: median", "best"]  # fmt: skip
    names = ["duels", "arms", "processor, ms: an experiment", "a pair", "the list"]
    print(pages.render([pages.table(names, costs)]))
    pages.show("page", "page", [pages.table(columns, rows)])


if __name__ == "__main__":
    main()
