"""Borda scores of a standing, with intervals for one look."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from duelay._core.jit.decorators import kernel
from duelay.ledger.delay_models.base import pair_counts
from duelay.ledger.ledger import Estimates, Ledger


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


@kernel
def is_behind(ledger: Ledger, i: int, j: int, log_error: float, t: int) -> bool:
    """Whether the Borda score of i is below that of j, but for an error of e^-log_error.

    Let S_i be the sum of S_ik over all k. Then S_j - S_i is the sum over k of N~_jk mu_jk -
    N~_ik mu_ik, plus a martingale M. A step of M has a range of 1, or of 2 in a duel of i and j.
    Let V be the sum of the squared ranges over 4. But for that error,

        M^2 <= 2 (V + r) (log_error + log((V + r) / r) / 2),

    where r is fixed: a twentieth of V, as guessed from t. Every pair counts c times, where c is the
    least N~. The N~ of j's pairs beyond c may lift S_j by as much. So it is subtracted.
    """
    k = ledger.plays.shape[0]
    lead, v, more, least = 0.0, 0.0, 0.0, math.inf
    for other in range(k):
        if other != i:
            n, n_tilde, s = pair_counts(ledger.assumed, ledger.plays, ledger.conversions, i, other)
            lead -= s
            v += 0.25 * n
            least = min(least, n_tilde)
            if other == j:
                v += 0.5 * n
        if other != j:
            n, n_tilde, s = pair_counts(ledger.assumed, ledger.plays, ledger.conversions, j, other)
            lead += s
            v += 0.25 * n
            more += n_tilde
            least = min(least, n_tilde)
    more -= (k - 1) * least
    over = lead - more
    r = (t / k) * (1.0 + 1.0 / (k - 1)) / 20.0
    square = 2.0 * (v + r) * (log_error + 0.5 * math.log((v + r) / r))
    return bool(least > 0.0 and over > 0.0 and over * over > square)
