"""What an answer or a silence changes: the evidence when its duel is booked, the choice of pairs.

The kernels go duel by duel and add to sums, so that a store can keep these sums in rows of pairs:
see `duelay.ledger.evidence.stored_duels`.
"""

from __future__ import annotations

import math
from typing import Any

from duelay._core.arrays import Floats, Integers
from duelay._core.jit.decorators import kernel
from duelay.ledger.evidence.silence import fill_silent, fix_kappa, min_conversions
from duelay.ledger.evidence.winner_threshold import FOR_CHOICE, FOR_EVIDENCE, touch

NO_STAKE = -1.0  # of a duel that is no bet, as no W_s was known when it was asked


@kernel
def next_stake(eprocess: Any) -> float:
    """Return kappa_s of a duel that is asked now; NO_STAKE as long as there is no W_s."""
    has_wait = eprocess.n_heard[0] >= min_conversions(eprocess) or eprocess.first_wait > 0.0
    return float(eprocess.kappa[0]) if has_wait else NO_STAKE


@kernel
def bet(eprocess: Any, i: int, j: int, won: Floats, lost: Floats, sign: float) -> None:
    """Add a bet that i has won over j; `sign` is 1, or -1 to take a bet back."""
    for place in range(eprocess.gaps.size):
        eprocess.wealth[i, j, place] += sign * won[place]
        eprocess.wealth[j, i, place] += sign * lost[place]
    touch(eprocess, i, j, FOR_EVIDENCE)


@kernel
def weigh_pair(eprocess: Any, i: int, j: int, size: float, weight: float) -> None:
    """Count `size` for i over j, of news that weighs `weight`, where pairs are chosen."""
    eprocess.lead[i, j] += size
    eprocess.lead[j, i] -= size
    eprocess.n[i, j] += weight
    eprocess.n[j, i] += weight
    touch(eprocess, i, j, FOR_CHOICE)


@kernel
def count_answer(eprocess: Any, i: int, j: int, first_won: float) -> None:
    """Count an answer for the choice of pairs: 1 for i, first, 0 for j, between them a mean."""
    weigh_pair(eprocess, i, j, 2.0 * first_won - 1.0, 1.0)


@kernel
def count_silence(eprocess: Any, i: int, j: int, kappa: float) -> None:
    """Count the silence of a duel of i, first, and j for the choice of pairs: it speaks for j."""
    if not eprocess.is_vote:
        weigh_pair(eprocess, j, i, kappa, kappa * kappa)


@kernel
def book_answer(eprocess: Any, i: int, j: int, first_won: float) -> None:
    """Book the answer to a duel of i, first, and j: 1 for i, 0 for j, between them a mean."""
    eprocess.wins[i, j] += first_won
    eprocess.wins[j, i] += 1.0 - first_won
    if first_won == 1.0:
        bet(eprocess, i, j, eprocess.won, eprocess.lost, 1.0)
    elif first_won == 0.0:
        bet(eprocess, j, i, eprocess.won, eprocess.lost, 1.0)
    else:  # a smaller bet, or none for a tie
        size = 2.0 * first_won - 1.0
        for place in range(eprocess.gaps.size):
            eprocess.wealth[i, j, place] += math.log1p(2.0 * size * eprocess.gaps[place])
            eprocess.wealth[j, i, place] += math.log1p(-2.0 * size * eprocess.gaps[place])
        touch(eprocess, i, j, FOR_EVIDENCE)


@kernel
def book_silence(eprocess: Any, i: int, j: int, kappa: float) -> None:
    """Book the silence of a duel of i, first, and j, with its stake: it speaks for j."""
    if kappa > 0.0 and not eprocess.is_vote:
        if kappa != eprocess.silent_kappa[0]:
            fill_silent(eprocess, kappa)
        bet(eprocess, j, i, eprocess.silent_won, eprocess.silent_lost, 1.0)


@kernel
def hear_delay(eprocess: Any, delay: float) -> None:
    """Note the delay of an answer, from which W follows."""
    eprocess.n_heard[0] += 1
    eprocess.delays[0] += delay


@kernel
def count_booked(eprocess: Any, is_answered: bool) -> None:
    """Count a duel of two arms that is booked; now and then, fix kappa anew."""
    eprocess.n_booked[0] += 1
    eprocess.n_answered[0] += int(is_answered)
    if eprocess.n_booked[0] >= eprocess.refit[0]:
        fix_kappa(eprocess)


@kernel
def leave_open(n_open: Integers, i: int, j: int, n: int) -> None:
    """Count n more open duels of the pair."""
    n_open[i, j] += n
    n_open[j, i] += n
