"""The regularised incomplete gamma functions, P and Q = 1 - P, each with all its digits.

References
----------
Press, Teukolsky, Vetterling, Flannery. Numerical Recipes, 3rd edition 2007, section 6.2.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from duelay._core.jit import kernel

_TINY = 1e-300


@kernel
def gamma_tails(a: float, x: NDArray[np.float64], is_upper: bool) -> None:
    """Put Q(a, x), or P(a, x), in the place of x: the regularised incomplete gamma functions."""
    for index in range(x.size):
        x[index] = _gamma_tail(a, x[index], is_upper)


@kernel
def invert_gamma(a: float, scale: float, q: NDArray[np.float64]) -> None:
    """Put scale times the x with P(a, x) = q in the place of q, by bisection, to 1e-12 of it."""
    for index in range(q.size):
        share = q[index]
        if share <= 0.0:
            continue
        high = 1.0
        while high < 2.0**1000 and _is_short(a, high / scale, share):
            high *= 2.0
        low = high / 2.0
        while low > 2.0**-1000 and not _is_short(a, low / scale, share):
            low, high = low / 2.0, low
        for _ in range(40):
            middle = low + (high - low) / 2.0
            if _is_short(a, middle / scale, share):
                low = middle
            else:
                high = middle
        q[index] = high


@kernel
def _is_short(a: float, x: float, q: float) -> bool:
    """Whether P(a, x) < q: by the tail that has more digits."""
    if q < 0.5:
        return bool(_gamma_tail(a, x, False) < q)
    return bool(_gamma_tail(a, x, True) > 1.0 - q)


@kernel
def _gamma_tail(a: float, x: float, is_upper: bool) -> float:
    """Q(a, x) or P(a, x): by a series below a + 1, by a continued fraction above."""
    if x <= 0.0:
        return 1.0 if is_upper else 0.0
    log_front = _log_front(a, x)
    if x < a + 1.0:  # P = front · (1 + x / (a + 1) + x^2 / ((a + 1) (a + 2)) + ...)
        term = total = 1.0
        n = a
        while term > 1e-17 * total:
            n += 1.0
            term *= x / n
            total += term
        lower = min(math.exp(log_front + math.log(total)), 1.0)
        return 1.0 - lower if is_upper else lower
    if log_front < -800.0:
        return 0.0 if is_upper else 1.0
    # Q = a · front / (x + 1 - a - 1 (1 - a) / (x + 3 - a - 2 (2 - a) / ...)), by Lentz's method.
    b = x + 1.0 - a
    c = 1.0 / _TINY
    d = 1.0 / b if b != 0.0 else 1.0 / _TINY
    fraction = d
    for n in range(1, 100_000):
        step = -n * (n - a)
        b += 2.0
        d = step * d + b
        c = b + step / c
        if abs(d) < _TINY:
            d = _TINY
        if abs(c) < _TINY:
            c = _TINY
        d = 1.0 / d
        fraction *= d * c
        if abs(d * c - 1.0) < 1e-15:
            break
    upper = min(a * math.exp(log_front) * fraction, 1.0)
    return upper if is_upper else 1.0 - upper


@kernel
def _log_front(a: float, x: float) -> float:
    """The logarithm of x^a e^-x / Gamma(a + 1).

    For a large a its three parts are large and nearly cancel. Stirling's series takes out what
    cancels.
    """
    if a < 20.0 or x < 0.5 * a:
        return a * math.log(x) - x - math.lgamma(a + 1.0)
    off = (x - a) / a
    stirling = (1 / 12 - (1 / 360 - (1 / 1260 - 1 / (1680 * a * a)) / (a * a)) / (a * a)) / a
    return a * (math.log1p(off) - off) - 0.5 * math.log(2.0 * math.pi * a) - stirling
