"""Replay a history into a player that has just started."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from duelay.errors import InvalidValueError
from duelay.inference.arm_set import apply_change
from duelay.inference.event_replay import enter_history
from duelay.inference.guarantee import Past
from duelay.ledger.arms import reopen
from duelay.ledger.display_order import keep_turns
from duelay.ledger.evidence.margin import WINNER
from duelay.ledger.ledger import Ledger, with_room
from duelay.logs.arm_changes import late_comers
from duelay.logs.history import History
from duelay.logs.merge import places

if TYPE_CHECKING:
    from duelay.policies.policy import Policy


def fit_history(history: History, arms: tuple[str, ...], window: Any) -> tuple[History, Past, int]:
    """Return a history as a player with these arms and this window would have it.

    Arms are found by name. Answers after the window become silence. Also return where the duels
    come from, and the number of late answers.
    """
    past = Past(history.n, history.order, history.chosen_by)
    history = _renumber(history, arms)
    is_late = history.answered - history.asked > (np.inf if window is None else window)
    history = dataclasses.replace(
        history,
        delay=np.where(is_late, np.nan, history.delay),
        first_won=np.where(is_late, np.nan, history.first_won),
        window=window,
    )
    return history, past, int(is_late.sum())


def book_deciding(ledger: Ledger, history: History, policy: Policy) -> Ledger:
    """Return the ledger of a policy that decides, in which arms change as in the history."""
    arms = history.arms
    if history.at is None and late_comers(history.changes):
        # In ticks the threshold has no room for arms that join. Without a declaration, make it now.
        eprocess = reopen(ledger.assumed, float(policy.error))  # type: ignore[attr-defined]
        ledger = ledger._replace(assumed=eprocess)
    ledger = enter_history(
        with_room(ledger, history.n + 1),
        history,
        changed=lambda ledger, c: apply_change(ledger, arms.index(c.arm), c.kind, policy),
    )
    keep_turns(ledger.order, history.first, history.second)
    if history.declared is not None and history.declared.policy == str(policy):
        ledger.assumed.verdict[0] = WINNER
        ledger.assumed.winner[0] = arms.index(history.declared.arm)
        ledger.assumed.declared[0] = history.declared.tick
    return ledger


def check_replay(
    history: Any, *, tick: int, has_changed: bool, feedback: str, display: str, by_clock: bool
) -> None:
    """Raise ValueError unless a player in this state can replay the history."""
    if not isinstance(history, History):
        raise InvalidValueError(f"history must be a duelay.History, got {history!r}")
    if tick:
        raise InvalidValueError(
            f"replay needs a player that has just started, and {tick} duels have been "
            "asked of this one: start another"
        )
    if has_changed:
        raise InvalidValueError(
            "replay needs a player whose arms have not changed: replay first, then let arms join "
            "or retire them; a history has its own changes"
        )
    if feedback != history.feedback:
        raise InvalidValueError(
            f"history must have feedback={feedback!r} as the player has, got {history.feedback!r}"
        )
    if display == "one" and history.display != "one":
        raise InvalidValueError(
            "history must have display='one' as the policy has: of arms that are shown together, "
            "each may beat the next in a circle"
        )
    if not np.isin(history.first_won[history.is_heard], (0.0, 0.5, 1.0)).all():
        raise InvalidValueError(
            "history must hold single votes, and not means of several, to be replayed"
        )
    if by_clock != (history.at is not None):
        ways = ("in ticks", "by the clock")
        raise InvalidValueError(
            f"history must go {ways[by_clock]} as the player does, got one that goes "
            f"{ways[not by_clock]}: start the player {'without' if by_clock else 'with'} "
            'clock="wall"'
        )


def _renumber(history: History, arms: tuple[str, ...]) -> History:
    """Return the history by the numbers of the player's arms, found by name.

    Arms that joined later come after the first ones, in their order.
    """
    late = late_comers(history.changes)
    arms = (*(arm for arm in arms if arm not in late), *late)
    number = places(history.arms, arms)
    return dataclasses.replace(
        history,
        n_arms=len(arms),
        arms=arms,
        first=number[history.first],
        second=number[history.second],
    )
