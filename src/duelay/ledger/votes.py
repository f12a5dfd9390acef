"""Votes: both outcomes are reported, and silence is just no answer.

Only answered duels count; a tie is half a win for either arm. Nothing needs to be known
about the delays, since votes for one arm are as late as votes for the other. With
`corrects_position` the estimates allow for the effect of the first position (`position_effect`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from duelay._core.arrays import Floats, Integers
from duelay.ledger.delay_models.base import (
    FOREVER,
    advance,
    convert,
    drifts,
    enter,
    expected,
    final_age,
    pair_counts,
    share_first,
    stands_still,
    vote,
)
from duelay.ledger.position_effect import first_bonus, update_bonus


class Votes(NamedTuple):
    """Answers and wins by ordered pair."""

    is_corrected: bool  # whether the bonus of the first is taken out
    answers: Floats  # (K, K): duels answered, by first and second
    wins: Floats  # (K, K): of these, won by the first; a tie is one half
    weight: Floats  # (1,): sum over pairs of 1 / variance of the pair's estimate of the bonus
    bonus: Floats  # (1,): sum over pairs of that estimate / its variance


def start_votes(corrects_position: bool, n_arms: int) -> Votes:
    """Return the state before the first vote."""
    shape = (n_arms, n_arms)
    return Votes(corrects_position, np.zeros(shape), np.zeros(shape), np.zeros(1), np.zeros(1))


@vote.register(Votes)
def _vote(assumed: Votes, i: int, j: int, first_won: float, born: int, t: int) -> None:
    update_bonus(assumed, i, j, -1.0)
    assumed.answers[i, j] += 1.0
    assumed.wins[i, j] += first_won
    update_bonus(assumed, i, j, 1.0)


@expected.register(Votes)
def _expected(assumed: Votes, plays: Integers, i: int, j: int) -> float:
    return float(assumed.answers[i, j])


@pair_counts.register(Votes)
def _evidence(assumed: Votes, plays: Integers, conversions: Integers, i: int, j: int) -> Any:
    """N_ij = N~_ij, the answered duels, and S_ij, the wins of i less what the bonus gave it."""
    n = assumed.answers[i, j] + assumed.answers[j, i]
    s = assumed.wins[i, j] + assumed.answers[j, i] - assumed.wins[j, i]
    s -= first_bonus(assumed) * (assumed.answers[i, j] - assumed.answers[j, i])
    return n, n, s


@share_first.register(Votes)
def _share_first(assumed: Votes, plays: Integers, conversions: Integers, i: int, j: int) -> float:
    if assumed.answers[i, j] <= 0.0:
        return 0.5
    return float(assumed.wins[i, j] / assumed.answers[i, j] - first_bonus(assumed))


@final_age.register(Votes)
def _final_age(assumed: Votes) -> int:
    return FOREVER if assumed.is_corrected else 0


@stands_still.register(Votes)
def _stands_still(assumed: Votes, plays: Integers, i: int, j: int) -> bool:
    return not assumed.is_corrected


@drifts.register(Votes)
def _drifts(assumed: Votes) -> bool:
    return assumed.is_corrected  # every vote moves the bonus, and with it every pair


@advance.register(Votes)
def _advance(assumed: Votes, t: int) -> None:
    pass


@enter.register(Votes)
def _enter(assumed: Votes, i: int, j: int, t: int) -> None:
    pass


@convert.register(Votes)
def _convert(assumed: Votes, born: int, t: int) -> None:
    pass
