"""Find the leader of a ledger, and the intervals of its estimates for one look."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from duelay._core import checks
from duelay.errors import InvalidValueError
from duelay.inference.borda_scores import scores_of
from duelay.ledger.evidence.eprocess import EProcess
from duelay.ledger.evidence.winner_threshold import NOBODY
from duelay.ledger.ledger import Estimates, Ledger

if TYPE_CHECKING:
    from duelay.policies.policy import Policy


def beaten(mean: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how many arms each arm beats; a pair without answers or a tie counts one half."""
    wins = np.where(np.isnan(mean), 0.5, np.where(mean > 0.5, 1.0, np.where(mean < 0.5, 0.0, 0.5)))
    return np.asarray(wins.sum(axis=1) - 0.5)


def find_leader(
    mean: NDArray[np.float64],
    active: NDArray[np.bool_],
    scores: NDArray[np.float64] | None = None,
) -> int:
    """Return the active arm with the best score; without scores, the one that beats the most.

    Ties go to the larger sum of estimates.
    """
    total = np.where(np.isnan(mean), 0.5, mean).sum(axis=1)
    first = beaten(mean) if scores is None else scores
    return max(range(len(mean)), key=lambda arm: (active[arm], first[arm], total[arm]))


def rank_arms(
    mean: NDArray[np.float64],
    leader: int | None,
    present: NDArray[np.bool_],
    scores: NDArray[np.float64] | None = None,
) -> list[int]:
    """Return the arms in the order in which every table shows them.

    The leader comes first, and retired arms last. In between, arms are sorted as in `find_leader`.
    """
    total = np.where(np.isnan(mean), 0.5, mean).sum(axis=1)
    first = beaten(mean) if scores is None else scores
    return sorted(
        range(len(mean)),
        key=lambda arm: (arm != leader, not present[arm], -first[arm], -total[arm], arm),
    )


def active_of(policy: Policy, rule: Any, n_arms: int) -> NDArray[np.bool_]:
    """Return which arms a policy has not dropped; refuse anything but one value for each arm."""
    active = np.array(policy.active(rule, n_arms), dtype=np.bool_)
    if active.shape != (n_arms,):
        raise InvalidValueError(
            f"active must hold True or False for each of the {n_arms} arms, got an array of shape "
            f"{active.shape} from {type(policy).__name__}"
        )
    return active


def leader_of(
    ledger: Ledger, active: NDArray[np.bool_], policy: Policy, estimates: Estimates | None = None
) -> int:
    """Return the active arm that leads, as the policy sees it; with bets, a declared winner.

    An arm without duels does not lead as long as another one may.
    """
    if isinstance(ledger.assumed, EProcess):
        return leader_by_bets(ledger)
    estimates = ledger.estimates() if estimates is None else estimates
    scores = scores_of(estimates) if policy.target == "borda" else policy.leads_by(estimates)
    if np.shape([] if scores is None else scores) not in ((0,), (len(active),)):
        raise InvalidValueError(
            f"leads_by must return a number for each of the {len(active)} arms, or None, got "
            f"{scores!r} from {type(policy).__name__}"
        )
    may_lead = active & _is_shown(ledger)
    return find_leader(estimates.mean, may_lead if may_lead.any() else active, scores)


def leader_by_bets(ledger: Ledger) -> int:
    """Return the arm of the verdict, or before that the one with the least doubts."""
    eprocess: EProcess = ledger.assumed
    if eprocess.winner[0] != NOBODY:
        return int(eprocess.winner[0])
    doubts = np.where(eprocess.present, eprocess.doubts, np.inf)
    won = eprocess.lead.sum(axis=1)  # breaks ties
    return int(np.lexsort((-won, doubts, ~(_is_shown(ledger) & eprocess.present)))[0])


def _is_shown(ledger: Ledger) -> NDArray[np.bool_]:
    return np.asarray((ledger.plays.sum(axis=0) + ledger.plays.sum(axis=1)) > 0)


def intervals(
    estimates: Estimates, confidence: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the ends of Hoeffding's intervals for all K (K - 1) / 2 pairs together.

    P(|Z - E Z| > r N~) <= 2 exp(-2 (r N~)^2 / N), as in Lemma 1's proof.
    """
    confidence = checks.number("confidence", confidence, above=0, below=1)
    k = len(estimates.mean)
    log = math.log(k * (k - 1) / (1.0 - confidence))  # 2 / error, the error shared by all pairs
    known = estimates.expected > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        width = np.where(known, np.sqrt(estimates.n * log / 2) / estimates.expected, np.inf)
    mean = np.where(known, estimates.mean, 0.5)
    np.fill_diagonal(width, 0.0)
    return mean - width, mean + width
