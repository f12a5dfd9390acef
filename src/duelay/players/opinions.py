"""Opinions, not guarantees: who may be the winner, what stopping now costs, how long it takes.

Each gap is taken for normal: a prior of mean 0 and standard deviation 0.15, and what the settled
duels of the pair say. 2000 draws of all gaps, the same ones at every look.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from duelay.players.evidence import Evidence

Floats = NDArray[np.float64]
_PRIOR = 0.15  # the standard deviation of a gap
_DRAWS = 2000
_MOST = 20_000_000  # numbers drawn
_LEAST_GAP = 0.005  # smaller ones would take longer than anybody waits


class DuelsLeft(NamedTuple):
    """An estimate of the duels until a winner is declared.

    They lie between low and high four times in five.
    """

    low: int
    middle: int
    high: int


class Opinions(NamedTuple):
    """What the posterior says."""

    chances: Floats  # (K,): the probability that each arm beats all others
    loss: float  # how often the leader loses to its strongest rival beyond one half, on average
    duels_left: DuelsLeft | None  # None where it cannot be told


def opinions(
    lead: Floats, n: Floats, leader: int, evidence: Evidence | None, present: NDArray[np.bool_]
) -> Opinions:
    """Return what the posterior says, of `lead` more wins than losses in n duels of each pair.

    A retired arm neither wins nor is in the way.
    """
    gaps = _draw_gaps(lead, n)
    gaps[:, :, ~present] = 1.0
    gaps[:, ~present, :] = -1.0
    is_winner = np.asarray((gaps + np.eye(gaps.shape[1]) > 0).all(axis=2))
    chances = is_winner.mean(axis=0)
    if evidence is not None and evidence.winner_exists:
        chances /= max(chances.sum(), 1.0 / len(gaps))
    loss = np.maximum(-gaps[:, leader], 0.0).max(axis=1).mean()
    left = None if evidence is None else _duels_left(evidence, gaps, is_winner)
    return Opinions(chances, float(loss), left)


def _draw_gaps(lead: Floats, n: Floats) -> Floats:
    """Draw mu_ij - 1/2 of all pairs from the posterior, (draws, K, K)."""
    k = len(lead)
    n_draws = int(np.clip(_MOST // (k * k), 100, _DRAWS))
    low, high = np.triu_indices(k, 1)
    precision = 4.0 * n[low, high] + _PRIOR**-2
    mean = 2.0 * lead[low, high] / precision
    noise = np.random.default_rng(0).standard_normal((n_draws, len(low)))
    gaps = np.zeros((n_draws, k, k))
    gaps[:, low, high] = mean + noise / np.sqrt(precision)
    gaps[:, high, low] = -gaps[:, low, high]
    return gaps


def _duels_left(evidence: Evidence, gaps: Floats, is_winner: NDArray[np.bool_]) -> DuelsLeft | None:
    """Sum over a winner's rivals what the evidence lacks, over 2 g^2, what a conversion adds to it.

    Each draw has its own winner; those without one would never end.
    """
    if evidence.winner is not None:
        return DuelsLeft(0, 0, 0)
    draws, winner = np.nonzero(is_winner)
    if len(draws) < 20:
        return None
    gap = gaps[draws, winner]
    speed = 2.0 * np.maximum(gap, _LEAST_GAP) ** 2 * evidence.worth
    needed = np.maximum(evidence.lacks[winner] / speed - evidence.n_open[winner], 0.0).sum(axis=1)
    return DuelsLeft(*(int(float(f"{n:.2g}")) for n in np.percentile(needed, [10, 50, 90])))
