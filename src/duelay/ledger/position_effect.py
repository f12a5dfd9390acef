"""The effect of the first position: what being shown first adds to the chance of winning.

Being shown first may help any arm. With votes and `corrects_position` this bonus is estimated and
taken out of the estimates: over the two orders of a pair, each weighted alike, the first wins
1/2 + bonus of the time, whatever the preferences. A pair that is always shown in one order tells
nothing, and neither does a self-duel, which a live program shows as one arm alone. An estimate
within two standard errors of 0 counts as no bonus.

The state is that of `duelay.ledger.votes.Votes`.
"""

from __future__ import annotations

from typing import Any

from duelay._core.jit.decorators import kernel


@kernel
def first_bonus(assumed: Any) -> float:
    """Return what being shown first adds to the chance of winning, as far as the votes tell.

    The estimate is shrunk by 1 - (2 standard errors / estimate)^2; it is 0 where that is negative.
    """
    weight = assumed.weight[0]
    if not assumed.is_corrected or weight <= 0.0:
        return 0.0
    estimate = assumed.bonus[0] / weight
    if estimate * estimate * weight <= 4.0:
        return 0.0
    return float(estimate * (1.0 - 4.0 / (estimate * estimate * weight)))


@kernel
def update_bonus(assumed: Any, i: int, j: int, sign: float) -> None:
    """Add a pair's estimate of the bonus, weighted by 1 / variance; take it out with sign -1."""
    n, m = assumed.answers[i, j], assumed.answers[j, i]
    if n <= 0.0 or m <= 0.0 or i == j:
        return
    weight = 16.0 * n * m / (n + m)  # of the mean of both orders
    told = 0.5 * (assumed.wins[i, j] / n + assumed.wins[j, i] / m - 1.0)
    assumed.weight[0] += sign * weight
    assumed.bonus[0] += sign * weight * told
