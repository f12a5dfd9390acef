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
    """Forecast the duels until a verdict.

    Each draw has its own winner; draws without one would never end, and are left out.

    Parameters
    ----------
    evidence : of a policy that decides.
    who : (M,), the arms that may win.
    gaps : (draws, M, K), how much more often than half these arms beat each arm; with a margin,
        that much more.
    is_winner : (draws, M), which of these arms is the winner; with a margin there may be several.
    """
    if evidence.verdict != "running":
        return DuelsLeft(0, 0, 0)
    if not has_winners(is_winner):
        return None
    draws, place = np.nonzero(is_winner)
    return summarise_draws(draw_duels(evidence, who[place], gaps[draws, place]))


def has_winners(is_winner: NDArray[np.bool_]) -> bool:
    """Whether enough draws have a winner for a forecast."""
    return int(is_winner.sum()) >= max(_MIN_SHARE * len(is_winner), _MIN_DRAWS)


def draw_duels(evidence: Evidence, winner: NDArray[np.int64], gap: Floats) -> Floats:
    """Draw the duels until the evidence that a winner lacks over each of its rivals has come.

    A duel adds 2 g^2 on average, and the log evidence is nearly a Brownian motion with twice that
    as variance, so that the duels have an inverse Gaussian law. A mixture of gaps costs a nat at
    the start. Duels that wait to be booked have been asked already; when the last one has been
    asked, as many are asked until it is booked.

    Parameters
    ----------
    evidence : of a policy that decides.
    winner : (n,), the winner of each draw.
    gap : (n, K), by how much it beats each arm.
    """
    speed = 2.0 * np.maximum(gap, _MIN_GAP) ** 2 * evidence.worth
    lacks = evidence.lacks[winner]
    if evidence.margin is None:
        start = np.clip(_START - evidence.log_evidence[winner], 0.0, _START)
        lacks = np.where(lacks > 0.0, lacks + start, 0.0)
    some = np.maximum(lacks, 1e-9)
    duels = np.random.default_rng(1).wald(some / speed, some**2 / (2.0 * speed))
    waiting = np.where(lacks > 0.0, duels - evidence.n_waiting[winner], 0.0)
    needed = np.maximum(waiting, 0.0).sum(axis=1)
    return np.asarray(needed + np.where(needed > 0.0, evidence.in_flight, 0))


def summarise_draws(duels: Floats) -> DuelsLeft:
    """Return the median and the ends of draws, in two digits and at most `MAX_DUELS`."""
    found = np.percentile(np.clip(duels, -MAX_DUELS, MAX_DUELS), _ENDS)
    return DuelsLeft(*(int(float(f"{n:.2g}")) for n in found))
