"""Forecast what a further arm costs: the duels until a verdict, with the arm and without it."""

from __future__ import annotations

import copy
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from duelay._core.arrays import Floats
from duelay.inference.evidence import Evidence, evidence_of
from duelay.inference.forecast import DuelsLeft, draw_duels, has_winners, summarise_draws
from duelay.inference.posterior import draw_gaps, leave_out_retired
from duelay.ledger.arms import reopen, with_arm
from duelay.ledger.evidence.eprocess import EProcess

_DRAWS = 2000


class ArmCost(NamedTuple):
    """The duels until a verdict with a further arm, and how many more these are.

    Each has a median and the ends of an interval for four experiments of five, like `DuelsLeft`,
    and no guarantee.

    Attributes
    ----------
    more : DuelsLeft
        The duels that the arm costs. They are negative where a verdict comes sooner with it, as
        happens if the arm is much better than two others that are nearly equal.
    with_it : DuelsLeft
        The duels until a verdict with the arm.
    """

    more: DuelsLeft
    with_it: DuelsLeft


def forecast_cost(eprocess: EProcess, leader: int, arm: int | None = None) -> ArmCost | None:
    """Return what a further arm costs; None if no forecast is possible.

    Nothing is known of a new arm, so its strength is drawn from the prior of the posterior
    estimates, and the strengths of the others from their posterior. In each draw the best arm needs
    its evidence over all rivals, once without the new arm and once with it, by the same random
    numbers. Draws in which no arm beats all others are left out.

    Parameters
    ----------
    eprocess : the evidence as it is now, which is not changed.
    leader : the arm that leads.
    arm : a retired arm that comes back with its earlier duels; None for a new one.
    """
    now, joined = evidence_of(eprocess), copy.deepcopy(eprocess)
    if arm is None:
        arm, joined = len(eprocess.joined), with_arm(joined, eprocess.error)
        now = _with_room(now)
    else:
        joined.present[arm] = True
        joined = reopen(joined, eprocess.error)
    then, present = evidence_of(joined), joined.present
    who, gaps = draw_gaps(then.lead, then.n, leader, present, _DRAWS)
    alone = gaps.copy()
    leave_out_retired(who, gaps, present)
    leave_out_retired(who, alone, present & (np.arange(len(present)) != arm))
    margin = now.margin or 0.0
    (best, gap, is_best), (best_alone, gap_alone, is_best_alone) = (
        _find_best(who, each + margin) for each in (gaps, alone)
    )
    kept = is_best & is_best_alone
    if not has_winners(kept[:, None]):
        return None
    with_it = draw_duels(then, best[kept], gap[kept])
    without = np.zeros(len(with_it))
    if now.verdict == "running":
        without = draw_duels(now, best_alone[kept], gap_alone[kept])
    return ArmCost(summarise_draws(with_it - without), summarise_draws(with_it))


def _find_best(
    who: NDArray[np.int64], gaps: Floats
) -> tuple[NDArray[np.int64], Floats, NDArray[np.bool_]]:
    """Return the best arm of each draw, its gaps to all arms, and whether these are positive."""
    is_own = np.arange(gaps.shape[2]) == who[:, None]
    least = np.where(is_own, np.inf, gaps).min(axis=2)
    place = least.argmax(axis=1)
    draw = np.arange(len(gaps))
    return who[place], gaps[draw, place], np.asarray(least[draw, place] > 0.0)


def _with_room(evidence: Evidence) -> Evidence:
    """Return the evidence with one more arm, over which no arm needs any."""
    names = ("lacks", "log_evidence", "n_waiting")
    wider = {name: np.pad(getattr(evidence, name), (0, 1)) for name in names}
    return evidence._replace(**wider)  # type: ignore[arg-type]
