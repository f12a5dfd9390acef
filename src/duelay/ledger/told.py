"""A delay law that is told: what every open duel's silence is worth by now, for the bets.

Where the law is known, silence need not wait for an age W to be a bet: a duel that is silent at age
a is 1 - mu tau(a) likely, so that its evidence for the second arm is at any age

    (1 - (1/2 - g) tau(a)) / (1 - tau(a) / 2) = 1 + 2 kappa(a) g,
    kappa(a) = tau(a) / (2 - tau(a)),

and 1 - 2 kappa(a) g for the first. A conversion takes that back, and is worth 1 + 2 g as ever. This
is the likelihood of all that was heard, censored at its age: it is a martingale at mu = 1/2 for any
order of the two arms, and for pairs chosen by looking at anything. It must be looked at when the
silence of *every* open duel is of one moment: that is each 32nd part of W, the age at which almost
all answers have come, from which on a silence stays as it is.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from duelay._core.jit import kernel
from duelay.delays import Delay, tables
from duelay.ledger.assumption import Floats, Integers

_MOST = 0.99  # of the answers that ever come have come by W
_REFRESHES = 32  # within W


class Told(NamedTuple):
    """What a silence is worth by age, and when that was last brought up to date."""

    is_told: bool
    tau: Floats  # (laws, W + 1): P(D <= age)
    kappa: Floats  # (laws, W + 1): what a silence is worth at that age, in conversions
    law: Integers  # (K, K): which row of them, for i first and j second
    won: Floats  # (laws, W + 1, G): log (1 + 2 kappa g)
    lost: Floats  # (laws, W + 1, G): log (1 - 2 kappa g)
    worth: float  # what a duel will tell, in conversions: on average kappa(W)
    period: int  # ticks between two looks
    fresh: Integers  # (1,): the tick at which all silences were brought up to date


def start_told(delay: Delay | None, longest: int, n_arms: int, gaps: Floats) -> Told:
    """Return the state for a law, or one a pair, with W at most `longest`; None is no law."""
    tau, law = np.zeros((1, 1)), np.zeros((n_arms, n_arms), dtype=np.int64)
    if delay is not None:
        tau, law = tables(delay, n_arms, longest)
        last = int((tau < _MOST * tau[:, -1:]).sum(axis=1).max())  # 0 where nothing ever comes
        tau = tau[:, : min(max(last, 1), max(longest // len(tau), 1)) + 1]
    kappa = tau / (2.0 - tau)
    return Told(
        is_told=delay is not None,
        tau=tau,
        kappa=kappa,
        law=law,
        won=np.log1p(2.0 * kappa[:, :, None] * gaps),
        lost=np.log1p(-2.0 * kappa[:, :, None] * gaps),
        worth=float(kappa[law, -1].mean()),
        period=max(1, math.ceil((tau.shape[1] - 1) / _REFRESHES)),
        fresh=np.zeros(1, dtype=np.int64),
    )


@kernel
def last_age(told: Any) -> int:
    """Return W, from which on a silence stays as it is."""
    return int(told.tau.shape[1] - 1)


@kernel
def age_booked(told: Any, born: int) -> int:
    """Return the age at which the silence of an open duel was last brought up to date."""
    return int(max(told.fresh[0] - born, 0))
