"""Changes of the arms in a history, and its declared winner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from duelay._core import checks, timestamps
from duelay.errors import InvalidValueError

if TYPE_CHECKING:
    from duelay.logs.history import History

KINDS = ("joined", "retired")


class Change(NamedTuple):
    """An arm that joined, or came back, or was retired."""

    tick: int  # the duels asked by then
    arm: str
    kind: str  # "joined" or "retired"
    at: float | None = None  # by the clock: the latest time known by then, in seconds


class Declaration(NamedTuple):
    """An arm that is declared the winner."""

    arm: str
    tick: int  # the duels asked by then
    policy: str  # who has declared it, as text: its error and what it takes for granted


def late_comers(changes: Sequence[Change]) -> tuple[str, ...]:
    """Return the arms that were not among the first, in the order in which they joined."""
    seen: dict[str, str] = {}
    for change in changes:
        seen.setdefault(change.arm, change.kind)
    return tuple(arm for arm, kind in seen.items() if kind == "joined")


def joined_of(arms: Sequence[str], changes: Sequence[Change]) -> NDArray[np.int64]:
    """(K,): 0 for the first arms, n for the n-th that joined later."""
    numbers = {arm: n for n, arm in enumerate(late_comers(changes), start=1)}
    return np.array([numbers.get(arm, 0) for arm in arms], dtype=np.int64)


def present_of(arms: Sequence[str], changes: Sequence[Change]) -> NDArray[np.bool_]:
    """(K,): whether each arm has not been retired."""
    last = {change.arm: change.kind == "joined" for change in changes}
    return np.array([last.get(arm, True) for arm in arms], dtype=np.bool_)


def check_changes(history: History) -> tuple[Change, ...]:
    """Return the changes of a history; refuse those that cannot have been."""
    found: list[Change] = []
    late = late_comers([Change(*change) for change in history.changes])
    present = set(history.arms) - set(late)
    if len(present) < 2:
        raise InvalidValueError(
            "changes must be what can have been: two arms must stay, and be the first"
        )
    for given in history.changes:
        change = Change(*given)
        tick = checks.whole("the tick of a change", change.tick, least=0)
        where = f"changes must be what can have been: {change.arm!r} {change.kind} after {tick}"
        checks.one_of("the kind of a change", change.kind, KINDS)
        if change.arm not in history.arms:
            raise InvalidValueError(f"{where} duels, and no arm is called so")
        if tick > history.n or (found and tick < found[-1].tick):
            raise InvalidValueError(
                f"{where} duels, of {history.n}, must not come before the last change"
            )
        was = "there" if change.arm in present else "away"
        if (was == "there") == (change.kind == "joined"):
            raise InvalidValueError(f"{where} duels, which was {was} before")
        present ^= {change.arm}
        if len(present) < 2:
            raise InvalidValueError(f"{where} duels, and two arms must stay")
        at = None if change.at is None else timestamps.seconds("the time of a change", change.at)
        found.append(Change(tick, change.arm, change.kind, at))
    for arm in {change.arm for change in found}:
        _check_shown(history, arm, [change for change in found if change.arm == arm])
    return tuple(found)


def _check_shown(history: History, arm: str, mine: list[Change]) -> None:
    """Refuse a duel of an arm that was not there."""
    number = history.arms.index(arm)
    shown = np.flatnonzero((history.first == number) | (history.second == number))
    passed = np.searchsorted([change.tick for change in mine], shown, side="right")
    was_there = np.array([mine[0].kind == "retired", *(c.kind == "joined" for c in mine)])
    if not was_there[passed].all():
        duel = int(shown[~was_there[passed]][0])
        raise InvalidValueError(
            f"changes must fit the duels: duel {duel} shows {arm!r}, which was away"
        )


def check_declared(history: History) -> Declaration | None:
    """Return who is declared in a history; refuse who cannot be."""
    if history.declared is None:
        return None
    arm, tick, policy = history.declared
    if arm not in history.arms or not history.present[history.arms.index(arm)]:
        raise InvalidValueError(f"declared must name an arm that is there, got {arm!r}")
    tick = checks.whole("the tick of a declaration", tick, least=0)
    since = history.changes[-1].tick if history.changes else 0
    if not since <= tick <= history.n:
        raise InvalidValueError(
            f"declared must be from the last change, after {since} duels, to the last of "
            f"{history.n}, got {tick}"
        )
    return Declaration(arm, tick, str(policy))


def describe(history: History) -> dict[str, Any]:
    """Return changes and declaration as values that JSON has."""
    return {"changes": history.changes, "declared": history.declared}


def read_fields(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a history from `describe`."""
    declared = told["declared"]
    return {
        "changes": tuple(Change(*change) for change in told["changes"]),
        "declared": None if declared is None else Declaration(*declared),
    }
