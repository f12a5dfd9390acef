"""Simulated visitors come by the hour, prefer, and answer late or never."""

import math

import numpy as np
import pytest

from duelay.delays import Exponential, Never
from duelay.live.writes.requests import LiveDuel
from duelay.service.demo.visitors import Scene, Visitors
from duelay.traffic import Daily

DAY = 86_400.0
START = 20_000 * DAY + 5 * 3600.0


class Recorder:
    """An experiment that writes down what visitors do."""

    def __init__(self):
        self.asked, self.told = [], []

    def ask(self, unit):
        self.asked.append(unit)
        return LiveDuel(str(len(self.asked)), "good", "bad", False, None)

    def tell(self, id, winner=None):
        self.told.append((id, winner))


def scene(**said):
    return Scene(**{
        "name": "test", "words": "", "strengths": {"good": 1.0, "bad": 0.0},
        "traffic": Daily("100s", 0.5), "delay": Never(0.25, Exponential("2h")), **said,
    })  # fmt: skip


def run(days, **said):
    """Let visitors come for some days; return what they did, and when they asked."""
    visitors, recorder, times = Visitors(scene(**said), START, seed=1), Recorder(), []
    while visitors.due < START + days * DAY:
        at, n = visitors.due, len(recorder.asked)
        visitors.step(recorder)
        if len(recorder.asked) > n:
            times.append(at)
        assert visitors.due >= at
    return recorder, np.array(times)


def test_they_come_day_after_day_and_more_of_them_at_noon():
    _, times = run(6)
    assert times[0] >= START
    by_day = np.histogram(times, START + DAY * np.arange(7))[0]
    assert np.all(np.abs(by_day - 864) < 5 * math.sqrt(864))
    hour = times % DAY / 3600.0
    noon, night = np.sum(np.abs(hour - 12) < 3), np.sum(np.abs(hour - 12) > 9)
    assert noon > 2 * night


def test_conversions_are_as_many_as_the_preference_and_the_law_say():
    recorder, _ = run(6)
    share = 0.75 * math.e / (1 + math.e)
    n = len(recorder.asked)
    assert abs(len(recorder.told) - n * share) < 5 * math.sqrt(n * share) + 50
    assert all(winner is None for _, winner in recorder.told)


def test_votes_tell_either_winner():
    recorder, _ = run(3, feedback="votes")
    share = np.mean([winner == "first" for _, winner in recorder.told])
    assert share == pytest.approx(math.e / (1 + math.e), abs=0.06)
    assert {winner for _, winner in recorder.told} == {"first", "second"}


def test_some_visitors_come_again():
    recorder, _ = run(3, again=0.2)
    again = 1 - len(set(recorder.asked)) / len(recorder.asked)
    assert again == pytest.approx(0.2, abs=0.05)


def test_preferences_drift_and_then_stay():
    found = scene(drift={"good": -0.5})
    assert found.strength("good", 1.0) == 0.5
    assert found.strength("good", 4.0) == found.strength("good", 9.0) == -1.0
    assert found.strength("an arm that somebody has added", 1.0) == 0.0
