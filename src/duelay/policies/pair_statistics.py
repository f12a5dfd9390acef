"""Statistics of a pair of arms that several rules use, as kernels: bounds, wins and counts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from duelay._core.jit.decorators import kernel
from duelay.ledger.delay_models.base import drifts, final_age, pair_counts
from duelay.ledger.ledger import Ledger


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
def only_one(active: Any) -> int:
    """Return the only active arm; -1 if several or none are active."""
    n_active, last = 0, -1
    for i in range(active.size):
        if active[i]:
            n_active += 1
            last = i
    return last if n_active == 1 else -1


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
    n, n_tilde, s = pair_counts(ledger.assumed, ledger.plays, ledger.conversions, i, j)
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
    if final_age(ledger.assumed) == 0:
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
    n, n_tilde, s = pair_counts(ledger.assumed, ledger.plays, ledger.conversions, i, j)
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
    _, n_tilde, s = pair_counts(ledger.assumed, ledger.plays, ledger.conversions, i, j)
    return min(max(s, 0.0), n_tilde), n_tilde
