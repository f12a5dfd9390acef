"""Noon bursts: what a player learns by the clock, where traffic varies and nothing else does.

    python benchmarks/noon.py [SEEDS]

A duel a minute by day and by night, and at noon 9000 of them in 90 seconds: 178,000 in 17 days.
Answers take minutes, and a fifth never comes. The player is live: it is asked and told by the
clock. With 20 seeds, the default, the tables of docs/howto/clock.md are written anew.
"""

from __future__ import annotations

import multiprocessing
import sys
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

import duelay
import pages
from duelay.assumptions import TESTS
from duelay.players.player import Player
from duelay.simulation import streams
from duelay.simulation.loops.continuous_time import draw_timed_world
from duelay.simulation.loops.plain_python import play_player_by_clock
from duelay.simulation.loops.recorder import new_recorder
from duelay.traffic import Traffic

SEEDS = 20
NEVER = 0.2
LAW = duelay.delays.parse(f"never:{NEVER},(log-normal:10m,1)")
PROBLEM = duelay.datasets.load("six-rankers")
OFTEN = 500  # duels of a pair, for its estimate to count
_DAY = 86_400.0  # seconds
_MINUTES = 1440  # of a day


@dataclass(frozen=True)
class Noon(Traffic):
    """A duel a minute at random, and a burst of `size` at noon, a hundred a second."""

    size: int = 9000

    def times(self, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Whole days of them."""
        days = _DAY * np.arange(-(-n // (_MINUTES + self.size)))[:, None]
        burst = days + _DAY / 2 + 0.01 * np.arange(self.size)
        quiet = days + _DAY * rng.random((days.size, _MINUTES))
        return np.sort(np.concatenate([burst, quiet], axis=1).ravel())[:n]


class Found(NamedTuple):
    """What a player knew in the end, beside the truth."""

    never: float  # the share that never answers, as learned
    errors: list[float]  # of each estimate with at least `OFTEN` duels ...
    scores: list[float]  # ... and the same in standard errors
    is_led: bool  # whether the winner leads
    alarms: list[bool]  # of each test, at a level of 5 %


def live(seed: int, n: int, size: int) -> Player:
    """Return a player of the recommended policy after n duels."""
    policy = duelay.recommend().policy
    world, own = streams(seed, 0)
    hours = draw_timed_world(
        PROBLEM, LAW, Noon(size), n, world, policy=policy, by_clock=True, is_vote=False
    )
    player = policy.start(PROBLEM.arms, own, clock="wall")
    recorder, k = new_recorder(PROBLEM.gaps, np.array([n])), PROBLEM.n_arms
    play_player_by_clock(player, True, hours, recorder, np.zeros((k, k), dtype=np.int64), n, [])
    return player


def measure(seed: int, n: int = 178_000, size: int = 9000) -> Found:
    """Play, and compare with the truth."""
    player = live(seed, n, size)
    standing, history = player.standing(), player.history()
    often = np.triu(standing.plays + standing.plays.T >= OFTEN, 1)
    errors = np.abs(standing.mean - PROBLEM.matrix)
    return Found(
        player.learned_law().never,
        errors[often].tolist(),
        (errors / standard_error(standing.plays))[often].tolist(),
        standing.leader == PROBLEM.winner,
        [test(history, level=0.05).is_alarm for test in TESTS],
    )


def standard_error(plays: NDArray[np.int64]) -> NDArray[np.float64]:
    """(K, K): of S / N~, once all answers that ever come have come: conversions are coins."""
    chance = PROBLEM.matrix * (1.0 - NEVER)
    variance = plays * chance * (1.0 - chance)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.sqrt(variance + variance.T) / ((plays + plays.T) * (1.0 - NEVER)))


def main() -> None:
    """Play all seeds, a process a core; keep the tables."""
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else SEEDS
    with multiprocessing.get_context("spawn").Pool() as pool:
        found = list(tqdm(pool.imap(measure, range(seeds)), total=seeds, leave=False, disable=None))
    for seed, one in enumerate(found):
        print(seed, one, flush=True)
    errors, scores = (sum((one[place] for one in found), []) for place in (1, 2))
    rows = [
        ["learned share that never answers", *_three([one.never for one in found])],
        ["error of an estimate", *_three(errors)],
        ["the same in standard errors", *_three(scores)],
    ]
    numbers = pages.table([f"{seeds} seeds", "least", "mean", "most"], rows)
    led = (
        f"The winner leads in {sum(one.is_led for one in found)} of {seeds}. Of {len(errors)} "
        f"estimates {sum(error <= 0.05 for error in errors)} are within 0.05 of the truth."
    )
    counts = np.sum([one.alarms for one in found], axis=0)
    tests = [[f"`{test.__name__}`", str(count)] for test, count in zip(TESTS, counts, strict=True)]
    alarms = pages.table(["test, at 5 %", f"alarms of {seeds}"], tests)
    if seeds == SEEDS:
        pages.keep("noon", "python -m benchmarks noon", [numbers, pages.text(led), alarms])


def _three(values: list[float]) -> list[str]:
    return [f"{value:.3f}" for value in (min(values), np.mean(values), max(values))]


if __name__ == "__main__":
    main()
