"""Tests of the delays: by who won, by the pair that duels, and over time."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from duelay._core.arrays import Floats
from duelay._core.duration import in_brief
from duelay.assumptions.finding import MIN_SAMPLE, Finding, check_level, silent
from duelay.assumptions.order import has_equal_shares
from duelay.assumptions.score_tests import (
    Ints,
    chi_squared,
    cut,
    delay_scores,
    one_hot,
    pairs_of,
    part_of_time,
    quadratic,
    ranks,
    scores,
    tail,
)
from duelay.logs.history import History

_MAX_PAIRS = 300  # at most so many pairs are compared: those with the most answers
_BLOCKS = 10  # parts of the time within which pairs are compared
_PAIR_LEVEL = 0.01  # a p-value below this says that pairs differ in how long they take


def delay_by_winner(history: History, *, level: float = 0.05) -> Finding:
    """Test whether an answer's delay depends on who won.

    Parameters
    ----------
    history : History
        The duels and their answers.
    level : float
        The p-value below which the finding is an alarm.

    Notes
    -----
    Within each pair, scores of the ranked delays (Wilcoxon's and Savage's, added up) are compared
    between the wins of one arm and of the other; for votes also between first and second. Ties are
    left out. Chi-squared with K - 1
    degrees of freedom, one more for votes. A share that never answers is not seen, even if it
    depends on the winner.

    Power above 90 %: answers take twice as long where one arm of three wins, 500 answers.
    """
    name, level = "delay by winner", check_level(level)
    _, heard, _ = cut(history)
    used = heard & (history.first_won != 0.5)
    first_won = history.first_won[used]
    winner = np.where(first_won == 1.0, history.first[used], history.second[used])
    x = np.column_stack((one_hot(winner, history.n_arms), first_won))
    delay, n = history.delay[used], int(used.sum())
    if n < MIN_SAMPLE:
        return silent(name, n, f"needs {MIN_SAMPLE} answers of two arms, has {n}.")
    statistic, p = chi_squared(*scores(x, delay_scores(delay), pairs_of(history)[used]))
    if math.isnan(p):
        return silent(
            name, n, "there is nothing to compare: in no pair do delays and winners vary."
        )
    words = "No sign of it: answers take equally long whichever arm wins."
    if p < level:
        labels = [f"arm {name}" for name in history.arms]
        slowest = spread(winner, delay, labels, in_time=history.at is not None)
        words = (
            f"Answers take longer for some winners: {slowest}. The coin does "
            "not cancel this: compare arms by duels old enough that slow answers have come too, "
            "and close no window before."
        )
    return Finding(name, statistic, p, n, p < level, words)


def delay_by_pair(history: History, *, level: float = 0.05) -> Finding:
    """Test whether delays, or the share that answers, depend on the pair that duels.

    Parameters
    ----------
    history : History
        The duels and their answers.
    level : float
        The p-value below which the finding is an alarm.

    Notes
    -----
    The ranks of the delays are compared between unordered pairs, within tenths of the time.
    Self-duels are left out; pairs with few answers are pooled. For votes, and where the order is a
    coin's or alternates, the shares heard by age A are compared as well: under the null hypothesis
    every pair has tau(A) for votes and tau(A) / 2 for conversions. Not so if one arm was shown at a
    time: shares then differ as conversion rates do. Chi-squared.

    Power above 90 %: answers of one pair of three take twice as long, 500 answers.
    """
    name, level = "delay by pair", check_level(level)
    old, heard, age = cut(history)
    n = int(heard.sum())
    if n < MIN_SAMPLE:
        return silent(name, n, f"needs {MIN_SAMPLE} answers by old duels, has {n}.")
    block = part_of_time(history, age, _BLOCKS)
    kinds, pair = _groups(history, heard)
    statistic, p = when_and_whether(history, pair, block, block)
    if math.isnan(p):
        return silent(name, n, "there is nothing to compare: one pair, or one delay.")
    words = "No sign of it: every pair's answers take as long."
    if p < level:
        both = (divmod(int(c), history.n_arms) for c in kinds)
        labels = [f"the pair {history.arms[a]} and {history.arms[b]}" for a, b in both]
        if kinds[0] < 0:
            labels[0] = "the others"
        answers_of, in_time = pair[heard], history.at is not None
        slowest = spread(answers_of, history.delay[heard], labels, in_time=in_time)
        or_often = ", or how often," if has_equal_shares(history) else ""
        words = (
            f"Pairs differ in how long{or_often} they answer; how long: "
            f"{slowest}. It does no harm to the coin "
            "without a law; where a law is assumed, give one for each pair (delays.ByPair)."
        )
    return Finding(name, statistic, p, n, p < level, words)


def _groups(history: History, heard: NDArray[np.bool_]) -> tuple[Ints, Ints]:
    """Return the pairs that have many answers, -1 for all others, and each duel's place in them."""
    pairs = pairs_of(history)
    answers = np.bincount(pairs[heard], minlength=history.n_arms**2)
    least = max(MIN_SAMPLE, int(np.sort(answers)[-_MAX_PAIRS:][0]))
    return np.unique(np.where(answers[pairs] >= least, pairs, -1), return_inverse=True)


def share_by_arm(history: History, *, level: float = 0.05) -> Finding:
    """Test whether duels with some arm are answered less often than others, though as quickly.

    Parameters
    ----------
    history : History
        The duels and their answers.
    level : float
        The p-value below which the finding is an alarm.

    Notes
    -----
    There are two causes. If the wins of one arm are reported less often, its evidence is too small,
    and a worse arm may be declared. If the duels of an arm are answered less often whichever arm
    wins, it does no harm. The test cannot distinguish the two, and needs at least three arms.
    The shares heard by age A are compared, within tenths of the time: chi-squared with K - 1
    degrees of freedom. Where pairs also differ in how long they take, there is a harmless reason,
    and nothing is said. It needs votes, or an order by coin or in turns, and a display of two arms.

    Power above 90 %: 30 % of one arm's wins are lost, of three arms, 3000 answers.
    """
    name, level = "share by arm", check_level(level)
    old, heard, age = cut(history)
    n = int(old.sum())
    if n < MIN_SAMPLE or not has_equal_shares(history):
        return silent(
            name,
            n,
            f"needs {MIN_SAMPLE} old duels of two arms that are both shown, and votes or an even "
            f"order, has {n}.",
        )
    block = part_of_time(history, age, _BLOCKS)
    k, (_, pair) = history.n_arms, _groups(history, heard)
    when = scores(pair[heard], ranks(history.delay[heard]), block[heard])
    if chi_squared(*when)[1] < _PAIR_LEVEL:
        return silent(name, n, "pairs differ in how long they take, so their shares may as well.")
    x = one_hot(history.first, k) + one_hot(history.second, k)
    score, variance = scores(x[old], heard[old].astype(np.float64), block[old])
    statistic, p = chi_squared(score, variance)
    if math.isnan(p):
        return silent(name, n, "there is nothing to compare: two arms, or one in all duels.")
    words = "No sign of it: duels of every arm are answered equally often."
    if p < level:
        z = score / np.sqrt(np.maximum(np.diag(variance), 1e-300))
        arm = int(np.argmin(z))
        words = (
            f"Duels with arm {history.arms[arm]} are answered less often than others, though as "
            "quickly. If its wins are reported less often, a worse arm may be declared: report the "
            "wins of all arms alike. If both outcomes are reported less often, it does no harm."
        )
    return Finding(name, statistic, p, n, p < level, words)


def law_drift(history: History, *, level: float = 0.05) -> Finding:
    """Test whether the delay law changes over time.

    Parameters
    ----------
    history : History
        The duels and their answers.
    level : float
        The p-value below which the finding is an alarm.

    Notes
    -----
    Two trends over time: the delays' ranks, within ordered pairs and outcomes; and the share heard
    by age A, within pairs. The second is used for votes, and where the order is a coin's or
    alternates: there it does not depend on preferences, if both arms are shown. Chi-squared
    with one or two degrees of freedom. A change that is reversed later may be missed.

    Power above 90 %: the mean delay doubles by half-time, 500 answers.
    """
    name, level = "law drift", check_level(level)
    old, heard, age = cut(history)
    n = int(heard.sum())
    if n < MIN_SAMPLE:
        return silent(name, n, f"needs {MIN_SAMPLE} answers by old duels, has {n}.")
    time = np.arange(history.n, dtype=np.float64)[:, None] / history.n
    won = np.nan_to_num(2 * history.first_won, nan=3).astype(np.int64)
    ordered = history.first * history.n_arms + history.second
    statistic, p = when_and_whether(history, time, 4 * ordered + won, pairs_of(history))
    if math.isnan(p):
        return silent(name, n, "there is nothing to compare: every delay is the same.")
    words = "No sign of it: answers take as long late as early."
    if p < level:
        in_time = history.at is not None
        when = scores(time[heard], ranks(history.delay[heard]), (4 * ordered + won)[heard])
        _, p_when = chi_squared(*when)
        p_share = math.nan
        if has_equal_shares(history):
            told = scores(time[old], heard[old].astype(np.float64), pairs_of(history)[old])
            _, p_share = chi_squared(*told)
        if p_share < p_when or math.isnan(p_when):
            shares = [float(part.mean()) for part in np.array_split(heard[old], 2)]
            what = "the share heard went from {:.1%} to {:.1%}".format(*shares).replace("%", " %")
            of = "duels"
        else:
            delay, half = history.delay[heard], n // 2
            early, late = (float(np.median(part)) for part in (delay[:half], delay[half:]))
            what = f"the median delay went from {in_words(early, in_time, unit='')} to "
            what, of = what + in_words(late, in_time), "answers"
        words = (
            f"The delay law changes: by age {in_words(age, in_time, unit='')} {what} from the "
            f"first half of the {of} to the second. Assume no fixed law: use the coin with "
            "delay=None, or fit the law to recent duels."
        )
    return Finding(name, statistic, p, n, p < level, words)


def when_and_whether(
    history: History, x: Floats | Ints, strata: Ints, share_strata: Ints
) -> tuple[float, float]:
    """Test whether delays depend on x and, for votes or an even order, the share heard by age A.

    Given which duels were heard, the ranks of their delays are still a random permutation: the two
    chi-squared statistics add up.
    """
    old, heard, _ = cut(history)
    parts = [scores(x[heard], ranks(history.delay[heard]), strata[heard])]
    if has_equal_shares(history):
        parts.append(scores(x[old], heard[old].astype(np.float64), share_strata[old]))
    statistic, df = 0.0, 0
    for score, variance in parts:
        more, more_df = quadratic(score, variance)
        statistic, df = statistic + more, df + more_df
    return (statistic, tail(statistic, df)) if df else (math.nan, math.nan)


def spread(group: Ints, delay: Floats, labels: list[str], *, in_time: bool = False) -> str:
    """Say which groups are slowest and quickest, among those with enough answers."""
    codes = [int(c) for c in np.unique(group) if (group == c).sum() >= MIN_SAMPLE // 2]
    if len(codes) < 2:
        return "none has many answers"
    median = {c: float(np.median(delay[group == c])) for c in codes}
    slow, quick = max(codes, key=median.__getitem__), min(codes, key=median.__getitem__)
    return (
        f"a median of {in_words(median[slow], in_time)} for {labels[slow]}, "
        f"{in_words(median[quick], in_time, unit='')} for {labels[quick]}"
    )


def in_words(length: float, in_time: bool, *, unit: str = " ticks") -> str:
    """Return a delay or an age as a person says it: ticks with their unit, or a duration."""
    return in_brief(length) if in_time else f"{length:g}{unit}"
