"""One answer a unit: a visitor, or a prompt, that answers a pair again and again tells it once.

Answers of one unit are alike. Five of them are worth little more than one, and evidence that counts
them as five is too sure of itself. So each unit counts once a pair.

What is left out becomes a self-duel without an answer: it keeps its place in time, and nothing
learns from it.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from duelay.assumptions.score_tests import pairs_of
from duelay.logs.history import History


class Repeated(NamedTuple):
    """How often units came back to a pair."""

    units: int  # the number of units; 0 if the log has none
    duels: int  # duels beyond a unit's first of a pair
    answers: int  # answers to a pair beyond a unit's first


def count_repeated(history: History) -> Repeated:
    """Count what units have said of a pair more than once."""
    if history.unit is None:
        return Repeated(0, 0, 0)
    two = history.first != history.second
    group = _unit_pairs(history)
    duels = int(two.sum()) - np.unique(group[two]).size
    heard = two & history.is_heard
    answers = int(heard.sum()) - np.unique(group[heard]).size
    return Repeated(np.unique(history.unit).size, duels, answers)


def draw_one_duel_per_unit(history: History) -> History:
    """Return the history with one duel a unit and pair, drawn at random, whatever the answers are.

    A lot, and not the first: where a unit meets each pair in both orders, the first is always the
    same order. Where one arm was shown at a time it is the first, as in a live experiment: a coin
    decided which arm that was.
    """
    if history.unit is None:
        return history
    lot = np.random.default_rng(0).permutation(history.n)
    if history.display == "one":
        lot = np.arange(history.n)
    group = _unit_pairs(history)
    drawn = np.zeros(history.n, dtype=bool)
    drawn[lot[np.unique(group[lot], return_index=True)[1]]] = True
    return _leave_out(history, ~drawn)


def pool_answers_of_units(history: History) -> History:
    """Return a history in which all votes of a unit on a pair are one vote: their mean.

    If the unit met both orders, each order counts one half, so that the bonus of the first place
    cancels. The one vote is heard when the last of them was.
    """
    if history.unit is None or history.feedback != "votes":
        return draw_one_duel_per_unit(history)
    heard = history.is_heard & (history.first != history.second)
    rows = np.flatnonzero(heard)
    kinds, group = np.unique(_unit_pairs(history)[rows], return_inverse=True)
    low_first = history.first[rows] < history.second[rows]
    low_won = np.where(low_first, history.first_won[rows], 1.0 - history.first_won[rows])
    n, won = np.zeros((2, kinds.size)), np.zeros((2, kinds.size))
    for side in (0, 1):
        mine = low_first == bool(side)
        n[side] = np.bincount(group[mine], minlength=kinds.size)
        won[side] = np.bincount(group[mine], weights=low_won[mine], minlength=kinds.size)
    mean = (won / np.maximum(n, 1)).sum(axis=0) / (n > 0).sum(axis=0)
    by_time = np.argsort(history.answered[rows], kind="stable")
    last = np.zeros(kinds.size, dtype=np.int64)
    last[group[by_time]] = by_time  # the last one written stays
    stays = rows[last]
    first_won = history.first_won.copy()
    first_won[stays] = np.where(low_first[last], mean, 1.0 - mean)
    is_out = np.ones(history.n, dtype=bool)
    is_out[stays] = False
    return _leave_out(dataclasses.replace(history, first_won=first_won), is_out)


def first_share(history: History) -> NDArray[np.float64]:
    """(K, K): how much of the bonus of the first place is in the answers of i over j.

    An answer with i first counts 1, one with j first -1, and a unit that met both orders 0, since
    the two cancel. The share is the mean over units, or over answers where there are no units.
    """
    heard = history.is_heard & (history.first != history.second)
    k = history.n_arms
    sign = np.where(history.first < history.second, 1.0, -1.0)[heard]
    pair = pairs_of(history)[heard]
    if history.unit is not None:
        kinds, group = np.unique(_unit_pairs(history)[heard], return_inverse=True)
        ways = [np.bincount(group[sign == way], minlength=kinds.size) > 0 for way in (1.0, -1.0)]
        sign, pair = ways[0].astype(np.float64) - ways[1], kinds % k**2
    n = np.bincount(pair, minlength=k * k).reshape(k, k)
    total = np.bincount(pair, weights=sign, minlength=k * k).reshape(k, k)
    share = np.divide(total, n, out=np.zeros((k, k)), where=n > 0)
    return np.asarray(share - share.T)


def bonus_by_unit(history: History) -> NDArray[np.float64]:
    """What each unit that met a pair in both orders says the first place is worth."""
    heard = history.is_heard & (history.first != history.second)
    kinds, group = np.unique(_unit_pairs(history)[heard], return_inverse=True)
    low_first, won = (history.first < history.second)[heard], history.first_won[heard]
    rates = []
    for way in (True, False):
        mine = low_first == way
        n = np.bincount(group[mine], minlength=kinds.size)
        total = np.bincount(group[mine], weights=won[mine], minlength=kinds.size)
        rates.append(np.divide(total, n, out=np.full(kinds.size, np.nan), where=n > 0))
    each = 0.5 * (rates[0] + rates[1] - 1.0)
    known = ~np.isnan(each)
    _, unit = np.unique(kinds[known] // history.n_arms**2, return_inverse=True)
    return np.asarray(np.bincount(unit, weights=each[known]) / np.maximum(np.bincount(unit), 1))


def _unit_pairs(history: History) -> NDArray[np.int64]:
    """A number for each unit and pair."""
    assert history.unit is not None
    _, unit = np.unique(history.unit, return_inverse=True)
    return np.asarray(unit * history.n_arms**2 + pairs_of(history), dtype=np.int64)


def _leave_out(history: History, is_out: NDArray[np.bool_]) -> History:
    return dataclasses.replace(
        history,
        second=np.where(is_out, history.first, history.second),
        delay=np.where(is_out, np.nan, history.delay),
        first_won=np.where(is_out, np.nan, history.first_won),
    )
