"""Votes: both outcomes are reported, and silence is just no answer.

Only answered duels count, whoever won; a tie is half a win for either. Nothing needs to be known
about the delays, since a late vote is as likely to be for the one as for the other.

Being shown first may help, whoever it is. With **corrected** votes the bonus is estimated, as what
the first wins beyond one half over the duels that tell (self-duels, and duels of two arms where a
coin decides the order or they take turns), and taken out of the estimates.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from duelay import _checks
from duelay._jit import kernel
from duelay.assumed import (
    FOREVER,
    Floats,
    Integers,
    advance,
    convert,
    drifts,
    enter,
    evidence,
    heard,
    is_settled,
    settles,
    share_first,
    vote,
)

FEEDBACKS = ("conversions", "votes", "corrected-votes")
_ENOUGH = 30.0  # answers that tell; before, no bonus is taken out


class VotesHeard(NamedTuple):
    """Answers and wins by ordered pair."""

    is_corrected: bool  # whether the bonus of the first is taken out
    by_coin: bool  # whether duels of two arms tell of it
    answers: Floats  # (K, K): duels answered, by first and second
    wins: Floats  # (K, K): of these, won by the first; a tie is one half
    telling: Floats  # (2,): answers that tell of the bonus, and wins of the first among them


def is_votes(feedback: str) -> bool:
    """Whether both outcomes are reported; refuses what is no kind of feedback."""
    return _checks.one_of("feedback", feedback, FEEDBACKS) != "conversions"


def votes(feedback: str, n_arms: int, by_coin: bool) -> VotesHeard:
    """Return the state of somebody who has no vote yet."""
    shape = (n_arms, n_arms)
    return VotesHeard(
        feedback == "corrected-votes", by_coin, np.zeros(shape), np.zeros(shape), np.zeros(2)
    )


@kernel
def first_bonus(assumed: Any) -> float:
    """Return what being shown first adds to the chance of winning, as far as the votes tell."""
    if not assumed.is_corrected or assumed.telling[0] < _ENOUGH:
        return 0.0
    return float(assumed.telling[1] / assumed.telling[0] - 0.5)


@vote.register(VotesHeard)
def _vote(assumed: VotesHeard, i: int, j: int, first_won: float) -> None:
    assumed.answers[i, j] += 1.0
    assumed.wins[i, j] += first_won
    if i == j or assumed.by_coin:
        assumed.telling[0] += 1.0
        assumed.telling[1] += first_won


@heard.register(VotesHeard)
def _heard(assumed: VotesHeard, plays: Integers, i: int, j: int) -> float:
    return float(assumed.answers[i, j])


@evidence.register(VotesHeard)
def _evidence(assumed: VotesHeard, plays: Integers, conversions: Integers, i: int, j: int) -> Any:
    """N_ij = N~_ij, the answered duels, and S_ij, the wins of i less what its places gave it."""
    n = assumed.answers[i, j] + assumed.answers[j, i]
    s = assumed.wins[i, j] + assumed.answers[j, i] - assumed.wins[j, i]
    s -= first_bonus(assumed) * (assumed.answers[i, j] - assumed.answers[j, i])
    return n, n, s


@share_first.register(VotesHeard)
def _share_first(
    assumed: VotesHeard, plays: Integers, conversions: Integers, i: int, j: int
) -> float:
    if assumed.answers[i, j] <= 0.0:
        return 0.5
    return float(assumed.wins[i, j] / assumed.answers[i, j] - first_bonus(assumed))


@settles.register(VotesHeard)
def _settles(assumed: VotesHeard) -> int:
    return FOREVER if assumed.is_corrected else 0


@is_settled.register(VotesHeard)
def _is_settled(assumed: VotesHeard, plays: Integers, i: int, j: int) -> bool:
    return not assumed.is_corrected


@drifts.register(VotesHeard)
def _drifts(assumed: VotesHeard) -> bool:
    return assumed.is_corrected  # every vote moves the bonus, and with it every pair


@advance.register(VotesHeard)
def _advance(assumed: VotesHeard, t: int) -> None:
    pass


@enter.register(VotesHeard)
def _enter(assumed: VotesHeard, i: int, j: int, t: int) -> None:
    pass


@convert.register(VotesHeard)
def _convert(assumed: VotesHeard, born: int, t: int) -> None:
    pass
