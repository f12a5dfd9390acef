"""The baselines, which assume that nothing is late: tau = 1 at once.

They differ in what a silent duel is. `AtOnce` takes it for lost until its conversion comes.
`AppendOnly` never takes the false loss back. `ConversionsOnly` does not count it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from duelay._core.arrays import Integers
from duelay.ledger.delay_models.base import (
    advance,
    convert,
    convert_nothing,
    corrected_counts,
    does_not_drift,
    drifts,
    enter,
    expected,
    final_age,
    pair_counts,
    stands_still,
)


class AtOnce(NamedTuple):
    """A silent duel is a lost one until its conversion comes."""

    tau: float


class AppendOnly(NamedTuple):
    """Nothing is withdrawn: the false loss stays when the win comes."""

    tau: float


class ConversionsOnly(NamedTuple):
    """Conversions alone are counted."""

    tau: float


def _final_age(assumed: Any) -> int:
    return 0


def _stands_still(assumed: Any, plays: Integers, i: int, j: int) -> bool:
    return True


def _advance(assumed: Any, t: int) -> None:
    pass


def _enter(assumed: Any, i: int, j: int, t: int) -> None:
    pass


def _expected(assumed: Any, plays: Integers, i: int, j: int) -> float:
    return float(plays[i, j])


for _kind in (AtOnce, AppendOnly, ConversionsOnly):
    final_age.register(_kind)(_final_age)
    stands_still.register(_kind)(_stands_still)
    advance.register(_kind)(_advance)
    enter.register(_kind)(_enter)
    expected.register(_kind)(_expected)
    convert.register(_kind)(convert_nothing)
    drifts.register(_kind)(does_not_drift)

pair_counts.register(AtOnce)(corrected_counts)


@pair_counts.register(AppendOnly)
def _append_only(assumed: Any, plays: Integers, conversions: Integers, i: int, j: int) -> Any:
    # Every duel enters as a loss of its first arm; a conversion adds a win and takes nothing back.
    n = float(plays[i, j] + plays[j, i] + conversions[i, j] + conversions[j, i])
    return n, n, float(conversions[i, j] + plays[j, i])


@pair_counts.register(ConversionsOnly)
def _conversions_only(assumed: Any, plays: Integers, conversions: Integers, i: int, j: int) -> Any:
    n = float(conversions[i, j] + conversions[j, i])
    return n, n, float(conversions[i, j])
