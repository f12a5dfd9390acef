"""What a log says about its delays: how long each duel was watched, and the curve of its answers.

A duel is watched until its answer is heard, or up to its age: it is right-censored there. The
*chance* is the share of duels whose answer can be heard at all. It is 1 where both outcomes are
told (votes). It is 1/2 where only wins of the first are told, and a coin or turns decided who is
first, since mu_ij + mu_ji = 1. The Kaplan-Meier curve KM of all duels is then 1 - chance tau, and
tau is (1 - KM) / chance. Greenwood's formula gives its standard error.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from duelay._core.arrays import Floats

MIN_AT_RISK = 30  # duels watched at an age: where there are fewer, the curve ends


class Watched(NamedTuple):
    """How long each duel of two arms was watched."""

    age: Floats  # (n,): how old it is, up to the window: silence is known up to there
    exit: Floats  # (n,): the age at which it was answered, or up to which it was silent
    is_heard: NDArray[np.bool_]  # (n,)
    first: NDArray[np.int64]  # (n,): the arms
    second: NDArray[np.int64]  # (n,)
    in_time: bool  # whether ages are seconds; else they are ticks


class Learned(NamedTuple):
    """Tau as far as it is known, at the ages at which answers came."""

    ages: Floats  # (m,), rising
    tau: Floats  # (m,): not cut off at 1
    error: Floats  # (m,): its standard error
    last: float  # the age up to which it is known: tau stays as it is from the last of `ages` on
    in_steps: bool = True  # whether tau stands still between two ages; else it grows evenly

    def at(self, ages: Any) -> tuple[Floats, Floats]:
        """Return tau and its standard error at some ages."""
        points, tau = np.append(0.0, self.ages), np.append(0.0, self.tau)
        error = np.append(0.0, self.error)
        if not self.in_steps:
            return np.interp(ages, points, tau), np.interp(ages, points, error)
        place = np.searchsorted(self.ages, ages, side="right")
        return np.asarray(tau[place]), np.asarray(error[place])


def watch(log: Any) -> Watched:
    """Return how long each duel of a history was watched.

    Self-duels are left out: such an arm may have been shown alone. In ticks, an answer due at an
    age is told by the tick after it.
    """
    in_time, two = log.at is not None, log.first != log.second
    age = np.asarray(log.ages, dtype=np.float64) - (0.0 if in_time else 1.0)
    if log.window is not None:
        age = np.minimum(age, float(log.window))
    heard = log.is_heard
    left = np.where(heard, log.delay, age)
    age = np.maximum(age, left)  # in ticks, an answer may be told as soon as its duel is so old
    return Watched(age[two], left[two], heard[two], log.first[two], log.second[two], in_time)


def kaplan_meier(events: NDArray[Any], at_risk: NDArray[Any]) -> tuple[Floats, Floats]:
    """Return the Kaplan-Meier survival curve and its standard error by Greenwood's formula.

    Parameters
    ----------
    events : (m,), how many duels are answered at each age.
    at_risk : (m,), how many are watched at that age, at least 1.

    Examples
    --------
    >>> survival, error = kaplan_meier(np.array([1, 1]), np.array([4, 2]))
    >>> survival, error.round(3)
    (array([0.75 , 0.375]), array([0.217, 0.286]))
    """
    survival = np.cumprod(1.0 - events / at_risk)
    left = np.maximum(at_risk - events, 1)
    terms = np.where(events < at_risk, events / (at_risk * left), 0.0)
    return survival, np.asarray(survival * np.sqrt(np.cumsum(terms)))


def learn_curve(watched: Watched, chance: float) -> Learned:
    """Return (1 - KM) / chance, at every age at which an answer came."""
    ages, events = np.unique(watched.exit[watched.is_heard], return_counts=True)
    at_risk = watched.exit.size - np.searchsorted(np.sort(watched.exit), ages, side="left")
    least = min(MIN_AT_RISK, int(at_risk.max(initial=0)))
    known = at_risk >= least
    ages, events, at_risk = ages[known], events[known], at_risk[known]
    survival, error = kaplan_meier(events, at_risk)
    longest = np.partition(watched.exit, -least)[-least] if watched.exit.size else 0.0
    last = float(max(longest, ages.max(initial=0.0)))
    return Learned(ages, np.asarray((1.0 - survival) / chance), error / chance, last)
