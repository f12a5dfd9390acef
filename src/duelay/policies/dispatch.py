"""The turn of any rule: functions that the live player and the simulator share."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duelay._core.jit.background import border, border_of
from duelay._core.jit.decorators import entry, generic, kernel
from duelay.ledger import Ledger, age_to, record
from duelay.ledger.delay_models.base import drifts, evidence, settles
from duelay.ledger.display_order import arrange

_RIVAL_ALPHA = 0.51  # width of the bounds that choose a rival where self-duels are not allowed


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
def only_one(active: Any) -> int:
    """Return the only active arm; -1 if several or none are active."""
    n_active, last = 0, -1
    for i in range(active.size):
        if active[i]:
            n_active += 1
            last = i
    return last if n_active == 1 else -1


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
def take_turn(rule: Any, ledger: Ledger, t: int, rng: np.random.Generator) -> Any:
    """`turn`, for Python to call."""
    return turn(rule, ledger, t, rng)


@border_of(lambda rule, ledger, t, rng, pairs: len(pairs))
@entry
def take_picks(
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


@border
@kernel
def rival(ledger: Ledger, i: int, t: int) -> int:
    """Return the arm other than i with the largest U_ji, as RUCB chooses it.

    Parameters
    ----------
    ledger : Ledger
        The plays and answers so far.
    i : int
        The champion.
    t : int
        The tick, from 1.

    Returns
    -------
    int
        The index of the rival.
    """
    best, highest = 0 if i else 1, -math.inf
    for j in range(ledger.plays.shape[0]):
        if j != i:
            u = upper_bound(ledger, j, i, _RIVAL_ALPHA * math.log(t))
            if u > highest:
                best, highest = j, u
    return best


@kernel
def least_asked(ledger: Ledger, rng: np.random.Generator) -> Any:
    """Return the two different arms with the fewest duels; one of them at random if they tie.

    The arm that was shown first less often comes first, which only the order "champion" keeps.
    """
    first, second, least, ties = 0, 0, 0, 0
    for i in range(ledger.plays.shape[0]):
        for j in range(i):
            n = ledger.plays[i, j] + ledger.plays[j, i]
            if ties == 0 or n < least:
                first, second, least, ties = i, j, n, 1
            elif n == least:
                ties += 1
                if rng.random() * ties < 1.0:
                    first, second = i, j
    if ledger.plays[first, second] > ledger.plays[second, first]:
        return second, first
    return first, second


@kernel
def is_beaten(ledger: Ledger, i: int, j: int, width: float) -> bool:
    """Whether U_ij < 1/2: N~/2 - S > 0 and (N~/2 - S)^2 > width N, without division or root.

    Parameters
    ----------
    ledger : Ledger
        The plays and answers so far.
    i, j : int
        The pair.
    width : float
        The factor of N_ij under the root; see `upper_bound`.

    Returns
    -------
    bool
        Whether j beats i with confidence.
    """
    n, n_tilde, s = evidence(ledger.assumed, ledger.plays, ledger.conversions, i, j)
    short = 0.5 * n_tilde - s
    return bool(n_tilde > 0.0 and short > 0.0 and short * short > width * n)


@kernel
def stays_unbeaten(ledger: Ledger, i: int, j: int, width: float) -> bool:
    """Whether U_ij, at least 1/2 now, stays so until i or j has a new duel or answer.

    Without one only the width and *expected* grow, and N~/2 - S is at most
    conversions[j,i] - conversions[i,j] + plays[i,j] / 2.
    """
    if drifts(ledger.assumed):
        return False
    if settles(ledger.assumed) == 0:
        return True  # then *expected* does not grow by itself
    plays, conversions = ledger.plays, ledger.conversions
    short = conversions[j, i] - conversions[i, j] + 0.5 * plays[i, j]
    return bool(short <= 0.0 or short * short <= width * (plays[i, j] + plays[j, i]))


@kernel
def upper_bound(ledger: Ledger, i: int, j: int, width: float) -> float:
    """Return U_ij = mu^_ij + sqrt(width N_ij) / N~_ij; infinite where N~_ij is 0.

    Equation 5 has width = alpha log t, Remark 1 (RR-DB-Delay) width = log(K t / delta).

    Parameters
    ----------
    ledger : Ledger
        The plays and answers so far.
    i, j : int
        The pair.
    width : float
        The factor of N_ij under the root.

    Returns
    -------
    float
        U_ij.
    """
    n, n_tilde, s = evidence(ledger.assumed, ledger.plays, ledger.conversions, i, j)
    if n_tilde <= 0.0:
        return math.inf
    return float((s + math.sqrt(width * n)) / n_tilde)


@kernel
def wins_and_count(ledger: Ledger, i: int, j: int) -> Any:
    """Return S_ij, clipped to [0, N~_ij], and N~_ij: the wins and duels of a Beta posterior.

    Parameters
    ----------
    ledger : Ledger
        The plays and answers so far.
    i, j : int
        The pair.

    Returns
    -------
    tuple of float
        The wins of i and the number of duels.
    """
    _, n_tilde, s = evidence(ledger.assumed, ledger.plays, ledger.conversions, i, j)
    return min(max(s, 0.0), n_tilde), n_tilde
