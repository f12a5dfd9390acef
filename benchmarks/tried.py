"""What was tried for `recommend`, on generated problems: regret against the lower bound.

    python benchmarks/tried.py [problems]

Every way is judged on the same random problems (40, unless told), two runs on each, T = 100,000, by
its mean, by its worst run and by how often the winner leads in the end. None of the paper's
datasets is among them. With 40 problems the table of docs/choosing.md is written anew.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

import duelay
import pages
from duelay._core.jit.decorators import kernel
from duelay.ledger import Ledger
from duelay.ledger.delay_models.base import (
    advance,
    convert,
    enter,
    expected,
    final_age,
    pair_counts,
)
from duelay.policies.pair_statistics import wins_and_count
from duelay.policies.turn import select
from duelay.problems import bradley_terry
from duelay.show.text_table import table

HORIZON = 100_000
N_PROBLEMS = 40
LAWS = {
    "geometric:0.01": "mean 100",
    "geometric:0.001": "mean 1000",
    "never:0.3,geometric:0.01": "mean 100, 30 % never",
}


def random_problem(rng: np.random.Generator, kind: int) -> duelay.Problem:
    """Bradley-Terry, a random matrix with a winner, or arms on a line; K from 3 to 14."""
    k = int(rng.integers(3, 15))
    if kind == 0:
        return bradley_terry(np.exp(rng.normal(0, rng.uniform(0.2, 1), k)))
    if kind == 1:
        edge = np.triu(rng.uniform(-0.3, 0.3, (k, k)), 1)
        edge[0, 1:] = rng.uniform(rng.uniform(0.02, 0.1), 0.3, k - 1)
    else:
        place = np.sort(rng.uniform(0, rng.uniform(0.1, 0.4), k))
        edge = np.triu(place[None, :] - place[:, None], 1)
    return duelay.Problem(0.5 + edge - edge.T)


def family(n: int) -> list[duelay.Problem]:
    """Return n problems whose smallest gap is at least 0.015."""
    rng = np.random.default_rng(100)
    problems: list[duelay.Problem] = []
    while len(problems) < n:
        problem = random_problem(rng, len(problems) % 3)
        if np.sort(problem.gaps)[1] >= 0.015:
            problems.append(problem)
    return problems


# --- another count for the Beta: a ledger that scales its evidence -----------------------------


class Scaled(NamedTuple):
    """A learned ledger whose evidence counts as if it were of another number of duels."""

    inner: Any
    whole: bool  # n = N~ / (2 - N~ / N), what the duels tell; else N, those not yet heard as well


@advance.register(Scaled)
def _advance(assumed: Scaled, t: int) -> None:
    advance(assumed.inner, t)


@enter.register(Scaled)
def _enter(assumed: Scaled, i: int, j: int, t: int) -> None:
    enter(assumed.inner, i, j, t)


@convert.register(Scaled)
def _convert(assumed: Scaled, born: int, t: int) -> None:
    convert(assumed.inner, born, t)


@expected.register(Scaled)
def _expected(assumed: Scaled, plays: Any, i: int, j: int) -> float:
    return expected(assumed.inner, plays, i, j)


@final_age.register(Scaled)
def _final_age(assumed: Scaled) -> int:
    return final_age(assumed.inner)


@pair_counts.register(Scaled)
def _evidence(assumed: Scaled, plays: Any, conversions: Any, i: int, j: int) -> Any:
    n, n_tilde, s = pair_counts(assumed.inner, plays, conversions, i, j)
    if n_tilde <= 0.0:
        return n, 0.0, 0.0
    count = n_tilde / (2.0 - n_tilde / n) if assumed.whole else n
    return n, count, min(max(s / n_tilde, 0.0), 1.0) * count


@dataclass(frozen=True)
class ScaledThompson(duelay.DoubleThompson):
    """Double Thompson sampling with another count."""

    whole: bool = True

    def ledger(self, n_arms: int) -> Ledger:
        ledger = super().ledger(n_arms)
        return ledger._replace(assumed=Scaled(ledger.assumed, self.whole))


# --- winner sampling: both arms drawn by the chance that each is the winner ---------------------


class WinnerSamplingRule(NamedTuple):
    floor: float  # share of an arm's chance that the champion alone cannot take from it
    weight: Any  # (K,)


@kernel
def log_chance(s: float, n: float) -> float:
    """log min(1, 2 P(theta > 1/2)), theta ~ Beta(s + 1, n - s + 1), after Peizer and Pratt."""
    a, b = s + 0.5, n - s + 0.5
    m = n + 1.0
    d = a + 1 / 6 - (m + 1 / 3) / 2 + 0.01 * (1 / (s + 1) - 1 / (n - s + 1))
    away = abs(a - m / 2)
    if away < 1e-6 * m:
        return 0.0
    z = d / away * math.sqrt(2 / (1 + 1 / (6 * m)) * (a * math.log(2 * a / m)
                                                      + b * math.log(2 * b / m)))  # fmt: skip
    if z >= 0.0:
        return 0.0
    if z > -8.0:
        return math.log(math.erfc(-z / math.sqrt(2.0)))
    return -0.5 * z * z - math.log(-z) - 0.2257913526447274


@select.register(WinnerSamplingRule)
def _select(rule: WinnerSamplingRule, ledger: Ledger, t: int, rng: np.random.Generator) -> Any:
    k = rule.weight.size
    for i in range(k):
        rule.weight[i] = 0.0
        for j in range(k):
            if j != i:
                s, n = wins_and_count(ledger, i, j)
                rule.weight[i] += log_chance(s, n)
    champion = np.argmax(rule.weight)
    top = rule.weight[champion]
    total = 0.0
    for i in range(k):
        w = math.exp(rule.weight[i] - top)
        if rule.floor > 0.0 and i != champion:
            s, n = wins_and_count(ledger, i, champion)
            w = max(w, rule.floor * math.exp(log_chance(s, n)))
        rule.weight[i] = w
        total += w
    first, second = -1, -1
    for _ in range(2):
        u = rng.random() * total
        arm = 0
        while arm < k - 1 and u >= rule.weight[arm]:
            u -= rule.weight[arm]
            arm += 1
        first, second = second, arm
    return first, second


@dataclass(frozen=True)
class WinnerSampling(ScaledThompson):
    """Draw both arms, each with the chance that it is the winner: the product over its duels."""

    floor: float = 0.0

    def rule(self, n_arms: int) -> Any:
        return WinnerSamplingRule(self.floor, np.zeros(n_arms))


LEARNED = {"delay": "learn", "order": "coin"}
WAYS = {
    "D-TS, coin, no law": duelay.DoubleThompson(),
    "D-TS, in turns, no law": duelay.DoubleThompson(order="alternate"),
    "D-TS, in turns, learned": duelay.DoubleThompson(delay="learn", order="alternate"),
    "D-TS, coin, learned (recommended)": duelay.DoubleThompson(**LEARNED),
    "the same, D-TS+ ties": duelay.DoubleThompson(**LEARNED, ties="regret"),
    "the same, alpha 0.3": None,
    "the same, all plays as the count": ScaledThompson(**LEARNED, whole=False),
    "the same, whole duels' worth as the count": ScaledThompson(**LEARNED, whole=True),
    "RMED1, coin, learned": duelay.RMED(**LEARNED),
    "winner sampling": WinnerSampling(**LEARNED),
    "winner sampling, floor 0.1": WinnerSampling(**LEARNED, floor=0.1),
}


def small_alpha() -> duelay.DoubleThompson:
    """An alpha that the policy refuses."""
    policy = duelay.DoubleThompson(**LEARNED)
    object.__setattr__(policy, "alpha", 0.3)
    return policy


def main() -> None:
    """Print a table for each law, and write the page."""
    problems = family(int(sys.argv[1]) if len(sys.argv) > 1 else N_PROBLEMS)
    bounds = np.array([duelay.theory.asymptotic_lower_bound(p, HORIZON) for p in problems])
    columns, kept = ["way"], {name: [name] for name in WAYS}
    for law, words in LAWS.items():
        rows = []
        for name, way in tqdm(WAYS.items(), desc=law, leave=False, disable=None):
            results = [
                duelay.simulate(
                    problem, way or small_alpha(), delay=law, horizon=HORIZON, runs=2, seed=5,
                    checkpoints=2, setting=duelay.Setting(progress=False),
                )
                for problem in problems
            ]  # fmt: skip
            final = np.array([result.final for result in results])
            times = final / bounds[:, None]
            led = 100 * np.mean([result.led_by_winner for result in results])
            error = final.std() / math.sqrt(final.size)
            shown = [
                f"{final.mean():.0f} ± {error:.0f}",
                f"{final.max():,.0f}",
                f"{led:.1f} %",
            ]
            kept[name] += shown
            rows.append([name, *shown, f"{times.mean():.2f}", f"{times.max():.1f}"])
        columns += [f"{words}: regret", "worst", "led"]
        heads = ["way", "regret ± se", "worst", "led", "of the bound", "worst of it"]
        print(f"delay {law}, {len(problems)} problems\n")
        print(table(heads, rows, left=(0,)) + "\n", flush=True)
    if len(problems) == N_PROBLEMS:
        part = pages.table(columns, list(kept.values()))
        pages.keep("tried", "python -m benchmarks tried", [part])


if __name__ == "__main__":
    main()
