"""A delay law that is told: what every open duel's silence is worth by now, for the bets.

Where the law is known, silence is a bet at every age, not only at an age W. A duel is silent at age
a with probability 1 - mu tau(a). So its silence is evidence for the second arm:

    (1 - (1/2 - g) tau(a)) / (1 - tau(a) / 2) = 1 + 2 kappa(a) g,
    kappa(a) = tau(a) / (2 - tau(a)),

and 1 - 2 kappa(a) g for the first. When the conversion comes, this bet is taken back, and the
conversion counts 1 + 2 g as ever. The product is the likelihood of all that was heard, each duel
censored at its age. It is a martingale at mu = 1/2 for any order of the two arms, however the pairs
are chosen. It must not be read before the silence of *every* open duel is booked up to the same
moment. That is done 32 times within W. Here W is the age by which almost all answers have come; a
silence of age W and more stays as it is.

By the clock it is the same, at ages in seconds. tau is then kept at some 4000 quantiles of the law,
and is linear between two of them. So it is wrong by less than 1/4000.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from duelay._core.arrays import Floats, Integers
from duelay._core.jit.decorators import kernel
from duelay.delays.delay import Delay, laws_of, tables

_SETTLED_SHARE = 0.99  # of the answers that ever come have come by W
_REFRESHES = 32  # within W
_STEPS = 4000  # quantiles at which tau is kept by the clock, of all laws together
_HALF = 5e-7  # seconds, half a microsecond: makes up for rounding errors of whole ones
_BEFORE = 2e-7  # seconds: tau may jump at a quantile, and is also kept this much before it


class KnownLawEvidence(NamedTuple):
    """What a silence is worth by age, and when that was last brought up to date."""

    is_told: bool
    ages: Floats  # (A,): from 0 to W: every tick, or the quantiles in seconds
    tau: Floats  # (laws, A): P(D <= age)
    kappa: Floats  # (laws, A): what a silence is worth at that age, in conversions
    law: Integers  # (K, K): which row of tau and kappa, for i first and j second
    won: Floats  # (laws, A, G): log (1 + 2 kappa g), in ticks
    lost: Floats  # (laws, A, G): log (1 - 2 kappa g), in ticks
    worth: float  # what a duel will tell, in conversions: on average kappa(W)
    period: float  # the time between two looks
    fresh: Floats  # (1,): when all silences were brought up to date


def start_known_law(
    delay: Delay | None, longest: int, n_arms: int, gaps: Floats
) -> KnownLawEvidence:
    """Return the state for one law, or one of each pair, with W <= `longest`; None is no law."""
    tau, law = np.zeros((1, 1)), np.zeros((n_arms, n_arms), dtype=np.int64)
    if delay is not None:
        tau, law = tables(delay, n_arms, longest)
        last = int(
            (tau < _SETTLED_SHARE * tau[:, -1:]).sum(axis=1).max()
        )  # 0 where nothing ever comes
        tau = tau[:, : min(max(last, 1), max(longest // len(tau), 1)) + 1]
    kappa = tau / (2.0 - tau)
    return KnownLawEvidence(
        is_told=delay is not None,
        ages=np.arange(tau.shape[1], dtype=np.float64),
        tau=tau,
        kappa=kappa,
        law=law,
        won=np.log1p(2.0 * kappa[:, :, None] * gaps),
        lost=np.log1p(-2.0 * kappa[:, :, None] * gaps),
        worth=float(kappa[law, -1].mean()),
        period=float(max(1, math.ceil((tau.shape[1] - 1) / _REFRESHES))),
        fresh=np.zeros(1),
    )


def start_known_law_in_time(
    delay: Delay, longest: float, n_arms: int, gaps: Floats
) -> KnownLawEvidence:
    """Return the state for one law in time, or one of each pair, with W <= `longest` seconds."""
    laws, which = laws_of(delay, n_arms)
    steps = max(_STEPS // len(laws), 20)
    heard = [1.0 - law.never for law in laws]
    ends = [
        law.quantile(_SETTLED_SHARE * top)
        for law, top in zip(laws, heard, strict=True)
        if top > 0.0
    ]
    last = min(max([float(end) for end in ends], default=1.0), longest)
    found = [np.full(1, last)]
    for law, top in zip(laws, heard, strict=True):
        found.append(np.asarray(law.quantile(top * np.arange(1, steps) / steps)))
    after = np.concatenate(found)
    after = after[after <= last]
    ages = np.concatenate([after, after - _BEFORE])
    ages = np.unique(np.append(ages[ages > 0.0], 0.0))
    tau = np.stack([np.asarray(law.cdf(ages), dtype=np.float64) for law in laws])
    kappa = tau / (2.0 - tau)
    nothing = np.zeros((1, 1, gaps.size))
    return KnownLawEvidence(
        is_told=True,
        ages=ages,
        tau=tau,
        kappa=kappa,
        law=which,
        won=nothing,
        lost=nothing,
        worth=float(kappa[which, -1].mean()),
        period=last / _REFRESHES,
        fresh=np.full(1, -math.inf),
    )


@kernel
def last_age(told: Any) -> float:
    """Return W, the age from which on a silence stays as it is."""
    return float(told.ages[-1])


@kernel
def age_booked(told: Any, born: float) -> float:
    """Return the age at which the silence of an open duel was last brought up to date."""
    return float(max(told.fresh[0] - born, 0.0))


@kernel
def kappa_at(told: Any, row: int, age: float) -> float:
    """Return what a silence is worth at an age in seconds, tau being linear between two ages."""
    ages, last = told.ages, told.ages.size - 1
    place = np.searchsorted(ages, age + _HALF, side="right") - 1
    if place >= last:
        return float(told.kappa[row, last])
    low, high = told.tau[row, place], told.tau[row, place + 1]
    share = (age + _HALF - ages[place]) / (ages[place + 1] - ages[place])
    tau = low + (high - low) * share
    return float(tau / (2.0 - tau))
