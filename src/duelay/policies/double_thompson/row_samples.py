"""Samples of the comparisons among many arms: bounds of probabilities, rows, and whole samples.

P(theta_ij > 1/2) lies between two bounds until there is news of both arms, since the last value of
*expected* is known. A uniform number outside the bounds decides the comparison; the probability is
computed only for a number between them. Two arms that never met are compared by a random bit, and
one draw gives 53 bits.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duelay._core.jit.decorators import kernel
from duelay.ledger.delay_models.base import epoch, stands_still
from duelay.ledger.ledger import Ledger
from duelay.policies.double_thompson.beta_posterior import (
    chance_above_half,
    is_beaten_for_certain,
    reach,
)
from duelay.policies.pair_statistics import wins_and_count

BITS_PER_DRAW = 53
ROWS_PER_SUM = 8  # rows of bits that are added up together
_ALL_BITS = (1 << BITS_PER_DRAW) - 1


@kernel
def tilted(rule: Any, chance: float) -> Any:
    """Return E exp(tilt (X - 1/2)), X a coin with this chance."""
    return (1.0 - chance) * rule.down + chance * rule.up


@kernel
def keep_bounds(rule: Any, i: int, j: int, low: float, high: float) -> None:
    """Keep the bounds of the chance of i over j, and so those of j over i."""
    rule.weight[i] *= tilted(rule, high) / tilted(rule, rule.high[i, j])
    rule.weight[j] *= tilted(rule, 1.0 - low) / tilted(rule, rule.high[j, i])
    rule.low[i, j] = low
    rule.high[i, j] = high
    rule.low[j, i] = 1.0 - high
    rule.high[j, i] = 1.0 - low


@kernel
def lay_bounds(rule: Any, ledger: Ledger, i: int, j: int) -> None:
    """Compute bounds of the chance of i over j that are valid until there is news of both."""
    won, lost, _ = reach(ledger, i, j)
    if stands_still(ledger.assumed, ledger.plays, i, j):
        chance = chance_above_half(won, won + lost)
        keep_bounds(rule, i, j, chance, chance)
        return
    won_back, lost_back, _ = reach(ledger, j, i)
    if lost + lost_back == math.inf:
        keep_bounds(rule, i, j, 0.0, 1.0)
        return
    low = chance_above_half(won, won + lost)
    high = 1.0 - chance_above_half(won_back, won_back + lost_back)
    keep_bounds(rule, i, j, low, max(low, high))


@kernel
def note_news(rule: Any, ledger: Ledger) -> None:
    """Update the bounds of pairs that may have news: both arms have, or the epoch is new."""
    n, changed, seen, news = 0, rule.changed, rule.bound_news, ledger.news
    for i in range(seen.size):
        changed[n] = i
        n += int(seen[i] != news[i])
    for place in range(n):
        i = changed[place]
        seen[i] = news[i]
        for before in range(place):
            j = changed[before]
            if ledger.plays[i, j] + ledger.plays[j, i] > 0:
                meet(rule, i, j)
                meet(rule, j, i)
                lay_bounds(rule, ledger, i, j)
    if rule.epoch[0] != epoch(ledger.assumed):
        rule.epoch[0] = epoch(ledger.assumed)
        for i in range(seen.size):
            for place in range(rule.n_below[i]):
                lay_bounds(rule, ledger, i, rule.met[i, place])


@kernel
def meet(rule: Any, i: int, j: int) -> None:
    """Record that i and j have met."""
    word = j // BITS_PER_DRAW
    bit = np.int64(1) << (j - word * BITS_PER_DRAW)
    if rule.fresh[i, word] & bit:
        rule.fresh[i, word] ^= bit
        place = rule.n_met[i]
        rule.n_met[i] += 1
        if j < i:  # those come first
            rule.met[i, place] = rule.met[i, rule.n_below[i]]
            place = rule.n_below[i]
            rule.n_below[i] += 1
        rule.met[i, place] = j


@kernel
def wins_between(rule: Any, ledger: Ledger, i: int, j: int, drawn: float) -> bool:
    """Whether theta_ij > 1/2, for a uniform number between the bounds, which are updated."""
    s, n = wins_and_count(ledger, i, j)
    lay_bounds(rule, ledger, i, j)
    return bool(drawn < chance_above_half(s, n))


@kernel
def sample_row(
    rule: Any, ledger: Ledger, arm: int, row: NDArray[np.bool_], n_drawn: int, rng: Any
) -> int:
    """Write into `row` which arms an arm beats in a new sample, and return how many.

    Against the arms whose rows are drawn already, these rows decide.
    """
    low, high, n = rule.low, rule.high, 0
    for j in range(row.size):
        row[j] = True
        if j != arm:
            drawn = rng.random()
            wins = drawn < low[arm, j]
            if wins != (drawn < high[arm, j]):  # no branch on a coin alone
                wins = wins_between(rule, ledger, arm, j, drawn)
            row[j] = wins
            n += int(wins)
    for place in range(n_drawn):
        j = rule.drawn[place]
        n += int(not rule.rows[place, arm]) - int(row[j])
        row[j] = not rule.rows[place, arm]
    return n


@kernel
def is_unbeaten(rule: Any, ledger: Ledger, arm: int, width: float) -> bool:
    """Whether no arm beats this one for certain; the one that did last time is tried first."""
    if rule.young_news[arm] == ledger.news[arm]:
        return True
    if is_beaten_for_certain(ledger, arm, rule.beater[arm], width):
        return False
    most = 0
    for place in range(rule.n_met[arm]):
        j = rule.met[arm, place]
        duels = ledger.plays[arm, j] + ledger.plays[j, arm]
        most = max(most, duels)
        if duels >= 4.0 * width and is_beaten_for_certain(ledger, arm, j, width):
            rule.beater[arm] = j
            return False
    if most < 4.0 * width:
        rule.young_news[arm] = ledger.news[arm]
    return True


@kernel
def find_c(rule: Any, ledger: Ledger, width: float) -> None:
    """Find C, the arms that the fewest others beat for certain (lines 4 to 7)."""
    k, least = rule.bound_news.size, rule.bound_news.size
    for i in range(k):
        rule.score[i] = 0
        if not is_unbeaten(rule, ledger, i, width):
            for place in range(rule.n_met[i]):
                j = rule.met[i, place]
                rule.score[i] += int(is_beaten_for_certain(ledger, i, j, width))
        least = min(least, rule.score[i])
    for i in range(k):
        rule.in_c[i] = rule.score[i] == least


@kernel
def count_bits(word: Any) -> int:
    """Return how many bits are set."""
    n = 0
    while word:  # a loop that LLVM knows: it becomes one instruction
        word &= word - 1
        n += 1
    return n


@kernel
def sample_all(rule: Any, ledger: Ledger, n_drawn: int, rng: Any) -> None:
    """Sample all pairs of an arm in C; `score` gets how many each beats (lines 8 to 11).

    The rows of some arms may be drawn already.
    """
    k, score, waits, todo = rule.score.size, rule.score, rule.waits, rule.todo
    for j in range(k):
        score[j] = 0
        waits[j] = True
    for word in range(todo.size):
        todo[word] = _ALL_BITS
        for level in range(rule.counts.shape[0]):
            rule.counts[level, word] = 0
    for place in range(n_drawn):
        take_row(rule, place)
    for i in range(k):
        if waits[i]:
            toss_coins(rule, ledger, i, rng)
    n_rows = 0
    for i in range(k):
        if rule.in_c[i] and waits[i]:
            strike(rule, i)
            score[i] += toss_bits(rule, i, n_rows, rng)
            n_rows += 1
            if n_rows == ROWS_PER_SUM:
                add_bits(rule)
                n_rows = 0
    while 0 < n_rows < ROWS_PER_SUM:
        for word in range(todo.size):
            rule.losses[n_rows, word] = 0
        n_rows += 1
    if n_rows:
        add_bits(rule)
    read_counts(rule)


@kernel
def strike(rule: Any, i: int) -> None:
    """Exclude i from the coins of all later rows."""
    rule.waits[i] = False
    word = i // BITS_PER_DRAW
    rule.todo[word] &= ~(np.int64(1) << (i - word * BITS_PER_DRAW))


@kernel
def take_row(rule: Any, place: int) -> None:
    """Add a row that is already drawn to the scores."""
    arm = rule.drawn[place]
    strike(rule, arm)
    for j in range(rule.score.size):
        if rule.waits[j]:
            rule.score[arm] += int(rule.rows[place, j])
            rule.score[j] += 1 - int(rule.rows[place, j])


@kernel
def toss_coins(rule: Any, ledger: Ledger, i: int, rng: Any) -> None:
    """Sample the pairs of an arm with the arms of a smaller number that it has met."""
    low, high, score, n = rule.low, rule.high, rule.score, 0
    for place in range(rule.n_below[i]):
        j = rule.met[i, place]
        if rule.waits[j] and (rule.in_c[i] or rule.in_c[j]):
            drawn = rng.random()
            wins = drawn < low[i, j]
            if wins != (drawn < high[i, j]):
                wins = wins_between(rule, ledger, i, j, drawn)
            n += int(wins)
            score[j] += 1 - int(wins)
    score[i] += n


@kernel
def toss_bits(rule: Any, i: int, row: int, rng: Any) -> int:
    """Toss a bit against each waiting arm that i never met; return how many i beats.

    `losses` records the arms that it loses to.
    """
    n = 0
    for word in range(rule.todo.size):
        even = rule.fresh[i, word] & rule.todo[word]
        wins = np.int64(0)
        if even:
            wins = np.int64(rng.random() * 9007199254740992.0) & even
        n += count_bits(wins)
        rule.losses[row, word] = even ^ wins
    return n


@kernel
def add_bits(rule: Any) -> None:
    """Add up eight rows of bits: each column has a binary number, its digits in `counts`."""
    counts, rows, words = rule.counts, rule.losses, np.uint64(rule.todo.size)
    for word in range(words):  # without a sign it is vectorised
        ones, twos, fours = counts[0, word], counts[1, word], counts[2, word]
        ones, two_a = add(ones, rows[0, word], rows[1, word])
        ones, two_b = add(ones, rows[2, word], rows[3, word])
        twos, four_a = add(twos, two_a, two_b)
        ones, two_a = add(ones, rows[4, word], rows[5, word])
        ones, two_b = add(ones, rows[6, word], rows[7, word])
        twos, four_b = add(twos, two_a, two_b)
        fours, carry = add(fours, four_a, four_b)
        counts[0, word], counts[1, word], counts[2, word] = ones, twos, fours
        rows[0, word] = carry
    for level in range(3, counts.shape[0]):
        for word in range(words):
            carry = rows[0, word]
            rows[0, word] = counts[level, word] & carry
            counts[level, word] ^= carry


@kernel
def add(a: int, b: int, c: int) -> Any:
    """Add three bits in every place: return the last digit of the sums, and the first."""
    half = a ^ b
    return half ^ c, (a & b) | (half & c)


@kernel
def read_counts(rule: Any) -> None:
    """Add to the score of each arm in C how many others in C lost to it by a bit."""
    for j in range(rule.score.size):
        if rule.in_c[j]:
            word = j // BITS_PER_DRAW
            for level in range(rule.counts.shape[0]):
                digit = (rule.counts[level, word] >> (j - word * BITS_PER_DRAW)) & 1
                rule.score[j] += digit << level
