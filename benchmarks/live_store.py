"""Live experiments: asks and tells a second, false winners, and how soon a true one is found.

    python benchmarks/live_store.py [speed] [growth] [tied] [agreement] [--write]

Stores are files of SQLite, `synchronous=FULL`, in the folder for temporary files; for false winners
and the agreement, in memory where the system has a folder for that. With `--write` the blocks of
docs/benchmarks.md are written anew, those of the parts that are named, or all.
"""

from __future__ import annotations

import heapq
import multiprocessing
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

import duelay
import pages
from duelay.live import Experiment, verify
from duelay.live.writes.requests import Ask, Tell

THREADS = 32
SECONDS = 5.0  # of each measurement
SIZES = (1_000, 10_000, 100_000, 1_000_000)
ARMS = 6
TIED, ERROR, DUELS = 300, 0.2, 600  # experiments, their stated error, duels of each
RUNS = 60  # of the agreement, live
LAW = duelay.delays.parse("never:0.2,(exponential:5m)")
CLEAR = np.array([[0.5, 0.75, 0.8], [0.25, 0.5, 0.6], [0.2, 0.4, 0.5]])
MEMORY = "/dev/shm"  # where a disk is not what is measured
_BEGIN = 1_700_000_000.0  # seconds: when made-up visitors come
_WINDOW = "2h"


def busy(experiment: Experiment, seconds: float = SECONDS) -> float:
    """Return how many asks and tells a second 32 threads get done; half of the duels convert."""
    until, done = time.monotonic() + seconds, [0] * THREADS

    def work(place: int) -> None:
        rng = np.random.default_rng(place)
        while time.monotonic() < until:
            duel = experiment.ask()
            done[place] += 1
            if rng.random() < 0.5:
                experiment.tell(duel)
                done[place] += 1

    threads = [threading.Thread(target=work, args=(place,)) for place in range(THREADS)]
    start = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(done) / (time.monotonic() - start)


def make(folder: Path, name: str = "x", **opened: Any) -> Experiment:
    """Return an experiment that is never decided, warm."""
    store = folder / f"{name}.db"
    experiment = Experiment.create(store, name, ARMS, error=1e-12, **opened)
    experiment.tell(experiment.ask())
    experiment.standing()
    return experiment


def speed(folder: Path) -> list[pages.Part]:
    """Compare commits in groups with one commit each, in turns."""
    each, grouped = make(folder, "each", group=1), make(folder, "grouped")
    found: dict[str, list[float]] = {"one commit each": [], "in groups": []}
    for _ in range(3):
        found["one commit each"].append(busy(each))
        found["in groups"].append(busy(grouped))
    one = float(np.median(found["one commit each"]))
    rows = [[name, f"{np.median(rates):,.0f}", f"{np.median(rates) / one:.1f}"]
            for name, rates in found.items()]  # fmt: skip
    for experiment in (each, grouped):
        assert verify(experiment.store) == ()
    columns = [f"{THREADS} threads, SQLite FULL", "asks and tells a second", "ratio"]
    return [pages.table(columns, rows)]


def fill(experiment: Experiment, n: int) -> None:
    """Let a store have n duels, a third of them answered, in groups of a thousand."""
    writer, rng = experiment._writer, np.random.default_rng(0)
    asked = experiment.standing().tick
    with tqdm(total=n - asked, leave=False, disable=None) as bar:
        while asked < n:
            asks = [Ask(None, None) for _ in range(min(1000, n - asked))]
            writer._commit(list(asks))
            told = [Tell(ask.id, None, None) for ask in asks if rng.random() < 1 / 3]
            writer._commit(list(told))
            asked += len(asks)
            bar.update(len(asks))


def growth(folder: Path, goal: str = "decide") -> list[pages.Part]:
    """Measure one store as it grows, each time beside a new one."""
    rows, experiment = [], make(folder, "grows", goal=goal)
    for size in SIZES:
        fill(experiment, size)
        new = make(folder, f"new{size}", goal=goal)
        pairs = [(busy(new), busy(experiment)) for _ in range(3)]
        slower = float(np.median([small / large for small, large in pairs]))
        start = time.monotonic()
        again = Experiment.open(experiment.store.path, "grows")
        again.ask()
        opened = time.monotonic() - start
        start = time.monotonic()
        str(again.standing())
        looked = time.monotonic() - start
        rate = float(np.median([large for _, large in pairs]))
        rows.append(
            [f"{size:,}", f"{rate:,.0f}", f"{slower:.2f}", f"{opened:.2f}", f"{looked:.2f}"]
        )
        print(rows[-1], flush=True)
    columns = ["duels in the store", "asks and tells a second", "time, to that of a new store",
               "seconds to the first ask", "seconds of a printed standing"]  # fmt: skip
    return [pages.table(columns, rows)]


class Clock:
    """Time that processes share, and that stands until one of them moves it."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __call__(self) -> float:
        return float(self.value.value)

    def pass_by(self, seconds: float) -> float:
        """Let time pass, and return what it is then."""
        with self.value.get_lock():
            self.value.value = round(self.value.value + seconds, 6)
            return float(self.value.value)


def browser(experiment: Experiment, clock: Any, mu: Any, n: int, seed: Any) -> int:
    """Let visitors come until n duels are shown or a winner is declared; return the duels."""
    rng, due = np.random.default_rng(seed), []
    arms = list(experiment.arms)
    for k in range(n):
        now = clock.pass_by(rng.exponential(10.0))
        while due and due[0][0] <= now:
            experiment.tell(heapq.heappop(due)[1], None)
        duel = experiment.ask()
        if duel.settled:
            return k
        if rng.random() < mu[arms.index(duel.first)][arms.index(duel.second)]:
            delay = float(LAW.sample(1, seed=rng)[0])
            if delay < np.inf:
                heapq.heappush(due, (now + delay, duel.id))
    return n


def _half(folder: str, value: Any, place: int, n_experiments: int, gates: Any) -> None:
    """One of two processes: half of the visitors of each experiment, at the same time."""
    clock = Clock(value)
    for k in range(n_experiments):
        gates.wait()
        with Experiment.open(Path(folder) / f"{k}.db", "tied", clock=clock) as experiment:
            browser(experiment, clock, np.full((2, 2), 0.5), DUELS // 2, (place, k))
        gates.wait()


def tied(folder: Path, n_experiments: int = TIED) -> list[pages.Part]:
    """Play tied arms through two processes at once; count the false declarations."""
    context = multiprocessing.get_context("spawn")
    value, gates = context.Value("d", _BEGIN), context.Barrier(3, timeout=600)
    halves = [context.Process(target=_half, args=(str(folder), value, place, n_experiments, gates))
              for place in range(2)]  # fmt: skip
    for half in halves:
        half.start()
    false = firsts = duels = wrong = 0
    for k in tqdm(range(n_experiments), leave=False, disable=None):
        store = folder / f"{k}.db"
        experiment = Experiment.create(store, "tied", ["a", "b"], error=ERROR, window=_WINDOW,
                                       clock=Clock(value))  # fmt: skip
        gates.wait()
        gates.wait()
        standing = experiment.standing()
        false += standing.winner is not None
        firsts += int(standing.plays[0].sum())
        duels += int(standing.plays.sum())
        wrong += len(verify(store))
        experiment.close()
        for path in folder.glob(f"{k}.db*"):
            path.unlink()
    for half in halves:
        half.join()
    most = 100 * (ERROR + 3 * (ERROR * (1 - ERROR) / n_experiments) ** 0.5)
    score = (firsts - duels / 2) / (duels / 4) ** 0.5
    rows = [
        ["experiments, of at most duels", f"{n_experiments}, {DUELS}"],
        ["false declarations", f"{false} ({100 * false / n_experiments:.1f} %)"],
        ["allowed, and with three standard errors", f"{100 * ERROR:g} %, {most:.1f} %"],
        ["duels with either arm first", f"{firsts:,} and {duels - firsts:,}"],
        ["how far from even, in standard errors", f"{score:+.1f}"],
        ["counters that a recount does not confirm", str(wrong)],
    ]  # fmt: skip
    print(rows, flush=True)
    return [pages.table(["two tied arms, two processes", ""], rows)]


class Own:
    """Time of one process."""

    def __init__(self) -> None:
        self.now = _BEGIN

    def __call__(self) -> float:
        return self.now

    def pass_by(self, seconds: float) -> float:
        """Let time pass, and return what it is then."""
        self.now = round(self.now + seconds, 6)
        return self.now


def agreement(folder: Path, runs: int = RUNS) -> list[pages.Part]:
    """Compare duels until declared, live and simulated."""
    problem = duelay.Problem(CLEAR)
    policy = duelay.recommend(goal="decide", window=_WINDOW, self_duels=False).policy
    result = duelay.simulate(problem, policy, delay=LAW, traffic="poisson:10s", horizon=20_000,
                             runs=1000, seed=0, stop=0.05)  # fmt: skip
    live = []
    for k in tqdm(range(runs), leave=False, disable=None):
        clock = Own()
        experiment = Experiment.create(folder / f"live{k}.db", "x", 3, window=_WINDOW, clock=clock)
        live.append(browser(experiment, clock, CLEAR, 20_000, k))
        experiment.close()
    rows, means = [], []
    for name, stopped in (("live", np.array(live)), ("simulated", np.asarray(result.stopped))):
        se = stopped.std(ddof=1) / len(stopped) ** 0.5
        means.append((stopped.mean(), se))
        rows.append([name, str(len(stopped)), f"{stopped.mean():,.0f}", f"{se:.0f}"])
    (a, x), (b, y) = means
    score = (a - b) / (x * x + y * y) ** 0.5
    print(rows, score, flush=True)
    words = f"The two means are {abs(score):.1f} standard errors apart."
    return [pages.table(["", "runs", "duels until declared", "standard error"], rows),
            pages.text(words)]  # fmt: skip


PARTS = {"speed": speed, "growth": growth, "tied": tied, "agreement": agreement}


def main() -> None:
    """Measure what is named, or all."""
    names = [name for name in PARTS if name in sys.argv[1:]] or list(PARTS)
    for name in names:
        quick = MEMORY if name in ("tied", "agreement") and Path(MEMORY).is_dir() else None
        with tempfile.TemporaryDirectory(dir=quick) as folder:
            parts = PARTS[name](Path(folder))
        pages.show(f"live-{name}", "live", parts)


if __name__ == "__main__":
    main()
