"""Double Thompson sampling among many arms, without drawing the rows that cannot matter.

The duels have the same distribution as those of `duelay.policies.double_thompson.rule`. Once some
arms lead, a few rows of the first sample tell which arm beats the most others. The rows of the
favourite, and of the arms that are likely to reach its score, are drawn. Let s be the best score of
these arms. Any other arm i reaches s with at most the probability (Chernoff)

    b_i = exp(-tilt s) prod_j (1 - p_ij + p_ij exp(tilt)).

One draw decides: with chance 1 - sum b_i, no other arm reaches s. Else arm i is proposed, with
chance b_i, and its row is drawn from the tilted coins. If it reaches s, it is accepted with chance
exp(-tilt (score - s)): this turns the bound b_i into the true chance. Then all other pairs are
sampled. If m arms reach s, each of them could have proposed this sample. So the sample is accepted
with chance 1 / m (Karp and Luby). If the row or the sample is not accepted, no other arm reaches s.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from duelay._core.jit.decorators import kernel
from duelay.ledger.delay_models.base import epoch, is_deaf
from duelay.ledger.ledger import Ledger
from duelay.policies.double_thompson.beta_posterior import (
    beats_for_certain,
    chance_above_half,
    draw_above_half,
)
from duelay.policies.double_thompson.row_samples import (
    BITS_PER_DRAW,
    ROWS_PER_SUM,
    find_c,
    is_unbeaten,
    lay_bounds,
    note_news,
    sample_all,
    sample_row,
    tilted,
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

MANY_ARMS_FROM = 32  # arms have this rule
_MAX_DRAWN_ROWS = 8  # before the whole sample is drawn
_MIN_BOUND_SHARE = 0.12  # of the sum of all bounds, for the row of an arm to be drawn
_TIE_FACTOR = 1.0 + 1e-9  # bounds within it are equal, whatever the last bit of a logarithm
_RARE_PROPOSAL = 0.5  # no more rows are drawn once a proposal has at most this probability
_TILT_BY_ROOT_K = 8.0  # the tilt times sqrt(K): an arm that leads by 2 sqrt(K) is seen to lead


class ManyArmsRule(NamedTuple):
    """The memory of double Thompson sampling for many arms, and working space."""

    alpha: float
    tilt: float
    up: float  # exp(tilt / 2) ...
    down: float  # ... and exp(-tilt / 2)
    favourite: NDArray[np.int64]  # (1,): the arm that was first last
    low: NDArray[np.float64]  # (K, K): bounds of P(theta_ij > 1/2)
    high: NDArray[np.float64]  # (K, K)
    bound_news: NDArray[np.int64]  # (K,): news of each arm for which the bounds are valid, or -1
    changed: NDArray[np.int64]  # (K + 1,): arms with news
    epoch: NDArray[np.int64]  # (1,): the ledger's epoch for which the bounds are valid
    met: NDArray[np.int32]  # (K, K): the arms that each has met, first those before it ...
    n_met: NDArray[np.int64]  # (K,): ... how many ...
    n_below: NDArray[np.int64]  # (K,): ... and how many of them come before it
    fresh: NDArray[np.int64]  # (K, words): a bit for each arm that it has not met
    weight: NDArray[np.float64]  # (K,): prod_j E exp(tilt (X_ij - 1/2)), with the upper bounds
    young_news: NDArray[np.int64]  # (K,): news of the arm when it had too few duels to lose, or -1
    beater: NDArray[np.int64]  # (K,): who last beat it for certain
    in_c: NDArray[np.bool_]  # (K,): whether it is in C
    score: NDArray[np.int64]  # (K,): how many arms it beats
    row: NDArray[np.bool_]  # (K,): which arms the first arm beats in the second sample
    rows: NDArray[np.bool_]  # (9, K): the rows drawn of the first sample
    drawn: NDArray[np.int64]  # (9,): the arms of these rows
    won: NDArray[np.int64]  # (9,): how many each of them beats
    bound: NDArray[np.float64]  # (K,): `weight`, given these rows; 0 for an arm that cannot win
    waits: NDArray[np.bool_]  # (K,): whether an arm's row is not drawn yet ...
    todo: NDArray[np.int64]  # (words,): ... by bits
    losses: NDArray[np.int64]  # (8, words): a bit for each arm to which the row's arm loses
    counts: NDArray[np.int64]  # (digits, words): how many arms lost to each one in such rows
    floor: NDArray[np.float64]  # (K,): the favourite's lower bounds in a quiet stretch
    together: NDArray[np.float64]  # (1,): their product; 0 where it is too small
    quiet: NDArray[np.int64]  # (1,): turns to come at which the favourite duels itself
    floor_news: NDArray[np.int64]  # (1,): the favourite's news when floors were laid, or -1
    floor_epoch: NDArray[np.int64]  # (1,): the ledger's epoch then


def many_arms_rule(alpha: float, n_arms: int) -> ManyArmsRule:
    """Return the rule at its start."""
    shape, words = (n_arms, n_arms), -(-n_arms // BITS_PER_DRAW)
    tilt = _TILT_BY_ROOT_K / math.sqrt(n_arms)
    columns = np.arange(n_arms)
    fresh = np.zeros(words, dtype=np.int64)
    np.bitwise_or.at(fresh, columns // BITS_PER_DRAW, 1 << (columns % BITS_PER_DRAW))
    return ManyArmsRule(
        alpha=alpha,
        tilt=tilt,
        up=math.exp(0.5 * tilt),
        down=math.exp(-0.5 * tilt),
        favourite=np.zeros(1, dtype=np.int64),
        low=np.full(shape, 0.5),
        high=np.full(shape, 0.5),
        bound_news=np.full(n_arms, -1, dtype=np.int64),
        changed=np.zeros(n_arms + 1, dtype=np.int64),
        epoch=np.zeros(1, dtype=np.int64),
        met=np.zeros(shape, dtype=np.int32),
        n_met=np.zeros(n_arms, dtype=np.int64),
        n_below=np.zeros(n_arms, dtype=np.int64),
        fresh=np.tile(fresh, (n_arms, 1)),
        weight=np.full(n_arms, math.cosh(0.5 * tilt) ** (n_arms - 1)),
        young_news=np.full(n_arms, -1, dtype=np.int64),
        beater=np.roll(np.arange(n_arms), 1),
        in_c=np.zeros(n_arms, dtype=np.bool_),
        score=np.zeros(n_arms, dtype=np.int64),
        row=np.zeros(n_arms, dtype=np.bool_),
        rows=np.zeros((_MAX_DRAWN_ROWS + 1, n_arms), dtype=np.bool_),
        drawn=np.zeros(_MAX_DRAWN_ROWS + 1, dtype=np.int64),
        won=np.zeros(_MAX_DRAWN_ROWS + 1, dtype=np.int64),
        bound=np.zeros(n_arms),
        waits=np.zeros(n_arms, dtype=np.bool_),
        todo=np.zeros(words, dtype=np.int64),
        losses=np.zeros((ROWS_PER_SUM, words), dtype=np.int64),
        counts=np.zeros((max(4, n_arms.bit_length()), words), dtype=np.int64),
        floor=np.zeros(n_arms),
        together=np.zeros(1),
        quiet=np.zeros(1, dtype=np.int64),
        floor_news=np.full(1, -1, dtype=np.int64),
        floor_epoch=np.full(1, -1, dtype=np.int64),
    )


@kernel
def take_floors(rule: ManyArmsRule) -> float:
    """Return a floor of the chance that the favourite beats all others; 0 if it is below 1/2.

    If it is at least 1/2, so is each of the favourite's chances, until there is news of both arms.
    No arm then beats the favourite for certain, so that it stays in C.
    """
    arm, together = rule.favourite[0], 1.0
    for j in range(rule.floor.size):
        if j != arm:
            rule.floor[j] = rule.low[arm, j]
            together *= rule.floor[j]
            if together < 0.5 * _TIE_FACTOR:
                return 0.0
    return together


@kernel
def end_quiet(rule: ManyArmsRule, ledger: Ledger, rng: Any) -> bool:
    """Draw the favourite's row, given that some floor does not hold; return whether it loses.

    Where a floor does not hold, the bounds are laid anew.
    """
    arm = rule.favourite[0]
    loses = loses_some(ledger, arm, rule.floor, rule.together[0], rule.row, rng)
    rule.won[0] = -1
    for j in range(rule.row.size):
        rule.rows[0, j] = rule.row[j]
        rule.won[0] += int(rule.row[j])
        if j != arm and rule.floor[j] == 0.0:
            lay_bounds(rule, ledger, arm, j)
    return loses


@kernel
def take_out(rule: ManyArmsRule, arm: int) -> None:
    """Take the pairs with an arm out of the bounds of all others, before its row is drawn.

    Drawing a row may lay bounds of its pairs anew. The factors to take out are those of before.
    """
    for i in range(rule.bound.size):
        rule.bound[i] /= tilted(rule, 1.0 - rule.low[arm, i])
    rule.bound[arm] = 0.0


@kernel
def put_in(rule: ManyArmsRule, place: int) -> None:
    """Put a row that is drawn into the bounds of all others: its pairs are known."""
    for i in range(rule.bound.size):
        rule.bound[i] *= rule.down if rule.rows[place, i] else rule.up


@kernel
def propose(
    rule: ManyArmsRule, ledger: Ledger, arm: int, n_drawn: int, best: int, rng: Any
) -> bool:
    """Draw the row of a proposed arm from tilted coins; return whether it is accepted."""
    row = rule.rows[n_drawn]
    for j in range(row.size):
        row[j] = True
    for place in range(n_drawn):
        row[rule.drawn[place]] = not rule.rows[place, arm]
        rule.waits[rule.drawn[place]] = False
    ratio, n = 1.0, -1
    for j in range(row.size):
        if j != arm and rule.waits[j]:
            chance = rule.low[arm, j]
            if chance != rule.high[arm, j]:
                s, number = wins_and_count(ledger, arm, j)
                chance = chance_above_half(s, number)
            ratio *= tilted(rule, chance) / tilted(rule, rule.high[arm, j])
            row[j] = rng.random() * tilted(rule, chance) < chance * rule.up
        n += int(row[j])
    rule.drawn[n_drawn] = arm
    rule.won[n_drawn] = n
    return n >= best and rng.random() < ratio * math.exp(-rule.tilt * (n - best))


@kernel
def best_drawn(rule: ManyArmsRule, n_drawn: int, rng: Any) -> Any:
    """Return the arm with the best score among the drawn rows; a random one if several tie."""
    first, best, ties = 0, -1, 0
    for place in range(n_drawn):
        if rule.won[place] > best:
            first, best, ties = rule.drawn[place], rule.won[place], 1
        elif rule.won[place] == best:
            ties += 1
            if rng.random() * ties < 1.0:
                first = rule.drawn[place]
    return first


@kernel
def best_of_all(rule: ManyArmsRule, rng: Any) -> Any:
    """Return the arm of C with the best score; a random one if several tie."""
    first, best, ties = 0, -1, 0
    for i in range(rule.score.size):
        if rule.in_c[i] and rule.score[i] >= best:
            ties = ties + 1 if rule.score[i] == best else 1
            best = rule.score[i]
            if ties == 1 or rng.random() * ties < 1.0:
                first = i
    return first


@kernel
def sample_and_choose(
    rule: ManyArmsRule, ledger: Ledger, width: float, n_drawn: int, rng: Any
) -> Any:
    """Lines 4 to 11, with all pairs that have an arm in C sampled."""
    find_c(rule, ledger, width)
    sample_all(rule, ledger, n_drawn, rng)
    return best_of_all(rule, rng)


@kernel
def contest(rule: ManyArmsRule, ledger: Ledger, width: float, rng: Any) -> Any:
    """Lines 4 to 11, given the favourite's row, an arm of C: return the arm with the best score."""
    k, n_drawn, best = rule.bound.size, 1, rule.won[0]
    for i in range(k):
        rule.bound[i] = rule.weight[i]
    take_out(rule, rule.drawn[0])
    put_in(rule, 0)
    while True:
        total, likeliest = 0.0, 0
        for i in range(k):
            total += rule.bound[i]
            if rule.bound[i] > _TIE_FACTOR * rule.bound[likeliest]:
                likeliest = i
        each = math.exp(-rule.tilt * (best - 0.5 * (k - 1)))
        if total * each <= _RARE_PROPOSAL:
            break
        if n_drawn == _MAX_DRAWN_ROWS or rule.bound[likeliest] < _MIN_BOUND_SHARE * total:
            return sample_and_choose(rule, ledger, width, n_drawn, rng)
        if not is_unbeaten(rule, ledger, likeliest, width):
            rule.bound[likeliest] = 0.0
            continue
        row = rule.rows[n_drawn]
        rule.drawn[n_drawn] = likeliest
        take_out(rule, likeliest)
        rule.won[n_drawn] = sample_row(rule, ledger, likeliest, row, n_drawn, rng)
        best = max(best, rule.won[n_drawn])
        put_in(rule, n_drawn)
        n_drawn += 1
    left = rng.random()
    if left < total * each:
        left /= each
        arm = 0
        while arm < k - 1 and left >= rule.bound[arm]:
            left -= rule.bound[arm]
            arm += 1
        for j in range(k):
            rule.waits[j] = True
        if is_unbeaten(rule, ledger, arm, width) and propose(rule, ledger, arm, n_drawn, best, rng):
            first = sample_and_choose(rule, ledger, width, n_drawn + 1, rng)
            for place in range(n_drawn):
                rule.in_c[rule.drawn[place]] = False
            reach = 0
            for i in range(k):
                reach += int(rule.in_c[i] and rule.score[i] >= best)
            if rng.random() * reach < 1.0:
                return first
    return best_drawn(rule, n_drawn, rng)


@kernel
def first_arm(rule: ManyArmsRule, ledger: Ledger, t: int, is_known: bool, rng: Any) -> Any:
    """Lines 4 to 11; `is_known` if the favourite's row is drawn already."""
    width = rule.alpha * math.log(t)
    first = rule.favourite[0]
    if is_known or is_unbeaten(rule, ledger, first, width):
        rule.drawn[0] = first
        if not is_known:
            rule.won[0] = sample_row(rule, ledger, first, rule.rows[0], 0, rng)
        if rule.won[0] == rule.bound.size - 1:
            return first
        first = contest(rule, ledger, width, rng)
    else:
        first = sample_and_choose(rule, ledger, width, 0, rng)
    if first != rule.favourite[0]:
        rule.favourite[0] = first
        rule.floor_news[0] = -1
    return first


@kernel
def second_arm(rule: ManyArmsRule, ledger: Ledger, first: int, t: int, rng: Any) -> Any:
    """Lines 12 to 14: the arm that beats the first by the most in the second sample.

    The arms that the first has never met are alike. So any of them is their best, and its theta is
    the greatest of as many draws.
    """
    width, plays = rule.alpha * math.log(t), ledger.plays
    second, strongest, n, n_fresh = first, 0.5, 0, 0
    for i in range(rule.row.size):
        if not rule.row[i]:
            if plays[i, first] + plays[first, i] == 0:
                n_fresh += 1
                if rng.random() * n_fresh < 1.0:
                    second = i
            elif not beats_for_certain(ledger, i, first, width):
                n += 1
    if n_fresh > 0 and n > 0:
        strongest = 0.5 + 0.5 * math.exp(math.log(1.0 - rng.random()) / n_fresh)
    if n > 0:
        for i in range(rule.row.size):
            if not rule.row[i] and plays[i, first] + plays[first, i] > 0:
                if not beats_for_certain(ledger, i, first, width):
                    theta = draw_above_half(ledger, i, first, rng)
                    if theta > strongest:
                        second, strongest = i, theta
    return second


calm_until.register(ManyArmsRule)(calm_of_favourite)
pass_over.register(ManyArmsRule)(pass_quiet_turns)


@select.register(ManyArmsRule)
def _select(rule: ManyArmsRule, ledger: Ledger, t: int, rng: np.random.Generator) -> Any:
    if is_deaf(ledger.assumed, t):
        return least_asked(ledger, rng)
    first = rule.favourite[0]
    was_quiet = is_quiet(rule, ledger)
    if was_quiet and rule.together[0] > 0.0 and rule.quiet[0] > 0:
        rule.quiet[0] -= 1
        return first, first
    note_news(rule, ledger)
    if not was_quiet:
        rule.floor_news[0] = ledger.news[first]
        rule.floor_epoch[0] = epoch(ledger.assumed)
        rule.together[0] = take_floors(rule)
        if rule.together[0] > 0.0:
            rule.quiet[0] = quiet_turns(rule.together[0], rng)
            if rule.quiet[0] > 0:
                rule.quiet[0] -= 1
                return first, first
    is_known, is_ahead = False, False  # whether the favourite's row in a sample has been drawn
    if rule.together[0] > 0.0:
        rule.floor_news[0] = -1
        # All floors held in the first sample with together / (1 + together).
        is_ahead = rng.random() * (1.0 + rule.together[0]) >= 1.0
        is_known = not is_ahead
        if not end_quiet(rule, ledger, rng) and is_ahead:
            return first, first
    if not is_ahead:
        first = first_arm(rule, ledger, t, is_known, rng)
        if sample_row(rule, ledger, first, rule.row, 0, rng) == rule.row.size - 1:
            return first, first
    return first, second_arm(rule, ledger, first, t, rng)
