"""How often standings alarm, in sound and in faulty experiments: ``python -m benchmarks alarms``.

Each experiment is looked at after every 100 duels. In sound ones a winner is declared, too: by
`Decide`, or after half of the duels. In faulty ones the declaration comes at the end. The console
also shows what equal shares of the level would give, with the half of it for the declaration.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import duelay
import pages
from duelay import History
from duelay.inference import alarms

COMMAND = "python -m benchmarks alarms"
EVEN = np.full((2, 2), 0.5)
STEPS = np.array([[0.5, 0.55, 0.6], [0.45, 0.5, 0.55], [0.4, 0.45, 0.5]])
STEP, SOUND, FAULTY = 100, 1000, 300
Rule = Callable[[History, str], tuple[float, float]]


def play(
    n: int, seed: int, mu: Any, *, votes: bool = False, slow: bool = False, drift: bool = False,
    again: bool = False,
) -> History:  # fmt: skip
    """Return duels of random pairs by coin, with a mean delay of 20.

    Faults: wins of arm 1 take twice as long (`slow`), mu goes from 0.6 to 0.4 (`drift`), a visitor
    answers twice (`again`).
    """
    rng, k = np.random.default_rng(seed), len(mu)
    first = rng.integers(k, size=n)
    second = (first + rng.integers(1, k, size=n)) % k
    won = rng.random(n) < mu[first, second]
    if drift:
        won = rng.random(n) < np.where((first == 0) == (np.arange(n) < n / 2), 0.6, 0.4)
    if again:
        won = np.repeat(rng.integers(2, size=n // 2 + 1), 2)[:n] == first
    winner = np.where(won, first, second)
    delay = rng.geometric(np.where(slow & (winner == 1), 0.025, 0.05)).astype(float)
    is_heard = (delay <= np.arange(n, 0, -1)) & (won | votes)
    return History(
        n_arms=k, first=first, second=second, delay=np.where(is_heard, delay, np.nan),
        first_won=np.where(is_heard, won, np.nan), order="coin",
        feedback="votes" if votes else "conversions",
    )  # fmt: skip


def decide(n: int, seed: int) -> tuple[History, int]:
    """Return duels of `Decide`, and when it declared; the end, if it did not."""
    player, rng = duelay.Decide().start(3, seed=seed), np.random.default_rng(10**6 + seed)
    due: dict[int, list[Any]] = {}
    for t in range(n):
        for duel in due.pop(t, []):
            player.tell(duel)
        duel = player.ask()
        if rng.random() < STEPS[duel.first, duel.second]:
            due.setdefault(t + int(rng.geometric(0.05)), []).append(duel)
    history = player.history()
    return history, n if history.declared is None else history.declared.tick


class Found(NamedTuple):
    """The p-values of an experiment's tests, by name, at each look and at the declaration."""

    looks: list[tuple[History, dict[str, float]]]
    declared: tuple[History, dict[str, float]]


def run_tests(history: History, declared: int) -> Found:
    """Run all tests at every look and at the declaration."""

    def p_values(n: int) -> tuple[History, dict[str, float]]:
        then = alarms._as_it_was(history, n)
        tests = alarms._tests(then, None)
        return then, {name: test(then).p_value for name, (test, _) in tests.items()}

    return Found([p_values(n) for n in range(STEP, history.n + 1, STEP)], p_values(declared))


def now(history: History, name: str) -> tuple[float, float]:
    """Return the level of a test at a look, and at the declaration."""
    share = alarms._tests(history, None)[name][1]
    return alarms.levels_of(history)[name], alarms.LEVEL * alarms.AT_DECLARATION * share


def equal(history: History, name: str) -> tuple[float, float]:
    """Return both levels, with equal shares of tests and 1 / (k (k + 1)) for the k-th stretch."""
    k, half = int(math.log2(history.n / alarms.FEWEST)) + 1, alarms.LEVEL / 2 / 5
    return half / (6.0 * k * (k + 1)), half


def alarmed(found: Found, rule: Rule, *, is_declared: bool, only: str | None = None) -> bool:
    """Whether a test alarms at any look, or at the declaration."""

    def is_low(history: History, p_values: dict[str, float], which: int) -> bool:
        return any(
            p < rule(history, name)[which]
            for name, p in p_values.items() if only is None or name == only
        )  # fmt: skip

    looks = any(is_low(*look, 0) for look in found.looks)
    return looks or (is_declared and is_low(*found.declared, 1))


def percent(cells: list[bool]) -> str:
    return f"{100 * np.mean(cells):.1f} %"


def main() -> None:
    """Simulate, and write both tables."""
    sound: dict[str, Callable[[int], tuple[History, int]]] = {
        "two equal arms": lambda seed: (play(1200, seed, EVEN), 600),
        "four equal arms": lambda seed: (play(1200, seed, np.full((4, 4), 0.5)), 600),
        "three arms, votes": lambda seed: (play(1200, seed, STEPS, votes=True), 600),
        "three arms, chosen by `Decide`": lambda seed: decide(1200, seed),
    }
    rows = []
    for name, world in sound.items():
        found = [run_tests(*world(seed)) for seed in range(SOUND)]
        rows.append([name, percent([alarmed(one, now, is_declared=True) for one in found])])
        before = percent([alarmed(one, equal, is_declared=True) for one in found])
        print(*rows[-1], "equal shares:", before, flush=True)
    faults = {
        "delay by winner": ("its wins take twice as long, one arm of three, 900 duels",
                            lambda seed: play(900, seed, STEPS, slow=True)),
        "preference drift": ("mu goes from 0.6 to 0.4, 450 duels",
                             lambda seed: play(450, seed, EVEN, drift=True)),
        "independence": ("visitors answer twice, 450 duels",
                         lambda seed: play(450, seed, EVEN, again=True)),
    }  # fmt: skip
    named = []
    for name, (fault, faulty) in faults.items():
        found = [run_tests(history := faulty(seed), history.n) for seed in range(FAULTY)]
        cells = [percent([one.declared[1][name] < 0.05 for one in found])]
        for rule in (equal, now):
            cells += [
                percent([alarmed(one, rule, is_declared=is_declared, only=name) for one in found])
                for is_declared in (False, True)
            ]
        named.append([f"`{name.replace(' ', '_')}`", fault, cells[0], *cells[3:]])
        print(name, *cells, flush=True)
    pages.keep("alarms", COMMAND, [
        pages.table(["experiments without a fault", "any alarm, at any time"], rows),
        pages.table(["test", "fault", "alone at 5 %, at the end", "named while it runs",
                     "named after the declaration"], named),
    ])  # fmt: skip


if __name__ == "__main__":
    main()
