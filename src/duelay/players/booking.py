"""Booking a history into a ledger: every duel and answer, as if it had just been asked and told."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from duelay._core.jit import kernel
from duelay.ledger import Ledger, age_to, clock_to, hear, hear_away, hear_vote, record
from duelay.ledger.assumption import set_leader, teach
from duelay.logs.history import History

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def book(
    ledger: Ledger,
    history: History,
    *,
    all_of_it: bool = True,
    is_away: NDArray[np.bool_] | None = None,
) -> None:
    """Book a history into a ledger that has room for it.

    If not `all_of_it`, what was told after the last duel was asked is left out. By the clock, an
    answer of the time at which a duel was asked is heard before it. Where `is_away`, a duel is
    written as a self-duel, since one of its arms is not in the ledger: it teaches the law alone.
    """
    asked, answered = history.asked, history.answered
    if history.at is None:
        answered = np.ceil(answered)
    book_duels(
        ledger,
        history.feedback == "votes",
        history.first,
        history.second,
        np.nan_to_num(history.first_won),
        np.append(asked, np.inf) if all_of_it else asked,
        np.nan_to_num(answered),
        np.argsort(answered, kind="stable")[: int(history.is_heard.sum())],  # nan is last
        np.zeros(history.n, dtype=np.bool_) if is_away is None else is_away,
    )


@kernel
def book_duels(
    ledger: Any,
    is_vote: bool,
    first: Integers,
    second: Integers,
    first_won: Floats,
    asked: Floats,
    answered: Floats,
    order: Integers,
    is_away: NDArray[np.bool_],
) -> None:
    """Hear, age and record, duel by duel; a time in `asked` after all duels is to hear the rest.

    `order` has the duels that are heard, in the order in which they are; an answer may have the
    time of its own question. Who led a duel is not known: it is taken for the arm of smaller
    number, which the coin does not change.
    """
    place = 0
    for t in range(1, asked.size + 1):
        now = asked[t - 1]
        while place < order.size and order[place] < t - 1 and answered[order[place]] <= now:
            duel = order[place]
            clock_to(ledger, answered[duel])
            if is_away[duel]:
                hear_away(ledger, duel + 1, t)
            elif is_vote:
                hear_vote(ledger, first[duel], second[duel], first_won[duel], duel + 1, t)
            else:
                hear(ledger, first[duel], second[duel], duel + 1, t)
            place += 1
        if t <= first.size:
            i, j = first[t - 1], second[t - 1]
            clock_to(ledger, now)
            age_to(ledger, t)
            set_leader(ledger.assumed, min(i, j))
            record(ledger, i, j, t)
            if is_away[t - 1]:
                teach(ledger.assumed, t)
