"""Merge several histories by the clock into one, in the order of time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from duelay._core import checks
from duelay.errors import InvalidValueError
from duelay.ledger.display_order import weaker
from duelay.logs.arm_changes import Change, late_comers

if TYPE_CHECKING:
    from duelay.logs.history import History


def _refuse_twice(histories: Sequence[History]) -> None:
    """Refuse a history that is the beginning of another, or that is given twice."""
    for place, one in enumerate(histories):
        for other in histories[:place]:
            n = min(one.n, other.n)
            same = (one.asked[:n] == other.asked[:n]) & (one.first[:n] == other.first[:n])
            if n and bool((same & (one.second[:n] == other.second[:n])).all()):
                raise InvalidValueError(
                    "histories must be of different players to be merged: of two, one has all the "
                    "duels of the other"
                )


def merge(histories: Sequence[History]) -> dict[str, Any]:
    """Return the fields of the history that has the duels of all."""
    if not histories:
        raise InvalidValueError("merge needs one history at least, got none")
    if any(not hasattr(history, "chosen_by") for history in histories):
        raise InvalidValueError(f"merge takes histories, merge(one, other), got {histories!r}")
    one = histories[0]
    for other in histories:
        if other.at is None:
            raise InvalidValueError(
                "histories must go by the clock to be merged: ticks of two players do not say "
                "which came first"
            )
        for name in ("feedback", "window"):
            if getattr(other, name) != getattr(one, name):
                raise InvalidValueError(
                    f"histories must have the same {name} to be merged, got "
                    f"{getattr(one, name)} and {getattr(other, name)}"
                )
    everybody = _arms(histories)
    _refuse_twice(histories)
    at = np.concatenate([history.asked for history in histories])
    order = np.argsort(at, kind="stable")
    numbers = _numbers(order, [history.n for history in histories])
    rows = {
        name: np.concatenate([getattr(history, name) for history in histories])[order]
        for name in ("delay", "first_won")
    }
    for name in ("first", "second"):
        arms = [places(h.arms, everybody)[getattr(h, name)] for h in histories]
        rows[name] = np.concatenate(arms)[order]
    times = [history.now for history in histories if history.now is not None]
    chosen_by = [history.chosen_by for history in histories]
    shown = one.order
    for other in histories[1:]:
        shown = weaker(shown, other.order)
    return rows | {
        "n_arms": len(everybody),
        "arms": everybody,
        "at": at[order],
        "now": max(times, default=None),
        "window": one.window,
        "feedback": one.feedback,
        "display": one.display,
        "order": shown,
        "chosen_by": merged_choice(chosen_by),
        "unit": _units([history.unit for history in histories], order),
        "skipped": tuple(sentence for history in histories for sentence in history.skipped),
        "changes": _changes(everybody, histories, numbers),
        "declared": one.declared if len(histories) == 1 else None,  # of its own evidence alone
        "numbers": numbers,
        "n_earlier": sum(history.n_earlier for history in histories),
    }


def _units(
    each: Sequence[NDArray[np.int64] | None], order: NDArray[np.int64]
) -> NDArray[np.int64] | None:
    """Return the units of all, or None where a history has none.

    A number means a unit within one history: units of two histories are taken for different ones.
    """
    if len(each) == 1:
        return each[0]
    numbers, n = [], 0
    for units in each:
        if units is None:
            return None
        found, place = np.unique(units, return_inverse=True)
        numbers.append(n + place)
        n += len(found)
    return np.concatenate(numbers)[order]


def _numbers(order: NDArray[np.int64], sizes: list[int]) -> tuple[NDArray[np.int64], ...]:
    """Return, for each history, the new numbers of its duels; `order` sorts the duels of all."""
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return tuple(np.split(place, np.cumsum(sizes)[:-1]))


def _arms(histories: Sequence[History]) -> tuple[str, ...]:
    """Return the arms of all; only one that joined later may be missing in others."""
    everybody = tuple(dict.fromkeys(arm for history in histories for arm in history.arms))
    for arm in everybody:
        has = [history for history in histories if arm in history.arms]
        if len(has) < len(histories) and any(arm not in late_comers(h.changes) for h in has):
            raise InvalidValueError(
                f"histories must have the same arms to be merged, got {arm!r} not in all"
            )
    return everybody


def _changes(
    arms: Sequence[str],
    histories: Sequence[History],
    numbers: Sequence[NDArray[np.int64]],
) -> tuple[Change, ...]:
    """Return when arms came and went: one is there as long as it is there in any history."""
    count = dict.fromkeys(arms, 0)
    happened = []
    for history, number in zip(histories, numbers, strict=True):
        late = late_comers(history.changes)
        for arm in history.arms:
            count[arm] += arm not in late
        for change in history.changes:
            tick = int(number[change.tick - 1]) + 1 if change.tick else 0
            happened.append(change._replace(tick=tick))
    found = []
    for change in sorted(happened, key=lambda change: change.tick):
        before = count[change.arm]
        count[change.arm] += 1 if change.kind == "joined" else -1
        if min(before, count[change.arm]) == 0:
            found.append(change)
    return tuple(found)


def merged_choice(chosen_by: list[str]) -> str:
    """Who chose the pairs; "merge of" says that no policy knew the duels of the others."""
    if len(chosen_by) == 1 or not all(chosen_by):
        return chosen_by[0] if len(chosen_by) == 1 else ""
    return "merge of " + " and ".join(dict.fromkeys(chosen_by))


def places(names: Sequence[str], among: Sequence[str]) -> NDArray[np.int64]:
    """Return the place of each name among others; refuse one that is unknown."""
    place = {name: number for number, name in enumerate(among)}
    for name in names:
        if name not in place:
            hint = checks.nearest(name, among)
            raise InvalidValueError(
                f"no arm is called {name!r}{hint}: there are {', '.join(among)}"
            )
    return np.array([place[name] for name in names], dtype=np.int64)
