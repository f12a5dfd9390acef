"""Change a live experiment: its status, its booking and its arms, in one transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sqlalchemy import Connection, insert

from duelay._core import checks
from duelay.errors import InvalidValueError
from duelay.inference.leader import leader_by_bets
from duelay.live.events import note
from duelay.live.guardrails import check_guardrails, declare_guardrails, find_new
from duelay.live.state import ExperimentState
from duelay.live.storage import schema
from duelay.live.validation import check_arm, check_votes
from duelay.live.writes.requests import Operation
from duelay.problems import check_arms


def make_change(
    *,
    status: str | None = None,
    booking: str | None = None,
    arm: str | None = None,
    fallback: str | None = None,
    archived: bool | None = None,
    add_arms: Sequence[str] = (),
    retire_arms: Sequence[str] = (),
    add_guardrails: Mapping[str, Any] | None = None,
    max_arms: int | None = None,
    by: str = "",
) -> Operation:
    """Return a request for several changes. If one of them cannot be made, none is.

    Arms are added before others are retired. An arm that is there already, or retired already, is
    left as it is.

    Parameters
    ----------
    status : str, optional
        ``"running"``, ``"paused"`` or ``"finished"``; None leaves it as it is.
    booking : str, optional
        ``"running"``, or ``"held"`` if no duel is to enter the evidence; None leaves it as it is.
    arm : str, optional
        Of an experiment that is finished: the arm that is shown from now on. By default that of the
        verdict, or else the leader.
    fallback : str, optional
        The arm that is shown while the experiment is paused.
    archived : bool, optional
        Whether lists leave the experiment out, which must be finished.
    add_arms : sequence of str
        New names, or the names of retired arms, which come back.
    retire_arms : sequence of str
        The names of arms.
    add_guardrails : mapping, optional
        New guard-rails, as for `Experiment.create`.
    max_arms : int, optional
        The number of arms, retired ones included, that the experiment may have afterwards.
    by : str
        Who makes the change, which its events say; empty if that is not known.
    """
    joining = list(dict.fromkeys(check_arm(arm) for arm in add_arms))
    leaving = list(dict.fromkeys(check_arm(arm) for arm in retire_arms))

    def do(connection: Connection, state: ExperimentState, moment: int) -> None:
        # All of it, before anything is written. What is misspelt comes first.
        _check_known(state, joining, {"arm": [arm], "fallback": [fallback], "name": leaving})
        _check(state, joining, leaving, max_arms)
        _check_ends(state, status, arm, fallback, archived, joining, leaving)
        who = f", by {by}" if by else ""
        metrics = find_new(
            connection, state.settings.id,
            check_guardrails(add_guardrails, state.settings.window),
            state.settings.window_in_micro,
        )  # fmt: skip
        is_held = state.head["held"] is not None
        if booking is not None and is_held != (booking == "held"):
            kind = "released" if is_held else "held"
            note(connection, state.settings.id, kind, "", f"its booking was {kind}{who}", moment)
            state.head["held"] = None if is_held else moment
        for name in joining:
            if name not in state.arms:
                row = {"experiment": state.settings.id, "number": len(state.arms), "name": name}
                connection.execute(insert(schema.arms), row)
                _change(connection, state, name, "joined", moment, who)
            elif name not in _present(state):
                _change(connection, state, name, "joined", moment, who)
        for name in leaving:
            if name in _present(state):
                _change(connection, state, name, "retired", moment, who)
        if fallback is not None:
            state.head["fallback"] = state.arms.index(fallback)
        declare_guardrails(connection, metrics, _baseline(state), state.head["asked"])
        _set_status(connection, state, status, arm, moment, who)
        if archived is not None and archived != (state.head["archived"] is not None):
            kind = "archived" if archived else "listed"
            note(connection, state.settings.id, kind, "", f"it was {kind}{who}", moment)
            state.head["archived"] = moment if archived else None

    # A hold is a moment by which answers came; for the rest the latest time of the store will do.
    return Operation(do, needs_clock=booking is not None)


def _check_known(
    state: ExperimentState, joining: list[str], said: Mapping[str, Sequence[str | None]]
) -> None:
    """Refuse a name that is not that of an arm; `said` has the names by argument."""
    known = (*state.arms, *joining)
    for argument, names in said.items():
        for name in names:
            if name is not None and name not in known:
                raise InvalidValueError(
                    f"{argument} must be that of an arm: there is no arm {name!r}"
                    f"{checks.nearest(name, known)}, but {_present(state)}",
                    argument=argument,
                )


def _check_ends(
    state: ExperimentState,
    status: str | None,
    arm: str | None,
    fallback: str | None,
    archived: bool | None,
    joining: list[str],
    leaving: list[str],
) -> None:
    """Refuse a status, or an arm to show, that cannot be."""
    there = [each for each in dict.fromkeys([*_present(state), *joining]) if each not in leaving]
    is_finished = (status or state.head["status"]) == "finished"
    if status == "paused" and state.head["status"] == "finished":
        raise InvalidValueError("status must be 'running', to reopen it: it is finished")
    if arm is not None and status != "finished":
        raise InvalidValueError(f"arm is what an experiment is finished with, got {arm!r} alone")
    if archived and not is_finished:
        raise InvalidValueError("archived needs an experiment that is finished: finish it first")
    number = state.head["fallback"]
    kept = fallback if number is None or fallback is not None else state.arms[number]
    now = [each for each in _present(state) if each in there]  # nothing of this has joined yet
    if kept is not None and kept not in there:
        raise InvalidValueError(f"fallback must be an arm that is present, {now}, got {kept!r}")
    shown = state.head["chosen"]
    if is_finished and arm is None and shown is not None and state.arms[shown] in leaving:
        raise InvalidValueError(
            f"name must not be that of the arm with which the experiment is finished, "
            f"{state.arms[shown]!r}: finish it with another arm, or reopen it"
        )
    if arm is not None and arm not in there:
        raise InvalidValueError(f"arm must be one that is present, {now}, got {arm!r}")


def _set_status(
    connection: Connection,
    state: ExperimentState,
    status: str | None,
    arm: str | None,
    moment: int,
    who: str,
) -> None:
    """Pause, resume, finish or reopen."""
    head, before = state.head, (state.head["status"], state.head["chosen"])
    if status is None or (status == before[0] == "finished" and arm is None):
        return
    shown = leader_by_bets(state.ledger) if arm is None else state.arms.index(arm)
    head |= {"status": status, "chosen": shown if status == "finished" else None}
    if status == "running":
        head["archived"] = None
    if (head["status"], head["chosen"]) == before:
        return
    kind = {"paused": "paused", "finished": "finished"}.get(status, "resumed")
    if before[0] == "finished" and status == "running":
        kind = "reopened"
    about = state.arms[shown] if status == "finished" else ""
    words = f"it was {kind}{who}" + (f": {about} is shown to everybody" if about else "")
    note(connection, state.settings.id, kind, about, words, moment)


def _baseline(state: ExperimentState) -> int:
    """Return the arm that others are compared with: the fallback, or the first that is present."""
    fallback = state.head["fallback"]
    return int(np.argmax(state.present)) if fallback is None else int(fallback)


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
    left = [arm for arm in there if arm not in leaving]
    if len(left) < 2 and len(left) < len(there):
        raise InvalidValueError(f"two arms must stay, and {left} would be all that is left")


def _change(
    connection: Connection, state: ExperimentState, arm: str, kind: str, moment: int, who: str
) -> None:
    """Let an arm come or go."""
    state.change(arm, kind, moment)
    words = f"{arm} {'joined' if kind == 'joined' else 'was retired'}{who}"
    note(connection, state.settings.id, kind, arm, words, moment)
    row = {
        "experiment": state.settings.id,
        "place": len(state.changes) - 1,
        "arm": state.arms.index(arm),
        "kind": kind,
        "tick": state.head["asked"],
        "at": moment,
    }
    connection.execute(insert(schema.changes), row)
