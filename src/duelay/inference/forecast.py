"""Forecast how many duels are left until a winner is declared, from draws of the posterior."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from duelay._core.arrays import Floats
from duelay.inference.evidence import Evidence

_MAX_RATIO = 3  # if high is at most so many times low, `print` says "about"
_FEW_DUELS = 50  # duels
_MIN_SHARE, _MIN_DRAWS = 0.01, 5  # of the draws, which must have a winner
_MIN_GAP = 0.005  # smaller ones would take longer than anybody waits


class DuelsLeft(NamedTuple):
    """An estimate of the duels until a winner is declared; `print` rounds it.

    Attributes
    ----------
    low, high : int
        The ends of an interval that contains the number with a probability of 80 %.
    middle : int
        The median.
    """

    low: int
    middle: int
    high: int

    def __str__(self) -> str:
        if self.high == 0 or (self.middle == 0 and self.high < _FEW_DUELS):
            return "the open duels may be enough"
        if self.high <= _MAX_RATIO * self.low:
            return f"about {self.middle:,} more duels"
        if self.low == 0:
            return f"probably up to {self.high:,} more duels"
        return f"probably {self.low:,} to {self.high:,} more duels"


def forecast_duels(
    evidence: Evidence, who: NDArray[np.int64], gaps: Floats, is_winner: NDArray[np.bool_]
) -> DuelsLeft | None:
    """Sum over a winner's rivals: the evidence that is missing / 2 g^2, what a conversion adds.

    Each draw has its own winner; draws without one would never end, and are left out.
    """
    if evidence.winner is not None:
        return DuelsLeft(0, 0, 0)
    draws, winner = np.nonzero(is_winner)
    if len(draws) < max(_MIN_SHARE * len(gaps), _MIN_DRAWS):
        return None
    gap, winner = gaps[draws, winner], who[winner]
    speed = 2.0 * np.maximum(gap, _MIN_GAP) ** 2 * evidence.worth
    needed = np.maximum(evidence.lacks[winner] / speed - evidence.n_open[winner], 0.0).sum(axis=1)
    return DuelsLeft(*(int(float(f"{n:.2g}")) for n in np.percentile(needed, [10, 50, 90])))
