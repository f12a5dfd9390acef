"""The rule of double Thompson sampling (Wu and Liu, NIPS 2016, Algorithm 1) and D-TS+.

The algorithm only compares most of its samples with 1/2. A pair whose evidence has not changed
since the last sample therefore tosses a coin instead of drawing a Beta; the probability of the
coin, P(theta > 1/2), is computed once. An arm that beats all others in the first sample is the
first arm, whatever the rest of that sample is. One coin for all of its pairs decides whether it
does; one more coin decides whether no arm beats it in the second sample. The duels have the same
distribution as those of the algorithm.

Until there is news of the first arm, its probabilities of winning are bounded from below, because
*expected* only grows and its last value is known. One draw therefore says for how many ticks in a
row, at the least, this arm beats all others in both samples. At these ticks it duels itself without
further computation. At the tick after them at least one bound fails, and the exact probability of
the pair decides whether it is lost.

With a clock, all pairs take turns before the first answer. Until then silence counts as a loss, and
only the coin makes arms differ. Without these turns, a burst of duels at the launch would be spent
on self-duels of the arm that the coin has favoured.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from duelay._core.jit.decorators import kernel
from duelay.ledger.delay_models.base import epoch, is_deaf, stands_still
from duelay.ledger.evidence.winner_threshold import divergence
from duelay.ledger.ledger import Ledger
from duelay.policies.double_thompson.beta_posterior import (
    beats_for_certain,
    chance_above_half,
    draw,
    draw_above_half,
    is_beaten_for_certain,
    reach,
)
from duelay.policies.double_thompson.self_duel_runs import (
    calm_of_favourite,
    is_quiet,
    loses_some,
    pass_quiet_turns,
    quiet_turns,
)
from duelay.policies.pair_statistics import least_asked, wins_and_count
from duelay.policies.turn import calm_until, pass_over, select

_MIN_QUIET_CHANCE = 0.2  # the least chance of a quiet tick for which floors are kept


class DoubleThompsonRule(NamedTuple):
    """The memory of double Thompson sampling, working space and the width of its bounds."""

    alpha: float
    is_plus: bool  # D-TS+: ties for the first arm go to the one that promises the least regret
    favourite: NDArray[np.int64]  # (1,): the first arm when all arms were last compared
    row: NDArray[np.bool_]  # (K,): which arms an arm beats in a sample
    score: NDArray[np.int64]  # (K,): how many arms each one may beat, then how many it beats
    theta: NDArray[np.float64]  # (K, K): the first sample, for D-TS+; else (0, 0)
    wins: NDArray[np.float64]  # (K, K): the Beta's wins and number when each pair was last seen
    number: NDArray[np.float64]  # (K, K)
    seen: NDArray[np.int64]  # (K, K): the tick at which `wins` or `number` last changed
    chance: NDArray[np.float64]  # (K, K): P(theta_ij > 1/2) for them, -1 where not yet computed
    stamp: NDArray[np.int64]  # (K, K): news of i and j when the chance was last valid, or -1
    epoch: NDArray[np.int64]  # (1,): the ledger's epoch in which the stamps are valid
    young_news: NDArray[np.int64]  # (K,): news of the arm when it had too few duels to lose, or -1
    least: NDArray[np.float64]  # (K,): the favourite's S over each arm, at the least ...
    most: NDArray[np.float64]  # (K,): ... and N~ - S at the most, for which the floors are valid
    floor: NDArray[np.float64]  # (K,): P(theta > 1/2) for them; 0 if the arm may put it out of C
    together: NDArray[np.float64]  # (1,): the product of the floors; 0 where it is too small
    quiet: NDArray[np.int64]  # (1,): turns to come at which the favourite duels itself
    floor_news: NDArray[np.int64]  # (1,): the favourite's news when floors were laid, or -1
    floor_epoch: NDArray[np.int64]  # (1,): the ledger's epoch of the floors, or -1


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
        young_news=np.full(n_arms, -1, dtype=np.int64),
        least=np.zeros(n_arms),
        most=np.zeros(n_arms),
        floor=np.zeros(n_arms),
        together=np.zeros(1),
        quiet=np.zeros(1, dtype=np.int64),
        floor_news=np.full(1, -1, dtype=np.int64),
        floor_epoch=np.full(1, -1, dtype=np.int64),
    )


@kernel
def has_changed(rule: DoubleThompsonRule, i: int, j: int, t: int, s: float, n: float) -> bool:
    """Whether the evidence has changed since an earlier tick; if not, `chance` is computed."""
    if s != rule.wins[i, j] or n != rule.number[i, j]:
        rule.wins[i, j] = s
        rule.number[i, j] = n
        rule.chance[i, j] = -1.0
        rule.seen[i, j] = t
        return True
    if rule.chance[i, j] < 0.0:
        if rule.seen[i, j] == t:
            return True  # it may change again: to compute a chance is dear, a draw is not
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
        if stands_still(ledger.assumed, ledger.plays, i, j):
            rule.stamp[i, j] = news
    return bool(rng.random() < rule.chance[i, j])


@kernel
def beats_all(rule: DoubleThompsonRule, ledger: Ledger, arm: int, t: int, rng: Any) -> bool:
    """Whether an arm beats all others in a new sample; if not, `row` says which arms it beats."""
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
def lay_floors(rule: DoubleThompsonRule, ledger: Ledger, t: int) -> float:
    """Return a floor of the chance that the favourite beats all others, 0 if that is small.

    It is valid until there is news of the favourite or a new epoch.
    """
    arm = rule.favourite[0]
    width = rule.alpha * math.log(t)
    is_new = rule.floor_epoch[0] != epoch(ledger.assumed)
    if is_new:
        rule.floor_epoch[0] = epoch(ledger.assumed)
        for j in range(rule.most.size):
            rule.most[j] = -1.0
    together = 1.0
    for j in range(rule.most.size):
        if j != arm:
            won, lost, n = reach(ledger, arm, j)
            if rule.floor[j] == 0.0 or lost > rule.most[j] or won < rule.least[j]:
                rule.least[j] = won
                rule.most[j] = lost
                short = 0.5 * (lost - won)
                if short > 0.0 and short * short >= width * n:
                    rule.floor[j] = 0.0
                else:
                    rule.floor[j] = chance_above_half(won, won + lost)
            together *= rule.floor[j]
            if together * together < _MIN_QUIET_CHANCE:
                return 0.0
    return together


@kernel
def may_beat(rule: DoubleThompsonRule, ledger: Ledger, i: int, width: float) -> int:
    """Return how many others an arm may beat: those that do not beat it for certain.

    N duels have N~ <= N and N~/2 - S <= N~/2. So fewer than 4 width duels make nothing certain.
    """
    k = ledger.plays.shape[0]
    if rule.young_news[i] == ledger.news[i]:
        return int(k - 1)
    n, most = 0, 0
    for j in range(k):
        if j != i:
            duels = ledger.plays[i, j] + ledger.plays[j, i]
            most = max(most, duels)
            if duels < 4.0 * width or not is_beaten_for_certain(ledger, i, j, width):
                n += 1
    if most < 4.0 * width:
        rule.young_news[i] = ledger.news[i]
    return n


@kernel
def is_surely_in_c(ledger: Ledger, arm: int, width: float) -> bool:
    """Whether no arm beats this one for certain; it is then in C."""
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
    """Sum r_ij / d(theta_ij, 1/2) over the others j: the cost of comparing i with them (D-TS+).

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
    """Lines 4 to 11: the favourite, if it beats all others in the first sample; else the best."""
    known = -1
    if not rule.is_plus and is_surely_in_c(ledger, rule.favourite[0], rule.alpha * math.log(t)):
        known = rule.favourite[0]
        if beats_all(rule, ledger, known, t, rng):
            return int(known)
    return best_arm(rule, ledger, t, known, rng)


@kernel
def best_arm(rule: DoubleThompsonRule, ledger: Ledger, t: int, known: int, rng: Any) -> int:
    """Lines 4 to 11: the arm of C that beats the most others in the first sample.

    If `known` is not -1, `row` says which arms that arm beats in this sample.
    """
    k = ledger.plays.shape[0]
    score = rule.score
    width = rule.alpha * math.log(t)
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
        score[i] = 0 if score[i] == best else -k  # no arm outside C can win

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
    if first != rule.favourite[0]:
        rule.favourite[0] = first
        rule.floor_epoch[0] = -1
    rule.floor_news[0] = -1
    return first


calm_until.register(DoubleThompsonRule)(calm_of_favourite)
pass_over.register(DoubleThompsonRule)(pass_quiet_turns)


@select.register(DoubleThompsonRule)
def _select(rule: DoubleThompsonRule, ledger: Ledger, t: int, rng: np.random.Generator) -> Any:
    if is_deaf(ledger.assumed, t):  # by the clock a burst at launch goes to all pairs alike
        return least_asked(ledger, rng)
    first = rule.favourite[0]
    is_ahead = False  # whether the second sample has been drawn already
    if rule.is_plus:
        first = first_arm(rule, ledger, t, rng)
    else:
        if not is_quiet(rule, ledger):
            rule.floor_news[0] = ledger.news[first]
            rule.together[0] = lay_floors(rule, ledger, t)
            if rule.together[0] > 0.0:
                rule.quiet[0] = quiet_turns(rule.together[0], rng)
        if rule.together[0] <= 0.0:
            first = first_arm(rule, ledger, t, rng)
        elif rule.quiet[0] > 0:
            rule.quiet[0] -= 1
            return first, first
        else:
            rule.floor_news[0] = -1
            # All floors held in the first sample with together / (1 + together).
            is_ahead = rng.random() * (1.0 + rule.together[0]) >= 1.0
            if loses_some(ledger, first, rule.floor, rule.together[0], rule.row, rng):
                if not is_ahead:
                    first = best_arm(rule, ledger, t, first, rng)
            elif is_ahead:
                return first, first
    if not is_ahead and beats_all(rule, ledger, first, t, rng):
        return first, first  # lines 12 to 14: sample again who beats first
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
