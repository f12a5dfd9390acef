"""Add or retire an arm in the ledger of a policy that decides.

`duelay.ledger.evidence.winner_threshold` gives the threshold that an arm needs once the set of arms
has changed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from duelay.ledger.evidence.eprocess import EProcess
from duelay.ledger.evidence.margin import RUNNING, log_level, log_level_over_present
from duelay.ledger.evidence.winner_threshold import (
    FOR_EVIDENCE,
    NOBODY,
    log_threshold,
    log_threshold_over_present,
)
from duelay.ledger.ledger import Ledger

_PAIR, _ARM = (0, 1), (0,)
_AXES_BY_ARM = {  # the axes of each array that have one entry per arm
    "joined": _ARM, "present": _ARM, "doubts": _ARM, "path": (1,), "wealth": _PAIR,
    "log_evidence": _PAIR, "best": _PAIR, "wins": _PAIR, "seen": _PAIR, "lead": _PAIR, "n": _PAIR,
    "tie_wealth": _PAIR, "log_bar": _PAIR, "best_bar": _PAIR, "doubt": _PAIR, "n_open": _PAIR,
    "is_touched": _PAIR,
}  # fmt: skip


def change_arm(ledger: Ledger, arm: int, *, joins: bool, error: float) -> Ledger:
    """Return the ledger after an arm joins, comes back or is retired.

    No winner is declared afterwards, and the evidence no longer assumes that a winner exists.

    Parameters
    ----------
    ledger : of a policy that decides.
    arm : the number of the arm; a new arm has the number K.
    joins : whether the arm joins or comes back; otherwise it is retired.
    error : the error of the policy, from which the new threshold follows.
    """
    eprocess = ledger.assumed
    if arm < len(eprocess.present):
        eprocess.present[arm] = joins
        return ledger._replace(assumed=reopen(eprocess, error))
    return ledger._replace(
        plays=np.pad(ledger.plays, (0, 1)),
        conversions=np.pad(ledger.conversions, (0, 1)),
        news=np.pad(ledger.news, (0, 1)),
        assumed=with_arm(eprocess, error),
    )


def with_arm(eprocess: EProcess, error: float) -> EProcess:
    """Return the evidence with a new arm, the next to join."""
    k = len(eprocess.joined)
    wider: dict[str, Any] = {"touched": np.zeros((k + 1) ** 2, dtype=np.int64)}
    for name, axes in _AXES_BY_ARM.items():
        value = getattr(eprocess, name)
        wider[name] = np.pad(value, [(0, int(axis in axes)) for axis in range(value.ndim)])
    told = eprocess.told._replace(law=np.pad(eprocess.told.law, (0, 1)))  # one law for all pairs
    eprocess = eprocess._replace(told=told, **wider)
    eprocess.joined[k] = eprocess.joined.max() + 1
    eprocess.present[k] = True
    return reopen(eprocess, error)


def reopen(eprocess: EProcess, error: float) -> EProcess:
    """Return the bets without a declared winner, and mark all pairs for the next look."""
    k, first = len(eprocess.joined), int((eprocess.joined == 0).sum())
    eprocess.winner[0], eprocess.verdict[0] = NOBODY, RUNNING
    high, low = np.tril_indices(k, -1)  # all at once: a kernel takes its arguments apart each time
    eprocess.is_touched[:] = 0
    eprocess.is_touched[low, high] = FOR_EVIDENCE
    eprocess.touched[: high.size] = low * k + high
    eprocess.n_touched[0] = high.size
    if eprocess.margin:  # by the clock, its levels leave room for changes from the start
        two_sided, by_clock = bool(eprocess.is_two_sided), bool(eprocess.by_clock)
        return eprocess._replace(
            has_changed=True,
            level=log_level(first, error, two_sided=two_sided, may_change=by_clock),
            level_over_present=log_level_over_present(first, error, two_sided=two_sided),
        )
    return eprocess._replace(
        winner_exists=False,
        has_changed=True,
        level=log_threshold(first, error, may_join=True, is_ordered=eprocess.shows_one),
        level_over_present=log_threshold_over_present(first, error),
    )
