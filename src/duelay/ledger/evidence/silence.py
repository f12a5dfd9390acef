"""The waiting time W for an answer, and the weight kappa of a silence after it."""

from __future__ import annotations

import math
from typing import Any

from duelay._core.jit.background import border
from duelay._core.jit.decorators import kernel

_MIN_CONVERSIONS = 10  # conversions heard; before, W is the whole window


@kernel
def patience(bets: Any) -> Any:
    """W: four times the mean delay heard, and somewhat longer while little is heard."""
    n = bets.n_heard[0]
    if n < _MIN_CONVERSIONS or bets.told.is_told:
        return bets.window
    w = 4.0 * bets.delays[0] / n * (1.0 + 2.0 * _MIN_CONVERSIONS / n)
    if not bets.by_clock:
        w = math.floor(w) + 1.0
    return min(w, bets.window)


@kernel
def answered_share(answered: int, matured: int) -> float:
    """F^ = 2 answered / (matured + 10): the share of answers that come by age W."""
    return float(min(1.0, 2.0 * answered / (matured + 10.0)))


@kernel
def worth(bets: Any) -> float:
    """What an open duel will tell, in conversions: 1 for an answer, kappa^2 for a silence."""
    if bets.is_vote:
        return 1.0
    if bets.told.is_told:  # answer and silence together tell kappa(W), if the told law is true
        return float(max(bets.told.worth, 0.1))
    half, kappa = 0.5 * answered_share(bets.answered[0], bets.matured[0]), bets.kappa[0]
    return float(max(half + (1.0 - half) * kappa * kappa, 0.1))


@kernel
def fix_kappa(bets: Any) -> None:
    """kappa = F^ / (2 - F^), for later silences; fixed anew when the matured grow by a 20th."""
    share = answered_share(bets.answered[0], bets.matured[0])
    kappa = share / (2.0 - share)
    bets.kappa[0] = kappa
    bets.refit[0] = bets.matured[0] + bets.matured[0] // 20 + 1
    fill_silent(bets, kappa)


@border
@kernel
def fill_silent(bets: Any, kappa: float) -> None:
    """Let a silence be worth kappa, for bettors on either side."""
    for place in range(bets.gaps.size):
        bets.silent_won[place] = math.log1p(2.0 * kappa * bets.gaps[place])
        bets.silent_lost[place] = math.log1p(-2.0 * kappa * bets.gaps[place])
