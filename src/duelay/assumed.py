"""What a policy assumes about the delay: each assumption is a type that keeps *heard* its way.

*heard* of an ordered pair is the sum of tau(min(age, window)) over its duels, the share of
conversions that should have come by now. Every type brings it from one tick to the next by itself;
none ever looks back over the history.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from duelay._jit import generic, kernel
from duelay.delays import Delay, Geometric, Never, tables

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

FOREVER = 1 << 62  # ticks
BLOCK = 32  # ticks for which *heard* is added up ahead
_LONGEST = 10_000_000  # ages that a ledger keeps open, at the most
_TINY = 1e-18  # a share that adds nothing to a float64 count
_RESCALE = 1e-200


class AtOnce(NamedTuple):
    """tau = 1 at once: a silent duel is a lost one until its conversion comes."""

    tau: float


class AppendOnly(NamedTuple):
    """The naive baseline that withdraws nothing: the false loss stays when the win comes."""

    tau: float


class ConversionsOnly(NamedTuple):
    """The naive baseline that counts conversions alone."""

    tau: float


class GeometricHeard(NamedTuple):
    """A geometric law, where what is missing shrinks by one factor a tick.

    missing_ij = scale · fresh_ij + closed_ij (1 - p)^M, and heard = (1 - never) (plays - missing).
    """

    stay: float  # 1 - p
    last: float  # (1 - p)^M: what a duel still lacks when its window closes
    answered: float  # 1 - the share that never answers
    scale: Floats  # (1,): (1 - p)^ticks since the last rescaling
    fresh: Floats  # (K, K): open duels, each as 1 / scale at its birth
    closed: Integers  # (K, K): duels past the window
    ring: Integers  # (M,): i K + j of the duels of the last M ticks, -1 for none
    place: Integers  # (1,): where in the ring this tick stands


class TableHeard(NamedTuple):
    """Any law, or one a pair: what open duels will have gained is added up a block ahead.

    Whatever happens, a duel has gained tau(age) at each of the next ticks: at the start of a block
    every open duel adds a stretch of tau to its pair's row, and within it every new one does.
    """

    tau: Floats  # (laws, n + 1 + BLOCK): P(D <= age), and beyond age n as at n
    law: Integers  # (K, K): which row of tau
    ahead: Floats  # (K, K, BLOCK): *heard* at each tick of the block
    laid: Integers  # (K, K): the tick at which the row was begun anew
    closed: Integers  # (K, K): duels of age n and more
    first: Integers  # (n + BLOCK,): the open duels, in a ring
    second: Integers  # (n + BLOCK,)
    born: Integers  # (n + BLOCK,)
    ends: Integers  # (2,): where the oldest open duel stands, and how many there are
    block: Integers  # (2,): the first tick of the block, and where in it we stand


def assume(delay: Delay | str | None, window: int | None, n_arms: int) -> Any:
    """Return the state that keeps *heard* for a law, or for a reading of the baseline."""
    if delay is None:
        return AtOnce(1.0)
    if delay == "append-only":
        return AppendOnly(1.0)
    if delay == "conversions":
        return ConversionsOnly(1.0)
    if isinstance(delay, Never) and isinstance(delay.law, Geometric) and delay.law.p < 1:
        return _geometric(delay.law.p, 1.0 - delay.share, window, n_arms)
    if isinstance(delay, Geometric) and delay.p < 1:
        return _geometric(delay.p, 1.0, window, n_arms)
    return _table(delay, window, n_arms)


def _geometric(p: float, answered: float, window: int | None, n_arms: int) -> GeometricHeard:
    last = 0.0 if window is None else math.exp(window * math.log1p(-p))
    if last < _TINY:  # by then all has come: the window's end changes nothing
        last, window = 0.0, None
    _check_length(window or 0)
    return GeometricHeard(
        stay=1.0 - p,
        last=last,
        answered=answered,
        scale=np.ones(1),
        fresh=np.zeros((n_arms, n_arms)),
        closed=np.zeros((n_arms, n_arms), dtype=np.int64),
        ring=np.full(window or 0, -1, dtype=np.int64),
        place=np.zeros(1, dtype=np.int64),
    )


def _table(delay: Any, window: int | None, n_arms: int) -> TableHeard:
    limit = _LONGEST + 1 if window is None else window
    tau, law = tables(delay, n_arms, limit)
    n = tau.shape[1] - 1
    _check_length(n)
    return TableHeard(**blocks(tau, law))


def blocks(tau: Floats, law: Integers) -> dict[str, Any]:
    """Return what a block ahead is kept in, for tau up to age n, by law, and the law of a pair."""
    n = tau.shape[1] - 1
    return {
        "tau": np.concatenate([tau, np.repeat(tau[:, -1:], BLOCK, axis=1)], axis=1),
        "law": law,
        "ahead": np.zeros((*law.shape, BLOCK)),
        "laid": np.zeros_like(law),
        "closed": np.zeros_like(law),
        "first": np.zeros(n + BLOCK, dtype=np.int64),
        "second": np.zeros(n + BLOCK, dtype=np.int64),
        "born": np.zeros(n + BLOCK, dtype=np.int64),
        "ends": np.zeros(2, dtype=np.int64),
        "block": np.zeros(2, dtype=np.int64),
    }


def _check_length(ages: int) -> None:
    if ages > _LONGEST:
        raise ValueError(
            f"window must be at most {_LONGEST} for this law, whose tail is longer than that"
        )


# --- kernels ----------------------------------------------------------------------------------


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
    return True


@generic
def epoch(assumed: Any) -> int:
    """Return a number that changes when what is assumed of all pairs may have changed."""
    return 0


@generic
def drifts(assumed: Any) -> bool:
    """Whether evidence about a pair may change in ways that its plays do not bound."""
    return False


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


@settles.register(GeometricHeard)
def _settles_geometric(assumed: GeometricHeard) -> int:
    if assumed.ring.size > 0:
        return assumed.ring.size
    return int(math.log(_TINY) / math.log(assumed.stay)) + 1


@settles.register(TableHeard)
def _settles_table(assumed: TableHeard) -> int:
    return last_age(assumed)


@kernel
def last_age(assumed: Any) -> int:
    """Return n, the age from which on a duel gains nothing."""
    return int(assumed.tau.shape[1] - 1 - BLOCK)


@advance.register(AtOnce)
@advance.register(AppendOnly)
@advance.register(ConversionsOnly)
def _advance_nothing(assumed: Any, t: int) -> None:
    pass


@convert.register(AtOnce)
@convert.register(AppendOnly)
@convert.register(ConversionsOnly)
@convert.register(GeometricHeard)
@convert.register(TableHeard)
def _convert_nothing(assumed: Any, born: int, t: int) -> None:
    pass


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
@evidence.register(GeometricHeard)
@evidence.register(TableHeard)
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


@is_settled.register(GeometricHeard)
def _never_settled(assumed: Any, plays: Integers, i: int, j: int) -> bool:
    return False


@is_settled.register(TableHeard)
def all_closed(assumed: Any, plays: Integers, i: int, j: int) -> bool:
    """Whether no duel of the pair is open."""
    closed = assumed.closed[i, j] + assumed.closed[j, i]
    return bool(closed == plays[i, j] + plays[j, i])


@advance.register(GeometricHeard)
def _advance_geometric(assumed: GeometricHeard, t: int) -> None:
    scale = assumed.scale[0] * assumed.stay
    fresh = assumed.fresh
    if scale < _RESCALE:
        for i in range(fresh.shape[0]):
            for j in range(fresh.shape[1]):
                fresh[i, j] *= scale
        scale = 1.0
    assumed.scale[0] = scale
    n = assumed.ring.size
    if n > 0:
        place = assumed.place[0] + 1
        if place == n:
            place = 0
        assumed.place[0] = place
        pair = assumed.ring[place]
        if pair >= 0:  # asked M ticks ago: its window closes, what it lacks now it will lack
            i = pair // fresh.shape[0]
            j = pair - i * fresh.shape[0]
            fresh[i, j] -= assumed.last / scale
            assumed.closed[i, j] += 1
            assumed.ring[place] = -1


@enter.register(GeometricHeard)
def _enter_geometric(assumed: GeometricHeard, i: int, j: int, t: int) -> None:
    if i == j:
        return
    assumed.fresh[i, j] += 1.0 / assumed.scale[0]
    if assumed.ring.size > 0:
        assumed.ring[assumed.place[0]] = i * assumed.fresh.shape[0] + j


@heard.register(GeometricHeard)
def _heard_geometric(assumed: GeometricHeard, plays: Integers, i: int, j: int) -> float:
    missing = assumed.scale[0] * assumed.fresh[i, j] + assumed.closed[i, j] * assumed.last
    return float(assumed.answered * (plays[i, j] - missing))


@advance.register(TableHeard)
def _advance_table(assumed: TableHeard, t: int) -> None:
    age_open(assumed, t)


@kernel
def age_open(assumed: Any, t: int) -> None:
    """Step to tick t of the block, or begin a new one."""
    if t - assumed.block[0] >= BLOCK:
        close_old(assumed, t)
        look_ahead(assumed, t)
    assumed.block[1] = t - assumed.block[0]


@kernel
def close_old(assumed: Any, t: int) -> None:
    """Take the duels that gain no more out of the ring."""
    n = last_age(assumed)
    while assumed.ends[1] > 0 and t - assumed.born[assumed.ends[0]] >= n:
        i, j = assumed.first[assumed.ends[0]], assumed.second[assumed.ends[0]]
        assumed.closed[i, j] += 1
        begin_row(assumed, i, j, t)
        assumed.ends[0] += 1
        if assumed.ends[0] == assumed.born.size:
            assumed.ends[0] = 0
        assumed.ends[1] -= 1


@kernel
def look_ahead(assumed: Any, t: int) -> None:
    """Add up *heard* for the block that begins at tick t."""
    size = assumed.born.size
    start, stop = assumed.ends[0], assumed.ends[0] + assumed.ends[1]
    gain(assumed, t, start, min(stop, size))
    gain(assumed, t, 0, stop - size)
    assumed.block[0] = t
    assumed.block[1] = 0


@kernel
def begin_row(assumed: Any, i: int, j: int, t: int) -> None:
    """Let a pair's row hold its closed duels only."""
    closed = assumed.closed[i, j] * assumed.tau[assumed.law[i, j], last_age(assumed)]
    for place in range(BLOCK):
        assumed.ahead[i, j, place] = closed
    assumed.laid[i, j] = t


@kernel
def gain(assumed: Any, t: int, start: int, stop: int) -> None:
    """Add what the duels from place `start` to place `stop` of the ring will have gained."""
    for entry in range(start, stop):
        i, j = assumed.first[entry], assumed.second[entry]
        age = np.uint64(t - assumed.born[entry])  # without a sign the loop below is vectorised
        if assumed.laid[i, j] != t:
            begin_row(assumed, i, j, t)
        row = assumed.law[i, j]
        for place in range(assumed.ahead.shape[2]):
            assumed.ahead[i, j, place] += assumed.tau[row, age + np.uint64(place)]


@enter.register(TableHeard)
def _enter_table(assumed: TableHeard, i: int, j: int, t: int) -> None:
    if i != j:
        push(assumed, i, j, t)


@kernel
def push(assumed: Any, i: int, j: int, t: int) -> None:
    """Put a duel of two arms at the end of the ring of open ones."""
    entry = assumed.ends[0] + assumed.ends[1]
    if entry >= assumed.born.size:
        entry -= assumed.born.size
    assumed.first[entry] = i
    assumed.second[entry] = j
    assumed.born[entry] = t
    assumed.ends[1] += 1
    now, row = assumed.block[1], assumed.law[i, j]
    for age in range(BLOCK - now):
        assumed.ahead[i, j, now + age] += assumed.tau[row, age]


@heard.register(TableHeard)
def read_heard(assumed: Any, plays: Integers, i: int, j: int) -> float:
    """*heard* where it is added up ahead."""
    return float(assumed.ahead[i, j, assumed.block[1]])
