"""One arm at a time, against the tests that are in use: ``python -m benchmarks abtest``.

Writes three tables of docs/howto/ab-test.md. `abtest-visitors` has the mean number of visitors
until a winner is declared, 1200 runs each (400 where conversions are late), as a multiple of a
fixed-sample two-proportion test (5 %, 80 % power): of `Decide(display="one")`, which is told the
planned lift or not, and of the mixture sequential probability ratio test whose mixing variance is
the square of the planned difference. `abtest-arms` has the same of several arms, 200 runs each,
where the fixed sample has a group for each arm and compares the best one with each of the others
(Bonferroni). `abtest-false` has the share of A/A tests with a false winner, 800 runs each, by
`Decide`, by the mixture test, and by the Bayesian rule that stops on the day on which the chance to
beat is at least 95 %.

A tick is a visitor, and a day has a thousand of them.
"""

from __future__ import annotations

import argparse
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

import duelay
import pages
from duelay import delays

COMMAND = "python -m benchmarks abtest"
ERROR, POWER = 0.05, 0.8
PLANNED = ((0.05, 0.06), (0.05, 0.08), (0.10, 0.11), (0.30, 0.33))
ARMS = (
    (0.10, 0.10, 0.12), (0.08, 0.10, 0.12),
    (0.10, 0.10, 0.10, 0.10, 0.12), (0.04, 0.06, 0.08, 0.10, 0.12),
)  # fmt: skip
PER_DAY = 1000
LATE = "geometric:0.001"  # a day on average
LAWS = {  # of the A/A tests; the second number is how many visitors come between two news
    "at once": ("constant:1", 1),
    "a day on average": (LATE, 1),
    "heavy tails: half within two hours, some after weeks": ("zipf:1.2,30000", 1),
    "the same, reported once a day": ("zipf:1.2,30000", PER_DAY),
}
DAYS, AA_RATE = 30, 0.1
CAP = 12  # fixed samples: then a run counts as it is


def fixed_sample(p: float, q: float, arms: int = 2) -> float:
    """Return the visitors of all arms together of two-proportion tests of one with each other."""
    z = stats.norm.ppf(1.0 - ERROR / (2.0 * (arms - 1))) + stats.norm.ppf(POWER)
    return float(arms * z * z * (p * (1.0 - p) + q * (1.0 - q)) / (p - q) ** 2)


def decide(
    rates: tuple[float, ...], law: str, horizon: int, runs: int, lift: float | None = None,
    **more: Any,
) -> Any:  # fmt: skip
    """Simulate duelay until it declares a winner; it may be told the planned lift."""
    planned = None if lift is None else lift / (2.0 * (2.0 + lift))
    policy = duelay.Decide(display="one", error=ERROR, planned=planned)
    return duelay.simulate(
        duelay.Problem.from_rates(rates), policy, delay=law,
        horizon=horizon, runs=runs, seed=35, stop=ERROR, checkpoints=1,
        setting=duelay.Setting(progress=False, **more),
    )  # fmt: skip


def log_mixture(won: NDArray[Any], n: NDArray[Any], tau: float) -> NDArray[np.float64]:
    """Return the log of the mixture likelihood ratio; `won` and `n` are (..., 2), by arm."""
    mean = won / np.maximum(n, 1)
    pooled = won.sum(axis=-1) / np.maximum(n.sum(axis=-1), 1)
    variance = pooled * (1.0 - pooled) * (1.0 / np.maximum(n, 1)).sum(axis=-1)  # of the difference
    variance = np.maximum(variance, 1e-12)
    difference = mean[..., 1] - mean[..., 0]
    whole = variance + tau**2
    return np.asarray(
        0.5 * np.log(variance / whole) + 0.5 * difference**2 * tau**2 / (variance * whole)
    )


def mixture_stops(p: float, q: float, cap: int, runs: int) -> NDArray[np.float64]:
    """Return the visitors of each run of the mixture test, looked at in 1000 steps or more."""
    rng, step = np.random.default_rng(35), max(1, cap // 12_000)
    n = step * np.arange(1, cap // (2 * step) + 1)
    stops = np.full(runs, float(cap))
    for run in range(runs):
        won = np.stack([rng.binomial(step, rate, n.size).cumsum() for rate in (p, q)], axis=-1)
        ratio = log_mixture(won, np.stack([n, n], axis=-1), q - p)
        ratio[won.sum(axis=-1) < 10] = 0.0  # before the normal approximation
        passed = np.flatnonzero(ratio >= -math.log(ERROR))
        if passed.size:
            stops[run] = 2.0 * n[passed[0]]
    return stops


def in_samples(result: Any, cap: int, fixed: float) -> tuple[str, float]:
    """Return the mean visitors of runs in fixed samples, in words, and the share of wrong ones."""
    return mean_of(
        np.where(result.is_declared, result.stopped, cap) / fixed
    ), result.is_wrong.mean()


def mean_of(times: NDArray[np.float64]) -> str:
    """Return a mean and its standard error in words."""
    return f"{times.mean():.2f} ± {times.std() / math.sqrt(times.size):.2f}"


def visitors(runs: int) -> list[Any]:
    """Return the table of visitors until a winner is declared."""
    rows = []
    for p, q in PLANNED:
        fixed = fixed_sample(p, q)
        cap = int(CAP * fixed)
        ways = (("constant:1", runs, q / p - 1.0), ("constant:1", runs, None),
                (LATE, runs // 3, None))  # fmt: skip
        found = [in_samples(decide((p, q), law, cap, n, lift), cap, fixed) for law, n, lift in ways]
        told, plain, late = (times for times, _ in found)
        mixed = mean_of(mixture_stops(p, q, cap, runs) / fixed)
        shown = [f"{100 * p:g} % and {100 * q:g} %", f"{fixed:,.0f}", told, plain, mixed, late]
        print(shown, "wrong", *(f"{wrong:.2%}" for _, wrong in found), flush=True)
        rows.append(shown)
    columns = ["conversion rates", "fixed sample", "duelay, planned", "duelay", "mSPRT",
               "duelay, a day late"]  # fmt: skip
    return [pages.table(columns, rows)]


def several_arms(runs: int) -> list[Any]:
    """Return the table of visitors with several arms, against a fixed sample of all arms."""
    rows = []
    for rates in ARMS:
        second, best = sorted(rates)[-2:]
        fixed = fixed_sample(second, best, len(rates))
        cap = int(CAP * fixed)
        lifts = (best / second - 1.0, None)
        found = [in_samples(decide(rates, "constant:1", cap, runs, lift), cap, fixed)
                 for lift in lifts]  # fmt: skip
        shown = [", ".join(f"{100 * rate:g}" for rate in rates) + " %", f"{fixed:,.0f}",
                 *(times for times, _ in found)]  # fmt: skip
        print(shown, "wrong", *(f"{wrong:.2%}" for _, wrong in found), flush=True)
        rows.append(shown)
    columns = ["conversion rates", "fixed sample", "duelay, planned", "duelay"]
    return [pages.table(columns, rows)]


def heard_by_day(law: str, runs: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Return (runs, days, 2): conversions heard and visitors by arm, at the end of each day."""
    shape = (DAYS, PER_DAY)
    drawn, heard, n = delays.parse(law), np.zeros((runs, DAYS, 2)), np.zeros((runs, DAYS, 2))
    asked = np.arange(DAYS * PER_DAY).reshape(shape)
    for run in range(runs):
        arm = rng.integers(2, size=shape)
        when = (asked + drawn.sample(shape, rng)) // PER_DAY
        converts = (rng.random(shape) < AA_RATE) & (when < DAYS)
        for i in range(2):
            n[run, :, i] = (arm == i).sum(axis=1).cumsum()
            days = when[converts & (arm == i)].astype(np.int64)
            heard[run, :, i] = np.bincount(days, minlength=DAYS)[:DAYS].cumsum()
    return heard, n


def chance_to_beat(won: Any, n: Any) -> Any:
    """Return the posterior chance that the second arm is better, from uniform priors."""
    a, b = won + 1.0, n - won + 1.0
    mean, variance = a / (a + b), a * b / ((a + b) ** 2 * (a + b + 1.0))
    z = (mean[..., 1] - mean[..., 0]) / np.sqrt(variance.sum(axis=-1))
    return stats.norm.cdf(z)


def false_winners(runs: int) -> list[Any]:
    """Return the table of false winners in A/A tests."""
    rows = []
    for name, (law, batch) in LAWS.items():
        result = decide((AA_RATE, AA_RATE), law, DAYS * PER_DAY, runs, batch=batch)
        heard, n = heard_by_day(law, runs, np.random.default_rng(35))
        chance = chance_to_beat(heard, n)
        peeked = ((chance >= 0.95) | (chance <= 0.05)).any(axis=1)
        mixed = (log_mixture(heard, n, 0.01) >= -math.log(ERROR)).any(axis=1)
        shown = [name, *(f"{share.mean():.1%}".replace("%", " %")
                         for share in (result.is_declared, mixed, peeked))]  # fmt: skip
        print(shown, flush=True)
        rows.append(shown)
    columns = ["conversions are reported", "duelay, after every visitor", "mSPRT, every day",
               "chance to beat of 95 %, every day"]  # fmt: skip
    return [pages.table(columns, rows)]


def main() -> None:
    """Measure, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1200)
    parser.add_argument("--dry", action="store_true", help="print, and write nothing")
    given = parser.parse_args()
    for name, parts in (
        ("abtest-visitors", visitors(given.runs)),
        ("abtest-arms", several_arms(given.runs // 6)),
        ("abtest-false", false_winners(2 * given.runs // 3)),
    ):
        if not given.dry:
            pages.keep(name, COMMAND, parts)


if __name__ == "__main__":
    main()
