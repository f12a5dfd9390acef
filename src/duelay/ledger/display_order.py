"""In which order the two arms of a duel are shown.

Silence speaks against the arm shown first. A rule that shows its champion first lets every late
conversion speak against the champion; a fair coin lets it speak against either arm alike, so that
the bias cancels, whatever the delays (the docs have the proof).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from duelay._core import checks
from duelay._core.jit.decorators import generic

ORDERS = ("champion", "coin", "alternate")


class Champion(NamedTuple):
    """As the rule has it: its champion first."""

    unused: int  # a record needs a field


class Coin(NamedTuple):
    """Either order with probability one half."""

    chance: float


class Alternate(NamedTuple):
    """Each pair in turns; a coin decides who begins."""

    last: NDArray[np.int8]  # (K, K): for i < j, 1 if i was shown first the last time, 2 if j was


def keep_turns(order: Any, first: NDArray[np.int64], second: NDArray[np.int64]) -> None:
    """Note who of each pair was shown first the last time, where they take turns."""
    if isinstance(order, Alternate):
        two = first != second
        first, second = first[two], second[two]
        low, high = np.minimum(first, second), np.maximum(first, second)
        order.last[low, high] = np.where(first == low, 1, 2)  # of several, the last one stays


def start_order(order: str, n_arms: int) -> Any:
    """Return the state that keeps an order."""
    checks.one_of("order", order, ORDERS)
    if order == "coin":
        return Coin(0.5)
    if order == "alternate":
        return Alternate(np.zeros((n_arms, n_arms), dtype=np.int8))
    return Champion(0)


def weaker(one: str | None, other: str | None) -> str | None:
    """Return the order that holds for duels of two orders alike; None where one is not known."""
    if one == other:
        return one
    if one is None or other is None:
        return None
    return "champion" if "champion" in (one, other) else "alternate"


@generic
def arrange(order: Any, i: int, j: int, rng: np.random.Generator) -> Any:
    """Return i and j in the order in which they are shown."""
    raise TypeError(f"no order is called {type(order).__name__}")


@arrange.register(Champion)
def _champion(order: Champion, i: int, j: int, rng: np.random.Generator) -> Any:
    return i, j


@arrange.register(Coin)
def _coin(order: Coin, i: int, j: int, rng: np.random.Generator) -> Any:
    if i != j and rng.random() < order.chance:
        return j, i
    return i, j


@arrange.register(Alternate)
def _alternate(order: Alternate, i: int, j: int, rng: np.random.Generator) -> Any:
    if i == j:
        return i, j
    low, high = min(i, j), max(i, j)
    last = order.last[low, high]
    if last == 0:
        last = 1 if rng.random() < 0.5 else 2
    if last == 1:
        order.last[low, high] = 2
        return high, low
    order.last[low, high] = 1
    return low, high
