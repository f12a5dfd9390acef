"""What a policy assumes about the delay: each assumption is a type that keeps *expected* its way.

*expected* of an ordered pair is the sum of tau(min(age, window)) over its duels: how many of its
conversions should have come by now. Every type brings it from one tick to the next by itself; none
ever looks back over the history.

Here are the questions that a ledger asks, and the algebra that uses the answers. Each module beside
this one answers them for one assumption: `no_delay`, `geometric`, `tabulated` (any law),
`kaplan_meier` (a law that is learned) and `continuous_time`; so do `duelay.ledger.votes` and
`duelay.ledger.evidence.eprocess`. Where a type does not answer a question, the default is the safe
answer: *expected* may change at any tick.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from duelay._core.arrays import Integers
from duelay._core.jit.decorators import generic
from duelay.errors import InvalidValueError

FOREVER = 1 << 62  # ticks
MAX_OPEN_AGES = 10_000_000  # ages that a ledger keeps open, at the most


def check_length(ages: int) -> None:
    """Refuse more open duels than a ledger keeps."""
    if ages > MAX_OPEN_AGES:
        raise InvalidValueError(
            f"window must be at most {MAX_OPEN_AGES} for this law, whose tail is longer than that"
        )


@generic
def advance(assumed: Any, t: int) -> None:
    """Bring *expected* from tick t - 1 to tick t; every open duel is one tick older."""
    raise TypeError(f"no ledger keeps {type(assumed).__name__}")


@generic
def set_clock(assumed: Any, now: float) -> None:
    """Note the time, in seconds, where ages are in time; in ticks there is nothing to note."""


@generic
def enter(assumed: Any, i: int, j: int, t: int) -> None:
    """Note that i and j duel at tick t."""
    raise TypeError(f"no ledger keeps {type(assumed).__name__}")


@generic
def teach(assumed: Any, t: int) -> None:
    """Let the duel with number t teach the law and nothing else: one of its arms is retired."""


@generic
def expected(assumed: Any, plays: Integers, i: int, j: int) -> float:
    """Sum tau(min(age, window)) over the duels with i first and j second."""
    raise TypeError(f"no ledger keeps {type(assumed).__name__}")


@generic
def expected_at_last(assumed: Any, plays: Integers, i: int, j: int) -> float:
    """Return the most that *expected* can reach without new duels before the next `epoch`."""
    return math.inf


@generic
def pair_counts(assumed: Any, plays: Integers, conversions: Integers, i: int, j: int) -> Any:
    """Return N_ij, N~_ij and S_ij (Equations 2 and 3).

    Parameters
    ----------
    assumed : NamedTuple
        What the ledger assumes about the delay.
    plays, conversions : ndarray of int
        (K, K), the counts of the ledger.
    i, j : int
        The pair.

    Returns
    -------
    tuple of float
        N_ij, N~_ij and S_ij.
    """
    raise TypeError(f"no ledger keeps {type(assumed).__name__}")


@generic
def is_deaf(assumed: Any, t: int) -> bool:
    """Whether so little is heard by tick t that a rule cannot go by it; only by the clock."""
    return False


@generic
def convert(assumed: Any, born: int, t: int) -> None:
    """Note that the duel of tick `born` converted, heard at tick t."""
    raise TypeError(f"no ledger keeps {type(assumed).__name__}")


@generic
def final_age(assumed: Any) -> int:
    """Return the age after which a duel of two arms adds nothing more to *expected*."""
    raise TypeError(f"no ledger keeps {type(assumed).__name__}")


@generic
def stands_still(assumed: Any, plays: Integers, i: int, j: int) -> bool:
    """Whether *expected* of a pair stands still until one of its arms is played or heard of.

    Or until the `epoch` changes.
    """
    return False


@generic
def epoch(assumed: Any) -> int:
    """Return a number that changes whenever *expected* of all pairs may have changed at once."""
    return 0


@generic
def next_look(assumed: Any) -> int:
    """Return the tick of the next `epoch`."""
    return FOREVER


@generic
def is_known(assumed: Any) -> bool:
    """Whether a law is known; False while it is still being learned."""
    return True


@generic
def drifts(assumed: Any) -> bool:
    """Whether the evidence of a pair may leave the bounds that its plays and conversions set."""
    return True


@generic
def vote(assumed: Any, i: int, j: int, first_won: float, born: int, t: int) -> None:
    """Note the answer to the duel of tick `born`, heard at t, where both outcomes are reported."""


@generic
def share_first(assumed: Any, plays: Integers, conversions: Integers, i: int, j: int) -> float:
    """Return Y bar_ij, the share of the duels with i first and j second that i has won so far."""
    return float(conversions[i, j] / plays[i, j])


def corrected_counts(assumed: Any, plays: Integers, conversions: Integers, i: int, j: int) -> Any:
    """N_ij, N~_ij and S_ij of a ledger that corrects for the delay."""
    n = float(plays[i, j] + plays[j, i])  # Equation 2
    expected_ji = expected(assumed, plays, j, i)
    n_tilde = expected(assumed, plays, i, j) + expected_ji  # Equation 3
    s = conversions[i, j] + expected_ji - conversions[j, i]
    return n, n_tilde, s


def convert_nothing(assumed: Any, born: int, t: int) -> None:
    """Learn nothing from a conversion."""


def does_not_drift(assumed: Any) -> bool:
    """Return False: *expected* lies between 0 and the plays, whatever happens."""
    return False


def widen_rings(rings: dict[str, Any], oldest: int, t: int) -> dict[str, Any]:
    """Return rings of duels with room for those from number `oldest` to t.

    By the clock, the number of open duels is not known in advance, so the rings grow.
    """
    size = next(iter(rings.values())).size
    wide = 2 * size
    while t - oldest >= wide:
        wide *= 2
    numbers = np.arange(oldest, min(t, oldest + size))
    found = {}
    for name, old in rings.items():
        found[name] = np.zeros(wide, dtype=old.dtype)
        found[name][numbers % wide] = old[numbers % size]
    return found
