"""A geometric law: what is missing shrinks by one factor a tick, so no duel is looked at again."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from duelay.assumed import (
    Floats,
    Integers,
    advance,
    check_length,
    convert,
    convert_nothing,
    drifts,
    drifts_within_plays,
    enter,
    evidence,
    heard,
    is_settled,
    read_evidence,
    settles,
)

_TINY = 1e-18  # a share that adds nothing to a float64 count
_RESCALE = 1e-200


class GeometricHeard(NamedTuple):
    """A geometric law, where what is missing shrinks by one factor a tick.

    missing_ij = scale · fresh_ij + closed_ij (1 - p)^M, and heard = (1 - never) (plays - missing).
    """

    stay: float  # 1 - p
    last: float  # (1 - p)^M: what a duel still lacks when its window closes
    answered: float  # 1 - the share that never answers
    scale: Floats  # (1,): (1 - p)^ticks since the last rescaling
    fresh: Floats  # (K, K): open duels, each as 1 / scale at its birth
    closed: Integers  # (K, K): duels past the window
    ring: Integers  # (M,): i K + j of the duels of the last M ticks, -1 for none
    place: Integers  # (1,): where in the ring this tick stands


def geometric(p: float, answered: float, window: int | None, n_arms: int) -> GeometricHeard:
    """Return the state for a law of chance p a tick, of which a share answers at all."""
    last = 0.0 if window is None else math.exp(window * math.log1p(-p))
    if last < _TINY:  # by then all has come: the window's end changes nothing
        last, window = 0.0, None
    check_length(window or 0)
    return GeometricHeard(
        stay=1.0 - p,
        last=last,
        answered=answered,
        scale=np.ones(1),
        fresh=np.zeros((n_arms, n_arms)),
        closed=np.zeros((n_arms, n_arms), dtype=np.int64),
        ring=np.full(window or 0, -1, dtype=np.int64),
        place=np.zeros(1, dtype=np.int64),
    )


convert.register(GeometricHeard)(convert_nothing)
drifts.register(GeometricHeard)(drifts_within_plays)
evidence.register(GeometricHeard)(read_evidence)


@settles.register(GeometricHeard)
def _settles_geometric(assumed: GeometricHeard) -> int:
    if assumed.ring.size > 0:
        return assumed.ring.size
    return int(math.log(_TINY) / math.log(assumed.stay)) + 1


@is_settled.register(GeometricHeard)
def _never_settled(assumed: Any, plays: Integers, i: int, j: int) -> bool:
    return False


@advance.register(GeometricHeard)
def _advance_geometric(assumed: GeometricHeard, t: int) -> None:
    scale = assumed.scale[0] * assumed.stay
    fresh = assumed.fresh
    if scale < _RESCALE:
        for i in range(fresh.shape[0]):
            for j in range(fresh.shape[1]):
                fresh[i, j] *= scale
        scale = 1.0
    assumed.scale[0] = scale
    n = assumed.ring.size
    if n > 0:
        place = assumed.place[0] + 1
        if place == n:
            place = 0
        assumed.place[0] = place
        pair = assumed.ring[place]
        if pair >= 0:  # asked M ticks ago: its window closes, what it lacks now it will lack
            i = pair // fresh.shape[0]
            j = pair - i * fresh.shape[0]
            fresh[i, j] -= assumed.last / scale
            assumed.closed[i, j] += 1
            assumed.ring[place] = -1


@enter.register(GeometricHeard)
def _enter_geometric(assumed: GeometricHeard, i: int, j: int, t: int) -> None:
    if i == j:
        return
    assumed.fresh[i, j] += 1.0 / assumed.scale[0]
    if assumed.ring.size > 0:
        assumed.ring[assumed.place[0]] = i * assumed.fresh.shape[0] + j


@heard.register(GeometricHeard)
def _heard_geometric(assumed: GeometricHeard, plays: Integers, i: int, j: int) -> float:
    missing = assumed.scale[0] * assumed.fresh[i, j] + assumed.closed[i, j] * assumed.last
    return float(assumed.answered * (plays[i, j] - missing))
