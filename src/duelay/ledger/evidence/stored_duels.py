"""Update the evidence from duels that are stored in a database.

Open duels are rows of a store here, and not of the rings of `duelay.ledger.evidence.eprocess`. A
store that books duels as that module does needs

- of each duel, written when it is asked: `wait`, W_s, and `stake`, kappa_s (NO_STAKE for a duel
  that is no bet), as `stake_now` returns them;
- of each experiment: the number of the last duel that is booked, and the sums `n_booked`,
  `n_answered`, `n_heard`, `delays`, with `kappa` and `refit`;
- of each ordered pair: `wealth`, `best`, `wins` (of booked duels), with a margin `tie_wealth` and
  `best_bar`, and `lead`, `n`, `n_open` (of all that is heard, by which pairs are chosen).

An answer goes to `count_news` when it is told. In the order of asking, `book_rows` takes the duels
whose age has reached `wait`; a duel without a stake waits as long as `wait_now` returns. What it
says of a duel is in the row: whether it was answered by age `wait`, and how. An answer after that
age is late for the evidence, also where the duel is not booked yet.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duelay._core.arrays import Floats, Integers
from duelay._core.jit.background import border, border_of
from duelay._core.jit.decorators import entry
from duelay.ledger.evidence.booking import (
    NO_STAKE,
    book_answer,
    book_silence,
    count_answer,
    count_booked,
    count_silence,
    hear_delay,
    leave_open,
    next_stake,
)
from duelay.ledger.evidence.margin import bet_on_ties
from duelay.ledger.evidence.silence import next_wait
from duelay.ledger.evidence.winner_threshold import FOR_EVIDENCE, doubt, look, touch


@border_of(lambda eprocess, first, *rest: first.size)
@entry
def count_news(
    eprocess: Any, first: Integers, second: Integers, first_won: Floats, delay: Floats,
    is_in_time: NDArray[np.bool_],
) -> None:  # fmt: skip
    """Count answers of two arms for the choice of pairs; of late conversions, the delay alone.

    `is_in_time` says whether the duel is not booked, and the answer came by its age W_s.
    """
    for row in range(first.size):
        i, j = first[row], second[row]
        hear_delay(eprocess, delay[row])
        if is_in_time[row]:
            leave_open(eprocess.n_open, i, j, -1)
        if is_in_time[row] or eprocess.is_vote:
            count_answer(eprocess, i, j, first_won[row])


@border_of(lambda eprocess, first, *rest: first.size)
@entry
def book_rows(
    eprocess: Any, first: Integers, second: Integers, is_answered: NDArray[np.bool_],
    first_won: Floats, stake: Floats, odds: Floats,
) -> None:  # fmt: skip
    """Book duels of two arms in the order of asking: answered by their age W_s, or silent.

    `odds` are what each silence weighs in the choice of pairs. Where they are nan, the weight of
    now is taken, and written down.
    """
    for row in range(first.size):
        i, j = first[row], second[row]
        if not is_answered[row]:
            leave_open(eprocess.n_open, i, j, -1)
            if math.isnan(odds[row]):
                odds[row] = 0.0 if eprocess.is_vote else eprocess.kappa[0]
            count_silence(eprocess, i, j, odds[row])
            book_silence(eprocess, i, j, stake[row])
        elif stake[row] != NO_STAKE:
            book_answer(eprocess, i, j, first_won[row])
        if eprocess.margin > 0.0 and stake[row] != NO_STAKE:
            bet_on_ties(eprocess, i, j, is_answered[row], first_won[row], stake[row])
        count_booked(eprocess, is_answered[row])


@border
@entry
def stake_now(eprocess: Any) -> tuple[float, float]:
    """Return W_s and kappa_s of a duel that is asked now."""
    return float(next_wait(eprocess)), next_stake(eprocess)


@border
@entry
def look_now(eprocess: Any, t: int) -> None:
    """Look at the evidence when all news of a moment is booked; t - 1 duels have been asked."""
    look(eprocess, t)


@border_of(lambda eprocess, first, second: first.size)
@entry
def touch_all(eprocess: Any, first: Integers, second: Integers) -> None:
    """Note that there is news of pairs; a self-duel has no pair."""
    for row in range(first.size):
        if first[row] != second[row]:
            touch(eprocess, first[row], second[row], FOR_EVIDENCE)


@border_of(lambda eprocess: int(eprocess.n_touched[0]))
@entry
def doubt_anew(eprocess: Any) -> None:
    """Reckon the doubts of every pair that has news, without a look at the evidence."""
    k = eprocess.doubts.size
    for place in range(eprocess.n_touched[0]):
        low, high = eprocess.touched[place] // k, eprocess.touched[place] % k
        doubt(eprocess, low, high)
        doubt(eprocess, high, low)


@border
@entry
def wait_now(eprocess: Any) -> float:
    """W, in seconds: how long a bettor waits for an answer before a silence is booked."""
    return float(next_wait(eprocess))
