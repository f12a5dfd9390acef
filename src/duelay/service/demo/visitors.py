"""Simulated visitors of the demo, and its experiments.

Visitors prefer one arm, and answer late or never. They use an experiment as a program would, by
`ask` and `tell`: one in this process, or one behind a service.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from duelay.delays import Duration, Law, Never, Weibull
from duelay.traffic import Daily, Traffic

_DAY = 86_400.0  # seconds
_NOON = 0.25 * _DAY  # `Daily` is busiest a quarter of a day after it begins: that is to be at 12
_AT_ONCE = 1000  # visitors whose times are drawn together
_DRIFTING = 4.0  # days
_KNOWN = 200  # visitors that may come back


@dataclass(frozen=True)
class Scene:
    """An experiment, and the people in it."""

    name: str
    words: str  # a sentence: what there is to see
    strengths: Mapping[str, float]  # of each arm: i beats j with odds exp(strength i - strength j)
    traffic: Traffic
    delay: Law  # in time
    window: str = "1d"
    feedback: str = "conversions"
    share: float = 0.0  # of asks that still get a duel once a winner is declared
    drift: Mapping[str, float] = field(default_factory=dict)  # of strengths, a day, for 4 days
    slower: Mapping[str, float] = field(default_factory=dict)  # factor on its wins' delays
    again: float = 0.05  # the share of visitors who have been there before

    def strength(self, arm: str, days: float) -> float:
        """How good an arm is, so many days after the beginning."""
        return self.strengths.get(arm, 0.0) + self.drift.get(arm, 0.0) * min(days, _DRIFTING)


# A winner that is soon declared, a close race, and broken assumptions.
_TRAFFIC = Daily(Duration("90s"), 0.5)
_HOURS = Never(0.25, Weibull(0.7, Duration("2h")))

SCENES = (
    Scene(
        "checkout button",
        "one of four is clearly better, and is declared in a minute or two",
        {"Buy now": 0.8, "Order": 0.0, "Continue": 0.1, "Add to basket": -0.1},
        _TRAFFIC,
        _HOURS,
        share=0.1,
    ),
    Scene(
        "headline",
        "five that are nearly as good as each other, and stay undecided",
        {"Plain": 0.0, "Question": 0.05, "Number": 0.06, "Quote": -0.02, "Long": -0.05},
        _TRAFFIC,
        _HOURS,
    ),
    # Only two arms: little is heard of arms that lose, so that no test would see them drift.
    Scene(
        "search ranking",
        "people change their minds, and wins of one arm are told late: two tests alarm",
        {"Newest first": 0.3, "Best match": -0.3},
        _TRAFFIC,
        Never(0.2, Weibull(0.8, Duration("40m"))),
        window="8h",
        feedback="votes",
        share=0.3,
        drift={"Newest first": -0.4, "Best match": 0.4},
        slower={"Newest first": 4.0},
    ),
)


class Visitors:
    """The people of a scene, one event after the other: a visitor comes, or answers."""

    def __init__(self, scene: Scene, start: float, seed: Any = None) -> None:
        self.scene, self._start = scene, start
        self._rng = np.random.default_rng(seed)
        self._drawn = math.floor(start / _DAY) * _DAY + _NOON - _DAY  # as far as times are drawn
        self._coming: list[float] = []  # the latest first
        self._answers: list[tuple[float, str, str | None]] = []  # a heap
        self._known: list[int] = []
        self._n = 0

    @property
    def due(self) -> float:
        """When the next thing happens, in seconds since the epoch."""
        while not self._coming:
            self._coming = self._day()
        return min(self._coming[-1], self._answers[0][0] if self._answers else math.inf)

    def _day(self) -> list[float]:
        """Draw when visitors come on the next day, the latest first."""
        n, times = _AT_ONCE, np.zeros(1)
        while times[-1] < _DAY:  # those of one draw may be fewer than come in a day
            times, n = self.scene.traffic.times(n, self._rng), 2 * n
        times = self._drawn + times[times < _DAY][::-1]
        self._drawn += _DAY
        return [float(time) for time in times if time >= self._start]

    def step(self, experiment: Any) -> None:
        """Do the next thing, with an `Experiment` or a `RemoteExperiment`."""
        if self.due < self._coming[-1]:
            _, id, winner = heapq.heappop(self._answers)
            experiment.tell(id, winner)
            return
        at = self._coming.pop()
        duel = experiment.ask(unit=f"visitor-{self._visitor()}")
        if duel.id is not None:
            self._answer(duel, at)

    def _visitor(self) -> int:
        if self._known and self._rng.random() < self.scene.again:
            return self._known[self._rng.integers(len(self._known))]
        self._n += 1
        self._known = [*self._known[1 - _KNOWN :], self._n]
        return self._n

    def _answer(self, duel: Any, at: float) -> None:
        """Make up who is preferred, and when that is told."""
        scene, days = self.scene, (at - self._start) / _DAY
        odds = math.exp(scene.strength(duel.first, days) - scene.strength(duel.second, days))
        first_won = self._rng.random() < odds / (1.0 + odds)
        winner = duel.first if first_won else duel.second
        delay = scene.delay.sample(seed=self._rng) * scene.slower.get(winner, 1.0)
        if scene.feedback == "votes":
            told: str | None = "first" if first_won else "second"
        elif first_won:
            told = None
        else:
            return
        if delay < math.inf:
            heapq.heappush(self._answers, (at + delay, duel.id, told))
