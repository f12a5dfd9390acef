"""Change a live experiment: its status, its booking and its arms, in one transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, insert

from duelay.errors import InvalidValueError
from duelay.live.events import note
from duelay.live.guardrails import check_guardrails, declare_guardrails
from duelay.live.state import ExperimentState
from duelay.live.storage import schema
from duelay.live.validation import check_arm, check_votes
from duelay.live.writes.requests import Operation
from duelay.problems import check_arms


def make_change(
    *,
    status: str | None = None,
    booking: str | None = None,
    add_arms: Sequence[str] = (),
    retire_arms: Sequence[str] = (),
    add_guardrails: Mapping[str, Any] | None = None,
    max_arms: int | None = None,
) -> Operation:
    """Return a request for several changes. If one of them cannot be made, none is.

    Arms are added before others are retired. An arm that is there already, or retired already, is
    left as it is.

    Parameters
    ----------
    status : str, optional
        ``"running"`` or ``"paused"``; None leaves it as it is.
    booking : str, optional
        ``"running"``, or ``"held"`` if no duel is to enter the evidence; None leaves it as it is.
    add_arms : sequence of str
        New names, or the names of retired arms, which come back.
    retire_arms : sequence of str
        The names of arms.
    add_guardrails : mapping, optional
        New guard-rails, as for `Experiment.create`.
    max_arms : int, optional
        The number of arms, retired ones included, that the experiment may have afterwards.
    """
    joining = list(dict.fromkeys(check_arm(arm) for arm in add_arms))
    leaving = list(dict.fromkeys(retire_arms))

    def do(connection: Connection, state: ExperimentState, moment: int) -> None:
        _check(state, joining, leaving, max_arms)  # all of it, before anything is written
        if add_guardrails:
            declare_guardrails(
                connection, state.settings.id,
                check_guardrails(add_guardrails, state.settings.window),
                state.settings.window_in_micro, state.head["asked"],
            )  # fmt: skip
        if status is not None and status != state.head["status"]:
            kind = "paused" if status == "paused" else "resumed"
            note(connection, state.settings.id, kind, "", f"it was {kind}", moment)
            state.head["status"] = status
        is_held = state.head["held"] is not None
        if booking is not None and is_held != (booking == "held"):
            kind = "released" if is_held else "held"
            note(connection, state.settings.id, kind, "", f"its booking was {kind}", moment)
            state.head["held"] = None if is_held else moment
        for arm in joining:
            if arm not in state.arms:
                row = {"experiment": state.settings.id, "number": len(state.arms), "name": arm}
                connection.execute(insert(schema.arms), row)
                _change(connection, state, arm, "joined", moment)
            elif arm not in _present(state):
                _change(connection, state, arm, "joined", moment)
        for arm in leaving:
            if arm in _present(state):
                _change(connection, state, arm, "retired", moment)

    return Operation(do)


def _present(state: ExperimentState) -> list[str]:
    """Return the arms that have not been retired."""
    return [arm for arm, is_there in zip(state.arms, state.present, strict=True) if is_there]


def _check(
    state: ExperimentState, joining: list[str], leaving: list[str], max_arms: int | None
) -> None:
    new = [arm for arm in joining if arm not in state.arms]
    if joining and state.settings.is_vote:
        check_votes(joining)
    if new:
        check_arms((*state.arms, *new))
        if max_arms is not None and len(state.arms) + len(new) > max_arms:
            raise InvalidValueError(
                f"add_arms: an experiment may have {max_arms:,} arms, retired ones included, and "
                f"it has {len(state.arms):,}"
            )
    there = list(dict.fromkeys([*_present(state), *joining]))
    for arm in leaving:
        if arm not in (*state.arms, *joining):
            raise InvalidValueError(
                f"name must be that of an arm: there is no arm {arm!r}, but {there}"
            )
    left = [arm for arm in there if arm not in leaving]
    if len(left) < 2 and len(left) < len(there):
        raise InvalidValueError(f"two arms must stay, and {there} are all that is left")


def _change(
    connection: Connection, state: ExperimentState, arm: str, kind: str, moment: int
) -> None:
    """Let an arm come or go."""
    state.change(arm, kind, moment)
    row = {
        "experiment": state.settings.id,
        "place": len(state.changes) - 1,
        "arm": state.arms.index(arm),
        "kind": kind,
        "tick": state.head["asked"],
        "at": moment,
    }
    connection.execute(insert(schema.changes), row)
