"""Posterior estimates without a guarantee: winner, loss of stopping now, and duels that are left.

In the prior, the gap mu_ij - 1/2 of two arms is the difference of their strengths, plus a part of
the pair's own. Strengths and own parts are normal around 0, with standard deviations 0.1 and 0.05.
So an arm that clearly beats one arm probably beats others, a circle is possible, and a gap is 0.15
from 0 or so. The posterior adds what the settled duels say. All gaps are drawn 2000 times, from the
same random numbers at every look. Of many arms, only the 30 that seem strongest have a chance: only
their gaps are drawn.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from duelay._core.linear_systems import backward, factored, forward
from duelay.inference.evidence import Evidence

Floats = NDArray[np.float64]
_ARM, _PAIR = 0.1, 0.05  # standard deviations of a strength, and of a pair's own part
_DRAWS = 2000
_MAX_CONTENDERS = 30  # arms that may have a chance
# With more arms there are fewer draws.
_MAX_NUMBERS, _MIN_DRAWS = 1_000_000, 100
_NEAR = 3  # if high is at most so many times low, `print` says "about"
_FEW_DUELS = 50  # duels
_ENDS, _LEAST_ENDS = 0.01, 5  # the least share and number of draws that must have a winner
_LEAST_GAP = 0.005  # smaller ones would take longer than anybody waits
_START = 2.0  # nats: what a mixture of gaps costs


class DuelsLeft(NamedTuple):
    """An estimate of the duels until a winner is declared.

    The true number is as often above the middle as below it. Under the prior it lies between low
    and high in most experiments at the start; of experiments that have run long, which are the hard
    ones, about half take longer than high. `print` shows the middle alone where low and high are
    near to each other.
    """

    low: int
    middle: int
    high: int

    def __str__(self) -> str:
        if self.high == 0 or (self.middle == 0 and self.high < _FEW_DUELS):
            return "the open duels may be enough"
        if self.high <= _NEAR * self.low:
            return f"about {self.middle:,} more duels"
        if self.low == 0:
            return f"probably up to {self.high:,} more duels"
        return f"probably {self.low:,} to {self.high:,} more duels"


class Posterior(NamedTuple):
    """Posterior estimates."""

    chances: Floats  # (K,): the probability that each arm beats all others
    loss: float  # how often the leader loses to its strongest rival beyond one half, on average
    duels_left: DuelsLeft | None  # None where it cannot be told


def opinions(
    lead: Floats,
    n: Floats,
    leader: int,
    evidence: Evidence | None,
    present: NDArray[np.bool_],
    draws: int = _DRAWS,
) -> Posterior:
    """Return the posterior estimates.

    Parameters
    ----------
    lead, n : (K, K), the wins less the losses of each pair, and its duels.
    leader : the arm that leads.
    evidence : of a policy that decides; None without a declaration to wait for.
    present : (K,), the arms that are not retired. A retired arm neither wins nor prevents a win.
    draws : of the posterior.
    """
    who, gaps = _draw_gaps(lead, n, leader, present, draws)
    gaps[:, :, ~present] = 1.0
    gaps[:, ~present[who], :] = -1.0
    gaps[:, np.arange(len(who)), who] = 0.0
    is_own = np.arange(len(lead)) == who[:, None]
    is_winner = np.asarray(((gaps > 0) | is_own).all(axis=2))
    chances = np.zeros(len(lead))
    chances[who] = is_winner.mean(axis=0)
    if evidence is not None and evidence.winner_exists:
        chances /= max(chances.sum(), 1.0 / len(gaps))
    loss = np.maximum(-gaps[:, np.flatnonzero(who == leader)[0]], 0.0).max(axis=1).mean()
    left = None
    if (
        evidence is not None and evidence.margin is not None
    ):  # which also ends where nothing differs
        is_near = np.asarray(((gaps > -evidence.margin) | is_own).all(axis=2))
        left = _duels_left(evidence, who, gaps + evidence.margin, is_near)
    elif evidence is not None:
        left = _duels_left(evidence, who, gaps, is_winner)
    return Posterior(chances, float(loss), left)


def _draw_gaps(
    lead: Floats, n: Floats, leader: int, present: NDArray[np.bool_], draws: int
) -> tuple[NDArray[np.int64], Floats]:
    """Draw mu_ij - 1/2 of the arms that may have a chance against all; return these arms, too.

    The gaps are (draws, M, K).
    """
    k = len(lead)
    m = min(k, _MAX_CONTENDERS)
    n_draws = (
        draws if k <= _MAX_CONTENDERS else min(draws, max(_MAX_NUMBERS // (m * k), _MIN_DRAWS))
    )
    rng = np.random.default_rng(0)
    strength, usual = _draw_strengths(lead, n, rng.standard_normal((n_draws, k)))
    rank = np.lexsort((-usual, ~present, np.arange(k) != leader))
    who = np.sort(rank[:m])
    # The gap of two arms that have a chance is drawn once: of the one with the lower number.
    low, high = np.nonzero((who[:, None] < np.arange(k)) | ~np.isin(np.arange(k), who))
    noise = np.zeros((n_draws, m, k))
    noise[:, low, high] = rng.standard_normal((n_draws, len(low)))
    precision = 4.0 * n[who] + _PAIR**-2
    gaps = strength[:, who, None] - strength[:, None, :]
    gaps *= _PAIR**-2  # in place from here on: these are a million numbers
    gaps += 2.0 * lead[who]
    gaps /= precision
    noise /= np.sqrt(precision)
    gaps += noise
    both = gaps[:, :, who]
    gaps[:, :, who] = np.triu(both, 1) - np.triu(both, 1).transpose(0, 2, 1)
    return who, gaps


def _draw_strengths(lead: Floats, n: Floats, noise: Floats) -> tuple[Floats, Floats]:
    """Turn standard normal noise, (draws, K), into strengths of the arms from their posterior.

    Return them, and their mean, (K,).

    A pair says that the difference of two strengths is lead / (2 n), with variance 1 / (4 n) plus
    that of the pair's own part. Together with the prior this is a linear system.
    """
    weight = 4.0 * n / (1.0 + 4.0 * n * _PAIR**2)
    np.fill_diagonal(weight, 0.0)
    precision = np.diag(weight.sum(axis=1) + _ARM**-2) - weight
    said = (weight * lead / np.maximum(2.0 * n, 1e-300)).sum(axis=1)
    factor = factored(precision)
    half = forward(factor, said)
    both = backward(factor, np.column_stack([half, noise.T]))  # cheaper than an inverse
    mean = both[:, 0]
    return np.asarray(mean + both[:, 1:].T), mean


def _duels_left(
    evidence: Evidence, who: NDArray[np.int64], gaps: Floats, is_winner: NDArray[np.bool_]
) -> DuelsLeft | None:
    """Sum over a winner's rivals the duels until the evidence that is missing has come.

    Each draw has its own winner; draws without one would never end, and are left out. A duel adds
    2 g^2 on average, and the log evidence is nearly a Brownian motion with twice that as variance,
    so that the duels have an inverse Gaussian law. A mixture of gaps costs 2 nats at the start.
    Duels that wait to be booked have been asked already; when the last one has been asked, it waits
    as long.
    """
    if evidence.verdict != "running":
        return DuelsLeft(0, 0, 0)
    draws, winner = np.nonzero(is_winner)
    if len(draws) < max(_ENDS * len(gaps), _LEAST_ENDS):
        return None
    gap, winner = gaps[draws, winner], who[winner]
    speed = 2.0 * np.maximum(gap, _LEAST_GAP) ** 2 * evidence.worth
    lacks = evidence.lacks[winner]
    if evidence.margin is None:
        start = np.clip(_START - evidence.log_evidence[winner], 0.0, _START)
        lacks = np.where(lacks > 0.0, lacks + start, 0.0)
    some = np.maximum(lacks, 1e-9)
    duels = np.random.default_rng(1).wald(some / speed, some**2 / (2.0 * speed))
    waiting = np.where(lacks > 0.0, duels - evidence.n_waiting[winner], 0.0)
    needed = np.maximum(waiting, 0.0).sum(axis=1)
    needed += np.where(needed > 0.0, evidence.n_waiting.sum() // 2, 0)
    return DuelsLeft(*(int(float(f"{n:.2g}")) for n in np.percentile(needed, [5, 50, 95])))
