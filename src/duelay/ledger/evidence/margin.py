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
than epsilon.

By the clock, arms may join and be retired. The n-th arm to join takes a share of the error of its
own, 0.1 error / (n (n + 1)), for its pairs with the arms before it, and the pairs of the first arms
have the rest. A two-sided end is a bound over pairs, to which retiring an arm adds nothing.
Otherwise a first arm needs L over the arms that are retired as well, or a larger L over those that
are present (`log_level_over_present`). docs/theory.md has the proofs.
"""

from __future__ import annotations

import math
from typing import Any

from duelay._core.jit.decorators import kernel

RUNNING, WINNER, GOOD_ENOUGH, EQUIVALENT = 0, 1, 2, 3
VERDICTS = ("running", "winner", "good_enough", "equivalent")
ENDS = ("good_enough", "equivalent")
_STEPS = 60  # of a bisection for alpha
_JOINS, _RETIRED = 0.1, 0.1  # shares of the error: of arms that join, and of a choice of who stays


def log_level(n_arms: int, error: float, *, two_sided: bool, may_change: bool = False) -> float:
    """Return log L of the first arms; `may_change` leaves room for arms that join or are retired.

    A two-sided end is a statement on every pair, and L pays for all of them.
    """
    share = 1.0
    if may_change:
        share -= _JOINS if two_sided else _JOINS + _RETIRED
    return math.log(n_arms * ((n_arms - 1) if two_sided else 1) / (share * error))


def log_level_over_present(n_arms: int, error: float, *, two_sided: bool) -> float:
    """Return log L of a first arm that has not passed all retired ones, over those present."""
    if two_sided:
        return log_level(n_arms, error, two_sided=True, may_change=True)
    return math.log(n_arms * (n_arms - 1) / (_RETIRED * error))


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
    """Add the bets of tie bettors on a booked duel of i, first, and j, with stake kappa."""
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
    """Add the bets on i not being beaten by epsilon, by a vote that gives it `won`."""
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
def needed_with_margin(eprocess: Any, i: int, j: int, lacks: bool) -> float:
    """Return the log evidence over j that i needs; `lacks`: it has not passed all retired arms."""
    n = max(eprocess.joined[i], eprocess.joined[j])
    if n > 0:  # arms are numbered as they come: the later one has max(i, j) arms before it
        return math.log(2.0 * max(i, j) * n * (n + 1.0) / (_JOINS * eprocess.error))
    return float(eprocess.level_over_present if lacks else eprocess.level)


@kernel
def passes(eprocess: Any, i: int, j: int, level: float, wins: bool) -> bool:
    """Whether i has shown at a level that it beats j (`wins`), or that the two may end there."""
    best, bar = eprocess.best[i, j], eprocess.best_bar[i, j]
    if wins:
        return bool(best >= level and (eprocess.is_two_sided or bar >= level))
    if eprocess.is_two_sided:
        return bool(best >= level or (bar >= level and eprocess.best_bar[j, i] >= level))
    return bool(bar >= level)


@kernel
def lacks_a_retired(eprocess: Any, i: int, wins: bool) -> bool:
    """Whether a first arm has not passed some retired first arm."""
    if not eprocess.has_changed or eprocess.joined[i] > 0:
        return False
    for j in range(eprocess.joined.size):
        if j != i and not eprocess.present[j] and eprocess.joined[j] == 0:
            if not passes(eprocess, i, j, eprocess.level, wins):
                return True
    return False


@kernel
def holds(eprocess: Any, i: int, wins: bool) -> bool:
    """Whether i has passed all arms present, so that it wins, or may end the experiment."""
    if not eprocess.present[i]:
        return False
    lacks = lacks_a_retired(eprocess, i, wins)
    for j in range(eprocess.doubts.size):
        if j != i and eprocess.present[j]:
            if not passes(eprocess, i, j, needed_with_margin(eprocess, i, j, lacks), wins):
                return False
    return True


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
def is_done(eprocess: Any, i: int, j: int) -> bool:
    """Whether the leader i needs no more duels with j."""
    lacks = lacks_a_retired(eprocess, i, False)
    return passes(eprocess, i, j, needed_with_margin(eprocess, i, j, lacks), False)


@kernel
def find_verdict(eprocess: Any, i: int) -> int:
    """Return the strongest statement about i that would end the experiment; else RUNNING."""
    if holds(eprocess, i, True):
        return WINNER
    if holds(eprocess, i, False):
        return EQUIVALENT if eprocess.is_two_sided else GOOD_ENOUGH
    return RUNNING


@kernel
def missing_to_tie(eprocess: Any, i: int) -> float:
    """The log evidence that i lacks to be good enough: the sum of (log L - log Ebar_ij)+."""
    total, lacks = 0.0, lacks_a_retired(eprocess, i, False)
    for j in range(eprocess.doubts.size):
        if j != i and eprocess.present[j]:
            level = needed_with_margin(eprocess, i, j, lacks)
            total += max(level - eprocess.log_bar[i, j], 0.0)
    return total
