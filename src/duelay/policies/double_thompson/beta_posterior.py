"""Beliefs about a pair: theta ~ Beta(S + 1, N~ - S + 1), and how theta compares with 1/2."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from duelay._core.jit.decorators import kernel
from duelay.ledger.delay_models.base import expected, expected_at_last, pair_counts, stands_still
from duelay.ledger.ledger import Ledger
from duelay.policies.pair_statistics import wins_and_count

_MAX_FRACTION_STEPS = 100_000  # of a continued fraction, which needs about sqrt(N~)


@kernel
def is_beaten_for_certain(ledger: Ledger, i: int, j: int, width: float) -> bool:
    """Whether the upper bound S / N~ + sqrt(width / N~) of i over j is at most 1/2."""
    s, n = wins_and_count(ledger, i, j)
    short = 0.5 * n - s
    return bool(n > 0.0 and short > 0.0 and short * short >= width * n)


@kernel
def beats_for_certain(ledger: Ledger, i: int, j: int, width: float) -> bool:
    """Whether the lower bound S / N~ - sqrt(width / N~) of i over j is above 1/2."""
    s, n = wins_and_count(ledger, i, j)
    over = s - 0.5 * n
    return bool(n > 0.0 and over > 0.0 and over * over > width * n)


@kernel
def draw(s: float, n: float, rng: np.random.Generator) -> float:
    """theta ~ Beta(S + 1, N~ - S + 1)."""
    return float(rng.beta(s + 1.0, n - s + 1.0))


@kernel
def chance_above_half(s: float, n: float) -> float:
    """P(theta > 1/2), theta ~ Beta(S + 1, N~ - S + 1): the incomplete beta function at 1/2.

    By its continued fraction (DLMF 8.17.22), for the smaller of the two sides, after Lentz.
    """
    a, b = n - s + 1.0, s + 1.0  # P(theta > 1/2) = I_1/2(a, b)
    is_turned = a < b
    if is_turned:
        a, b = b, a
    front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) - (a + b) * math.log(2.0)
    c, d = 1.0, 1.0 / (1.0 - 0.5 * (a + b) / (a + 1.0))
    fraction = d
    for m in range(1, _MAX_FRACTION_STEPS):
        even = 0.5 * m * (b - m) / ((a + 2 * m - 1.0) * (a + 2 * m))
        d = 1.0 / (1.0 + even * d)
        c = 1.0 + even / c
        fraction *= d * c
        odd = -0.5 * (a + m) * (a + b + m) / ((a + 2 * m) * (a + 2 * m + 1.0))
        d = 1.0 / (1.0 + odd * d)
        c = 1.0 + odd / c
        fraction *= d * c
        if abs(d * c - 1.0) < 1e-15:
            break
    side = math.exp(front) * fraction / a
    return 1.0 - side if is_turned else side


@kernel
def reach(ledger: Ledger, i: int, j: int) -> Any:
    """Return S_ij, the most that N~_ij - S_ij can reach without news of i or j, and N~_ij."""
    assumed, plays = ledger.assumed, ledger.plays
    _, n, s = pair_counts(assumed, plays, ledger.conversions, i, j)
    grows, grows_back = 0.0, 0.0
    if not stands_still(assumed, plays, i, j):
        grows = max(0.0, expected_at_last(assumed, plays, i, j) - expected(assumed, plays, i, j))
        last = expected_at_last(assumed, plays, j, i)
        grows_back = max(0.0, last - expected(assumed, plays, j, i))
    lost = min(max(n - s + grows, 0.0), n + grows + grows_back)
    return min(max(s, 0.0), n), lost, n


@kernel
def draw_above_half(ledger: Ledger, i: int, j: int, rng: np.random.Generator) -> float:
    """theta_ij, given that it is above 1/2.

    Where that is rare, theta - 1/2 is proposed from an exponential law. Scaled, its density touches
    that of theta at 1/2 and lies above it beyond, since a Beta's density is log-concave. So one or
    two draws are enough, however rare it is.
    """
    s, n = wins_and_count(ledger, i, j)
    slope = 2.0 * (n - 2.0 * s)  # of the density's logarithm at 1/2, downwards
    is_rare = slope > 0.0 and slope * slope > 4.0 * n
    while True:
        if is_rare:
            over = -math.log(1.0 - rng.random()) / slope
            if over < 0.5:
                log_ratio = s * math.log1p(2.0 * over) + (n - s) * math.log1p(-2.0 * over)
                if math.log(1.0 - rng.random()) <= log_ratio + slope * over:
                    return float(0.5 + over)
        else:
            theta = draw(s, n, rng)
            if theta > 0.5:
                return theta
