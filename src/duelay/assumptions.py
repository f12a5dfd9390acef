"""Tests of what the policies take for granted, from a history: each gives a p-value and a sentence.

Policies choose pairs by what they have heard, answers are late, and some never come. So that like
is compared with like, the tests share one cut: an age A by which most answers have come. Only
duels older than A count, and only what was heard of them by age A. What is compared then has
one law in every duel under the null, whatever came before it; the docs say where that is exact.

The tests of delays rank the answers' delays and compare the ranks within strata; mean and variance
are those over all orders in which a stratum could have come, as in Kruskal and Wallis's test.
Preferences are compared in the same way.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from duelay import _checks
from duelay._scores import (
    Floats,
    Ints,
    add_up,
    chi_squared,
    one_hot,
    quadratic,
    ranks,
    scores,
    tail,
)
from duelay.history import History

__all__ = [
    "Finding",
    "check_assumptions",
    "delay_by_pair",
    "delay_by_winner",
    "law_drift",
    "order_balance",
    "position_effect",
    "preference_drift",
]

_LEAST = 20  # answers, or duels, below which a test says nothing
_SHARE = 0.95  # of the answers heard come by age A
_BLOCKS = 10  # stretches of time within which pairs are compared


class Finding(NamedTuple):
    """What one test found; `print` shows it in words."""

    name: str
    statistic: float  # chi-squared, or a normal score for one number; nan where nothing is told
    p_value: float  # nan where the history cannot tell
    n: int  # duels or answers that were used
    is_alarm: bool  # whether p_value is below the level
    sentence: str  # what was found, and what to do

    def __str__(self) -> str:
        if math.isnan(self.p_value):
            return f"{self.name}: {self.sentence}"
        return f"{self.name} (p = {self.p_value:.2g}, n = {self.n}): {self.sentence}"


def check_assumptions(history: History, *, level: float = 0.05) -> list[Finding]:
    """Run every test; all together raise a false alarm with probability `level` at most.

    Each test works at a sixth of the level.
    """
    level = _level(level)
    tests: list[Callable[..., Finding]] = [
        order_balance,
        position_effect,
        delay_by_winner,
        delay_by_pair,
        law_drift,
        preference_drift,
    ]
    return [test(history, level=level / len(tests)) for test in tests]


def order_balance(history: History, *, level: float = 0.05) -> Finding:
    """Test whether either arm of a pair is shown first equally often.

    Each arm's lead (times first less times second, self-duels left out) against a fair coin:
    chi-squared with K - 1 degrees of freedom, or fewer where arms never met. The coin is tossed
    after the pair is chosen, so adaptive choice does no harm. Alternating is more even than a coin:
    the p-value is then near 1.

    Power above 90 %: one arm of three first in 60 % of its duels, 600 duels.
    """
    name, level = "order balance", _level(level)
    duels = history.first != history.second
    n = int(duels.sum())
    if n < _LEAST:
        return _silent(name, n, f"needs {_LEAST} duels of two arms, has {n}.")
    lead = one_hot(history.first[duels], history.n_arms)
    lead -= one_hot(history.second[duels], history.n_arms)
    total = lead.sum(axis=0)
    statistic, p = chi_squared(total, lead.T @ lead)
    shown = np.abs(lead).sum(axis=0)
    share = np.where(shown > 0, 0.5 + 0.5 * total / np.maximum(shown, 1), 0.5)
    arm = int(np.argmax(np.abs(total) / np.sqrt(np.maximum(shown, 1))))
    if p >= level:
        words = "No sign of a lopsided order."
    elif history.order == "champion":
        words = (
            f"Arm {arm} is shown first in {share[arm]:.0%} of its duels, by design: this policy "
            "shows its champion first. Use order='coin' unless the delay law is known."
        )
    else:
        words = (
            f"Arm {arm} is shown first in {share[arm]:.0%} of its duels. If the order should be "
            "even, look for what changes it, or loses duels, between ask and show; until then "
            "trust no result that rests on the coin."
        )
    return Finding(name, statistic, p, n, p < level, words)


def position_effect(history: History, *, level: float = 0.05) -> Finding:
    """Test whether being shown first helps or hurts, beyond preferences.

    Votes: without an effect the first arm wins half of the votes, in duels whose order is a coin's
    or alternates, and in self-duels under any order. Ties are left out. A normal score.

    Conversions: a bonus for the first arm and a larger share of answers look the same, so they tell
    only of a bonus that makes more than half of all duels convert; otherwise nothing is told.

    Power above 90 %: the first arm wins 56 % of 1000 votes.
    """
    name, level = "position effect", _level(level)
    is_even = _is_even(history)
    usable = np.ones(history.n, dtype=bool) if is_even else history.first == history.second
    if history.feedback == "conversions":
        return _bonus(name, history, usable, level)
    votes = history.first_won[usable & history.is_heard]
    votes = votes[votes != 0.5]
    n = len(votes)
    if n < _LEAST:
        which = "votes" if is_even else "votes on self-duels, as the order is not a coin's"
        return _silent(name, n, f"needs {_LEAST} {which}, has {n}.")
    z = float((votes - 0.5).sum() / math.sqrt(n / 4))
    p = math.erfc(abs(z) / math.sqrt(2))
    words = f"No sign of one: the first arm won {votes.mean():.0%} of {n} votes."
    if p < level:
        words = (
            f"Being shown first {'helps' if z > 0 else 'hurts'}: the first arm won "
            f"{votes.mean():.0%} of {n} votes. Keep the order by coin, which cancels it in who "
            "leads."
        )
    return Finding(name, z, p, n, p < level, words)


def _bonus(name: str, history: History, usable: NDArray[np.bool_], level: float) -> Finding:
    """A position effect from conversions: told only where more than half of the duels convert."""
    old, heard, _ = _cut(history)
    n, won = int((old & usable).sum()), int((heard & usable).sum())
    if n < _LEAST or 2 * won <= n:
        return _silent(
            name,
            n,
            "Conversions alone cannot tell: a bonus for the first arm looks like a larger share "
            "of answers. The coin cancels it in who leads, but a learned law is off by its factor; "
            "collect votes to test it.",
        )
    z = (won - n / 2) / math.sqrt(n / 4)
    p = 0.5 * math.erfc(z / math.sqrt(2))
    words = f"No sign of one: {won} of {n} duels converted, a half at most without one."
    if p < level:
        words = (
            f"Being shown first helps: {won} of {n} duels converted, where a half is the most "
            "without a bonus. Keep the order by coin, and do not trust a learned law."
        )
    return Finding(name, z, p, n, p < level, words)


def delay_by_winner(history: History, *, level: float = 0.05) -> Finding:
    """Test whether an answer's delay depends on who won.

    Ranks of the delays, compared within each pair of arms between the arms that won; for votes
    also between first and second. Ties are left out. Chi-squared with K - 1 degrees of freedom, one
    more for votes. A share of answers that never comes and depends on the winner cannot be seen.

    Power above 90 %: answers take twice as long where one arm of three wins, 500 answers.
    """
    name, level = "delay by winner", _level(level)
    _, heard, _ = _cut(history)
    used = heard & (history.first_won != 0.5)
    if history.feedback == "conversions":
        used &= history.first != history.second  # where only one arm can win
    first_won = history.first_won[used]
    winner = np.where(first_won == 1.0, history.first[used], history.second[used])
    x = np.column_stack((one_hot(winner, history.n_arms), first_won))
    delay, n = history.delay[used], int(used.sum())
    if n < _LEAST:
        return _silent(name, n, f"needs {_LEAST} answers of two arms, has {n}.")
    statistic, p = chi_squared(*add_up(scores(x, ranks(delay), _pairs(history)[used])))
    if math.isnan(p):
        return _silent(
            name, n, "there is nothing to compare: in no pair do delays and winners vary."
        )
    words = "No sign of it: answers take as long whoever wins."
    if p < level:
        spread = _spread(winner, delay, [f"arm {arm}" for arm in range(history.n_arms)])
        words = (
            f"Answers take longer for some winners: {spread}. The coin does "
            "not cancel this: compare arms by duels old enough that slow answers have come too, "
            "and close no window before."
        )
    return Finding(name, statistic, p, n, p < level, words)


def delay_by_pair(history: History, *, level: float = 0.05) -> Finding:
    """Test whether delays, or the share that answers, depend on the pair that duels.

    Ranks of the delays, compared between unordered pairs within tenths of the time, self-duels
    included and pairs with few answers taken as one. Where the order is a coin's or alternates, and
    for votes, the shares heard by age A are compared as well: without dependence they are one half
    of tau(A), and tau(A), for every pair. Chi-squared.

    Power above 90 %: answers of one pair of three take twice as long, 500 answers.
    """
    name, level = "delay by pair", _level(level)
    old, heard, _ = _cut(history)
    n = int(heard.sum())
    if n < _LEAST:
        return _silent(name, n, f"needs {_LEAST} answers by old duels, has {n}.")
    pairs = _pairs(history)
    answers = np.bincount(pairs[heard], minlength=history.n_arms**2)
    pairs = np.where(answers[pairs] >= _LEAST, pairs, -1)  # few answers: all the others
    block = np.arange(history.n) * _BLOCKS // max(int(old.sum()), 1)
    kinds, pair = np.unique(pairs[old], return_inverse=True)
    group = np.zeros(history.n, dtype=np.int64)
    group[old] = pair
    statistic, p = _when_and_whether(history, group, block, block)
    if math.isnan(p):
        return _silent(name, n, "there is nothing to compare: one pair, or one delay.")
    words = "No sign of it: every pair's answers take as long."
    if p < level:
        labels = [f"pair {a}-{b}" for a, b in (divmod(int(c), history.n_arms) for c in kinds)]
        if kinds[0] < 0:
            labels[0] = "the others"
        answers_of = pair[heard[old]]
        words = (
            "Pairs differ in how long, or how often, they answer: "
            f"{_spread(answers_of, history.delay[heard], labels)}. The coin without a law "
            "bears it; where a law is assumed give one for each pair (delays.ByPair)."
        )
    return Finding(name, statistic, p, n, p < level, words)


def law_drift(history: History, *, level: float = 0.05) -> Finding:
    """Test whether the delay law changes over time.

    The trend of the delays' ranks within ordered pairs and outcomes and, where the order is a
    coin's or alternates and for votes, the trend of the share heard by age A within pairs, which
    preferences do not move. Chi-squared with one or two degrees of freedom. A change that goes back
    again may be missed.

    Power above 90 %: the mean delay doubles by half-time, 500 answers.
    """
    name, level = "law drift", _level(level)
    _, heard, age = _cut(history)
    n = int(heard.sum())
    if n < _LEAST:
        return _silent(name, n, f"needs {_LEAST} answers by old duels, has {n}.")
    time = np.arange(history.n, dtype=np.float64)[:, None] / history.n
    won = np.nan_to_num(2 * history.first_won, nan=3).astype(np.int64)
    ordered = history.first * history.n_arms + history.second
    statistic, p = _when_and_whether(history, time, 4 * ordered + won, _pairs(history))
    if math.isnan(p):
        return _silent(name, n, "there is nothing to compare: every delay is the same.")
    words = "No sign of it: answers take as long late as early."
    if p < level:
        delay, half = history.delay[heard], n // 2
        words = (
            f"The delay law changes: by age {age} the median delay went from "
            f"{np.median(delay[:half]):g} to {np.median(delay[half:]):g} ticks from the first half "
            "of the answers to the second. Assume no fixed law: use the coin with delay=None, or "
            "fit the law to recent duels."
        )
    return Finding(name, statistic, p, n, p < level, words)


def preference_drift(history: History, *, level: float = 0.05) -> Finding:
    """Test whether preferences change from the first half of the time to the second.

    How much each arm gains: who wins, late less early, within either order of each pair, added up
    by arm. Votes say who won, ties count half. Of conversions, those with i first speak for i and
    those with j first for j, each with a weight by which a drift of the delay law cancels where the
    order is a coin's or alternates; in another order it does not, and the sentence says so.
    Chi-squared with up to K - 1 degrees of freedom. The halves are cut at a fixed tick: how often a
    pair is played before it then does not depend on what comes after.

    Power above 90 %: mu of one pair goes from 0.6 to 0.4 at half-time, 500 answers.
    """
    name, level = "preference drift", _level(level)
    old, heard, _ = _cut(history)
    two = history.first != history.second
    used, n = (heard if history.feedback == "votes" else old) & two, int((heard & two).sum())
    is_late = np.arange(history.n) >= old.sum() / 2
    late = int((heard & two & is_late).sum())
    if min(late, n - late) < _LEAST:
        return _silent(
            name,
            n,
            f"needs {_LEAST} answers of two arms in each half of the time, has {n - late} and "
            f"{late}.",
        )
    low, high = np.divmod(_pairs(history), history.n_arms)
    x = one_hot(low, history.n_arms) - one_hot(high, history.n_arms)
    x[~is_late] = 0.0
    y, ordered = _low_won(history, old, heard), history.first * history.n_arms + history.second
    gain, variance = add_up(scores(x[used], y[used], ordered[used]))
    statistic, p = chi_squared(gain, variance)
    if math.isnan(p):
        return _silent(name, n, "there is nothing to compare: no pair has answers early and late.")
    words = "No sign of it: who wins is the same late as early."
    if p < level:
        z = gain / np.sqrt(np.maximum(np.diag(variance), 1e-300))
        arm = int(np.argmax(np.abs(z)))
        rest = "A standing averages over all of it: judge by recent duels, or start anew."
        if history.feedback == "conversions" and not _is_even(history):
            rest = "Or fewer answers come: only votes, or order='coin', can tell the two apart."
        verb = "gains" if z[arm] > 0 else "loses"
        words = f"Preferences change: arm {arm} {verb} most clearly. {rest}"
    return Finding(name, statistic, p, n, p < level, words)


def _low_won(history: History, old: NDArray[np.bool_], heard: NDArray[np.bool_]) -> Floats:
    """What each duel says for the arm of lower number.

    Of a vote, whether it won. Of a conversion, 1 - mu if it was first and -mu if the other was: the
    expectations, (1 - mu) tau mu and -mu tau (1 - mu), cancel over both orders whatever tau is.
    """
    low_first = history.first < history.second
    if history.feedback == "votes":
        return np.where(low_first, history.first_won, 1.0 - history.first_won)
    k = history.n_arms
    code = history.first * k + history.second
    plays = np.bincount(code[old], minlength=k * k).reshape(k, k)
    rate = np.bincount(code[heard], minlength=k * k).reshape(k, k) / np.maximum(plays, 1)
    both = rate + rate.T
    mu = np.where(both > 0, rate / np.where(both > 0, both, 1.0), 0.5)
    loser = 1.0 - mu[history.first, history.second]  # the weight of a conversion
    return np.where(heard, np.where(low_first, loser, -loser), 0.0)


def _when_and_whether(
    history: History, x: Floats | Ints, strata: Ints, share_strata: Ints
) -> tuple[float, float]:
    """Test how delays go with x and, where nothing else moves it, the share heard by age A.

    Given which duels were heard, their delays are still free: the two chi-squareds add up.
    """
    old, heard, _ = _cut(history)
    parts = [add_up(scores(x[heard], ranks(history.delay[heard]), strata[heard]))]
    if history.feedback == "votes" or _is_even(history):
        parts.append(add_up(scores(x[old], heard[old].astype(np.float64), share_strata[old])))
    statistic, df = 0.0, 0
    for score, variance in parts:
        more, more_df = quadratic(score, variance)
        statistic, df = statistic + more, df + more_df
    return (statistic, tail(statistic, df)) if df else (math.nan, math.nan)


def _cut(history: History) -> tuple[NDArray[np.bool_], NDArray[np.bool_], int]:
    """Return which duels are older than A, which of them were heard by age A, and A."""
    delays = np.sort(history.delay[history.is_heard])
    age = 1
    if delays.size:
        age = min(int(delays[math.ceil(_SHARE * delays.size) - 1]), max(1, history.n // 2))
    old = history.ages > age  # at the last ask: of the next one not all may have been told
    return old, old & (history.delay <= age), age


def _is_even(history: History) -> bool:
    """Whether the order is a coin's or alternates; where nobody says, whether it looks so."""
    if history.order is not None:
        return history.order != "champion"
    return not order_balance(history, level=0.01).is_alarm


def _pairs(history: History) -> Ints:
    """Number each duel's unordered pair: i K + j for i <= j."""
    low = np.minimum(history.first, history.second)
    return np.asarray(low * history.n_arms + np.maximum(history.first, history.second))


def _spread(group: Ints, delay: Floats, labels: list[str]) -> str:
    """Say which groups are slowest and quickest, among those with enough answers."""
    codes = [int(c) for c in np.unique(group) if (group == c).sum() >= _LEAST // 2]
    if len(codes) < 2:
        return "none has many answers"
    median = {c: float(np.median(delay[group == c])) for c in codes}
    slow, quick = max(codes, key=median.__getitem__), min(codes, key=median.__getitem__)
    return (
        f"a median of {median[slow]:g} ticks for {labels[slow]}, "
        f"{median[quick]:g} for {labels[quick]}"
    )


def _silent(name: str, n: int, sentence: str) -> Finding:
    """Nothing can be told; the sentence says what is missing."""
    return Finding(name, math.nan, math.nan, n, False, sentence[0].upper() + sentence[1:])


def _level(level: float) -> float:
    return _checks.number("level", level, above=0, below=1)
