"""Booking a history into a ledger: every duel and answer, as if it had just been asked and told."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from duelay._core.borders import border_of
from duelay._core.jit import entry, kernel
from duelay.ledger import Ledger, age_to, clock_to, hear, hear_away, hear_vote, record
from duelay.ledger.assumption import set_leader, teach

if TYPE_CHECKING:
    from duelay.logs.changes import Change
    from duelay.logs.history import History

ASKED, HEARD = 0, 1  # kinds of rows, in their order: duels before answers of the same moment
COUNTS, TEACHES, NOTHING = 0, 1, 2  # both arms are present; one is retired; a unit's repeat
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def book(
    ledger: Ledger,
    history: History,
    *,
    all_of_it: bool = True,
    is_away: NDArray[np.bool_] | None = None,
    changed: Callable[[Ledger, Change], Ledger] | None = None,
) -> Ledger:
    """Book a history into a ledger that has room for it, and return the ledger.

    If not `all_of_it`, answers told after the last duel was asked are left out. By the clock, if an
    answer and a duel have the same time, the answer is heard first. Where `is_away`, a duel is
    written as a self-duel, since one of its arms is not in the ledger: it only teaches the law.
    `changed` returns the ledger after an arm has come or gone; None leaves the arms as they are.
    """
    asked, answered = history.asked, history.answered
    if history.at is None:
        answered = np.ceil(answered)
    first_led = np.full(history.n, np.nan) if history.first_led is None else history.first_led
    leader = np.where(first_led == 0, history.second, history.first)
    unknown = np.isnan(first_led)
    leader[unknown] = np.minimum(history.first, history.second)[unknown]
    rows = (
        history.feedback == "votes",
        history.first,
        history.second,
        np.nan_to_num(history.first_won),
        asked,
        np.nan_to_num(answered),
        np.argsort(answered, kind="stable")[: int(history.is_heard.sum())],  # nan is last
        np.zeros(history.n, dtype=np.bool_) if is_away is None else is_away,
        leader,
    )
    start, place = 1, 0
    for change in history.changes:
        if changed is None:
            break
        last = -np.inf if change.at is None else change.at
        place = book_duels(ledger, *rows, place, start, change.tick + 1, last)
        ledger, start = changed(ledger, change), change.tick + 1
    book_duels(ledger, *rows, place, start, history.n + 1, np.inf if all_of_it else -np.inf)
    return ledger


@border_of(lambda *args: args[-2] - args[-3])
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
    leader: Integers,
    place: int,
    start: int,
    stop: int,
    last: float,
) -> int:
    """Hear, age and record, from duel number `start` until before `stop`; then hear up to `last`.

    `order` has the duels that were answered, in the order of their answers. The first `place` of
    them have been heard already. An answer may have the same time as its own duel. Return how many
    have been heard in all.
    """
    for t in range(start, stop + 1):
        now = asked[t - 1] if t < stop else last
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
        if t < stop:
            i, j = first[t - 1], second[t - 1]
            clock_to(ledger, now)
            age_to(ledger, t)
            set_leader(ledger.assumed, leader[t - 1])
            record(ledger, i, j, t)
            if is_away[t - 1]:
                teach(ledger.assumed, t)
    return place


@border_of(lambda ledger, is_vote, kind, *rest: kind.size)
@entry
def follow(
    ledger: Ledger,
    is_vote: bool,
    kind: NDArray[np.int8],
    what: Integers,
    number: Integers,
    i: Integers,
    j: Integers,
    first_won: Floats,
    at: Floats,
    t: int,
    now: float,
) -> None:
    """Book duels and answers in the order of time, and bring the ledger to now, before duel t."""
    for row in range(kind.size):
        clock_to(ledger, at[row])
        if kind[row] == ASKED:
            record(ledger, i[row], j[row], number[row])
            if what[row] == TEACHES:
                teach(ledger.assumed, number[row])
        elif what[row] == TEACHES:
            hear_away(ledger, number[row], t)
        elif what[row] == COUNTS and is_vote:
            hear_vote(ledger, i[row], j[row], first_won[row], number[row], t)
        elif what[row] == COUNTS:
            hear(ledger, i[row], j[row], number[row], t)
    clock_to(ledger, now)
    age_to(ledger, t)
