"""The waiting time W for an answer, and the weight kappa of a silence after it."""

from __future__ import annotations

import math
from typing import Any

from duelay._core.jit.background import border
from duelay._core.jit.decorators import kernel

MIN_CONVERSIONS = 10  # heard; before, W is the first one that is given, or the whole window
MULTIPLE = 3.0  # W, in mean delays
FIRST_KAPPA = 0.6  # before duels are booked: F^ = 3/4


@kernel
def patience(eprocess: Any) -> Any:
    """W: a multiple of the mean delay heard so far, and somewhat more while little is heard.

    Late answers count in the mean. Otherwise a short W would keep itself short.
    """
    n = eprocess.n_heard[0]
    if eprocess.told.is_told:
        return eprocess.window
    if n < MIN_CONVERSIONS:
        return eprocess.first_wait if eprocess.first_wait > 0.0 else eprocess.window
    w = MULTIPLE * eprocess.delays[0] / n * (1.0 + 2.0 * MIN_CONVERSIONS / n)
    if not eprocess.by_clock:
        w = math.floor(w) + 1.0
    return min(w, eprocess.window)


@kernel
def answered_share(answered: int, matured: int) -> float:
    """F^ = (2 answered + 7.5) / (matured + 10): the share of answers that come by age W."""
    return float(min(1.0, (2.0 * answered + 7.5) / (matured + 10.0)))


@kernel
def worth(eprocess: Any) -> float:
    """What an open duel will tell, in conversions: 1 for an answer, kappa^2 for a silence."""
    if eprocess.is_vote:
        return 1.0
    if eprocess.told.is_told:  # answer and silence together tell kappa(W), if the told law is true
        return float(max(eprocess.told.worth, 0.1))
    share = answered_share(eprocess.n_answered[0], eprocess.n_matured[0])
    half, kappa = 0.5 * share, eprocess.kappa[0]
    return float(max(half + (1.0 - half) * kappa * kappa, 0.1))


@kernel
def fix_kappa(eprocess: Any) -> None:
    """kappa = F^ / (2 - F^), for later duels; fixed anew when the booked ones grow by a 20th."""
    share = answered_share(eprocess.n_answered[0], eprocess.n_matured[0])
    eprocess.kappa[0] = share / (2.0 - share)
    eprocess.refit[0] = eprocess.n_matured[0] + eprocess.n_matured[0] // 20 + 1


@border
@kernel
def fill_silent(eprocess: Any, kappa: float) -> None:
    """Let the silence that is booked be worth kappa, for bettors on either side."""
    eprocess.silent_kappa[0] = kappa
    for place in range(eprocess.gaps.size):
        eprocess.silent_won[place] = math.log1p(2.0 * kappa * eprocess.gaps[place])
        eprocess.silent_lost[place] = math.log1p(-2.0 * kappa * eprocess.gaps[place])
