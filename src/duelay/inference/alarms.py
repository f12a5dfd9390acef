"""Test the assumptions of a guarantee at every look at a standing.

A test at 5 % that is repeated often enough alarms eventually, although the assumptions hold. So
half of the level is spent once, on the duels and answers up to the declaration. The other half is
for all looks. The k-th stretch goes from 100 times 2^(k - 1) to 100 times 2^k duels, with k = 1, 2,
... Each look within it has the sixth part of 1 / (k (k + 1)) of that half. All looks of a stretch
together alarm about six times as often as one of them, so that all stretches together spend the
half. That is approximate, as the tests are; tests/inference/test_alarms.py measures it.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from duelay.assumptions import (
    Finding,
    delay_by_winner,
    independence,
    order_balance,
    preference_drift,
    share_by_arm,
    told_law,
)
from duelay.delays.by_pair import ByPair
from duelay.delays.delay import Delay
from duelay.logs.history import History

LEVEL = 0.05  # the share of sound experiments in which any test alarms, at any look
FEWEST = 100  # duels of two arms before the first look
_LOOKS = 6.0  # all looks of a stretch alarm so many times as often as one
# The guarantee allows what these tests find; but its cause may be something that it does not allow.
REMARKS = ("share by arm",)


def find_alarms(
    history: History, law: Delay | None = None, declared: int | None = None
) -> tuple[Finding, ...]:
    """Return the tests that alarm now, or did when the winner was declared after `declared` duels.

    `law` is the one that is told, if the guarantee rests on it.
    """
    return tuple(found for found in find_all(history, law, declared) if found.is_alarm)


def find_all(
    history: History, law: Delay | None = None, declared: int | None = None
) -> tuple[Finding, ...]:
    """Return what every test found, at the levels of `find_alarms`; nothing from too few duels."""
    tests = _tests(history, law)
    half = LEVEL / 2 / len(tests)
    found: dict[str, Finding] = {}
    if declared is not None:
        then = _as_it_was(history, declared)
        found = {name: test(then, level=half) for name, test in tests.items()}
    if (level := level_of(history, law)) is not None:
        for name, test in tests.items():
            if name not in found or not found[name].is_alarm:
                found[name] = test(history, level=level)
    return tuple(found.values())


def level_of(history: History, law: Delay | None = None) -> float | None:
    """Return the p-value below which a test alarms at this look; None with too few duels."""
    n = int((history.first != history.second).sum())
    if n < FEWEST:
        return None
    k = int(math.log2(n / FEWEST)) + 1
    return LEVEL / 2 / len(_tests(history, law)) / (_LOOKS * k * (k + 1))


def in_words(alarms: tuple[Finding, ...]) -> str:
    """Say what alarms, to follow a verdict; empty where nothing does."""
    doubts = [alarm.name for alarm in alarms if alarm.name not in REMARKS]
    remarks = [alarm.name for alarm in alarms if alarm.name in REMARKS]
    words = f"; but doubtful: {', '.join(doubts)}" if doubts else ""
    return words + (f"; worth a look: {', '.join(remarks)}" if remarks else "")


def _tests(history: History, law: Delay | None) -> dict[str, Callable[..., Finding]]:
    """The tests of what the guarantee rests on: the law that is told, or the coin."""
    both = (preference_drift, independence)
    if law is None:
        coin = (order_balance, delay_by_winner, *both, share_by_arm)
        # Where one arm is shown at a time, arms answer as often as their visitors convert.
        return {
            test.__name__: test
            for test in coin
            if history.display == "pair" or test is not share_by_arm
        }
    tests: dict[str, Callable[..., Finding]] = {test.__name__: test for test in both}
    if not isinstance(law, ByPair) or law.n_arms == history.n_arms:
        tests["told_law"] = functools.partial(told_law, delay=law)
    return tests


def _as_it_was(history: History, n: int) -> History:
    """Return what was known after n duels, when the next one was asked."""
    rows = [name for name in ("first", "second", "first_led", "unit")
            if getattr(history, name) is not None]  # fmt: skip
    cut: dict[str, Any] = {name: getattr(history, name)[:n] for name in rows}
    cut["changes"] = tuple(change for change in history.changes if change.tick <= n)
    cut |= {"declared": None, "numbers": ()}
    asked, answered, now = history.asked[:n], history.answered[:n], None
    if history.at is None:
        is_heard = answered <= n + 1
    else:
        now = history.now if n >= history.n else float(history.at[n])
        is_heard = answered <= (math.inf if now is None else now)
    for name in ("delay", "first_won"):
        cut[name] = np.where(is_heard, getattr(history, name)[:n], np.nan)
    return dataclasses.replace(history, **cut, at=None if now is None else asked, now=now)
