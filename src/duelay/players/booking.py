"""Booking a history into a ledger: every duel and answer, as if it had just been asked and told."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from duelay._core.jit import kernel
from duelay.assumptions.history import History
from duelay.ledger import Ledger, age_to, clock_to, hear, hear_vote, record
from duelay.ledger.assumption import set_leader

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def book(ledger: Ledger, history: History, *, all_of_it: bool = True) -> None:
    """Book a history into a ledger that has room for it.

    If not `all_of_it`, what was told after the last duel was asked is left out. By the clock, an
    answer of the time at which a duel was asked is heard before it.
    """
    asked, answered = history.asked, np.ceil(history.answered)
    if history.at is not None:
        answered = history.answered
    order = np.argsort(answered, kind="stable")[: int(history.is_heard.sum())]  # nan is last
    told = (
        history.feedback == "votes",
        history.first,
        history.second,
        np.nan_to_num(history.first_won),
        np.nan_to_num(answered),
        order,
    )
    place = book_duels(ledger, asked, *told)
    if all_of_it:
        hear_until(ledger, np.inf, history.n + 1, place, *told)


@kernel
def book_duels(
    ledger: Any,
    asked: Floats,
    is_vote: bool,
    first: Integers,
    second: Integers,
    first_won: Floats,
    answered: Floats,
    order: Integers,
) -> int:
    """Hear, age and record, duel by duel; return how many have been heard by the last of them.

    `order` has the duels that are heard, in the order in which they are. Who led a duel is not
    known: it is taken for the arm of smaller number, which the coin does not change.
    """
    place = 0
    for t in range(1, first.size + 1):
        place = hear_until(
            ledger, asked[t - 1], t, place, is_vote, first, second, first_won, answered, order
        )
        i, j = first[t - 1], second[t - 1]
        clock_to(ledger, asked[t - 1])
        age_to(ledger, t)
        set_leader(ledger.assumed, min(i, j))
        record(ledger, i, j, t)
    return place


@kernel
def hear_until(
    ledger: Any,
    now: float,
    t: int,
    place: int,
    is_vote: bool,
    first: Integers,
    second: Integers,
    first_won: Floats,
    answered: Floats,
    order: Integers,
) -> int:
    """Hear what was told by now of the duels before number t, from a place in the order on.

    Return the place of what is heard next. An answer may have the time of its own question.
    """
    while place < order.size and order[place] < t - 1 and answered[order[place]] <= now:
        duel = order[place]
        clock_to(ledger, answered[duel])
        if is_vote:
            hear_vote(ledger, first[duel], second[duel], first_won[duel], duel + 1, t)
        else:
            hear(ledger, first[duel], second[duel], duel + 1, t)
        place += 1
    return place
