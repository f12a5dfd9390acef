"""Replay duels and answers into a ledger, in the order of time.

A history of a player and the tables of a live experiment both become rows of events. One kernel,
`replay_events`, enters these rows into a ledger as if each duel had just been asked, and each
answer just been told.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from duelay._core.arrays import Floats, Integers
from duelay._core.jit.background import border_of
from duelay._core.jit.decorators import kernel
from duelay.ledger.delay_models.base import teach
from duelay.ledger.ledger import Ledger, age_to, clock_to, hear, hear_away, hear_vote, record

if TYPE_CHECKING:
    from duelay.logs.arm_changes import Change
    from duelay.logs.history import History


ASKED, ANSWERED = 0, 1  # kinds of events
# What an event does. It only teaches the delay law where an arm of the duel is not in the ledger.
COUNTS, TEACHES, IS_LEFT_OUT = 0, 1, 2
_EVENTS_PER_CALL = 1 << 17  # bounds the memory for the columns of events


class Events(NamedTuple):
    """Duels and answers, sorted by time: a column for each field."""

    kind: NDArray[np.int8]  # ASKED or ANSWERED
    effect: Integers  # COUNTS, TEACHES or IS_LEFT_OUT
    number: Integers  # of the duel, from 1
    first: Integers  # the places of its arms in the ledger
    second: Integers
    first_won: Floats  # what an answer gives the first arm: 1, 0 or 1/2
    at: Floats  # the time of the event, for ledgers that go by the clock
    tick: Integers  # of the duel, or at which the answer is heard


def enter_history(
    ledger: Ledger,
    history: History,
    *,
    all_of_it: bool = True,
    is_away: NDArray[np.bool_] | None = None,
    changed: Callable[[Ledger, Change], Ledger] | None = None,
) -> Ledger:
    """Enter a history into a ledger that has room for it, and return the ledger.

    Parameters
    ----------
    all_of_it : whether answers count that came after the last duel was asked.
    is_away : (n,), the duels with an arm that the ledger lacks. They are written as self-duels and
        only teach the delay law.
    changed : returns the ledger after an arm has joined or was retired. Without it, changes of the
        arms are ignored.

    Notes
    -----
    By the clock, an answer at the very time of a duel enters before that duel, unless it answers
    it.
    """
    answered = np.ceil(history.answered) if history.at is None else history.answered
    queue = np.argsort(answered, kind="stable")[: int(history.is_heard.sum())]  # nan is last
    heard_at = answered[queue]
    # The number of duels that are asked before each answer; an answer comes after its own duel.
    before = np.maximum(np.searchsorted(history.asked, heard_at, side="left"), queue + 1)
    before = np.maximum.accumulate(before)
    timeline = _Timeline(history, answered, queue, before, is_away)
    done = 0
    for change in history.changes if changed is not None else ():
        assert changed is not None
        last = -np.inf if change.at is None else change.at
        heard = (before < change.tick) | ((before == change.tick) & (heard_at <= last))
        stop = change.tick + int(heard.sum())
        timeline.replay(ledger, done, stop)
        ledger, done = changed(ledger, change), stop
    n_answers = queue.size if all_of_it else int((before < history.n).sum())
    timeline.replay(ledger, done, history.n + n_answers)
    return ledger


class _Timeline:
    """The duels and answers of a history, in the order of time."""

    def __init__(
        self,
        history: History,
        answered: Floats,
        queue: Integers,
        before: Integers,
        is_away: NDArray[np.bool_] | None,
    ) -> None:
        self.history, self.answered, self.is_away = history, answered, is_away
        size = history.n + queue.size
        places = np.arange(queue.size) + before  # of the answers among all events
        self.kind = np.full(size, ASKED, dtype=np.int8)
        self.kind[places] = ANSWERED
        self.duel = np.empty(size, dtype=np.int64)
        self.duel[places] = queue
        self.duel[self.kind == ASKED] = np.arange(history.n)

    def replay(self, ledger: Ledger, start: int, stop: int) -> None:
        """Enter the events from number `start` until before `stop`."""
        history = self.history
        n_asked = int((self.kind[:start] == ASKED).sum())
        for begin in range(start, stop, _EVENTS_PER_CALL):
            rows = slice(begin, min(begin + _EVENTS_PER_CALL, stop))
            kind, duel = self.kind[rows], self.duel[rows]
            is_asked = kind == ASKED
            asked = n_asked + np.cumsum(is_asked)
            is_away = np.zeros(duel.size, np.bool_) if self.is_away is None else self.is_away[duel]
            events = Events(
                kind=kind,
                effect=is_away.astype(np.int64) * TEACHES,
                number=duel + 1,
                first=history.first[duel],
                second=history.second[duel],
                first_won=np.nan_to_num(history.first_won[duel]),
                at=np.where(is_asked, history.asked[duel], self.answered[duel]),
                tick=np.where(is_asked, asked, asked + 1),  # an answer is heard at the next ask
            )
            replay_events(ledger, events, history.feedback == "votes", True)
            n_asked = int(asked[-1])


@border_of(lambda ledger, events, *rest: events.kind.size)
@kernel
def replay_events(ledger: Any, events: Events, is_vote: bool, ages: bool) -> None:
    """Enter events into a ledger.

    Parameters
    ----------
    events : duels and answers, sorted by time.
    is_vote : whether both outcomes are reported.
    ages : whether the ledger ages to the tick of every duel. If not, the caller ages it afterwards.
    """
    for row in range(events.kind.size):
        clock_to(ledger, events.at[row])
        i, j, number = events.first[row], events.second[row], events.number[row]
        effect, tick = events.effect[row], events.tick[row]
        if events.kind[row] == ASKED:
            if ages:
                age_to(ledger, tick)
            record(ledger, i, j, number)
            if effect == TEACHES:
                teach(ledger.assumed, number)
        elif effect == TEACHES:
            hear_away(ledger, number, tick)
        elif effect == COUNTS and is_vote:
            hear_vote(ledger, i, j, events.first_won[row], number, tick)
        elif effect == COUNTS:
            hear(ledger, i, j, number, tick)
