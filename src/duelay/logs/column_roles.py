"""Find the column of each role: shown_at, first, second, answered_at, winner, unit, delay."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from duelay._core import checks
from duelay.errors import InvalidValueError
from duelay.logs.table import Table

ROLES = ("shown_at", "first", "second", "answered_at", "winner", "unit", "delay")
NEEDS_NO_TIMES = (
    "a log with winners needs no times: say that no column is shown_at (None, or in a shell "
    "--column shown_at=)"
)
_MIN_SIMILARITY = 0.8  # of a name to an optional role that it probably stands for


def find_roles(table: Table, told: Mapping[str, str | None] | None) -> dict[str, str]:
    """Return the column of each role; refuse a table that lacks one."""
    roles, told = {}, dict(told or {})
    for role, name in told.items():
        if role not in ROLES:
            hint = checks.nearest(role, ROLES)
            raise InvalidValueError(
                f"columns must be of {', '.join(ROLES)}{hint}, got {role!r}", argument="columns"
            )
        if name is not None and name not in table.columns:
            hint = checks.nearest(name, table.columns)
            raise InvalidValueError(
                f"{table.name}: it has no column {name!r}{hint} for {role}; {_has(table)}"
            )
    for role in ROLES:
        if role in told:
            found = [name for name in table.columns if name == told[role]]
        else:
            found = [name for name in table.columns if name == role]
            found = found or [name for name in table.columns if name.lower() == role]
        if len(found) > 1:
            raise InvalidValueError(f"{table.name}: there are two columns for {role}, {found[0]!r}")
        if found:
            roles[role] = found[0]
    if "delay" in roles and {"shown_at", "answered_at"} <= roles.keys() and "delay" not in told:
        del roles["delay"]  # an extra column: times say more
    _refuse_near_misses(table, roles, told)
    if "winner" in roles and told.get("shown_at", "") is None and "answered_at" not in told:
        roles.pop("answered_at", None)  # without the other time it says nothing
    by_clock = "delay" not in roles and not roles.keys().isdisjoint({"shown_at", "answered_at"})
    is_timed = by_clock or roles.keys().isdisjoint({"delay", "winner"})
    answers = {"winner", "answered_at", "delay"} & roles.keys()
    needed = ["shown_at"] * is_timed + ["first", "second"] + ["answered_at"] * (not answers)
    missing = [role for role in needed if role not in roles]
    if missing:
        raise InvalidValueError(_missing(table, missing, roles), argument="columns")
    unused = {"shown_at", "answered_at"} if not by_clock else set()
    return {role: name for role, name in roles.items() if role not in unused}


def _has(table: Table) -> str:
    return f"it has: {', '.join(table.columns) or 'none'}"


def _missing(table: Table, missing: list[str], roles: dict[str, str]) -> str:
    """Say which columns are missing, and how others may be named."""
    free = [name for name in table.columns if name not in roles.values()]
    role = missing[0]
    near = (difflib.get_close_matches(role, free, n=1, cutoff=0.5) or [*free, "..."])[0]
    near = near if len(free) == 1 or difflib.get_close_matches(role, [near], cutoff=0.5) else "..."
    hint = f". If others have them, say so, such as columns={ {role: near}!r}" if free else ""
    are = "columns {} are" if len(missing) > 1 else "column {} is"
    ticks = ""
    if "shown_at" in missing and "answered_at" in missing:
        ticks = " (or delay, in ticks)"
        if {"first", "second"} <= roles.keys():
            hint += "; with a column winner, for votes, no times are needed"
    elif missing == ["shown_at"] and "winner" in roles:
        hint += f"; {NEEDS_NO_TIMES}"
    return (
        f"{table.name}: the {are.format(', '.join(map(repr, missing)))} missing{ticks}; "
        f"{_has(table)}{hint}"
    )


def _refuse_near_misses(table: Table, roles: dict[str, str], told: Mapping[str, Any]) -> None:
    """Refuse a column whose name is nearly the name of an optional role.

    Ignored by mistake, votes would be taken for conversions, or each duel for another visitor's.
    """
    for role in ("winner", "unit", "answered_at"):
        if role in roles or role in told or (role == "answered_at" and "delay" in roles):
            continue
        for name in table.columns:
            if name not in roles.values() and difflib.get_close_matches(
                name.lower(), [role], cutoff=_MIN_SIMILARITY
            ):
                raise InvalidValueError(
                    f"{table.name}: unknown column {name!r} (did you mean {role}?): write "
                    f"columns={ {role: name}!r}, or columns={ {role: None}!r} if it is another",
                    argument="columns",
                )
