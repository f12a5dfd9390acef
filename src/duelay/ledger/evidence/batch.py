"""Update the evidence from duels that are stored in a database.

Open duels are rows of a store here, and not of the rings of `duelay.ledger.evidence.eprocess`. A
settled duel changes the evidence in the same way. The existence of a winner is not assumed, so that
the leader of a duel does not matter.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from duelay._core.arrays import Floats, Integers
from duelay._core.jit.background import border, border_of
from duelay._core.jit.decorators import entry
from duelay.ledger.evidence.eprocess import bet_on_answer, mature, settle_answer, settle_silence
from duelay.ledger.evidence.silence import patience
from duelay.ledger.evidence.stopping import NOBODY, doubt, look, touch

# A duel is answered; it is silent at age W; it was answered, and reaches age W; a vote after W.
ANSWERED, SILENT, MATURED, AFTERWARDS = 1, 2, 3, 4


@border_of(lambda eprocess, kind, *rest: kind.size)
@entry
def settle(
    eprocess: Any,
    kind: NDArray[np.int8],
    first: Integers,
    second: Integers,
    first_won: Floats,
    delay: Floats,
    odds: Floats,
) -> None:
    """Settle duels one after the other; write the odds of each: 1, or kappa for a silence."""
    for row in range(kind.size):
        i, j = first[row], second[row]
        if kind[row] == ANSWERED:
            odds[row] = 1.0
            settle_answer(eprocess, i, j, first_won[row], NOBODY, delay[row])
        elif kind[row] == SILENT:
            odds[row] = 0.0 if eprocess.is_vote else eprocess.kappa[0]
            settle_silence(eprocess, i, j, NOBODY)
            mature(eprocess, False)
        elif kind[row] == MATURED:
            mature(eprocess, True)
        else:
            odds[row] = 1.0
            bet_on_answer(eprocess, i, j, first_won[row], NOBODY)


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
            touch(eprocess, first[row], second[row])


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
def wait(eprocess: Any) -> float:
    """W, in seconds: how long a bettor waits for an answer before silence settles a duel."""
    return float(patience(eprocess))
