"""What a policy assumes about the delay: each assumption is a type that keeps *heard* its way.

*heard* of an ordered pair is the sum of tau(min(age, window)) over its duels, the share of
conversions that should have come by now. Every type brings it from one tick to the next by itself;
none ever looks back over the history.

Here are the questions that a ledger asks them, and the baselines, which assume that nothing is
late. `geometric`, `ahead` (any law), `learned` and `votes` have the others. What is not known of a
type is taken for the worst: that it may change at any tick.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from duelay._jit import generic

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

FOREVER = 1 << 62  # ticks
LONGEST = 10_000_000  # ages that a ledger keeps open, at the most


class AtOnce(NamedTuple):
    """tau = 1 at once: a silent duel is a lost one until its conversion comes."""

    tau: float


class AppendOnly(NamedTuple):
    """The naive baseline that withdraws nothing: the false loss stays when the win comes."""

    tau: float


class ConversionsOnly(NamedTuple):
    """The naive baseline that counts conversions alone."""

    tau: float


def check_length(ages: int) -> None:
    """Refuse more open duels than a ledger keeps."""
    if ages > LONGEST:
        raise ValueError(
            f"window must be at most {LONGEST} for this law, whose tail is longer than that"
        )


@generic
def advance(assumed: Any, t: int) -> None:
    """Bring *heard* from tick t - 1 to tick t; every open duel is one tick older."""
    raise TypeError(f"no ledger keeps {type(assumed).__name__}")


@generic
def enter(assumed: Any, i: int, j: int, t: int) -> None:
    """Note that i and j duel at tick t."""
    raise TypeError(f"no ledger keeps {type(assumed).__name__}")


@generic
def heard(assumed: Any, plays: Integers, i: int, j: int) -> float:
    """Sum tau(min(age, window)) over the duels with i first and j second."""
    raise TypeError(f"no ledger keeps {type(assumed).__name__}")


@generic
def evidence(assumed: Any, plays: Integers, conversions: Integers, i: int, j: int) -> Any:
    """Return N_ij, N~_ij and S_ij (Equations 2 and 3)."""
    raise TypeError(f"no ledger keeps {type(assumed).__name__}")


@generic
def convert(assumed: Any, born: int, t: int) -> None:
    """Note that the duel of tick `born` converted, heard at tick t."""
    raise TypeError(f"no ledger keeps {type(assumed).__name__}")


@generic
def settles(assumed: Any) -> int:
    """Return after how many ticks a duel of two arms no longer changes what is assumed of it."""
    raise TypeError(f"no ledger keeps {type(assumed).__name__}")


@generic
def is_settled(assumed: Any, plays: Integers, i: int, j: int) -> bool:
    """Whether what is assumed of a pair stays as it is until there is news of one of them.

    Or until the `epoch` changes.
    """
    return False


@generic
def epoch(assumed: Any) -> int:
    """Return a number that changes when what is assumed of all pairs may have changed."""
    return 0


@generic
def next_look(assumed: Any) -> int:
    """Return the tick at which what is assumed of all pairs is next looked at anew."""
    return FOREVER


@generic
def is_known(assumed: Any) -> bool:
    """Whether there is a law to go by; not while it is still to be learned."""
    return True


@generic
def drifts(assumed: Any) -> bool:
    """Whether evidence about a pair may change in ways that its plays do not bound."""
    return True


@generic
def vote(assumed: Any, i: int, j: int, first_won: float) -> None:
    """Note an answer where both outcomes are reported (`duelay.votes`)."""


@generic
def share_first(assumed: Any, plays: Integers, conversions: Integers, i: int, j: int) -> float:
    """Return Y bar_ij, the share of the duels with i first and j second that i has won so far."""
    return float(conversions[i, j] / plays[i, j])


@settles.register(AtOnce)
@settles.register(AppendOnly)
@settles.register(ConversionsOnly)
def _settles_at_once(assumed: Any) -> int:
    return 0


@advance.register(AtOnce)
@advance.register(AppendOnly)
@advance.register(ConversionsOnly)
def _advance_nothing(assumed: Any, t: int) -> None:
    pass


@convert.register(AtOnce)
@convert.register(AppendOnly)
@convert.register(ConversionsOnly)
def convert_nothing(assumed: Any, born: int, t: int) -> None:
    """Learn nothing from it."""


@enter.register(AtOnce)
@enter.register(AppendOnly)
@enter.register(ConversionsOnly)
def _enter_nothing(assumed: Any, i: int, j: int, t: int) -> None:
    pass


@heard.register(AtOnce)
@heard.register(AppendOnly)
@heard.register(ConversionsOnly)
def _heard_at_once(assumed: Any, plays: Integers, i: int, j: int) -> float:
    return float(plays[i, j])


@evidence.register(AtOnce)
def read_evidence(assumed: Any, plays: Integers, conversions: Integers, i: int, j: int) -> Any:
    """N_ij, N~_ij and S_ij of a ledger that corrects for the delay."""
    n = float(plays[i, j] + plays[j, i])  # Equation 2
    heard_ji = heard(assumed, plays, j, i)
    n_tilde = heard(assumed, plays, i, j) + heard_ji  # Equation 3
    s = conversions[i, j] + heard_ji - conversions[j, i]
    return n, n_tilde, s


@evidence.register(AppendOnly)
def _append_only(assumed: Any, plays: Integers, conversions: Integers, i: int, j: int) -> Any:
    # Every duel enters as a loss of its first arm; a conversion adds a win and takes nothing back.
    n = float(plays[i, j] + plays[j, i] + conversions[i, j] + conversions[j, i])
    return n, n, float(conversions[i, j] + plays[j, i])


@evidence.register(ConversionsOnly)
def _conversions_only(assumed: Any, plays: Integers, conversions: Integers, i: int, j: int) -> Any:
    n = float(conversions[i, j] + conversions[j, i])
    return n, n, float(conversions[i, j])


@is_settled.register(AtOnce)
@is_settled.register(AppendOnly)
@is_settled.register(ConversionsOnly)
def _always_settled(assumed: Any, plays: Integers, i: int, j: int) -> bool:
    return True


@drifts.register(AtOnce)
@drifts.register(AppendOnly)
@drifts.register(ConversionsOnly)
def drifts_within_plays(assumed: Any) -> bool:
    """*heard* lies between 0 and the plays, whatever happens."""
    return False
