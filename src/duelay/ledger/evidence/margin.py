"""Bets that no arm is much better: an end of an experiment in which nothing differs.

With a margin epsilon, a *tie bettor* on i over j bets against mu_ij <= m0 = 1/2 - epsilon. T_ij is
the mean of two products, one for h = epsilon and one for h = 2 epsilon, with m1 = m0 + h. A vote x
for i, in [0, 1], multiplies by 1 + h (x - m0) / (m0 (1 - m0)). Where conversions are told, a booked
duel multiplies by q / p of what happened: converted or silent, with i or j first, where

    p = (alpha m0, alpha (1 - m0), 1 - alpha m0, 1 - alpha (1 - m0)) / 2

and q is the same with phi and m1. phi is the guess of the answered share when the duel was asked,
and alpha solves

    phi / alpha = m0 (1 - phi m1) / (1 - alpha m0)
                  + (1 - m0) (1 - phi (1 - m1)) / (1 - alpha (1 - m0)).

Then the factor has the mean 1 at mu = m0 for every answered share, and a smaller one below. So
Ebar_ij = (E_ij + T_ij) / 2 is a supermartingale where j beats i by epsilon or more.

With L = K / error, i *wins* once E_ij and Ebar_ij have reached L for all j, and i is *good enough*
(no arm beats it by epsilon or more) once Ebar_ij has. If an end is two-sided, L is K (K - 1) /
error, i *wins* once E_ij has reached L for all j, and i is *equivalent* once for each j either E_ij
has, or both Ebar_ij and Ebar_ji have: each arm that i is not known to beat differs from it by less
than epsilon. docs/theory.md has the proof.
"""

from __future__ import annotations

import math
from typing import Any

from duelay._core.jit.decorators import kernel

RUNNING, WINNER, GOOD_ENOUGH, EQUIVALENT = 0, 1, 2, 3
VERDICTS = ("running", "winner", "good_enough", "equivalent")
ENDS = ("good_enough", "equivalent")
_STEPS = 60  # of a bisection for alpha


def log_level(n_arms: int, error: float, *, two_sided: bool) -> float:
    """Return log L. A two-sided end is a statement on every pair, and L pays for all of them."""
    return math.log(n_arms * ((n_arms - 1) if two_sided else 1) / error)


@kernel
def silence_balance(alpha: float, phi: float, m0: float, m1: float) -> float:
    """The difference of both sides of the equation for alpha, which falls with alpha."""
    own = m0 * (1.0 - phi * m1) / (1.0 - alpha * m0)
    other = (1.0 - m0) * (1.0 - phi * (1.0 - m1)) / (1.0 - alpha * (1.0 - m0))
    return phi / alpha - own - other


@kernel
def fill_tie_odds(eprocess: Any, kappa: float) -> None:
    """Let booked duels have the stake kappa = phi / (2 - phi) for the tie bettors."""
    eprocess.tie_kappa[0] = kappa
    phi, m0 = 2.0 * kappa / (1.0 + kappa), 0.5 - eprocess.margin
    for place in range(2):
        m1 = m0 + (place + 1.0) * eprocess.margin
        low, high = 0.0, 1.0
        for _ in range(_STEPS):
            middle = 0.5 * (low + high)
            if silence_balance(middle, phi, m0, m1) > 0.0:
                low = middle
            else:
                high = middle
        alpha = 0.5 * (low + high)
        odds = eprocess.tie_odds
        odds[0, place] = math.log(phi * m1 / (alpha * m0))
        odds[1, place] = math.log(phi * (1.0 - m1) / (alpha * (1.0 - m0)))
        odds[2, place] = math.log((1.0 - phi * m1) / (1.0 - alpha * m0))
        odds[3, place] = math.log((1.0 - phi * (1.0 - m1)) / (1.0 - alpha * (1.0 - m0)))


@kernel
def bet_on_ties(
    eprocess: Any, i: int, j: int, is_answered: bool, first_won: float, kappa: float
) -> None:
    """Settle the bets of tie bettors on a booked duel of i, first, and j, with stake kappa."""
    if eprocess.is_vote:
        if is_answered:
            bet_on_vote(eprocess, i, j, first_won)
            bet_on_vote(eprocess, j, i, 1.0 - first_won)
        return
    if kappa != eprocess.tie_kappa[0]:
        fill_tie_odds(eprocess, kappa)
    own = 0 if is_answered else 2
    for place in range(2):
        eprocess.tie_wealth[i, j, place] += eprocess.tie_odds[own, place]
        eprocess.tie_wealth[j, i, place] += eprocess.tie_odds[own + 1, place]


@kernel
def bet_on_vote(eprocess: Any, i: int, j: int, won: float) -> None:
    """Settle the bets on i not being beaten by epsilon, by a vote that gives it `won`."""
    m0 = 0.5 - eprocess.margin
    for place in range(2):
        h = (place + 1.0) * eprocess.margin
        eprocess.tie_wealth[i, j, place] += math.log1p(h * (won - m0) / (m0 * (1.0 - m0)))


@kernel
def look_at_tie(eprocess: Any, i: int, j: int) -> None:
    """Reckon Ebar_ij after news of the pair."""
    parts = (
        eprocess.log_evidence[i, j] + math.log(0.5),
        eprocess.tie_wealth[i, j, 0] + math.log(0.25),
        eprocess.tie_wealth[i, j, 1] + math.log(0.25),
    )
    most = max(parts[0], parts[1], parts[2])
    total = math.exp(parts[0] - most) + math.exp(parts[1] - most) + math.exp(parts[2] - most)
    eprocess.log_bar[i, j] = most + math.log(total)
    eprocess.best_bar[i, j] = max(eprocess.best_bar[i, j], eprocess.log_bar[i, j])


@kernel
def has_won(eprocess: Any, i: int, j: int) -> bool:
    """Whether i has shown that it beats j."""
    if eprocess.best[i, j] < eprocess.level:
        return False
    return bool(eprocess.is_two_sided or eprocess.best_bar[i, j] >= eprocess.level)


@kernel
def is_not_beaten(eprocess: Any, i: int, j: int) -> bool:
    """Whether i has shown that j does not beat it by epsilon or more."""
    return bool(eprocess.best_bar[i, j] >= eprocess.level)


@kernel
def is_ahead(eprocess: Any, i: int, j: int) -> bool:
    """Whether i is named before j where both may be: more evidence, else a count decides."""
    own, other = eprocess.log_bar[i, j], eprocess.log_bar[j, i]
    return bool(own > other or (own == other and int(eprocess.wins[i, j]) % 2 == 0))


@kernel
def end_evidence(eprocess: Any, i: int, j: int) -> float:
    """The log evidence for what ends the experiment of i with j: `is_done` is that it suffices."""
    if not eprocess.is_two_sided:
        return float(eprocess.best_bar[i, j])
    alike = min(eprocess.best_bar[i, j], eprocess.best_bar[j, i])
    return float(max(eprocess.best[i, j], alike))


@kernel
def is_alike(eprocess: Any, i: int, j: int) -> bool:
    """Whether i has shown that it beats j, or that the two differ by less than epsilon."""
    both = is_not_beaten(eprocess, i, j) and is_not_beaten(eprocess, j, i)
    return bool(eprocess.best[i, j] >= eprocess.level or both)


@kernel
def is_done(eprocess: Any, i: int, j: int) -> bool:
    """Whether the leader i needs no more duels with j."""
    if eprocess.is_two_sided:
        return is_alike(eprocess, i, j)
    return is_not_beaten(eprocess, i, j)


@kernel
def find_verdict(eprocess: Any, i: int) -> int:
    """Return the strongest statement about i that would end the experiment; else RUNNING."""
    wins, ends = True, True
    for j in range(eprocess.doubts.size):
        if j != i:
            wins = wins and has_won(eprocess, i, j)
            ends = ends and is_done(eprocess, i, j)
    if wins:
        return WINNER
    if ends:
        return EQUIVALENT if eprocess.is_two_sided else GOOD_ENOUGH
    return RUNNING


@kernel
def missing_to_tie(eprocess: Any, i: int) -> float:
    """The log evidence that i lacks to be good enough: the sum of (log L - log Ebar_ij)+."""
    total = 0.0
    for j in range(eprocess.doubts.size):
        if j != i:
            total += max(eprocess.level - eprocess.log_bar[i, j], 0.0)
    return total
