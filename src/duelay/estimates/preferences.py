"""The preference matrix of a log, with intervals of the kind that its order allows."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from duelay.delays import Delay
from duelay.delays.joint_estimation import Joint
from duelay.estimates.repeated_answers import bonus_by_unit
from duelay.inference.confidence_sequences import of_censored, of_shares
from duelay.logs.history import History

Floats = NDArray[np.float64]
_MIN_NORMAL_ANSWERS = 30  # answers of a pair: their mean is then nearly normal
# What is needed to tell the bonus: units that met both orders, or answers of a pair in each order.
_MIN_UNITS, _MIN_ANSWERS = 10, 5


class Preferences(NamedTuple):
    """Each (K, K), of the row's arm over the column's; nan where a pair tells nothing."""

    mean: Floats  # mu_ij
    error: Floats  # its standard error
    lower: Floats  # the ends of intervals that hold together
    upper: Floats
    naive: Floats  # with silence taken for a win of the second; for votes, their share


class Counts(NamedTuple):
    """Each (K, K), by the arm that was first and the one that was second."""

    duels: Floats
    answers: Floats
    wins: Floats  # of the first; a tie is one half
    squares: Floats  # the sum of the squares of these


class Position(NamedTuple):
    """What being shown first adds to the chance of winning; of votes alone."""

    bonus: float
    error: float  # its standard error


def count(history: History) -> Counts:
    """Count duels, answers and wins of the first."""
    k, heard = history.n_arms, history.is_heard
    code = history.first * k + history.second
    tables = (
        np.bincount(code, minlength=k * k),
        np.bincount(code[heard], minlength=k * k),
        np.bincount(code[heard], weights=history.first_won[heard], minlength=k * k),
        np.bincount(code[heard], weights=history.first_won[heard] ** 2, minlength=k * k),
    )
    return Counts(*(np.asarray(t, dtype=np.float64).reshape(k, k) for t in tables))


def find_naive(history: History) -> Floats:
    """Return preferences as a naive reader has them: silence is a win of the second.

    With votes silence is no answer, and the naive reader counts the votes as they stand.
    """
    counts = count(history)
    n = counts.answers if history.feedback == "votes" else counts.duels
    wins = counts.wins + (n - counts.wins).T
    return _ratio(wins, n + n.T)


def of_coin(counts: Counts, error: float, naive: Floats) -> Preferences:
    """Return preferences from what was heard alone: conversions by coin, or votes.

    Each conversion heard of a pair is i's with probability mu_ij, whatever the delays are.
    """
    wins = counts.wins + (counts.answers - counts.wins).T
    squares = counts.squares + (counts.answers - 2.0 * counts.wins + counts.squares).T
    if (counts.wins == counts.answers).all():  # conversions: an answer is a win of the first
        wins, squares = counts.wins.copy(), counts.wins.copy()
    np.fill_diagonal(wins, 0.0)
    n = wins + wins.T
    mean = _ratio(wins, n)
    variance = np.maximum(squares / np.maximum(n, 1.0) - mean**2, 0.0)
    spread = np.sqrt(variance / np.maximum(n, 1.0))
    lower, upper = of_shares(wins, error)
    return Preferences(mean, _hide(spread, n), lower, upper, naive)


def of_votes(
    counts: Counts, position: Position, tilt: Floats, error: float, naive: Floats
) -> Preferences:
    """Return preferences from votes in an order that no coin decided.

    The bonus of the first place is taken to be the same for all arms. `tilt` says how much of it is
    in the answers of each pair (`duelay.estimates.repeated_answers.first_share`); so much is taken
    out. The intervals are for one look. They have as many standard errors as all pairs together
    need, and take in the error of the bonus. Pairs with few answers, or with votes that are all
    alike, have the intervals of `of_coin`, widened by the error of the bonus.
    """
    plain = of_coin(counts, error, naive)
    k, shift = len(tilt), position.bonus * tilt
    many = NormalDist().inv_cdf(1.0 - error / (k * (k - 1)))
    spread = np.sqrt(plain.error**2 + (position.error * tilt) ** 2)
    mean, wide = plain.mean - shift, many * position.error * np.abs(tilt)
    is_few = counts.answers + counts.answers.T < _MIN_NORMAL_ANSWERS
    is_few |= plain.error == 0.0  # votes that are all alike do not show how they vary
    lower = np.where(is_few, plain.lower - shift - wide, mean - many * spread)
    upper = np.where(is_few, plain.upper - shift + wide, mean + many * spread)
    for ends in (lower, upper):
        np.fill_diagonal(ends, 0.5)
    return Preferences(np.clip(mean, 0.0, 1.0), spread, lower, upper, naive)


def of_joint(joint: Joint, naive: Floats) -> Preferences:
    """Return preferences that were estimated together with the law."""
    return Preferences(joint.mean, joint.error, joint.lower, joint.upper, naive)


def of_told_law(history: History, delay: Delay, error: float, naive: Floats) -> Preferences:
    """Return preferences under a law that is told: mu = S / N~, as every policy with a law has it.

    The intervals are those of the censored likelihood, for any order and at all times.
    """
    counts, k = count(history), history.n_arms
    ages = history.ages - (0 if history.at is not None else 1)
    if history.window is not None:
        ages = np.minimum(ages, float(history.window))
    expected = np.zeros((k, k))
    code = history.first * k + history.second
    for which in np.unique(code):
        i, j = divmod(int(which), k)
        mine = code == which
        expected[i, j] = float(np.sum(delay.at(i, j).cdf(np.asarray(ages[mine]))))
    np.fill_diagonal(expected, 0.0)
    both, wins = expected + expected.T, counts.wins + (expected - counts.wins).T
    mean = _ratio(wins, both)
    plays = counts.duels + counts.duels.T
    spread = np.sqrt(plays * 0.25) / np.where(both > 0, both, 1.0)
    lower, upper = of_censored(history, delay, error)
    return Preferences(mean, _hide(spread, both), lower, upper, naive)


def find_position(history: History, *, is_coin: bool) -> Position | None:
    """Return what the votes tell about being shown first; None where they cannot.

    By coin, the share of wins of the first tells it. Else units that met a pair in both orders tell
    it, or pairs that were shown in both orders.
    """
    used = history.is_heard & (history.first != history.second)
    if history.feedback != "votes" or not used.any():
        return None
    won = history.first_won[used]
    if is_coin:
        off = won - won.mean()
        if history.unit is not None:  # answers of one unit are alike
            _, unit = np.unique(history.unit[used], return_inverse=True)
            off = np.bincount(unit, weights=off)
        return Position(float(won.mean() - 0.5), float(np.sqrt((off**2).sum()) / won.size))
    if history.unit is not None and (each := bonus_by_unit(history)).size >= _MIN_UNITS:
        return Position(float(each.mean()), float(each.std(ddof=1) / math.sqrt(each.size)))
    counts = count(history)
    n, m = counts.answers, counts.answers.T
    both = np.triu((n >= _MIN_ANSWERS) & (m >= _MIN_ANSWERS), 1)
    if not both.any():
        return None
    weight = 16.0 * (n * m)[both] / (n + m)[both]  # as in `duelay.ledger.votes`
    rate = counts.wins / np.maximum(n, 1.0)
    told = 0.5 * (rate + rate.T - 1.0)[both]
    return Position(float((weight * told).sum() / weight.sum()), 1.0 / math.sqrt(weight.sum()))


def _ratio(wins: Floats, n: Floats) -> Floats:
    share = np.divide(wins, n, out=np.full_like(wins, np.nan), where=n > 0)
    np.fill_diagonal(share, 0.5)
    return share


def _hide(spread: Floats, n: Floats) -> Floats:
    return np.where(n > 0, spread, np.nan)
