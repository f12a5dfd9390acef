"""Posterior estimates without a guarantee: the winner, and the loss of stopping now.

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

from duelay._core.arrays import Floats
from duelay._core.linear_systems import backward, factored, forward
from duelay.inference.evidence import Evidence
from duelay.inference.forecast import DuelsLeft, forecast_duels

_ARM, _PAIR = 0.1, 0.05  # standard deviations of a strength, and of a pair's own part
_DRAWS = 2000
_MAX_CONTENDERS = 30  # arms that may have a chance
# With more arms there are fewer draws.
_MAX_NUMBERS, _MIN_DRAWS = 1_000_000, 100


class Posterior(NamedTuple):
    """Posterior estimates."""

    chances: Floats  # (K,): the probability that each arm beats all others
    loss: float  # how often the leader loses to its strongest rival beyond one half, on average
    duels_left: DuelsLeft | None  # None where it cannot be told


def draw_posterior(
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
    who, gaps = draw_gaps(lead, n, leader, present, draws)
    leave_out_retired(who, gaps, present)
    is_winner = find_best(who, gaps)
    chances = np.zeros(len(lead))
    chances[who] = is_winner.mean(axis=0)
    if evidence is not None and evidence.winner_exists:
        chances /= max(chances.sum(), 1.0 / len(gaps))
    loss = np.maximum(-gaps[:, np.flatnonzero(who == leader)[0]], 0.0).max(axis=1).mean()
    left = None
    if evidence is not None and evidence.margin is not None:  # also ends where nothing differs
        is_near = find_best(who, gaps, evidence.margin)
        left = forecast_duels(evidence, who, gaps + evidence.margin, is_near)
    elif evidence is not None:
        left = forecast_duels(evidence, who, gaps, is_winner)
    return Posterior(chances, float(loss), left)


def leave_out_retired(who: NDArray[np.int64], gaps: Floats, present: NDArray[np.bool_]) -> None:
    """Let retired arms lose to all others, in place: they neither win nor prevent a win."""
    gaps[:, :, ~present] = 1.0
    gaps[:, ~present[who], :] = -1.0
    gaps[:, np.arange(len(who)), who] = 0.0


def find_best(who: NDArray[np.int64], gaps: Floats, margin: float = 0.0) -> NDArray[np.bool_]:
    """(draws, M): whether no other arm beats the arm, or beats it by the margin or more."""
    is_own = np.arange(gaps.shape[2]) == who[:, None]
    return np.asarray(((gaps > -margin) | is_own).all(axis=2))


def draw_gaps(
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
