"""The arms of a player, which may join and be retired while it plays.

An arm keeps its number for ever. A policy that decides keeps all arms in its ledger and stops
asking those that are retired (`duelay.ledger.evidence.winner_threshold`). The ledger and the rule
of any other policy hold only the arms that are present. When an arm joins or is retired, they are
made anew, and all duels between two present arms are entered again. All other duels still teach the
delay law.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from duelay.delays.delay import check_delay
from duelay.errors import InvalidValueError
from duelay.inference.event_replay import enter_history
from duelay.ledger.arms import change_arm
from duelay.ledger.display_order import keep_turns
from duelay.ledger.ledger import Ledger, with_room
from duelay.logs.arm_changes import Change, joined_of, present_of
from duelay.logs.history import History
from duelay.problems.validation import check_arms

if TYPE_CHECKING:
    from duelay.policies.policy import Policy


class ArmSet:
    """Which arms are present, when they joined, and their places in the ledger.

    It is immutable: each change of the arms makes a new one.
    """

    def __init__(
        self, arms: Sequence[str], changes: tuple[Change, ...] = (), *, of_all: bool = True
    ) -> None:
        """Give a place in the ledger to all arms, or to those that are present."""
        self.changes = changes  # arms that have come or gone
        self.joined = joined_of(arms, changes)  # 0 for the first, n for the n-th to join
        self.present = present_of(arms, changes)
        everybody = np.arange(len(self.present))
        self.shown = everybody if of_all else np.flatnonzero(self.present)  # of each place
        self.place = np.full(len(self.present), -1)  # of each arm; -1 where it has none
        self.place[self.shown] = np.arange(len(self.shown))
        # The same as lists: in Python, for one arm, they are quicker.
        self.arm_at: list[int] = self.shown.tolist()
        self.place_of: list[int] = self.place.tolist()

    @property
    def has_changed(self) -> bool:
        """Whether an arm has ever come or gone."""
        return bool(self.changes)

    def spread(self, values: NDArray[Any], fill: Any) -> NDArray[Any]:
        """Return values by arm, given values by place; `fill` where an arm has no place."""
        k, axes = len(self.place), values.ndim
        found = np.full((k,) * axes, fill, dtype=np.result_type(values, type(fill)))
        found[np.ix_(*[self.shown] * axes)] = values
        if axes == 2:
            np.fill_diagonal(found, values[0, 0])  # an arm against itself is the same for all
        return found


def check_joining(name: Any, arms: Sequence[str], arm_set: ArmSet, *, is_full: bool) -> bool:
    """Return whether an arm may join; False if it is present already.

    `is_full` says that the threshold leaves no error for a further arm.
    """
    if not isinstance(name, str) or not name:
        raise InvalidValueError(f"name must be a text, the name of an arm, got {name!r}")
    if name in arms:
        return not arm_set.present[arms.index(name)]
    check_arms((*arms, name))
    if is_full:
        raise InvalidValueError(
            "add_arm needs a player that goes by the clock where the policy decides: in ticks "
            "its threshold leaves nothing of `error` to an arm that joins; start it with "
            'clock="wall", where it does'
        )
    return True


def check_retiring(name: Any, arms: Sequence[str], arm_set: ArmSet) -> bool:
    """Return whether an arm may be retired; False if it is retired already."""
    present = [arm for arm, is_there in zip(arms, arm_set.present, strict=True) if is_there]
    if name not in arms:
        raise InvalidValueError(f"name must be that of an arm, {present} are there, got {name!r}")
    if name not in present:
        return False
    if len(present) == 2:
        raise InvalidValueError(f"two arms must stay, and {present} are all that is left")
    return True


def refuse_changes(policy: Policy, *, by_clock: bool) -> None:
    """Raise ValueError for a policy whose arms cannot change."""
    if getattr(policy, "margin", None) is not None and not by_clock:
        raise InvalidValueError(
            f"the arms of {policy} cannot change in ticks: its threshold leaves no error for that, "
            "as one with clock='wall' does"
        )
    if not policy.goes_by_clock or policy.delay == "learn-from-self-duels":
        raise InvalidValueError(
            f"the arms of {policy} cannot change: its rounds or its law rest on them"
        )


def apply_change(ledger: Ledger, arm: int, kind: str, policy: Policy) -> Ledger:
    """Return the ledger of a policy that decides, after an arm joined or was retired."""
    eprocess = ledger.assumed
    if arm >= len(eprocess.present) and eprocess.told.is_told:
        check_delay(policy.delay, len(eprocess.present) + 1)  # refuses one law a pair
    error = float(policy.error)  # type: ignore[attr-defined]
    return change_arm(ledger, arm, joins=kind == "joined", error=error)


def rebuild_ledger(ledger: Ledger, past: History, arm_set: ArmSet) -> Ledger:
    """Return a new ledger of the arms that are present, with the duels of a history in it.

    Answers to duels of retired arms teach the delay law.
    """
    history = restrict_history(past, arm_set)
    is_away = ~is_among(past, arm_set) & (past.first != past.second)
    ledger = with_room(ledger, history.n + 1)
    history = dataclasses.replace(history, delay=past.delay, first_won=past.first_won)
    enter_history(ledger, history, is_away=is_away)
    keep_turns(ledger.order, history.first, history.second)
    return ledger


def is_among(history: History, arm_set: ArmSet) -> NDArray[np.bool_]:
    """Return the duels whose two arms have a place in the ledger."""
    return np.asarray((arm_set.place[history.first] >= 0) & (arm_set.place[history.second] >= 0))


def restrict_history(history: History, arm_set: ArmSet) -> History:
    """Return a history by places in the ledger; a duel of an arm without a place has no answer."""
    first, second = arm_set.place[history.first], arm_set.place[history.second]
    is_away = ~is_among(history, arm_set)
    return dataclasses.replace(
        history,
        changes=(),
        declared=None,
        n_arms=len(arm_set.shown),
        arms=tuple(history.arms[arm] for arm in arm_set.shown),
        first=np.where(is_away, 0, first),
        second=np.where(is_away, 0, second),  # a self-duel, of which nothing is heard
        delay=np.where(is_away, np.nan, history.delay),
        first_won=np.where(is_away, np.nan, history.first_won),
    )
