"""A test of whether answers come as the told delay law says."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from duelay._core.arrays import Floats
from duelay.assumptions.finding import MIN_SAMPLE, Finding, check_level, silent
from duelay.assumptions.order import is_even
from duelay.assumptions.score_tests import chi_squared
from duelay.delays.delay import Delay, check_delay
from duelay.delays.ticks_or_clock import refuse_time
from duelay.logs.history import History

_CUT_SHARES = (0.25, 0.5, 0.75, 0.95)  # shares of all answers that ever come; ages are cut there
_ROUNDING = 1e-12  # a chance that is none


def told_law(history: History, delay: Delay | str, *, level: float = 0.05) -> Finding:
    """Test whether the times and the number of answers agree with a delay law.

    Parameters
    ----------
    history : History
        The duels and their answers.
    delay : Law, ByPair or str
        The law that is tested, or its text.
    level : float
        The p-value below which the finding is an alarm.

    Notes
    -----
    The ages are cut into four parts by the law. Where the order is a coin's or alternates, and for
    votes, the number of answers in each part is compared with what the law expects: tau for votes
    and tau / 2 for conversions, whatever the preferences. In another order the number of answers
    depends on the preferences, and only the parts are compared with each other. Chi-squared. Only
    duels older than the last age count, and only their answers by that age. What the law rules out,
    such as an answer before its first age, has a p-value of 0.

    Power above 90 %: the mean delay is told half too long, 300 answers.
    """
    name, level = "told law", check_level(level)
    delay = check_delay(delay, history.n_arms)
    if history.at is None:
        refuse_time("delay", delay)
    two = history.first != history.second
    edges = _edges(history, delay, two)
    old = two & (history.ages > edges[-1])
    n = int(old.sum())
    if n < MIN_SAMPLE:
        return silent(name, n, f"needs {MIN_SAMPLE} old duels of two arms, has {n}.")
    share, is_alike = _shares(history, delay, old, edges)
    part = np.searchsorted(edges, history.delay[old])  # an age on an edge is before it
    heard = np.eye(len(edges) + 1)[part][:, :-1]  # nan, and what came later, is in none
    if history.feedback != "votes" and not (is_alike and is_even(history)):
        is_heard = heard.any(axis=1)
        heard, share = heard[is_heard], share[is_heard]
        share = share / np.maximum(share.sum(axis=1, keepdims=True), 1e-300)
    elif history.feedback != "votes":
        share = share / 2.0
    score = (heard - share).sum(axis=0)
    variance = np.diag(share.sum(axis=0)) - share.T @ share
    statistic, p = chi_squared(score, variance)
    if _is_ruled_out(heard, share):
        statistic, p = math.inf, 0.0
    if math.isnan(p):
        return silent(name, n, "there is nothing to compare: too little was heard.")
    words = "No sign of it: answers come as the law says."
    if p < level:
        words = (
            f"Answers do not come as the law says that was told: by age {edges[-1]:g} "
            f"{heard.sum():,.0f} of them came, {share.sum():,.0f} were expected. Tell the right "
            "law, or none: what rests on it is not to be trusted."
        )
    return Finding(name, statistic, p, n, p < level, words)


def _is_ruled_out(heard: Floats, share: Floats) -> bool:
    """Whether an answer came, or did not, where the law gives it no chance.

    Such a duel has no variance, and chi-squared does not see it.
    """
    chance = np.where(heard.any(axis=1), (heard * share).sum(axis=1), 1.0 - share.sum(axis=1))
    return bool((chance <= _ROUNDING).any())


def _edges(history: History, delay: Delay, two: NDArray[np.bool_]) -> Floats:
    """Ages by which a quarter, half, ... of all answers that ever come have come.

    They are means over the pairs that duel, and at most the window and half of the time so far.
    """
    pairs = set(zip(history.first[two].tolist(), history.second[two].tolist(), strict=True))
    laws = [delay.at(i, j) for i, j in sorted(pairs)] or [delay.at(0, 1)]
    ages = [law.quantile(np.array(_CUT_SHARES) * (1.0 - law.never)) for law in laws]
    last = float(history.ages.max(initial=0)) / 2
    last = last if history.window is None else min(last, float(history.window))
    edges = np.minimum(np.mean(ages, axis=0), last)
    return np.unique(edges if history.at is not None else np.maximum(np.floor(edges), 1.0))


def _shares(
    history: History, delay: Delay, old: NDArray[np.bool_], edges: Floats
) -> tuple[Floats, bool]:
    """Return the share that the law expects between two edges, for each old duel.

    Also return whether every pair has the same law in either order.
    """
    first, second = history.first[old], history.second[old]
    share, is_alike = np.zeros((len(first), len(edges))), True
    for i, j in set(zip(first.tolist(), second.tolist(), strict=True)):
        tau = np.asarray(delay.at(i, j).cdf(edges), dtype=np.float64)
        share[(first == i) & (second == j)] = np.diff(tau, prepend=0.0)
        is_alike &= delay.at(i, j) == delay.at(j, i)
    return share, is_alike
