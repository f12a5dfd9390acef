"""How long a simulated duel takes, on one core, against the plain way and against others.

    python benchmarks/duel_cost.py [--runs N] [--horizon T] [--peers] [--write]

Numbers of one machine at one moment: compare them as ratios within a run. With --write they are
kept in docs/numbers and written into docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import functools
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np

import duelay
import pages
from duelay import delays
from duelay.problems import bradley_terry, close_rival
from duelay.show.text_table import table
from duelay.simulation import streams
from duelay.simulation.loops.recorder import new_recorder
from duelay.simulation.loops.ticks import run_ticks
from duelay.simulation.world import make_world
from yardsticks import PlainDoubleThompson, PlainRUCBDelay, SamePair, TickByTickRUCBDelay

GEOMETRIC, ZIPF = delays.Geometric(0.01), delays.Zipf(1.2, 1000)
PEER = """
import time, numpy as np
from duelpy.algorithms import RelativeUCB
from duelpy.feedback import MatrixFeedback
matrix = np.array({matrix})
algorithm = RelativeUCB(feedback_mechanism=MatrixFeedback(matrix,
                        random_state=np.random.RandomState(0)), time_horizon={horizon},
                        exploratory_constant=1.0, random_state=np.random.RandomState(1))
begin = time.perf_counter()
for _ in range({horizon}):
    algorithm.step()
print((time.perf_counter() - begin) / {horizon} * 1e6)
"""


class Table(NamedTuple):
    """Columns and rows, to be printed and to be kept."""

    columns: list[str]
    rows: list[list[str]]


def cost(problem: Any, policy: Any, law: Any, runs: int, horizon: int) -> float:
    """Microseconds a duel, on one core; the best of three, since the machine is not ours alone."""
    return min(
        duelay.simulate(
            problem, policy, delay=law, horizon=horizon, runs=runs, workers=1, checkpoints=2,
            setting=duelay.Setting(progress=False, cautious=False),
        ).microseconds
        for _ in range(3)
    )  # fmt: skip


def against_the_plain_way(runs: int, horizon: int) -> Table:
    """Each policy beside its yardstick."""
    rows = []
    for dataset in ("six-rankers", "sushi"):
        problem = duelay.datasets.load(dataset)
        geometric = None
        for name, law, fast, plain in (
            ("RUCBDelay, plain: a K² loop", GEOMETRIC, duelay.RUCBDelay, PlainRUCBDelay),
            ("the same", ZIPF, duelay.RUCBDelay, PlainRUCBDelay),
            ("DoubleThompson, plain: all Betas", GEOMETRIC, duelay.DoubleThompson,
             PlainDoubleThompson),
        ):  # fmt: skip
            told: dict[str, Any] = {"window": 1000}
            if fast is duelay.RUCBDelay:
                told["delay"] = law
            ours = cost(problem, fast(**told), law, runs, horizon)
            theirs = cost(problem, plain(**told), law, max(1, runs // 3), horizon)
            geometric = geometric or ours
            rows.append(
                [dataset, str(problem.n_arms), name, str(law), f"{ours:.4f}", f"{theirs:.3f}",
                 f"{theirs / ours:.1f}", f"{ours / geometric:.2f}"]
            )  # fmt: skip
        for policy in (
            duelay.RUCB(alpha=1.0),
            duelay.RRDBDelay(delay=GEOMETRIC),
            duelay.recommend(window=1000).policy,
            duelay.RMED(window=1000),
            duelay.MRRDBDelay(constants=(0.5, 0.1, 0.1)),
        ):
            ours = cost(problem, policy, GEOMETRIC, max(1, runs // 3), horizon)
            rows.append(
                [dataset, str(problem.n_arms), str(policy), str(GEOMETRIC), f"{ours:.4f}", "", "",
                 f"{ours / (geometric or ours):.2f}"]
            )  # fmt: skip
    heads = ["dataset", "K", "policy", "law", "µs a duel", "plain", "times", "of the first"]
    return Table(heads, rows)


def second_million(problem: Any, policy: Any) -> float:
    """Seconds for a million ticks, that is microseconds a tick, after a million."""
    rule, ledger = policy.rule(problem.n_arms), policy.ledger(problem.n_arms)
    world = make_world(problem, GEOMETRIC, policy.window, 2_000_000)
    recorder = new_recorder(problem.gaps, np.array([2_000_000]))
    rngs = streams(0, 0)
    run_ticks(rule, ledger, False, world, recorder, 1_000_000, *rngs)
    begin = time.perf_counter()
    run_ticks(rule, ledger, False, world, recorder, 2_000_000, *rngs)
    return time.perf_counter() - begin


def growth() -> Table:
    """RUCB-Delay as K, T and the window grow."""
    rows = []
    for k in (10, 50, 200):
        problem = close_rival(k, 0.5, 0.5)
        seconds = second_million(problem, duelay.RUCBDelay(window=1000))
        rows.append(["arms", f"{k}", "1 to 2 million", "1000", f"{seconds:.4f}"])
        seconds = second_million(problem, TickByTickRUCBDelay(window=1000))
        rows.append(["the same, every tick looked at", f"{k}", "", "", f"{seconds:.4f}"])
    problem = duelay.datasets.load("six-rankers")
    for horizon in (10**5, 10**6, 10**7, 10**8, 10**9):
        policy = duelay.RUCBDelay(window=1000)
        result = duelay.simulate(
            problem, policy, delay=GEOMETRIC, horizon=horizon, workers=1,
            setting=duelay.Setting(progress=False),
        )  # fmt: skip
        rows.append(["horizon", "6", f"{horizon:,}", "1000", f"{result.microseconds:.4f}"])
    for window in (10**2, 10**3, 10**4, 10**5):  # a duel of two arms every tick
        law = delays.Geometric(min(0.5, 3 / window))  # so that the window's end matters
        policy = SamePair(delay=law, window=window)
        took = cost(problem, policy, law, 1, 10**6)
        rows.append(["window", "6", "1,000,000", f"{window:,}", f"{took:.4f}"])
    return Table(["grows", "K", "T", "window", "µs a duel"], rows)


def profile(runs: int, horizon: int) -> Table:
    """Where the time goes: one thing more in each line."""
    problem = duelay.datasets.load("six-rankers")
    rows = []
    for name, policy in (
        ("the world and the loop: self-duels", SamePair(second=0, order="champion", window=1000)),
        ("and duels of two arms", SamePair(order="champion", window=1000)),
        ("and a coin for the order", SamePair(window=1000)),
        ("and a geometric ledger", SamePair(delay=GEOMETRIC, window=1000)),
        ("and a learned one, all duels open", SamePair(delay="learn", window=1000)),
        ("and any law's, all duels open", SamePair(delay=ZIPF, window=1000)),
    ):
        rows.append([name, f"{cost(problem, policy, GEOMETRIC, max(1, runs // 3), horizon):.3f}"])
    return Table(["", "µs a duel"], rows)


def asks(n: int = 3000) -> Table:
    """A live ask, beside two arms that NumPy draws."""
    rows = []
    for dataset in ("six-rankers", "sushi"):
        problem = duelay.datasets.load(dataset)
        policy = duelay.recommend(window=1000).policy
        rng = np.random.default_rng(0)
        k = problem.n_arms
        draw = functools.partial(rng.choice, k, 2, replace=False)
        player = policy.start(k, seed=1)
        due: dict[int, list[int]] = {}
        took: list[list[float]] = [[], []]
        for t in range(2 * n):  # the first half compiles, and warms up
            for duel in due.pop(t, ()):
                player.tell(duel)
            begin = time.perf_counter()
            chosen = player.ask()
            between = time.perf_counter()
            draw()
            took[0].append(between - begin)
            took[1].append(time.perf_counter() - between)
            if rng.random() < problem.matrix[chosen.first, chosen.second]:
                due.setdefault(t + int(rng.geometric(0.01)), []).append(chosen.id)
        ours, drawn = (1e6 * float(np.median(times[n:])) for times in took)
        rows.append([dataset, str(k), f"{ours:.1f}", f"{drawn:.1f}", f"{ours / drawn:.2f}"])
    return Table(["dataset", "K", "µs an ask", "NumPy's two arms", "of that"], rows)


def threads(horizon: int) -> str:
    """One thread and two: the loop holds no lock."""
    problem = duelay.datasets.load("six-rankers")
    took = {}
    for workers in (1, 2):
        begin = time.perf_counter()
        duelay.simulate(
            problem, duelay.DoubleThompson(window=1000), delay=GEOMETRIC, horizon=horizon, runs=40,
            workers=workers, setting=duelay.Setting(progress=False),
        )  # fmt: skip
        took[workers] = time.perf_counter() - begin
    return (
        f"Two threads simulate 40 runs of double Thompson sampling {took[1] / took[2]:.2f} times "
        "as fast as one."
    )


def process_time(problem: Any, policy: Any, horizon: int) -> float:
    """Microseconds a duel of the first `horizon`, by the time of the processor; the best of two."""
    found = []
    for _ in range(2):
        rule, ledger = policy.rule(problem.n_arms), policy.ledger(problem.n_arms)
        world = make_world(problem, GEOMETRIC, policy.window, horizon)
        recorder, rngs = new_recorder(problem.gaps, np.array([horizon])), streams(0, 0)
        run_ticks(rule, ledger, False, world, recorder, 1, *rngs)  # compiles
        begin = time.process_time()
        run_ticks(rule, ledger, False, world, recorder, horizon, *rngs)
        found.append((time.process_time() - begin) / (horizon - 1) * 1e6)
    return min(found)


def megabytes(state: Any) -> float:
    """What the arrays of a rule and a ledger take."""
    if isinstance(state, tuple):
        return sum(megabytes(part) for part in state)
    return state.nbytes / 1e6 if isinstance(state, np.ndarray) else 0.0


def many_arms() -> Table:
    """Five strong arms among weak ones, as a multiple of RUCB-Delay on six rankers in one run."""
    six = duelay.datasets.load("six-rankers")
    unit = process_time(six, duelay.RUCBDelay(GEOMETRIC, window=1000), 200_000)
    recommended, rows = duelay.recommend(window=1000).policy, []
    for policy, k, horizon in (
        (duelay.Decide(window=1000), 6, 5000),
        (duelay.Decide(window=1000), 16, 5000),
        (duelay.DoubleThompson(), 200, 20_000),
        (recommended, 200, 20_000),
        (PlainDoubleThompson(), 200, 200),
        (recommended, 1000, 500),
    ):
        problem = bradley_terry([4.0, 3.0, 2.5, 2.0, 2.0] + [1.0] * (k - 5))
        found = process_time(problem, policy, horizon)
        name = "all Betas drawn" if isinstance(policy, PlainDoubleThompson) else str(policy)
        state = (policy.rule(k), policy.ledger(k))
        rows.append(
            [name, f"{k}", f"{horizon:,}", f"{found:.3g}", f"{found / unit:,.0f}",
             f"{megabytes(state):.1f}"]
        )  # fmt: skip
    return Table(["policy", "K", "first duels", "µs a duel", "times RUCB-Delay", "MB"], rows)


def peers() -> str:
    """duelpy's RUCB without delay, in an environment of its own."""
    problem = duelay.datasets.load("six-rankers")
    with tempfile.TemporaryDirectory() as folder:
        own = Path(folder) / "venv"
        python = own / "bin" / "python"
        try:
            subprocess.run([sys.executable, "-m", "venv", own], check=True, capture_output=True)
            subprocess.run(
                [
                    python,
                    "-m",
                    "pip",
                    "install",
                    "--quiet",
                    "duelpy",
                    "numpy<1.24",
                ],  # it needs np.float
                check=True,
                capture_output=True,
                timeout=600,
            )
            code = PEER.format(matrix=problem.matrix.tolist(), horizon=5000)
            done = subprocess.run(
                [python, "-c", code], check=True, capture_output=True, text=True, timeout=600
            )
        except (subprocess.SubprocessError, OSError) as error:
            print(getattr(error, "stderr", error), file=sys.stderr)
            return "duelpy could not be installed or run here, and is left out."
    theirs = float(done.stdout)
    ours = cost(problem, duelay.RUCB(alpha=1.0), delays.Constant(1), 10, 5000)
    return (
        f"RUCB (alpha 1) on six rankers without delay, the first 5000 duels: duelpy {theirs:.0f} "
        f"µs a duel, duelay {ours:.2f} µs, {theirs / ours:.0f} times as fast."
    )


def main() -> None:
    """Measure, print, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--horizon", type=int, default=200_000)
    parser.add_argument("--peers", action="store_true", help="install and time duelpy, too")
    parser.add_argument("--write", action="store_true", help="write the results into the page")
    options = parser.parse_args()
    machine = (
        f"duelay {duelay.__version__}, Python {platform.python_version()}, numba "
        f"{numba.__version__}, numpy {np.__version__}, {platform.system()} {platform.machine()}, "
        f"one core"
    )
    begin = time.perf_counter()
    parts: dict[str, str | Table] = {
        "bench-machine": machine,
        "bench-plain": against_the_plain_way(options.runs, options.horizon),
        "bench-growth": growth(),
        "bench-profile": profile(options.runs, options.horizon),
        "bench-ask": asks(),
        "bench-threads": threads(options.horizon),
        "bench-arms": many_arms(),
    }
    if options.peers:
        parts["bench-peers"] = peers()
    for name, part in parts.items():
        is_table = isinstance(part, Table)
        print(f"{table(*part, left=(0, 2, 3)) if is_table else part}\n")
        if options.write:
            kept = pages.table(*part) if is_table else pages.text(part)
            pages.keep(name, "python -m benchmarks bench", [kept])
    print(f"measured in {time.perf_counter() - begin:.0f} s")


if __name__ == "__main__":
    main()
