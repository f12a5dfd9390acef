"""The turn of a rule, which players and the simulator share.

| function | what it does |
|---|---|
| `select` | chooses the two arms; each rule registers its own for the type of its state |
| `pick` | calls `select`, replaces a self-duel that is not allowed, arranges the pair |
| `turn` | brings the ledger to the tick, picks a pair and records it |
| `calm_until`, `pass_over` | how long an arm will duel itself, and that these turns are skipped |
| `declared` | the winner that a rule has declared |

Python calls `turn_entry` and `picks_entry`. A policy in plain Python has a method `choose` in place
of `select`. `arrange`, in `duelay.ledger.display_order`, decides which arm is shown first.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from duelay._core.jit.background import border, border_of
from duelay._core.jit.decorators import entry, generic, kernel
from duelay.ledger.display_order import arrange
from duelay.ledger.ledger import Ledger, age_to, record
from duelay.policies.self_duels import rival


def no_rule(rule: Any) -> str:
    """Return what is missing if no `select` is registered for a rule."""
    name = type(rule).__name__
    if not hasattr(rule, "_fields"):
        return f"rule() must return a NamedTuple, whose type picks its select, got a {name}"
    return f"no rule is called {name}: register select for it"


@generic
def select(rule: Any, ledger: Ledger, t: int, rng: np.random.Generator) -> Any:
    """Choose the ordered pair that duels at tick t; each rule registers its own implementation.

    Parameters
    ----------
    rule : NamedTuple
        The state of the rule.
    ledger : Ledger
        The plays and answers so far.
    t : int
        The tick, from 1.
    rng : numpy.random.Generator
        The source of randomness.

    Returns
    -------
    tuple of int
        The first arm and the second.
    """
    raise TypeError(no_rule(rule))


@generic
def calm_until(rule: Any, ledger: Ledger, arm: int, t: int) -> int:
    """Return the last tick up to which the rule lets `arm` duel itself.

    The simulator asks this while no answer is pending.

    Parameters
    ----------
    rule : NamedTuple
        The state of the rule.
    ledger : Ledger
        The plays and answers so far.
    arm : int
        The arm.
    t : int
        The tick, from 1.

    Returns
    -------
    int
        The last such tick; t for a rule that cannot tell without choosing.
    """
    return t


@generic
def pass_over(rule: Any, turns: int) -> None:
    """Tell the rule that so many turns of a calm are skipped."""


@generic
def declared(rule: Any, ledger: Ledger) -> int:
    """Return the arm that the rule has declared the winner; -1 if none, as for most rules.

    Parameters
    ----------
    rule : NamedTuple
        The state of the rule.
    ledger : Ledger
        The plays and answers so far.

    Returns
    -------
    int
        The index of the arm, or -1.
    """
    return -1


@kernel
def turn(rule: Any, ledger: Ledger, t: int, rng: np.random.Generator) -> Any:
    """Advance the ledger to tick t, choose a pair and its order, and record the duel.

    Parameters
    ----------
    rule : NamedTuple
        The state of the rule.
    ledger : Ledger
        The plays and answers so far, which is changed.
    t : int
        The tick, from 1.
    rng : numpy.random.Generator
        The source of randomness.

    Returns
    -------
    tuple of int
        The first arm and the second.
    """
    age_to(ledger, t)
    i, j = pick(rule, ledger, t, rng)
    record(ledger, i, j, t)
    return i, j


@border
@entry
def turn_entry(rule: Any, ledger: Ledger, t: int, rng: np.random.Generator) -> Any:
    """`turn`, for Python to call."""
    return turn(rule, ledger, t, rng)


@border_of(lambda rule, ledger, t, rng, pairs: len(pairs))
@entry
def picks_entry(
    rule: Any, ledger: Ledger, t: int, rng: np.random.Generator, pairs: NDArray[np.int64]
) -> None:
    """Choose as many pairs as there are rows, (n, 2), from Python; nothing is recorded."""
    for row in range(pairs.shape[0]):
        i, j = pick(rule, ledger, t + row, rng)
        pairs[row, 0] = i
        pairs[row, 1] = j


@kernel
def pick(rule: Any, ledger: Ledger, t: int, rng: np.random.Generator) -> Any:
    """Choose a pair and its order."""
    i, j = select(rule, ledger, t, rng)
    k = ledger.plays.shape[0]
    if i < 0 or j < 0 or i >= k or j >= k:
        raise ValueError("select must return two arms, whole numbers from 0 to K - 1")
    if i == j and not ledger.self_duels:
        j = rival(ledger, i, t)
    return arrange(ledger.order, i, j, rng)
