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
_MIN_GAP = 1e-4  # of a draw: MAX_DUELS end before
_START = 1.0  # nats: what a mixture of gaps costs
_ENDS = (11, 50, 89)  # percentiles of the draws: forecasts of early duels are a little too wide
MAX_DUELS = 1_000_000  # a forecast says no more than "so many or more"


class DuelsLeft(NamedTuple):
    """An estimate of the duels until a winner is declared.

    `print` shows the middle alone where low and high are near to each other.

    Attributes
    ----------
    low, high : int
        The ends of an interval that contains the true number in four experiments of five, at any
        look, if preferences are as the prior of `standing.chances` says and one arm beats all
        others. 1,000,000 stands for any larger number; where arms are equal, all three come to it.
    middle : int
        The median: the true number is about as often above it as below it.
    """

    low: int
    middle: int
    high: int

    def __str__(self) -> str:
        if self.high == 0 or (self.middle == 0 and self.high < _FEW_DUELS):
            return "the open duels may be enough"
        if self.middle == MAX_DUELS:
            return f"probably more than {self.low:,} more duels: the best arms may be equal"
        if self.high == MAX_DUELS:
            return f"probably {self.low:,} more duels or many more"
        if self.high <= _MAX_RATIO * self.low:
            return f"about {self.middle:,} more duels"
        if self.low == 0:
            return f"probably up to {self.high:,} more duels"
        return f"probably {self.low:,} to {self.high:,} more duels"


def forecast_duels(
    evidence: Evidence, who: NDArray[np.int64], gaps: Floats, is_winner: NDArray[np.bool_]
) -> DuelsLeft | None:
    """Sum over a winner's rivals the duels until the evidence that is missing has come.

    Each draw has its own winner; draws without one would never end, and are left out. A duel adds
    2 g^2 on average, and the log evidence is nearly a Brownian motion with twice that as variance,
    so that the duels have an inverse Gaussian law. A mixture of gaps costs a nat at the start.
    Duels that wait to be booked have been asked already; when the last one has been asked, as many
    are asked until it is booked.
    """
    if evidence.verdict != "running":
        return DuelsLeft(0, 0, 0)
    draws, winner = np.nonzero(is_winner)
    if len(draws) < max(_MIN_SHARE * len(gaps), _MIN_DRAWS):
        return None
    gap, winner = gaps[draws, winner], who[winner]
    speed = 2.0 * np.maximum(gap, _MIN_GAP) ** 2 * evidence.worth
    lacks = evidence.lacks[winner]
    if evidence.margin is None:
        start = np.clip(_START - evidence.log_evidence[winner], 0.0, _START)
        lacks = np.where(lacks > 0.0, lacks + start, 0.0)
    some = np.maximum(lacks, 1e-9)
    duels = np.random.default_rng(1).wald(some / speed, some**2 / (2.0 * speed))
    waiting = np.where(lacks > 0.0, duels - evidence.n_waiting[winner], 0.0)
    needed = np.maximum(waiting, 0.0).sum(axis=1)
    needed = np.minimum(needed + np.where(needed > 0.0, evidence.in_flight, 0), MAX_DUELS)
    return DuelsLeft(*(int(float(f"{n:.2g}")) for n in np.percentile(needed, _ENDS)))
