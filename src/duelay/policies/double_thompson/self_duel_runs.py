"""Quiet stretches of double Thompson sampling: ticks at which the favourite duels itself.

A rule that uses them has the fields `favourite`, `together`, `quiet`, `floor_news` and
`floor_epoch`. It computes floors, which are lower bounds of the favourite's probabilities, and
draws the number of turns for which all of them hold.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duelay._core.jit.decorators import kernel
from duelay.ledger.delay_models.base import FOREVER, epoch
from duelay.ledger.ledger import Ledger
from duelay.policies.double_thompson.beta_posterior import chance_above_half
from duelay.policies.pair_statistics import wins_and_count


@kernel
def quiet_turns(together: float, rng: np.random.Generator) -> int:
    """Draw how many turns pass before some floor does not hold in one of a turn's two samples."""
    chance = together * together
    if chance >= 1.0:
        return int(FOREVER)
    return int(min(math.log(1.0 - rng.random()) / math.log(chance), 1e18))


@kernel
def loses_some(
    ledger: Ledger,
    arm: int,
    floor: NDArray[np.float64],
    together: float,
    row: NDArray[np.bool_],
    rng: np.random.Generator,
) -> bool:
    """Draw an arm's row, given that some floor does not hold; return whether the arm loses to one.

    `row` says which arms it beats. A floor that does not hold is set to 0, to be computed again.
    """
    may_lose, loses = False, False
    for j in range(row.size):
        row[j] = True
        if j == arm:
            continue
        if may_lose:
            is_off = rng.random() >= floor[j]
        else:  # some floor from here on does not hold: j's with (1 - floor) / (1 - together)
            is_off = rng.random() * (1.0 - together) < 1.0 - floor[j]
            together /= floor[j]
        if is_off:
            may_lose = True
            s, n = wins_and_count(ledger, arm, j)
            row[j] = rng.random() * (1.0 - floor[j]) >= 1.0 - chance_above_half(s, n)
            loses = loses or not row[j]
            floor[j] = 0.0
    return loses


@kernel
def is_quiet(rule: Any, ledger: Ledger) -> bool:
    """Whether there is no news of the favourite since its floors were computed."""
    is_old = rule.floor_news[0] == ledger.news[rule.favourite[0]]
    return bool(is_old and rule.floor_epoch[0] == epoch(ledger.assumed))


def calm_of_favourite(rule: Any, ledger: Ledger, arm: int, t: int) -> int:
    """Return the end of the quiet stretch, or t if there is none."""
    if arm != rule.favourite[0] or not is_quiet(rule, ledger) or rule.together[0] <= 0.0:
        return t
    return int(t + rule.quiet[0])


def pass_quiet_turns(rule: Any, turns: int) -> None:
    """Shorten the quiet stretch by the turns that have passed."""
    rule.quiet[0] -= turns
