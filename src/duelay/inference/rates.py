"""Conversion rates and lift, where one arm is shown at a time.

The *rate* of an arm is the probability that a visitor who sees it converts within the window. It is
estimated from visitors whose window has closed: of n visitors who saw the arm, S converted in time.
Each does so with the same probability, whatever came before, so that Jeffreys's mixture

    B(S + 1/2, n - S + 1/2) / (B(1/2, 1/2) p^S (1 - p)^(n - S))

is a martingale at the true rate p, and the interval of all p at which it is small holds at every
look. Of visitors whose window is open nobody knows how many will still convert: the delay law is
known up to a factor alone.

The *lift* of i over j is p_i / p_j - 1. Of the conversions that are heard on a pair shown by coin,
the share mu = p_i / (p_i + p_j) is i's, however long they take. So the lift is mu / (1 - mu) - 1,
and its interval follows from that of mu, without waiting for a window to close. The estimate counts
all conversions, the interval those in the evidence. An estimate outside its interval is moved to
the nearer end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from duelay._core import checks
from duelay.inference.confidence_sequences import lower_ends
from duelay.show.text_table import table

Floats = NDArray[np.float64]


class Rates(NamedTuple):
    """Conversion rates of arms, and the lift of each over each other.

    Attributes
    ----------
    shown, conversions : ndarray of int
        (K,), how often each arm was shown, and how many conversions were heard by now.
    closed, converted : ndarray of int
        (K,), of the visitors who saw the arm, those whose window has closed, and those among them
        who converted in time.
    rate, lower, upper : ndarray of float
        (K,), the rate within the window, and its interval; NaN, 0 and 1 before a window has closed.
        All intervals hold together, at every look.
    lift, lift_lower, lift_upper : ndarray of float
        (K, K), p_i / p_j - 1, and its interval; NaN, -1 and infinity before anything is heard. All
        intervals hold together, at every look.
    """

    shown: NDArray[np.int64]
    conversions: NDArray[np.int64]
    closed: NDArray[np.int64]
    converted: NDArray[np.int64]
    rate: Floats
    lower: Floats
    upper: Floats
    lift: Floats
    lift_lower: Floats
    lift_upper: Floats


def margin_of_lift(lift: Any) -> float:
    """Return epsilon, the difference from 1/2 that a relative lift makes: l / (2 (2 + l)).

    With p_i = (1 + l) p_j, i gets the share (1 + l) / (2 + l) of the conversions.

    >>> round(margin_of_lift(0.05), 5)
    0.0122
    """
    lift = checks.number("lift", lift, above=0)
    return float(lift / (2.0 * (2.0 + lift)))


def lift_of(share: Any) -> Floats:
    """Return mu / (1 - mu) - 1, the lift of i over j if i gets the share mu of the conversions."""
    mu = np.clip(np.asarray(share, dtype=np.float64), 0.0, 1.0)
    with np.errstate(divide="ignore"):
        return np.asarray(mu / (1.0 - mu) - 1.0)


def rate_intervals(
    closed: NDArray[np.int64], converted: NDArray[np.int64], error: float, joined: NDArray[np.int64]
) -> tuple[Floats, Floats]:
    """Return the ends of the intervals of all rates, (K,), which hold together at every look.

    `joined` is 0 for the K0 first arms, n for the n-th that joined later. Each of the first has a
    part 1 / (K0 + 1) of the error, and the n-th 1 / (n (n + 1)) of what is left.
    """
    late = joined * (joined + 1.0)
    part = 1.0 / ((joined == 0).sum() + 1.0) / np.where(joined > 0, late, 1.0)
    won, lost = converted.astype(np.float64), (closed - converted).astype(np.float64)
    least = -np.log(error * part)
    return lower_ends(won, lost, least), 1.0 - lower_ends(lost, won, least)


def find_rates(
    plays: NDArray[np.int64],
    conversions: NDArray[np.int64],
    closed: NDArray[np.int64],
    converted: NDArray[np.int64],
    share: Floats,
    intervals: tuple[Floats, Floats],
    error: float,
    joined: NDArray[np.int64],
) -> Rates:
    """Return rates and lifts from counts by ordered pair, (K, K), whose first arm was shown.

    `share` estimates the share of i in the conversions of i and j, NaN where none is heard, and
    `intervals` are the ends of its intervals, (K, K).
    """
    n, won = closed.sum(axis=1), converted.sum(axis=1)
    lower, upper = rate_intervals(n, won, error, joined)
    with np.errstate(invalid="ignore", divide="ignore"):
        rate = won / n.astype(np.float64)
    ends = [np.where(np.isfinite(end), end, where)
            for end, where in zip(intervals, (0.0, 1.0), strict=True)]  # fmt: skip
    lift = lift_of(np.clip(share, *ends))
    low, high = map(lift_of, ends)
    np.fill_diagonal(lift, 0.0)
    np.fill_diagonal(low, 0.0)
    np.fill_diagonal(high, 0.0)
    shown, heard = plays.sum(axis=1), conversions.sum(axis=1)
    return Rates(shown, heard, n, won, rate, lower, upper, lift, low, high)


def write_rates(
    order: Sequence[int], names: Sequence[str], leader: int | None, rates: Rates
) -> str:
    """Return a text table: rates, and the lift of the leader over each arm, with intervals."""
    rows = []
    for i in order:
        rate = "no window has closed"
        if rates.closed[i]:
            ends = f"[{100 * rates.lower[i]:.2f}, {100 * rates.upper[i]:.2f}]"
            rate = f"{100 * rates.rate[i]:.2f} %  {ends}"
        lift = "unheard"
        if leader == i:
            lift = "leads"
        elif leader is not None and not np.isnan(rates.lift[leader, i]):
            low, high = rates.lift_lower[leader, i], rates.lift_upper[leader, i]
            lift = f"{100 * rates.lift[leader, i]:+.3g} %  [{100 * low:+.3g}, {100 * high:+.3g}]"
        rows.append([names[i], rate, lift, str(rates.shown[i]), str(rates.conversions[i])])
    return table(["arm", "rate", "leader's lift", "shown", "conversions"], rows, left=(0, 1, 2))
