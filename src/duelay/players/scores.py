"""Borda scores of a standing, with intervals for one look."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from duelay.ledger import Estimates, Ledger
from duelay.policies.borda import is_behind


class Scores(NamedTuple):
    """Borda scores, each (K,)."""

    score: NDArray[np.float64]  # estimates; 1/2 where unheard
    lower: NDArray[np.float64]  # the ends of their intervals, for all arms together
    upper: NDArray[np.float64]
    is_candidate: NDArray[np.bool_]  # whether no other score is larger for certain


def scores_of(estimates: Estimates) -> NDArray[np.float64]:
    """(K,): Borda scores, from all duels of an arm together; 1/2 where nothing is heard."""
    heard = estimates.expected.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(heard > 0, estimates.wins.sum(axis=1) / heard, 0.5)


def score_bounds(ledger: Ledger, confidence: float) -> Scores:
    """Return all Borda scores with intervals that hold together, for one look.

    The widths are Hoeffding's, plus the most that unequal weights of the opponents can matter.
    """
    estimates = ledger.estimates()
    k, n = len(ledger.plays), estimates.n.sum(axis=1)
    heard = estimates.expected.sum(axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        uneven = np.maximum(0.0, estimates.expected / heard - 1.0 / (k - 1))
        width = np.sqrt(n * math.log(2 * k / (1.0 - confidence)) / 2) / heard[:, 0]
    np.fill_diagonal(uneven, 0.0)
    width = np.where(heard[:, 0] > 0, width + uneven.sum(axis=1), np.inf)
    log_error, tick = math.log((k - 1) / (1.0 - confidence)), max(1, int(ledger.plays.sum()))
    is_candidate = [
        not any(is_behind(ledger, i, j, log_error, tick) for j in range(k) if j != i)
        for i in range(k)
    ]
    score = scores_of(estimates)
    return Scores(score, score - width, score + width, np.array(is_candidate))
