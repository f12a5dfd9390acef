"""How soon a winner is declared, and how often wrongly: ``python -m benchmarks decide``.

Writes the tables of docs/studies.md that are about deciding. `declared` has the mean number of
duels until a winner is declared, 1000 runs each; `tied` the share of false declarations where two
arms are exactly tied, looked at after every tick, 2000 runs each; `covered` the share of runs in
which every interval held at every tick, 1000 runs each; `broken` what happens where an assumption
does not hold, 50 runs each.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np

import duelay
import pages
from duelay import delays, theory
from duelay.ledger import age_to, hear, record
from duelay.ledger.delay_models.base import advance, convert, enter
from duelay.ledger.evidence.eprocess import start_eprocess
from duelay.ledger.evidence.winner_threshold import NOBODY
from duelay.policies.turn import pick
from duelay.simulation import streams
from duelay.simulation.world import NO_ENTRY, duel, make_world, take_due, with_empty_queue
from duelay.testing.yardsticks import SAVAGE

DATASETS = ("six-rankers", "mslr", "tennis", "arithmetic", "car", "sushi")
ERROR = 0.05
LAWS = {
    "geometric, mean 1": ("constant:1", 1),
    "geometric, mean 100": ("geometric:0.01", 1),
    "geometric, mean 1000": ("geometric:0.001", 1),
    "Zipf": ("zipf:1.2,1000", 1),
    "half never answer": ("never:0.5,geometric:0.01", 1),
    "batches of 100": ("geometric:0.01", 100),
    "bursts of 1000": ("geometric:0.1", 1000),
}
ROWS = {
    "mean delay 100": ("decide", "geometric:0.01"),
    "the same, a winner taken for granted": ("decide:winner_exists=true", "geometric:0.01"),
    "30 % never": ("decide", "never:0.3,geometric:0.01"),
    "mean delay 1000": ("decide", "geometric:0.001"),
    "no delay": ("decide", "constant:1"),
    "mean delay 100, the law told": ("decide:delay=geometric:0.01", "geometric:0.01"),
    "mean delay 1000, the law told": ("decide:delay=geometric:0.001", "geometric:0.001"),
    "RR-DB-Delay, told the law, mean delay 100": ("rr-db-delay", "geometric:0.01"),
    "SAVAGE, put right, no delay": (SAVAGE, "constant:1"),
}


def tied(n_arms: int) -> duelay.Problem:
    """Two arms exactly tied, and others that lose to both."""
    strengths = np.array([1.0, 1.0, *np.linspace(0.5, 0.2, max(n_arms - 2, 0))][:n_arms])
    return duelay.Problem(strengths[:, None] / (strengths[:, None] + strengths), name="tied")


def until_declared(runs: int) -> pages.Part:
    """Mean duels until declared, and the share of wrong declarations."""
    rows = []
    for name, (form, law) in ROWS.items():
        cells = []
        for dataset in DATASETS:
            problem = duelay.datasets.load(dataset)
            known = {"delay": delays.parse(law)}
            policy = duelay.policies.parse(form, known) if isinstance(form, str) else form(**known)
            few = runs if isinstance(policy, duelay.Decide) else runs // 10
            result = duelay.simulate(
                problem, policy, delay=law, horizon=1_000_000, runs=few, seed=0, stop=ERROR,
                checkpoints=1,
            )  # fmt: skip
            wrong = (
                f" ({100 * result.is_wrong.mean():.1f} % wrong)" if result.is_wrong.any() else ""
            )
            cells.append(f"{result.stopped.mean():,.0f}{wrong}")
            print(name, dataset, cells[-1], flush=True)
        rows.append([name, *cells])
    problems = [duelay.datasets.load(dataset) for dataset in DATASETS]
    lower = [f"{theory.declaration_lower_bound(problem, ERROR):,.0f}" for problem in problems]
    fixed = [f"{theory.fixed_sample(problem, ERROR):,.0f}" for problem in problems]
    rows.append(["lower bound of any rule, no delay", *lower])
    rows.append(["a fixed sample of all pairs at 95 % power, told the gap", *fixed])
    return pages.table(["", *DATASETS], rows)


@numba.njit(nogil=True)
def watch(
    rule: Any, ledger: Any, eprocess: Any, world: Any, mu: Any, log_many: float, horizon: int,
    batch: int, world_rng: Any, policy_rng: Any,
) -> Any:  # fmt: skip
    """Play a policy, bet beside it, and look at every tick.

    Returns the first tick at which somebody is declared, and the first at which an interval misses.
    """
    declared, missed, heard, booked = 0, 0, 0, np.zeros(mu.shape)
    base = 2.0 * math.lgamma(0.5)
    for t in range(1, horizon + 1):
        if (t - 1) % batch == 0:
            for due in range(heard + 1, t + 1):
                entry = take_due(world, due)
                while entry != NO_ENTRY:
                    i, j, born = world.first[entry], world.second[entry], world.born[entry]
                    hear(ledger, i, j, born, t)
                    convert(eprocess, born, t)
                    entry = take_due(world, due)
            heard = t
        age_to(ledger, t)
        advance(eprocess, t)
        for i in range(mu.shape[0]):
            for j in range(i):
                n, wins = eprocess.wins[i, j] + eprocess.wins[j, i], eprocess.wins[i, j]
                if missed > 0 or n == booked[i, j]:
                    continue
                booked[i, j] = n
                ratio = (
                    math.lgamma(wins + 0.5) + math.lgamma(n - wins + 0.5) - math.lgamma(n + 1.0)
                    - base - wins * math.log(mu[i, j]) - (n - wins) * math.log(mu[j, i])
                )  # fmt: skip
                if ratio >= log_many:
                    missed = t
        if eprocess.winner[0] != NOBODY and declared == 0:
            declared = t
        i, j = pick(rule, ledger, t, policy_rng)
        duel(world, i, j, t, world_rng)
        record(ledger, i, j, t)
        enter(eprocess, i, j, t)
    return declared, missed


def beside(policy: Any, problem: Any, law: Any, batch: int, runs: int, horizon: int) -> Any:
    """Shares of runs in which somebody is declared, and in which an interval misses."""
    k = problem.n_arms
    law = delays.check(law, k)
    world = make_world(problem, law, policy.window, horizon, hold=batch)
    log_many = math.log(k * (k - 1) / 2 / ERROR)
    found = np.zeros((runs, 2))
    for run in range(runs):
        found[run] = watch(
            policy.rule(k), policy.ledger(k), start_eprocess(ERROR, policy.window, k),
            with_empty_queue(world), problem.matrix, log_many, horizon, batch, *streams(1, run),
        )  # fmt: skip
    return (found > 0).mean(axis=0)


def false_ones(runs: int, horizon: int) -> pages.Part:
    """Shares of false declarations with two arms tied, and of runs whose intervals all held."""
    rows = []
    for name, (law, batch) in LAWS.items():
        for k in (2, 4, 8):
            cells = []
            for told in (None, law):
                if told is not None and batch > 1:
                    cells.append("-")  # the law is not that of what is heard
                    continue
                result = duelay.simulate(
                    tied(k), duelay.Decide(delay=told), delay=law, horizon=horizon, runs=runs,
                    seed=3, stop=ERROR, checkpoints=1, setting=duelay.Setting(batch=batch),
                )  # fmt: skip
                cells.append(f"{100 * result.is_declared.mean():.2f} %")
            rows.append([name, str(k), *cells])
            print(*rows[-1], flush=True)
    return pages.table(["law", "arms", "declared, though two are tied", "the law told"], rows)


def coverage(runs: int, horizon: int) -> pages.Part:
    """Of each policy by coin: false declarations, and whether all intervals held at all times."""
    rows = []
    chosen = {
        "Decide": duelay.Decide(),
        "double Thompson sampling by coin": duelay.DoubleThompson(),
        "the same, learned law": duelay.DoubleThompson(delay="learn"),
        "the same, in turns": duelay.DoubleThompson(delay="learn", order="alternate"),
        "RMED by coin": duelay.RMED(),
        "RUCB by coin": duelay.RUCB(order="coin"),
    }
    for name, policy in chosen.items():
        for law in ("geometric:0.01", "geometric:0.001", "never:0.5,geometric:0.01"):
            declared, missed = beside(policy, tied(4), law, 1, runs, horizon)
            rows.append([name, law, f"{100 * declared:.1f} %", f"{100 * (1 - missed):.1f} %"])
            print(*rows[-1], flush=True)
    return pages.table(
        ["policy", "law", "declared, though two are tied", "all intervals held"], rows
    )


def play(
    problem: Any,
    law: Any,
    seed: int,
    horizon: int,
    again: int = 1,
    slow: Any = None,
    told: Any = None,
) -> duelay.Player:
    """Play `Decide` live, until it declares; each visitor answers `again` duels with one taste.

    With `slow`, the law of every second visitor, arms 0 and 1 are tied in all, and quick visitors
    prefer arm 0 as much as slow ones arm 1.
    """
    k, rng = problem.n_arms, np.random.default_rng(seed)
    player = duelay.Decide(delay=told).start(k, seed=seed)
    due: dict[int, list[duelay.Duel]] = {}
    for t in range(horizon):
        for one in due.pop(t, []):
            player.tell(one)
        if t % again == 0:
            taste = rng.random((k, k))
            taste = np.where(np.tri(k, dtype=bool), 1.0 - taste.T, taste)  # the same either way
        one = player.ask()
        if one.first == one.second:
            break
        mu, mine = problem.matrix[one.first, one.second], law.at(one.first, one.second)
        if slow is not None:
            is_slow = rng.random() < 0.5
            mine = slow if is_slow else mine
            if max(one.first, one.second) == 1:
                mu = 0.35 if is_slow == (one.first == 0) else 0.65
        if taste[one.first, one.second] < mu:
            delay = mine.sample(seed=rng)
            if math.isfinite(delay):
                due.setdefault(t + int(delay), []).append(one)
    return player


def broken(runs: int, horizon: int, arms: tuple[int, ...] = (2, 4)) -> pages.Part:
    """False declarations where an assumption does not hold, and how often a test alarms then."""
    rows = []
    plain, slow = delays.Geometric(0.1), delays.Geometric(0.02)

    def less(k: int) -> delays.ByPair:
        return delays.ByPair.of(k, lambda i, j: plain if i else delays.Never(0.1, plain))

    def by_pair(k: int) -> delays.ByPair:
        return delays.ByPair.of(k, lambda i, j: delays.Geometric(0.02 + 0.04 * ((i + j) % 5)))

    for name, law, how in (
        ("all is well", None, {}),
        ("delays differ by pair, which is allowed", by_pair, {}),
        ("one arm's wins are heard 10 % less often", less, {}),
        ("every visitor answers two duels in a row", None, {"again": 2}),
        ("every visitor answers five duels in a row", None, {"again": 5}),
        ("slow visitors, of another taste, take 5 times as long", None, {"slow": slow}),
        ("the same, 50 times as long", None, {"slow": delays.Geometric(0.002)}),
        ("a law is told that takes 5 times as long", None, {"told": slow}),
    ):
        for k in arms:
            declared = alarmed = named = 0
            for seed in range(runs):
                world = delays.ByPair.of(k, lambda i, j: plain) if law is None else law(k)
                standing = play(tied(k), world, seed, horizon, **how).standing()
                declared += standing.winner is not None
                alarmed += bool(standing.alarms)
                named += standing.winner is not None and bool(standing.alarms)
            share = f"{100 * named / declared:.0f} %" if declared else "-"
            rows.append(
                [
                    name,
                    str(k),
                    f"{100 * declared / runs:.1f} %",
                    f"{100 * alarmed / runs:.1f} %",
                    share,
                ]
            )
            print(*rows[-1], flush=True)
    columns = ["", "arms", "declared, though two are tied", "a test alarms", "of those declared"]
    return pages.table(columns, rows)


def main() -> None:
    """Make the tables that are asked for."""
    makers = {
        "declared": lambda part: until_declared(1000 // part),
        "tied": lambda part: false_ones(2000 // part, 20_000),
        "covered": lambda part: coverage(1000 // part, 10_000),
        "broken": lambda part: broken(50 // part, 5000),
    }
    pages.make_tables("decide", makers)


if __name__ == "__main__":
    main()
