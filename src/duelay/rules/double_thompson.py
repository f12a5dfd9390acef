"""Double Thompson sampling (Wu and Liu, NIPS 2016, Algorithm 1) and D-TS+, on any ledger.

Most of what the algorithm samples it only compares with 1/2. A pair whose evidence has not changed
since it was last seen therefore draws no Beta but a coin, with the chance P(theta > 1/2), which is
computed once. And an arm that beats all others in the sample is the first, whatever the rest of the
sample says: one coin for all of its pairs decides that, and one more that nobody beats it in the
second sample. The law of the duels is the algorithm's.

By the clock, all pairs take turns before the first answer. A burst at launch is otherwise spent on
the arm that the coin has favoured, against itself: silence, taken for defeat, is the coin's alone.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from duelay._core.jit import kernel
from duelay.ledger import Ledger
from duelay.ledger.assumption import epoch, is_deaf, is_settled
from duelay.ledger.declare import divergence
from duelay.rules.turn import select, wins_and_count

_STEPS = 100_000  # of a continued fraction, which takes about the square root of N~ steps


class DoubleThompsonRule(NamedTuple):
    """What double Thompson sampling remembers, room to work in, and the width of its bounds."""

    alpha: float
    is_plus: bool  # D-TS+: ties for the first arm go to the one that promises the least regret
    favourite: NDArray[np.int64]  # (1,): the arm that was first when we last looked at all
    row: NDArray[np.bool_]  # (K,): whom an arm beats in a sample
    score: NDArray[np.int64]  # (K,): how many arms each one may beat, then how many it beats
    theta: NDArray[np.float64]  # (K, K): the first sample, for D-TS+; else (0, 0)
    wins: NDArray[np.float64]  # (K, K): the Beta's wins and number when each pair was last seen
    number: NDArray[np.float64]  # (K, K)
    seen: NDArray[np.int64]  # (K, K): the tick at which they became so
    chance: NDArray[np.float64]  # (K, K): P(theta_ij > 1/2) for them, -1 where not yet computed
    stamp: NDArray[np.int64]  # (K, K): news of i and j when the chance was last valid, or -1
    epoch: NDArray[np.int64]  # (1,): the ledger's epoch in which the stamps are valid
    young: NDArray[np.int64]  # (K,): news of the arm when it had too few duels to lose, or -1


def double_thompson_rule(alpha: float, is_plus: bool, n_arms: int) -> DoubleThompsonRule:
    """Return the rule at its start."""
    shape = (n_arms, n_arms)
    return DoubleThompsonRule(
        alpha=alpha,
        is_plus=is_plus,
        favourite=np.zeros(1, dtype=np.int64),
        row=np.zeros(n_arms, dtype=np.bool_),
        score=np.zeros(n_arms, dtype=np.int64),
        theta=np.zeros(shape if is_plus else (0, 0)),
        wins=np.zeros(shape),
        number=np.full(shape, -1.0),
        seen=np.zeros(shape, dtype=np.int64),
        chance=np.full(shape, -1.0),
        stamp=np.full(shape, -1, dtype=np.int64),
        epoch=np.zeros(1, dtype=np.int64),
        young=np.full(n_arms, -1, dtype=np.int64),
    )


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

    Its continued fraction (DLMF 8.17.22) for the smaller of the two sides, after Lentz.
    """
    a, b = n - s + 1.0, s + 1.0  # P(theta > 1/2) = I_1/2(a, b)
    is_turned = a < b
    if is_turned:
        a, b = b, a
    front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) - (a + b) * math.log(2.0)
    c, d = 1.0, 1.0 / (1.0 - 0.5 * (a + b) / (a + 1.0))
    fraction = d
    for m in range(1, _STEPS):
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
def has_changed(rule: DoubleThompsonRule, i: int, j: int, t: int, s: float, n: float) -> bool:
    """Whether the evidence is not what it was at a tick before; if it is, know the chance."""
    if s != rule.wins[i, j] or n != rule.number[i, j]:
        rule.wins[i, j] = s
        rule.number[i, j] = n
        rule.chance[i, j] = -1.0
        rule.seen[i, j] = t
        return True
    if rule.chance[i, j] < 0.0:
        if rule.seen[i, j] == t:
            return True  # it may change again: a chance is dear, a draw is not
        rule.chance[i, j] = chance_above_half(s, n)
    return False


@kernel
def wins_sample(rule: DoubleThompsonRule, ledger: Ledger, i: int, j: int, t: int, rng: Any) -> bool:
    """Whether theta_ij > 1/2 in a new sample."""
    news = ledger.news[i] + ledger.news[j]
    if rule.stamp[i, j] != news:
        s, n = wins_and_count(ledger, i, j)
        if has_changed(rule, i, j, t, s, n):
            return draw(s, n, rng) > 0.5
        if is_settled(ledger.assumed, ledger.plays, i, j):
            rule.stamp[i, j] = news
    return bool(rng.random() < rule.chance[i, j])


@kernel
def beats_all(rule: DoubleThompsonRule, ledger: Ledger, arm: int, t: int, rng: Any) -> bool:
    """Whether an arm beats all others in a new sample; if not, `row` says whom it beats."""
    k = ledger.plays.shape[0]
    row = rule.row
    together, loses = 1.0, False
    for j in range(k):
        row[j] = True
        if j != arm:
            s, n = wins_and_count(ledger, arm, j)
            if not has_changed(rule, arm, j, t, s, n):
                together *= rule.chance[arm, j]  # decided below, for all of them at once
            elif draw(s, n, rng) <= 0.5:
                row[j] = False
                loses = True
    if not loses and rng.random() < together:
        return True
    for j in range(k):
        if j != arm and rule.chance[arm, j] >= 0.0:
            chance = rule.chance[arm, j]
            if loses:
                row[j] = rng.random() < chance
            else:  # it loses to one at least from here on: to j with (1 - chance) / (1 - together)
                row[j] = rng.random() * (1.0 - together) >= 1.0 - chance
                if row[j]:
                    together /= chance
                else:
                    loses = True
    return False


@kernel
def draw_above_half(ledger: Ledger, i: int, j: int, rng: np.random.Generator) -> float:
    """theta_ij, given that it is above 1/2.

    Where that is rare, from the exponential law that touches the density at 1/2 and lies above it,
    the density being log-concave: a draw or two, however rare.
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


@kernel
def may_beat(rule: DoubleThompsonRule, ledger: Ledger, i: int, width: float) -> int:
    """Return how many others an arm may beat: those that do not beat it for certain.

    With N duels N~/2 - S is at most N~/2 <= N/2: less than 4 width of them cannot be certain.
    """
    k = ledger.plays.shape[0]
    if rule.young[i] == ledger.news[i]:
        return int(k - 1)
    n, most = 0, 0
    for j in range(k):
        if j != i:
            most = max(most, ledger.plays[i, j] + ledger.plays[j, i])
            if not is_beaten_for_certain(ledger, i, j, width):
                n += 1
    if most < 4.0 * width:
        rule.young[i] = ledger.news[i]
    return n


@kernel
def is_surely_in_c(ledger: Ledger, arm: int, width: float) -> bool:
    """Whether nobody beats an arm for certain: no arm may beat more others than it may."""
    for j in range(ledger.plays.shape[0]):
        if j != arm and is_beaten_for_certain(ledger, arm, j, width):
            return False
    return True


@kernel
def beats(rule: DoubleThompsonRule, i: int) -> Any:
    """Return how many arms i beats in the sample; outside C its score stands K lower."""
    return rule.score[i] if rule.score[i] >= 0 else rule.score[i] + rule.score.size


@kernel
def promised_regret(rule: DoubleThompsonRule, i: int, most: int) -> float:
    """Sum r_ij / d(theta_ij, 1/2) over the others j: what telling i from them would cost (D-TS+).

    r_ij is the regret of the duel in normalised Copeland scores of the sample.
    """
    k = rule.score.size
    total = 0.0
    for j in range(k):
        if j != i:
            regret = (most - 0.5 * (beats(rule, i) + beats(rule, j))) / (k - 1)
            total += regret / max(divergence(rule.theta[i, j]), 1e-12)
    return total


@kernel
def least_regret(rule: DoubleThompsonRule, top: int) -> int:
    """Return the arm with the top score that promises the least regret."""
    most = 0
    for i in range(rule.score.size):
        most = max(most, beats(rule, i))
    best, least = -1, math.inf
    for i in range(rule.score.size):
        if rule.score[i] == top:
            cost = promised_regret(rule, i, most)
            if best < 0 or cost < least:
                best, least = i, cost
    return best


@kernel
def first_arm(rule: DoubleThompsonRule, ledger: Ledger, t: int, rng: Any) -> int:
    """Lines 4 to 11: the arm of C that beats the most others in the first sample."""
    k = ledger.plays.shape[0]
    score = rule.score
    width = rule.alpha * math.log(t)
    known = -1  # an arm whose row of the sample has been drawn already
    if not rule.is_plus and is_surely_in_c(ledger, rule.favourite[0], width):
        known = rule.favourite[0]
        if beats_all(rule, ledger, known, t, rng):
            return int(known)

    if rule.epoch[0] != epoch(ledger.assumed):
        rule.epoch[0] = epoch(ledger.assumed)
        for i in range(k):
            for j in range(k):
                rule.stamp[i, j] = -1

    best = -1  # lines 4 to 7: C, the arms that may beat the most others
    for i in range(k):
        score[i] = may_beat(rule, ledger, i, width)
        best = max(best, score[i])
    for i in range(k):
        score[i] = 0 if score[i] == best else -k  # outside C nobody can win

    for i in range(k):  # lines 8 to 11: sample all preferences that bear on C
        for j in range(i + 1, k):
            if score[i] < 0 and score[j] < 0 and not rule.is_plus:
                continue
            if rule.is_plus:
                s, n = wins_and_count(ledger, i, j)
                rule.theta[i, j] = draw(s, n, rng)
                rule.theta[j, i] = 1.0 - rule.theta[i, j]
                wins = rule.theta[i, j] > 0.5
            elif i == known:
                wins = rule.row[j]
            elif j == known:
                wins = not rule.row[i]
            else:
                wins = wins_sample(rule, ledger, i, j, t, rng)
            score[i] += int(wins)  # no branch on a coin: half of them would be guessed wrong
            score[j] += 1 - int(wins)
    first, ties = 0, 0
    for i in range(k):
        if ties == 0 or score[i] > score[first]:
            first, ties = i, 1
        elif score[i] == score[first]:
            ties += 1
            if not rule.is_plus and rng.random() * ties < 1.0:
                first = i
    if rule.is_plus and ties > 1:
        first = least_regret(rule, score[first])
    rule.favourite[0] = first
    return first


@kernel
def least_asked(ledger: Ledger, rng: np.random.Generator) -> Any:
    """Return two different arms that have duelled the least; of several pairs, any.

    Who was shown first less often comes first, for an order that keeps it so.
    """
    first, second, least, ties = 0, 0, 0, 0
    for i in range(ledger.plays.shape[0]):
        for j in range(i):
            n = ledger.plays[i, j] + ledger.plays[j, i]
            if ties == 0 or n < least:
                first, second, least, ties = i, j, n, 1
            elif n == least:
                ties += 1
                if rng.random() * ties < 1.0:
                    first, second = i, j
    if ledger.plays[first, second] > ledger.plays[second, first]:
        return second, first
    return first, second


@select.register(DoubleThompsonRule)
def _select(rule: DoubleThompsonRule, ledger: Ledger, t: int, rng: np.random.Generator) -> Any:
    if is_deaf(ledger.assumed, t):  # by the clock a burst at launch goes to all pairs alike
        return least_asked(ledger, rng)
    first = first_arm(rule, ledger, t, rng)
    if beats_all(rule, ledger, first, t, rng):  # lines 12 to 14: sample again who beats first
        return first, first
    width = rule.alpha * math.log(t)
    n = 0
    second, strongest = first, 0.5
    for i in range(ledger.plays.shape[0]):
        # Only arms whose lower bound over first is at most 1/2 may be second.
        if not rule.row[i] and not beats_for_certain(ledger, i, first, width):
            n += 1
            second = i
    if n > 1:  # by how much each is above 1/2
        for i in range(ledger.plays.shape[0]):
            if not rule.row[i] and not beats_for_certain(ledger, i, first, width):
                theta = draw_above_half(ledger, i, first, rng)
                if theta > strongest:
                    second, strongest = i, theta
    return first, second
