"""How often `duels_left` contains the true number: ``python -m benchmarks forecast``.

Preferences are drawn from the prior of `standing.chances`, until one arm beats all others. `Decide`
is looked at after 30, 100, 300, ... duels, until it has declared a winner. An experiment that has
declared nobody after 300,000 duels counts as contained where the range goes beyond.
"""

from __future__ import annotations

import numpy as np

import duelay
import pages
from duelay.inference.forecast import MAX_DUELS
from duelay.inference.posterior import draw_posterior

COMMAND = "python -m benchmarks forecast"
LAWS = {"no delay": "constant:1", "mean delay 100": "geometric:0.01",
        "mean delay 1000": "geometric:0.001",
        "mean delay 100, half never answer": "never:0.5,geometric:0.01"}  # fmt: skip
ARMS, LOOKS, LONGEST, RUNS = (2, 4, 8), (30, 100, 300, 1000, 3000, 10_000), 300_000, 100


def from_prior(k: int, rng: np.random.Generator) -> duelay.Problem:
    """Return preferences in which one arm beats all others."""
    while True:
        strength, own = rng.normal(0, 0.1, k), np.triu(rng.normal(0, 0.05, (k, k)), 1)
        gaps = strength[:, None] - strength + own - own.T
        if ((gaps > 0) | np.eye(k, dtype=bool)).all(axis=1).any():
            return duelay.Problem(np.clip(0.5 + gaps, 0.02, 0.98))


def is_inside(k: int, law: str, seed: int) -> list[bool]:
    """Return whether the range is right at each look at an experiment."""
    problem = from_prior(k, np.random.default_rng([k, seed]))

    def run(horizon: int) -> duelay.Result:
        return duelay.simulate(
            problem, duelay.Decide(), delay=law, horizon=horizon, runs=1, seed=seed, stop=0.05,
            checkpoints=1, workers=1,
        )  # fmt: skip

    whole, found = run(LONGEST), []
    end, is_ended = int(whole.stopped[0]), bool(whole.is_declared[0])
    for look in LOOKS:
        if look >= end:
            break
        then = run(look)
        evidence, leader = then.paths[0], max(int(then.leader[0]), 0)
        left = draw_posterior(
            evidence.lead, evidence.n, leader, evidence, np.ones(k, dtype=bool)
        ).duels_left
        if left is not None:
            high = np.inf if left.high == MAX_DUELS else left.high
            found.append(high >= end - look and (left.low <= end - look or not is_ended))
    return found


def main() -> None:
    """Simulate, and write the table."""
    rows = []
    for name, law in LAWS.items():
        cells = [np.mean([x for seed in range(RUNS) for x in is_inside(k, law, seed)])
                 for k in ARMS]  # fmt: skip
        rows.append([name, *(f"{100 * cell:.0f} %" for cell in cells)])
        print(*rows[-1], flush=True)
    pages.keep("forecast", COMMAND, [pages.table(["", *(f"{k} arms" for k in ARMS)], rows)])


if __name__ == "__main__":
    main()
