"""Test the assumptions of a guarantee at every look at a standing.

A test at 5 % that is repeated often enough alarms eventually, although the assumptions hold. So
the level is divided, and all alarms together stay within 5 %:

- Among the tests, by `WEIGHTS`. The tests that find most faults have nearly all of it. Wrong orders
  and lost answers have tiny p-values, so that a small share is enough. A test that cannot alarm has
  none.
- Among the looks. `AT_DECLARATION` of it is spent once, on the duels and answers up to the
  declaration. The rest is for all looks, in stretches: the k-th goes from 100 times 2^(k - 1) to
  100 times 2^k duels. Twelve stretches have equal shares, and all later ones together have one.
  All looks of a stretch alarm about five times as often as one of them (for a normal score that
  grows with the data, 4 to 6 times), so each look has a fifth of the share.

That is approximate, as the tests are. `python -m benchmarks alarms` measures it, with the power.
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
AT_DECLARATION = 0.65  # of the level: for the look at the declaration
WEIGHTS: dict[Callable[..., Finding], float] = {
    delay_by_winner: 3.0,
    preference_drift: 3.0,
    independence: 3.0,
    told_law: 3.0,
    share_by_arm: 0.8,
    order_balance: 0.2,
}
FEWEST = 100  # duels of two arms before the first look
_STRETCHES = 12  # that have equal shares
_LOOKS = 5.0  # all looks of a stretch alarm so many times as often as one
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
    found: dict[str, Finding] = {}
    if declared is not None:
        then = _as_it_was(history, declared)
        found = {
            name: test(then, level=LEVEL * AT_DECLARATION * share)
            for name, (test, share) in tests.items()
        }
    levels = levels_of(history, law)
    for name, (test, _) in tests.items():
        if levels and not (name in found and found[name].is_alarm):
            found[name] = test(history, level=levels[name])
    return tuple(each.about(history.display) for each in found.values())


def levels_of(history: History, law: Delay | None = None) -> dict[str, float]:
    """Return the p-value below which each test alarms at this look; none with too few duels."""
    n = int((history.first != history.second).sum())
    if n < FEWEST:
        return {}
    k, one = int(math.log2(n / FEWEST)) + 1, LEVEL * (1.0 - AT_DECLARATION) / (_STRETCHES + 1)
    if k > _STRETCHES:
        one /= (k - _STRETCHES) * (k - _STRETCHES + 1)
    return {name: one / _LOOKS * share for name, (_, share) in _tests(history, law).items()}


def in_words(alarms: tuple[Finding, ...]) -> str:
    """Say what alarms, to follow a verdict; empty where nothing does."""
    doubts = [alarm.name for alarm in alarms if alarm.name not in REMARKS]
    remarks = [alarm.name for alarm in alarms if alarm.name in REMARKS]
    words = f"; but doubtful: {', '.join(doubts)}" if doubts else ""
    return words + (f"; worth a look: {', '.join(remarks)}" if remarks else "")


def _tests(history: History, law: Delay | None) -> dict[str, tuple[Callable[..., Finding], float]]:
    """The tests of what the guarantee rests on, by the names of their findings, and their shares.

    It rests on the law that is told, or on the coin.
    """
    used: list[Callable[..., Finding]] = [preference_drift, independence]
    if law is None:
        used += [order_balance, delay_by_winner]
        # Where one arm is shown at a time, arms answer as often as their visitors convert.
        used += [share_by_arm] * (history.n_arms > 2 and history.display == "pair")
    elif not isinstance(law, ByPair) or law.n_arms == history.n_arms:
        used += [told_law]
    if history.order == "alternate":  # turns are even, and make neighbours differ
        used = [test for test in used if test not in (order_balance, independence)]
    total = sum(WEIGHTS[test] for test in used)
    shares = {test.__name__.replace("_", " "): (test, WEIGHTS[test] / total) for test in used}
    if law is not None and told_law in used:
        shares["told law"] = (functools.partial(told_law, delay=law), shares["told law"][1])
    return shares


def _as_it_was(history: History, n: int) -> History:
    """Return what was known after n duels, when the next one was asked."""
    rows = [name for name in ("first", "second", "unit") if getattr(history, name) is not None]
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
