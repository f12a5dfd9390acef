"""Learn the delay law from answers as 2 (1 - KM), KM being the Kaplan-Meier survival curve.

Over duels of two arms whose order a coin decides, P(heard by age a) = tau(a) / 2, since mu_ij +
mu_ji = 1: the arm shown first wins half of the time, whatever the preferences and however the
pairs are chosen. A duel is observed up to its age and no further (right-censored); the Kaplan-Meier
curve of them all is therefore 1 - tau / 2, the never-answered share included.

Self-duels teach nothing: a live program shows such an arm alone, or not at all. But where the
champion is always shown first, no other duels can teach the law. `learn-from-self-duels` learns
from self-duels alone. It needs every self-duel to be really shown, and the first place to win half
of them.

The law is learned up to the window, and later answers do not count. Policies without a window get
one of 10,000 ticks.

The law is estimated anew from time to time, and *expected* is then added up again over all open and
closed duels, so that earlier duels follow the new law, too.
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import numpy as np

from duelay._core.arrays import Floats, Integers
from duelay._core.jit.decorators import kernel
from duelay.delays.ticks_or_clock import LEARNING_WINDOW
from duelay.errors import InvalidValueError
from duelay.ledger.delay_models.base import (
    FOREVER,
    advance,
    check_length,
    convert,
    corrected_counts,
    does_not_drift,
    drifts,
    enter,
    epoch,
    expected,
    expected_at_last,
    final_age,
    is_known,
    next_look,
    pair_counts,
    stands_still,
    teach,
)
from duelay.ledger.delay_models.tabulated import (
    age_open,
    all_closed,
    all_gained,
    blocks,
    close_old,
    look_ahead,
    push,
    read_expected,
)

W = TypeVar("W")  # a window, in ticks or in time
MIN_TAUGHT = 100  # conversions that have taught the law; before, silence is taken for defeat
_MIN_LOOK_INTERVAL = 50  # ticks between two looks; later a twentieth of the time so far


class LearnedLaw(NamedTuple):
    """What is known about the delay, and *expected* under it."""

    from_self_duels: bool  # whether self-duels teach the law; if not, duels of two arms do
    tau: Floats  # (1, n + 1 + BLOCK): the law as known now; 1 from age 1 while nothing is
    law: Integers  # (K, K): all 0, one law for all pairs; up to `place` as in `AssumedTable`
    ahead: Floats  # (R, BLOCK)
    row: Integers  # (K, K)
    owner: Integers  # (R,)
    n_rows: Integers  # (1,)
    closed: Integers  # (K, K)
    first: Integers  # (n + BLOCK,)
    second: Integers  # (n + BLOCK,)
    born: Integers  # (n + BLOCK,)
    oldest: Integers  # (1,)
    n_open: Integers  # (1,)
    block: Integers  # (1,)
    place: Integers  # (1,)
    tells: Integers  # (n,): of the duel at tick modulo n: its delay, 0 silent, -1 teaches nothing
    events: Integers  # (n + 2,): closed duels that converted at each age
    entries: Integers  # (n + 2,): closed duels observed at age a, as differences
    look: Integers  # (1,): the tick of the next look at the law
    n_looks: Integers  # (1,): looks so far that had enough conversions
    n_taught: Integers  # (1,): conversions that have taught the law


def start_learned(window: int, n_arms: int, *, from_self_duels: bool = False) -> LearnedLaw:
    """Return the state before the first duel."""
    n = window
    check_length(n)
    at_once = np.ones((1, n + 1))
    at_once[0, 0] = 0.0
    return LearnedLaw(
        from_self_duels=from_self_duels,
        **blocks(at_once, np.zeros((n_arms, n_arms), dtype=np.int64)),
        tells=np.full(n, -1, dtype=np.int64),
        events=np.zeros(n + 2, dtype=np.int64),
        entries=np.zeros(n + 2, dtype=np.int64),
        look=np.full(1, _MIN_LOOK_INTERVAL, dtype=np.int64),
        n_looks=np.zeros(1, dtype=np.int64),
        n_taught=np.zeros(1, dtype=np.int64),
    )


def check_learning(delay: str, order: str, window: W | None) -> W:
    """Return the window, the age up to which the law is learned; refuse what cannot be learned."""
    if delay == "learn" and order == "champion":
        raise InvalidValueError(
            "delay='learn' learns from duels whose order a coin or turns decide, and order is "
            "'champion': tell the law, or write delay='learn-from-self-duels', which needs an arm "
            "that duels itself to be really shown twice"
        )
    if window is None:
        raise InvalidValueError(
            f"window must be given where the law is learned, such as {LEARNING_WINDOW}: it is "
            "learned up to there, and what comes later does not count"
        )
    return window


drifts.register(LearnedLaw)(does_not_drift)
pair_counts.register(LearnedLaw)(corrected_counts)
stands_still.register(LearnedLaw)(all_closed)
expected.register(LearnedLaw)(read_expected)
expected_at_last.register(LearnedLaw)(all_gained)


@epoch.register(LearnedLaw)
def _epoch(assumed: LearnedLaw) -> int:
    return int(assumed.look[0])  # the law is looked at anew when it comes


@next_look.register(LearnedLaw)
def _next_look(assumed: LearnedLaw) -> int:
    return int(assumed.look[0])


@is_known.register(LearnedLaw)
def _is_known(assumed: LearnedLaw) -> bool:
    return bool(assumed.n_looks[0] > 0)


@final_age.register(LearnedLaw)
def _final_age(assumed: LearnedLaw) -> int:
    """The window; FOREVER where self-duels teach, since calm ticks are full of them."""
    if assumed.from_self_duels:
        return FOREVER
    return int(assumed.tells.size)


@convert.register(LearnedLaw)
def _convert(assumed: LearnedLaw, born: int, t: int) -> None:
    n = assumed.tells.size
    if t - born <= n and assumed.tells[born % n] == 0:
        assumed.tells[born % n] = t - born
        assumed.n_taught[0] += 1


@enter.register(LearnedLaw)
def _enter(assumed: LearnedLaw, i: int, j: int, t: int) -> None:
    if (i == j) == assumed.from_self_duels:
        assumed.tells[t % assumed.tells.size] = 0
    if i != j:
        push(assumed, i, j, t)


@teach.register(LearnedLaw)
def _teach(assumed: LearnedLaw, t: int) -> None:
    if not assumed.from_self_duels:
        assumed.tells[t % assumed.tells.size] = 0


@advance.register(LearnedLaw)
def _advance(assumed: LearnedLaw, t: int) -> None:
    n = assumed.tells.size
    age_open(assumed, t)
    delay = assumed.tells[t % n]
    if delay >= 0:  # asked n ticks ago: its window closes
        assumed.entries[1] += 1
        if delay > 0:
            assumed.events[delay] += 1
            assumed.entries[delay + 1] -= 1
        else:
            assumed.entries[n + 1] -= 1
        assumed.tells[t % n] = -1
    if t >= assumed.look[0]:
        assumed.look[0] = t + max(_MIN_LOOK_INTERVAL, t // 20)
        if assumed.n_taught[0] >= MIN_TAUGHT:
            assumed.n_looks[0] += 1
            estimate(assumed, t)
            recount(assumed, t)


@kernel
def estimate(assumed: LearnedLaw, t: int) -> None:
    """Take tau from the counts: 2 (1 - KM), Kaplan-Meier over all duels that teach the law."""
    count_open(assumed, t, 1)
    survival, at_risk = 1.0, 0
    for age in range(1, assumed.tells.size + 1):
        at_risk += assumed.entries[age]
        if at_risk > 0:
            survival *= 1.0 - assumed.events[age] / at_risk
        assumed.tau[0, age] = min(1.0, 2.0 * (1.0 - survival))
    for beyond in range(assumed.tells.size + 1, assumed.tau.shape[1]):
        assumed.tau[0, beyond] = assumed.tau[0, assumed.tells.size]
    count_open(assumed, t, -1)


@kernel
def count_open(assumed: LearnedLaw, t: int, sign: int) -> None:
    """Count the duels of the last n - 1 ticks, observed up to their age, or take them out again."""
    n = assumed.tells.size
    for age in range(1, min(n, t)):
        delay = assumed.tells[(t - age) % n]
        if delay >= 0:
            assumed.entries[1] += sign
            if delay > 0:
                assumed.events[delay] += sign
                assumed.entries[delay + 1] -= sign
            else:
                assumed.entries[age + 1] -= sign


@kernel
def recount(assumed: LearnedLaw, t: int) -> None:
    """Add *expected* up again under the law as it is known now."""
    close_old(assumed, t)
    look_ahead(assumed, t)
