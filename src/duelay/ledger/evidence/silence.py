"""The waiting time W for an answer, and the weight kappa of a silence after it."""

from __future__ import annotations

import math
from typing import Any

from duelay._core.jit.background import border
from duelay._core.jit.decorators import kernel

MIN_CONVERSIONS = 10  # heard; before, W is the first one that is given, or the whole window
MIN_CONVERSIONS_OF_ONE = 3  # the same, where one arm is shown at a time: they are rare there
MULTIPLE = 3.0  # W, in mean delays
FIRST_SHARE = 0.75  # F^ before duels are booked
FIRST_SHARE_OF_ONE = 0.1  # where one arm is shown at a time: most visitors do not convert


@kernel
def min_conversions(eprocess: Any) -> int:
    """Return from how many conversions on W is known."""
    return MIN_CONVERSIONS_OF_ONE if eprocess.shows_one else MIN_CONVERSIONS


@kernel
def next_wait(eprocess: Any) -> Any:
    """W: a multiple of the mean delay heard so far, and somewhat more while little is heard.

    Late answers count in the mean. Otherwise a short W would keep itself short.
    """
    n = eprocess.n_heard[0]
    if eprocess.told.is_told:
        return eprocess.window
    if n < min_conversions(eprocess):
        return eprocess.first_wait if eprocess.first_wait > 0.0 else eprocess.window
    w = MULTIPLE * eprocess.delays[0] / n * (1.0 + 2.0 * MIN_CONVERSIONS / max(n, MIN_CONVERSIONS))
    if not eprocess.by_clock:
        w = math.floor(w) + 1.0
    return min(w, eprocess.window)


def first_kappa(*, shows_one: bool) -> float:
    """Return kappa before duels are booked: 0.6 for pairs."""
    share = FIRST_SHARE_OF_ONE if shows_one else FIRST_SHARE
    return share / (2.0 - share)


@kernel
def answered_share(answered: int, booked: int, first: float = FIRST_SHARE) -> float:
    """F^ = (2 answered + 10 first) / (booked + 10): the share of answers that come by age W.

    Where one arm is shown at a time, it is the share times the sum of both conversion rates.
    """
    return float(min(1.0, (2.0 * answered + 10.0 * first) / (booked + 10.0)))


@kernel
def share_now(eprocess: Any) -> float:
    """F^ of the duels that are booked by now."""
    first = FIRST_SHARE_OF_ONE if eprocess.shows_one else FIRST_SHARE
    return float(answered_share(eprocess.n_answered[0], eprocess.n_booked[0], first))


@kernel
def worth(eprocess: Any) -> float:
    """What an open duel will tell, in conversions: 1 for an answer, kappa^2 for a silence."""
    if eprocess.is_vote:
        return 1.0
    if eprocess.told.is_told:  # answer and silence together tell kappa(W), if the told law is true
        return float(max(eprocess.told.worth, 0.1))
    half, kappa = 0.5 * share_now(eprocess), eprocess.kappa[0]
    return float(max(half + (1.0 - half) * kappa * kappa, 0.01 if eprocess.shows_one else 0.1))


@kernel
def fix_kappa(eprocess: Any) -> None:
    """kappa = F^ / (2 - F^), for later duels; fixed anew when the booked ones grow by a 20th."""
    share = share_now(eprocess)
    eprocess.kappa[0] = share / (2.0 - share)
    eprocess.refit[0] = eprocess.n_booked[0] + eprocess.n_booked[0] // 20 + 1


@border
@kernel
def fill_silent(eprocess: Any, kappa: float) -> None:
    """Let the silence that is booked be worth kappa, for bettors on either side."""
    eprocess.silent_kappa[0] = kappa
    for place in range(eprocess.gaps.size):
        eprocess.silent_won[place] = math.log1p(2.0 * kappa * eprocess.gaps[place])
        eprocess.silent_lost[place] = math.log1p(-2.0 * kappa * eprocess.gaps[place])
