"""Ages in time: how many duels of each ordered pair have reached which age.

Duels come in bursts and pauses, any number at one time. *expected*, the sum of
tau(min(age, window)), is kept in buckets of age: `ages` are the ages at which a duel passes from
one bucket to the next, `duels` how many of each ordered pair are in each. Duels pass in the order
in which they were asked. So each boundary keeps one place in the list of duels, and a duel passes
each boundary once: the cost of a duel does not depend on how many duels are open. The counts are
additive: those of two players on the same arms can be added.

A duel in a bucket counts as the mean of tau at the bucket's two ends; in the first bucket it counts
as 0. So the error in tau of a duel is at most half of the rise of tau within its bucket, and the
whole rise in the first. For a known law the ages are its quantiles, fine where it is steep and
coarse in its tail. For a learned law each age is 6 % more than the one before.

A learned law is 2 (1 - KM) over duels of two arms, as in `duelay.ledger.delay_models.kaplan_meier`.
Duels are censored at their age in time: a bucket's share of conversions is taken over the duels
that have passed through the whole bucket.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from duelay._core.arrays import Floats, Integers
from duelay._core.jit.decorators import kernel
from duelay.delays.curve import Curve
from duelay.delays.delay import laws_of
from duelay.delays.survival import kaplan_meier
from duelay.ledger.delay_models.base import (
    FOREVER,
    advance,
    convert,
    corrected_counts,
    does_not_drift,
    drifts,
    enter,
    expected,
    final_age,
    is_deaf,
    is_known,
    pair_counts,
    set_clock,
    teach,
    widen_rings,
)
from duelay.ledger.delay_models.kaplan_meier import MIN_TAUGHT

START_CAPACITY = 1024  # duels in the list, at first
_MAX_BUCKETS = 400  # buckets of a law that is told: each has a 400th part of its answers
_MIN_AGE, _MAX_AGE = (
    1e-3,
    1e8,
)  # seconds: the first and the last age of a law that is learned
_RATIO = 1.06  # of one age to the one before, where the law is learned
_BAND = 1.96  # standard errors of a 95 % interval
_SILENT, _TEACHES_NOTHING = -1, -2
_MIN_ANSWER_SHARE = 0.05  # of all duels, below which nothing is learned while no law is known
_MIN_LOOK_INTERVAL = 50  # duels between two looks at the law; later a twentieth of all so far


class ByClock(NamedTuple):
    """Duels by age in seconds, and *expected* under a law that is told or learned."""

    learns: bool
    ages: Floats  # (B,): the ages at which a bucket begins, from 0 on; the last one has no end
    worth: Floats  # (laws, B): the tau that a duel in each bucket counts as
    law: Integers  # (K, K): which row of `worth`
    total: Floats  # (K, K): *expected*
    duels: NDArray[np.int32]  # (K, K, B): duels in each bucket
    reached: Integers  # (B,): the number of the first duel that has not reached each age
    now: Floats  # (1,): the time ...
    seen: Floats  # (1,): ... up to which duels have passed on
    born: Floats  # (R,): when each duel was asked, by its number modulo R; numbers are from 1 on
    first: NDArray[np.int32]  # (R,): its arms
    second: NDArray[np.int32]  # (R,)
    heard_in: NDArray[np.int32]  # (R,): its conversion's bucket, _SILENT, or _TEACHES_NOTHING
    events: Integers  # (B,): of the duels that have passed a bucket, how many converted in it ...
    at_risk: Integers  # (B,): ... and how many had not converted before
    tau: Floats  # (B,): the learned law where each bucket begins
    look: Integers  # (1,): the number of the duel at which the law is learned anew
    n_looks: Integers  # (1,): looks so far that had enough conversions
    n_taught: Integers  # (1,): conversions that have taught the law


def start_told_by_clock(delay: Any, window: float | None, n_arms: int) -> ByClock:
    """Return the state for a told law in time, or for one law of each pair."""
    laws, which = laws_of(delay, n_arms)
    longest = math.inf if window is None else float(window)
    ages = told_ages(laws, longest)
    start = np.stack([np.asarray(law.cdf(ages), dtype=np.float64) for law in laws])
    before = np.nextafter(ages[1:], 0.0)  # a law may jump at the end of a bucket
    end = np.stack([np.asarray(law.cdf(before), dtype=np.float64) for law in laws])
    top = np.array([1.0 - law.never if math.isinf(longest) else law.cdf(longest) for law in laws])
    worth = 0.5 * (start + np.concatenate([end, top[:, None]], axis=1))
    worth[:, 0] = 0.0
    return _start(ages, worth, which, n_arms, learns=False)


def told_ages(laws: list[Any], longest: float) -> Floats:
    """Return 0 and the quantiles of all laws up to an age, and that age."""
    steps = max(_MAX_BUCKETS // len(laws), 20)
    ages = [np.zeros(1)]
    for law in laws:
        top = 1.0 - law.never
        ages.append(np.asarray(law.quantile(top * np.arange(1, steps) / steps)))
    found = np.unique(np.concatenate(ages))
    found = found[np.isfinite(found) & (found < longest)]
    return np.append(found, longest) if math.isfinite(longest) else found


def start_learned_by_clock(window: float | None, n_arms: int) -> ByClock:
    """Return the state for a law that is learned, as far as the window or the oldest duel."""
    ages = learned_ages(window)
    worth = np.ones((1, ages.size))  # until the law is known, silence is taken for defeat
    return _start(ages, worth, np.zeros((n_arms, n_arms), dtype=np.int64), n_arms, learns=True)


def learned_ages(window: float | None) -> Floats:
    """Return the ages at which the buckets of a learned law begin, up to the window."""
    longest = _MAX_AGE if window is None else float(window)
    n = max(int(math.log(longest / _MIN_AGE) / math.log(_RATIO)), 0)
    ages = np.concatenate([[0.0], _MIN_AGE * _RATIO ** np.arange(n + 1)])
    return np.append(ages[ages < longest], longest)


def _start(ages: Floats, worth: Floats, law: Integers, n_arms: int, *, learns: bool) -> ByClock:
    size, one = ages.size, np.zeros(1, dtype=np.int64)
    return ByClock(
        learns=learns,
        ages=ages,
        worth=worth,
        law=law,
        total=np.zeros((n_arms, n_arms)),
        duels=np.zeros((n_arms, n_arms, size), dtype=np.int32),
        reached=np.ones(size, dtype=np.int64),
        now=np.full(1, -math.inf),
        seen=np.full(1, -math.inf),
        born=np.zeros(START_CAPACITY),
        first=np.zeros(START_CAPACITY, dtype=np.int32),
        second=np.zeros(START_CAPACITY, dtype=np.int32),
        heard_in=np.full(START_CAPACITY, _TEACHES_NOTHING, dtype=np.int32),
        events=np.zeros(size, dtype=np.int64),
        at_risk=np.zeros(size, dtype=np.int64),
        tau=np.zeros(size),
        look=one + _MIN_LOOK_INTERVAL,
        n_looks=one.copy(),
        n_taught=one.copy(),
    )


def add_past(
    assumed: ByClock, number: int, plays: Integers, asked: Integers, answered: Integers
) -> None:
    """Let an empty state begin after duel `number`; the duels up to that one are closed.

    `plays` counts them by ordered pair. For a learned law, `asked` counts for each bucket the duels
    that had no answer when the bucket began, and `answered` those answered within it.
    """
    assumed.duels[:, :, -1] = plays
    assumed.reached[:] = number + 1
    if assumed.learns:
        assumed.at_risk[:] = asked
        assumed.events[:] = answered
        assumed.n_taught[0] = answered.sum()
        if assumed.n_taught[0] >= MIN_TAUGHT:
            assumed.n_looks[0] = 1
            learn(assumed)
    assumed.total[:] = (assumed.duels * assumed.worth[assumed.law]).sum(axis=2)


def with_room_by_clock(assumed: ByClock, t: int) -> ByClock:
    """Return the state with room for the duel with number t."""
    size, oldest = assumed.born.size, int(assumed.reached[-1])
    if t - oldest < size:
        return assumed
    names = ("born", "first", "second", "heard_in")
    return assumed._replace(
        **widen_rings({name: getattr(assumed, name) for name in names}, oldest, t)
    )


def count_passes(assumed: ByClock, t: int) -> int:
    """Return how many passes from a bucket to the next one `advance` has to make at number t."""
    oldest = int(assumed.reached[-1])
    born = assumed.born[np.arange(oldest, t) % assumed.born.size]
    places = np.searchsorted(assumed.ages, assumed.now[0] - born, side="right") - 1
    return int(places.sum() - (assumed.reached[1:] - oldest).sum())


def learned_curve(assumed: ByClock) -> Curve:
    """Return the law as far as duels have passed, with a 95 % band (Greenwood's)."""
    known = np.flatnonzero(assumed.at_risk[:-1] > 0)
    last = int(known[-1]) + 1 if known.size else 1
    at_risk = np.maximum(assumed.at_risk[:last], 1)
    survival, error = kaplan_meier(assumed.events[:last], at_risk)
    tau, wide = 2.0 * (1.0 - survival), 2.0 * _BAND * error
    shares = [np.clip(tau + sign * wide, 0.0, 1.0).tolist() for sign in (0, -1, 1)]
    ages = tuple(assumed.ages[1 : last + 1].tolist())
    return Curve(ages, tuple(shares[0]), lower=tuple(shares[1]), upper=tuple(shares[2]))


drifts.register(ByClock)(does_not_drift)
pair_counts.register(ByClock)(corrected_counts)


@expected.register(ByClock)
def _expected(assumed: ByClock, plays: Integers, i: int, j: int) -> float:
    return float(assumed.total[i, j])


@final_age.register(ByClock)
def _final_age(assumed: ByClock) -> int:
    return FOREVER


@is_deaf.register(ByClock)
def _is_deaf(assumed: ByClock, t: int) -> bool:
    if assumed.learns and assumed.n_looks[0] == 0:  # silence is taken for defeat
        return bool(assumed.n_taught[0] <= _MIN_ANSWER_SHARE * (t - 1))
    return bool(assumed.n_taught[0] == 0)


@is_known.register(ByClock)
def _is_known(assumed: ByClock) -> bool:
    return bool(not assumed.learns or assumed.n_looks[0] > 0)


@set_clock.register(ByClock)
def _set_clock(assumed: ByClock, now: float) -> None:
    if now > assumed.now[0]:
        assumed.now[0] = now


@enter.register(ByClock)
def _enter(assumed: ByClock, i: int, j: int, t: int) -> None:
    slot = t % assumed.born.size
    assumed.born[slot] = assumed.now[0]
    assumed.first[slot] = i
    assumed.second[slot] = j
    assumed.heard_in[slot] = _TEACHES_NOTHING
    if i != j:
        assumed.heard_in[slot] = _SILENT
        assumed.duels[i, j, 0] += 1
        assumed.total[i, j] += assumed.worth[assumed.law[i, j], 0]


@teach.register(ByClock)
def _teach(assumed: ByClock, t: int) -> None:
    if assumed.learns:
        assumed.heard_in[t % assumed.born.size] = _SILENT


@convert.register(ByClock)
def _convert(assumed: ByClock, born: int, t: int) -> None:
    if born < assumed.reached[assumed.ages.size - 1]:
        return  # older than all that is learned
    slot = born % assumed.born.size
    if assumed.heard_in[slot] == _SILENT:
        delay = assumed.now[0] - assumed.born[slot]
        assumed.heard_in[slot] = np.searchsorted(assumed.ages, delay, side="right") - 1
        assumed.n_taught[0] += 1


@advance.register(ByClock)
def _advance(assumed: ByClock, t: int) -> None:
    if assumed.now[0] > assumed.seen[0]:
        pass_all(assumed, t)
    is_first = assumed.n_looks[0] == 0 and assumed.n_taught[0] >= MIN_TAUGHT
    if assumed.learns and (is_first or t >= assumed.look[0]):
        assumed.look[0] = t + max(_MIN_LOOK_INTERVAL, t // 20)
        if assumed.n_taught[0] >= MIN_TAUGHT:
            assumed.n_looks[0] += 1
            learn(assumed)
            recount(assumed)


@kernel
def pass_all(assumed: Any, t: int) -> None:
    """Let the duels before number t pass on to the buckets of their ages."""
    assumed.seen[0] = assumed.now[0]
    for place in range(1, assumed.ages.size):
        latest = assumed.now[0] - assumed.ages[place]
        number = assumed.reached[place]
        while number < t and assumed.born[number % assumed.born.size] <= latest:
            pass_on(assumed, number % assumed.born.size, place)
            number += 1
        assumed.reached[place] = number


@kernel
def pass_on(assumed: Any, slot: int, place: int) -> None:
    """Let a duel pass from the bucket before `place` into that one."""
    i, j, heard = assumed.first[slot], assumed.second[slot], assumed.heard_in[slot]
    if heard == _SILENT or heard >= place - 1:
        assumed.at_risk[place - 1] += 1
        if heard == place - 1:
            assumed.events[place - 1] += 1
    if i != j:
        assumed.duels[i, j, place - 1] -= 1
        assumed.duels[i, j, place] += 1
        row = assumed.law[i, j]
        assumed.total[i, j] += assumed.worth[row, place] - assumed.worth[row, place - 1]


@kernel
def learn(assumed: Any) -> None:
    """Take tau, 2 (1 - KM), from the counts, and from tau what a duel in each bucket counts as."""
    last = assumed.ages.size - 1
    survival = 1.0
    for place in range(last):
        if assumed.at_risk[place] > 0:
            survival *= 1.0 - assumed.events[place] / assumed.at_risk[place]
        assumed.tau[place + 1] = min(1.0, 2.0 * (1.0 - survival))
    assumed.worth[0, 0] = 0.0
    for place in range(1, last):
        assumed.worth[0, place] = 0.5 * (assumed.tau[place] + assumed.tau[place + 1])
    assumed.worth[0, last] = assumed.tau[last]


@kernel
def recount(assumed: Any) -> None:
    """Add *expected* up again under the law as it is known now."""
    for i in range(assumed.total.shape[0]):
        for j in range(assumed.total.shape[0]):
            total = 0.0
            for place in range(assumed.ages.size):
                total += assumed.duels[i, j, place] * assumed.worth[0, place]
            assumed.total[i, j] = total
