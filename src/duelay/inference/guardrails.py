"""Guard-rails: rates of other events by arm, and whether an arm is worse than the baseline.

Each booked duel gives an arm a yes or a no, and X is 1 for a yes. While arm a has the rate r_a, the
likelihood of what its n duels gave is r_a^k (1 - r_a)^(n - k), k the number of events. A mixture of
rates by Beta(1/2, 1/2) explains them with the probability B(k + 1/2, n - k + 1/2) / B(1/2, 1/2).
Whatever pairs are chosen, mixture over likelihood is a non-negative martingale under the true
rates, and so is the product of those of two arms, as no duel counts for both. Divided by the
*largest* likelihood under a hypothesis it is no larger, so it ever reaches 1 / error with a
probability of at most `error` (Ville's inequality). docs/theory.md has the proof.

All functions take arrays of counts, and work on each element.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from duelay._core.arrays import Floats

_STEPS = 50  # of a bisection
_TINY = 1e-15  # the distance of a rate from 0 and 1, at the least


class RateDifference(NamedTuple):
    """The rate of an arm less that of the baseline, with the ends of an interval.

    Attributes
    ----------
    mean, lower, upper : ndarray of float
        The difference, and the interval that holds at all looks.
    """

    mean: Floats
    lower: Floats
    upper: Floats


def arm_shares(joined: NDArray[np.int64], baseline: int) -> Floats:
    """Return the part of the error of a guard-rail that each arm may use; 0 for the baseline.

    Of K0 first arms, 1 / (K0 + 1) of the error is kept for arms that join: 1 / (n (n + 1)) of it
    for the n-th. The other first arms share the rest.

    Parameters
    ----------
    joined : ndarray of int
        (K,), 0 for the first arms, n for the n-th that joined later.
    baseline : int
        The number of the arm that the others are compared with.
    """
    first = int((joined == 0).sum())
    room, late = 1.0 / (first + 1), np.maximum(joined, 1).astype(np.float64)
    others = first - int(joined[baseline] == 0)
    share = np.where(joined == 0, (1.0 - room) / others, room / (late * (late + 1.0)))
    share[baseline] = 0.0
    return share


def rate_interval(k: ArrayLike, n: ArrayLike, error: ArrayLike) -> tuple[Floats, Floats]:
    """Return the ends of the interval for the rate of an arm; it holds at all looks.

    Parameters
    ----------
    k, n : array_like of int
        Events and duels.
    error : array_like of float
        The probability with which an interval ever fails.
    """
    k, n, level = np.broadcast_arrays(*_floats(k, n), -np.log(_floats(error)[0]))
    mean = np.where(n > 0, k / np.maximum(n, 1.0), 0.5)
    mixed = _log_mixture(k, n)

    def is_out(rate: Floats) -> NDArray[np.bool_]:
        return np.asarray(mixed - _log_likelihood(k, n, rate) >= level)

    return _search(mean, 0.0, is_out), _search(mean, 1.0, is_out)


def difference_interval(
    k: ArrayLike, n: ArrayLike, base_k: ArrayLike, base_n: ArrayLike, error: ArrayLike
) -> RateDifference:
    """Return the difference of the rates of an arm and the baseline, with its interval.

    The lower end is above a bound exactly if both mixtures are at least 1 / error times the largest
    likelihood of rates that keep the bound.

    Parameters
    ----------
    k, n : array_like of int
        Events and duels of the arm.
    base_k, base_n : array_like of int
        Events and duels of the baseline, none of them a duel of `n`.
    error : array_like of float
        The probability with which an interval ever fails.
    """
    k, n, base_k, base_n, level = np.broadcast_arrays(
        *_floats(k, n, base_k, base_n), -np.log(_floats(error)[0])
    )
    is_known = (n > 0) & (base_n > 0)
    mean = np.where(is_known, k / np.maximum(n, 1.0) - base_k / np.maximum(base_n, 1.0), 0.0)

    def is_out(difference: Floats) -> NDArray[np.bool_]:
        return np.asarray(_log_ratio(k, n, base_k, base_n, difference) >= level)

    lower, upper = _search(mean, -1.0, is_out), _search(mean, 1.0, is_out)
    return RateDifference(np.where(is_known, mean, np.nan), lower, upper)


def _floats(*values: ArrayLike) -> list[Floats]:
    return [np.asarray(value, dtype=np.float64) for value in values]


def _log_mixture(k: Floats, n: Floats) -> Floats:
    """log B(k + 1/2, n - k + 1/2) / B(1/2, 1/2)."""
    from scipy.special import betaln

    return np.asarray(betaln(k + 0.5, n - k + 0.5) - math.log(math.pi))


def _log_likelihood(k: Floats, n: Floats, rate: Floats) -> Floats:
    """k log r + (n - k) log (1 - r)."""
    from scipy.special import xlog1py, xlogy

    return np.asarray(xlogy(k, rate) + xlog1py(n - k, -rate))


def _log_ratio(k: Floats, n: Floats, base_k: Floats, base_n: Floats, difference: Floats) -> Floats:
    """The log of both mixtures over the largest likelihood with this difference of the rates."""
    low, high = np.maximum(0.0, -difference), np.minimum(1.0, 1.0 - difference)
    for _ in range(_STEPS):  # the slope of the log likelihood in the rate of the baseline falls
        rate = 0.5 * (low + high)
        own = np.clip(rate + difference, _TINY, 1.0 - _TINY)
        other = np.clip(rate, _TINY, 1.0 - _TINY)
        slope = k / own - (n - k) / (1.0 - own)
        slope += base_k / other - (base_n - base_k) / (1.0 - other)
        low, high = np.where(slope > 0.0, rate, low), np.where(slope > 0.0, high, rate)
    rate = 0.5 * (low + high)
    most = _log_likelihood(k, n, np.clip(rate + difference, 0.0, 1.0))
    most = most + _log_likelihood(base_k, base_n, rate)
    return np.asarray(_log_mixture(k, n) + _log_mixture(base_k, base_n) - most)


def _search(inside: Floats, end: float, is_out: object) -> Floats:
    """Return where values leave an interval, between a point inside it and an end of the range."""
    assert callable(is_out)
    near, far = inside.copy(), np.full(inside.shape, end)
    for _ in range(_STEPS):
        middle = 0.5 * (near + far)
        out = is_out(middle)
        near, far = np.where(out, near, middle), np.where(out, middle, far)
    return np.asarray(far)
