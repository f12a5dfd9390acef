"""How good `duelay.recommend()` is: against RUCB-Delay, which knows the law, and the lower bound.

    python benchmarks/recommended.py

writes the tables of docs/choosing.md, from 100 runs (minutes);
`tests/test_recommendation.py` holds the same numbers to their bars.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

import duelay
import pages
import quick_numbers
from duelay import delays

LAW = delays.Geometric(0.01)
SIX = ("six-rankers", "mslr", "tennis", "arithmetic", "car", "sushi")
COMMAND = "python -m benchmarks regrets"


class Measured(NamedTuple):
    """What was measured on one dataset under one law."""

    dataset: str
    law: delays.Law
    horizon: int
    regret: float
    worst: float
    led: float  # the share of runs that the winner leads in the end
    times: float = math.nan  # RUCB-Delay's regret as a multiple
    of_bound: float = math.nan  # as a multiple of the asymptotic lower bound without delay


def measure(
    dataset: str, policy: duelay.Policy, runs: int, law: delays.Law = LAW, horizon: int = 200_000
) -> Measured:
    """Return what a policy does on a dataset."""
    problem = duelay.datasets.load(dataset)
    result = duelay.simulate(problem, policy, delay=law, horizon=horizon, runs=runs, seed=7)
    mean, worst = float(result.final.mean()), float(result.final.max())
    return Measured(dataset, law, horizon, mean, worst, result.led_by_winner)


def in_the_papers_setting(runs: int) -> list[Measured]:
    """Geometric 0.01, a window of 1000: the six datasets of the paper."""
    found = []
    for dataset in SIX:
        ours = measure(dataset, duelay.recommend(window=1000).policy, runs)
        theirs = measure(dataset, duelay.RUCBDelay(LAW, window=1000), max(4, runs // 4))
        bound = duelay.theory.asymptotic_lower_bound(duelay.datasets.load(dataset), ours.horizon)
        found.append(ours._replace(times=theirs.regret / ours.regret, of_bound=ours.regret / bound))
    return found


def long_and_silent(runs: int) -> list[Measured]:
    """Where 30 % never answer, and at a mean delay of 1000."""
    policy = duelay.recommend().policy
    return [
        measure("six-rankers", policy, runs, delays.Never(0.3, LAW), 100_000),
        measure("tennis", policy, runs, delays.Geometric(0.001)),
    ]


def mean_times(found: list[Measured]) -> float:
    """The geometric mean, over the datasets, of how many times as much RUCB-Delay has."""
    return float(np.exp(np.mean([np.log(one.times) for one in found])))


def main() -> None:
    """Measure, keep, write the page."""
    found = in_the_papers_setting(100)
    rows = [
        [one.dataset, f"{one.regret:.0f}", f"{one.worst:.0f}", f"{one.times:.1f} times as much",
         f"{one.of_bound:.2f}", f"{100 * one.led:.0f} %"]
        for one in found
    ]  # fmt: skip
    rows.append(["geometric mean", "", "", f"{mean_times(found):.1f} times as much", "", ""])
    columns = ["dataset", "regret", "worst run", "RUCB-Delay has", "of the lower bound",
               "led by the winner"]  # fmt: skip
    pages.keep("recommended", COMMAND, [pages.table(columns, rows)])
    rows = [
        [one.dataset, f"`{one.law}`", f"{one.horizon:,}", f"{one.regret:.0f}", f"{one.worst:.0f}",
         f"{100 * one.led:.0f} %"]
        for one in long_and_silent(100)
    ]  # fmt: skip
    columns = ["dataset", "delay", "T", "regret", "worst run", "led by the winner"]
    pages.keep("long-and-silent", COMMAND, [pages.table(columns, rows)])
    # It quotes the regrets that were just measured.
    pages.keep("limits", "python -m benchmarks numbers", quick_numbers.limits())


if __name__ == "__main__":
    main()
