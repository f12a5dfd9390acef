"""A geometric law: each tick the missing share shrinks by one factor; no duel is visited twice."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from duelay._core.arrays import Floats, Integers
from duelay.ledger.delay_models.base import (
    advance,
    check_length,
    convert,
    convert_nothing,
    corrected_counts,
    does_not_drift,
    drifts,
    enter,
    expected,
    expected_at_last,
    final_age,
    pair_counts,
    stands_still,
)

_TINY = 1e-18  # a share that adds nothing to a float64 count
_RESCALE = 1e-200


class AssumedGeometric(NamedTuple):
    """A geometric law: the share that is missing shrinks by one factor a tick.

    missing_ij = scale · fresh_ij + closed_ij (1 - p)^M; expected = (1 - never) (plays - missing).
    """

    stay: float  # 1 - p
    last: float  # (1 - p)^M: what a duel still lacks when its window closes
    answered: float  # 1 - the share that never answers
    scale: Floats  # (1,): (1 - p)^ticks since the last rescaling
    fresh: Floats  # (K, K): open duels, each as 1 / scale at its birth
    closed: Integers  # (K, K): duels past the window
    ring: Integers  # (M,): i K + j of the duels of the last M ticks, -1 for none
    place: Integers  # (1,): where in the ring this tick stands


def start_geometric(p: float, answered: float, window: int | None, n_arms: int) -> AssumedGeometric:
    """Return the state for a law of chance p a tick; the share `answered` ever answers."""
    last = 0.0 if window is None else math.exp(window * math.log1p(-p))
    if last < _TINY:  # all answers have come by then: the window changes nothing
        last, window = 0.0, None
    check_length(window or 0)
    return AssumedGeometric(
        stay=1.0 - p,
        last=last,
        answered=answered,
        scale=np.ones(1),
        fresh=np.zeros((n_arms, n_arms)),
        closed=np.zeros((n_arms, n_arms), dtype=np.int64),
        ring=np.full(window or 0, -1, dtype=np.int64),
        place=np.zeros(1, dtype=np.int64),
    )


convert.register(AssumedGeometric)(convert_nothing)
drifts.register(AssumedGeometric)(does_not_drift)
pair_counts.register(AssumedGeometric)(corrected_counts)


@final_age.register(AssumedGeometric)
def _final_age(assumed: AssumedGeometric) -> int:
    if assumed.ring.size > 0:
        return assumed.ring.size
    return int(math.log(_TINY) / math.log(assumed.stay)) + 1


@stands_still.register(AssumedGeometric)
def _stands_still(assumed: Any, plays: Integers, i: int, j: int) -> bool:
    return False


@advance.register(AssumedGeometric)
def _advance_geometric(assumed: AssumedGeometric, t: int) -> None:
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
        if pair >= 0:  # asked M ticks ago: its window closes, and its missing share is final
            i = pair // fresh.shape[0]
            j = pair - i * fresh.shape[0]
            fresh[i, j] -= assumed.last / scale
            assumed.closed[i, j] += 1
            assumed.ring[place] = -1


@enter.register(AssumedGeometric)
def _enter_geometric(assumed: AssumedGeometric, i: int, j: int, t: int) -> None:
    if i == j:
        return
    assumed.fresh[i, j] += 1.0 / assumed.scale[0]
    if assumed.ring.size > 0:
        assumed.ring[assumed.place[0]] = i * assumed.fresh.shape[0] + j


@expected.register(AssumedGeometric)
def _expected_geometric(assumed: AssumedGeometric, plays: Integers, i: int, j: int) -> float:
    missing = assumed.scale[0] * assumed.fresh[i, j] + assumed.closed[i, j] * assumed.last
    return float(assumed.answered * (plays[i, j] - missing))


@expected_at_last.register(AssumedGeometric)
def _expected_at_last(assumed: AssumedGeometric, plays: Integers, i: int, j: int) -> float:
    return float(assumed.answered * plays[i, j] * (1.0 - assumed.last))
