"""A history from a table that anybody has written: one reader for files, frames and columns."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duelay._core import checks
from duelay._core.duration import Duration
from duelay.logs import csv_log, parquet, votes
from duelay.logs.cells import as_list, as_numbers, as_texts, nothings
from duelay.logs.moments import Reader
from duelay.logs.table import Chunk, Table, begins, is_path, of_columns, part
from duelay.logs.units import Numbers

ROLES = ("shown_at", "first", "second", "answered_at", "winner", "unit", "delay")
_NEAR = 0.8  # how like a role's name the name of a column is that was meant to be it


def read(
    source: Any,
    *,
    columns: Mapping[str, str | None] | None,
    moments: Reader,
    window: int | Duration | None,
    arms: tuple[str, ...],
    now: Any,
    skip_bad: bool,
) -> dict[str, Any]:
    """Return the fields of a history; refuse a bad row by its line and column, or skip it."""
    end = None if now is None else moments.one("now", now)
    if columns is None and is_path(source) and is_parquet(Path(source)):
        if parquet.is_own(Path(source)):
            return _own(Path(source), window=window, arms=arms, now=end)
    table = open_table(source)
    roles = find_roles(table, columns)
    log = _Log(table, roles, moments, arms, end)
    _check_window(window, by_clock=log.by_clock)
    if now is not None and not log.by_clock:
        raise ValueError(f"{table.name}: now needs times, and this log counts ticks")
    skipped: list[str] = []
    for chunk in table.chunks(list(roles.values())):
        bad = log.add(chunk)
        if bad and not skip_bad:
            raise ValueError(f"{table.name}, {bad[min(bad)]}")
        skipped += [bad[place] for place in sorted(bad)]
    if not log.n:
        why = f", {len(skipped)} bad rows left out: {skipped[0]}" if skipped else ""
        raise ValueError(f"{table.name}: there are no duels in it{why}")
    if len(log.places) < 2:
        alone = next(iter(log.places))
        raise ValueError(f"{table.name}: there must be two arms, got {alone!r} alone")
    fields = log.fields() | {"skipped": tuple(skipped)}
    return cut(fields, window=window, now=end)


def _own(path: Path, *, window: Any, arms: tuple[str, ...], now: float | None) -> dict[str, Any]:
    """Return the fields of a file that duelay has written, or of the part that is asked for."""
    fields = parquet.read(path)
    if arms and arms != fields["arms"]:
        raise ValueError(f"arms must be those of {path}, {', '.join(fields['arms'])}, or not given")
    if window is None and now is None:
        return fields
    own = checks.window(fields["window"])
    _check_window(window, by_clock=fields.get("at") is not None)
    if window is not None and own is not None and float(window) > float(own):
        raise ValueError(f"window must be at most {own}, that of {path}, got {window}")
    now = fields.get("now") if now is None else now
    return cut(fields, window=own if window is None else window, now=now)


def name_of(source: Any) -> str:
    """Return what a sentence calls a source."""
    return str(source) if is_path(source) else "the table"


def open_table(source: Any) -> Table:
    """Return a source as a table."""
    if not is_path(source):
        return of_columns(source)
    path = Path(source)
    return parquet.table(path) if is_parquet(path) else csv_log.table(path)


def is_parquet(path: Path) -> bool:
    """Whether a file is Parquet, by its ending or its first bytes."""
    return path.suffix.lower() in (".parquet", ".pq") or begins(path) == b"PAR1"


def cut(fields: dict[str, Any], *, window: Any, now: float | None) -> dict[str, Any]:
    """Return the fields with what came after the window, or after the end, as silence."""
    delay, at = fields["delay"], fields.get("at")
    if at is None:
        left: Any = np.arange(len(delay), 0, -1)
    else:
        left = math.inf if now is None else (round(now * 1e6) - np.rint(at * 1e6)) / 1e6
    is_late = delay > np.minimum(left, math.inf if window is None else float(window))
    cut_off = {name: np.where(is_late, np.nan, fields[name]) for name in ("delay", "first_won")}
    return fields | cut_off | {"window": window, "now": now}


def _check_window(window: Any, *, by_clock: bool) -> None:
    if window is not None and by_clock and not isinstance(window, Duration):
        raise ValueError(
            f"window must be a duration where a log has times, such as window='14d', got {window!r}"
        )
    if isinstance(window, Duration) and not by_clock:
        raise ValueError(
            f"window {window} is in time, and ticks are counted in this log, which has no times "
            "of its duels (shown_at): write ticks, such as window=1000"
        )


def find_roles(table: Table, told: Mapping[str, str | None] | None) -> dict[str, str]:
    """Return the column of each role; refuse a table that lacks one."""
    roles, told = {}, dict(told or {})
    for role, name in told.items():
        checks.one_of("a role in columns", role, ROLES)
        if name is not None and name not in table.columns:
            hint = checks.nearest(name, table.columns)
            raise ValueError(
                f"{table.name}: it has no column {name!r}{hint} for {role}; {_has(table)}"
            )
    for role in ROLES:
        if role in told:
            found = [name for name in table.columns if name == told[role]]
        else:
            found = [name for name in table.columns if name == role]
            found = found or [name for name in table.columns if name.lower() == role]
        if len(found) > 1:
            raise ValueError(f"{table.name}: there are two columns for {role}, {found[0]!r}")
        if found:
            roles[role] = found[0]
    if "delay" in roles and {"shown_at", "answered_at"} <= roles.keys() and "delay" not in told:
        del roles["delay"]  # an extra column: times say more
    _refuse_near_misses(table, roles, told)
    by_clock = "delay" not in roles and not roles.keys().isdisjoint({"shown_at", "answered_at"})
    answer = "winner" if "winner" in roles else "answered_at" if by_clock else "delay"
    for role in (*(["shown_at"] if by_clock else []), "first", "second", answer):
        if role not in roles:
            raise ValueError(_missing(table, role, roles))
    unused = {"shown_at", "answered_at"} if not by_clock else set()
    return {role: name for role, name in roles.items() if role not in unused}


def _has(table: Table) -> str:
    return f"it has: {', '.join(table.columns) or 'none'}"


def _missing(table: Table, role: str, roles: dict[str, str]) -> str:
    """Say that a column is missing, and how another may be named."""
    free = [name for name in table.columns if name not in roles.values()]
    near = difflib.get_close_matches(role, free, n=1, cutoff=0.0)
    such = {role: near[0]} if near else {role: "..."}
    return (
        f"{table.name}: the column {role!r} is missing; {_has(table)}. If another has it, name it, "
        f"such as columns={such!r}"
    )


def _refuse_near_misses(table: Table, roles: dict[str, str], told: Mapping[str, Any]) -> None:
    """Refuse a column whose name is nearly that of a role that may be left out.

    Left out by mistake, votes would be taken for conversions, or every visitor for another one.
    """
    for role in ("winner", "unit", "answered_at"):
        if role in roles or role in told or (role == "answered_at" and "delay" in roles):
            continue
        for name in table.columns:
            if name not in roles.values() and difflib.get_close_matches(
                name.lower(), [role], cutoff=_NEAR
            ):
                raise ValueError(
                    f"{table.name}: unknown column {name!r} (did you mean {role}?): write "
                    f"columns={ {role: name}!r}, or columns={ {role: None}!r} if it is another"
                )


class _Log:
    """The duels of a table, chunk by chunk."""

    def __init__(
        self,
        table: Table,
        roles: dict[str, str],
        moments: Reader,
        arms: tuple[str, ...],
        now: float | None,
    ) -> None:
        self.table, self.roles, self.moments = table, roles, moments
        self.by_clock = "shown_at" in roles
        self.end = math.inf if now is None else round(now * 1e6)
        self.places = {name: place for place, name in enumerate(arms)}
        self.is_told = bool(arms)
        self.units = Numbers()
        self.n = 0
        self._parts: dict[str, list[NDArray[Any]]] = {
            name: [] for name in ("at", "delay", "first_won", "first", "second")
        }

    def add(self, chunk: Chunk) -> dict[int, str]:
        """Take the good rows of a chunk; return a sentence for each bad one, by its place."""
        n = len(chunk.lines)
        bad = {k: f"{self.table.word} {chunk.lines[k]}: {why}" for k, why in chunk.faults.items()}
        cells = {role: chunk.columns[name] for role, name in self.roles.items()}

        def note(wrong: Mapping[int, str], role: str) -> None:
            """Keep the first fault of each row."""
            column = self.roles[role]
            name = role if column == role else f"{column} ({role})"
            for k in [k for k in wrong if k not in bad]:
                (said,) = as_list(part(cells[role], k, k + 1))
                shown = "" if said is None else str(said)
                bad[k] = (
                    f"{self.table.word} {chunk.lines[k]}: {name} must {wrong[k]}, got {shown!r}"
                )

        rows: dict[str, Any] = {}
        sides = [as_texts(cells[side]) for side in ("first", "second")]
        shown = np.zeros(n, dtype=np.int64)
        if self.by_clock:
            shown = self._shown(cells, note)
            rows["at"] = shown / 1e6
        for side, names in zip(("first", "second"), sides, strict=True):
            note(self._unknown_arms(names), side)
        delay = self._delays(cells, shown, n, note)
        rows["delay"], rows["first_won"] = self._winners(cells, sides, delay, note)
        units = as_texts(cells["unit"]) if "unit" in cells else []
        if nobody := nothings(set(units)):
            note({k: "not be empty" for k, unit in enumerate(units) if unit in nobody}, "unit")

        good = np.ones(n, dtype=np.bool_)
        good[list(bad)] = False
        if bad:
            kept = np.flatnonzero(good).tolist()
            sides = [[names[k] for k in kept] for names in sides]
            units = [units[k] for k in kept] if units else []
        self._meet(*sides)
        for side, names in zip(("first", "second"), sides, strict=True):
            self._parts[side].append(
                np.array([self.places[name] for name in names], dtype=np.int32)
            )
        for name, values in rows.items():
            self._parts[name].append(values[good])
        self.units.add(units)
        self.n += int(good.sum())
        return bad

    def _shown(self, cells: dict[str, Any], note: Any) -> NDArray[np.int64]:
        found = self.moments.column(cells["shown_at"])
        wrong = _be(found.wrong)
        wrong |= dict.fromkeys(np.flatnonzero(~found.known).tolist(), f"be {self.moments.needs}")
        late = np.flatnonzero(found.early > self.end).tolist()
        wrong |= dict.fromkeys([k for k in late if k not in wrong], "not be after now")
        note(wrong, "shown_at")
        return found.early

    def _unknown_arms(self, names: Sequence[str]) -> dict[int, str]:
        wrong = {}
        for name in set(names):
            if not name.strip():
                wrong[name] = "be the name of an arm"
            elif self.is_told and name not in self.places:
                hint = checks.nearest(name, self.places)
                wrong[name] = f"be one of the arms given{hint}"
        return {k: wrong[name] for k, name in enumerate(names) if name in wrong} if wrong else {}

    def _delays(
        self, cells: dict[str, Any], shown: NDArray[np.int64], n: int, note: Any
    ) -> NDArray[np.float64]:
        """Return the delays, nan for silence; where only a winner is told, it came at once."""
        if "answered_at" in cells:
            found = self.moments.column(cells["answered_at"])
            heard = np.where(found.early < shown, found.late, found.early)
            early = np.flatnonzero(found.known & (heard < shown)).tolist()
            wrong = dict.fromkeys(early, "not be before shown_at") | _be(found.wrong)
            note(wrong, "answered_at")
            return np.where(found.known, (heard - shown) / 1e6, np.nan)
        if "delay" in cells:
            delay, strange = as_numbers(cells["delay"])
            low = np.flatnonzero(delay < 1).tolist()
            wrong = dict.fromkeys(low, "be from 1 to the duel's age, or empty")
            note(wrong | dict.fromkeys(strange, "be a number of ticks or empty"), "delay")
            return delay
        return np.full(n, 0.0 if self.by_clock else 1.0)

    def _winners(
        self, cells: dict[str, Any], sides: list[list[str]], delay: NDArray[np.float64], note: Any
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return delays and who won, nan for silence in both."""
        is_silent = np.isnan(delay)
        if "winner" not in cells:
            return delay, np.where(is_silent, np.nan, 1.0)
        columns = (self.roles["first"], self.roles["second"])
        won, wrong = votes.read(as_texts(cells["winner"]), sides, columns)
        nobody = np.isnan(won)
        answer = next((role for role in ("answered_at", "delay") if role in cells), None)
        if answer is None:
            delay = np.where(nobody, np.nan, delay)
        else:
            both = np.flatnonzero(is_silent & ~nobody).tolist()
            neither = np.flatnonzero(~is_silent & nobody).tolist()
            wrong = dict.fromkeys(neither, votes.NEEDS) | wrong
        wrong = _be(wrong)
        if answer is not None:
            wrong |= dict.fromkeys(both, f"be empty where {self.roles[answer]} is")
        note(wrong, "winner")
        return delay, won

    def _meet(self, first: list[str], second: list[str]) -> None:
        """Give arms that are new their places, in the order of the table."""
        if {*first, *second} <= self.places.keys():
            return
        for one, other in zip(first, second, strict=True):
            self.places.setdefault(one, len(self.places))
            self.places.setdefault(other, len(self.places))

    def fields(self) -> dict[str, Any]:
        """Return the fields of the history, in the order of time."""
        found: dict[str, Any] = {"at": None, "unit": None}
        for name, parts in self._parts.items():
            if parts:
                found[name] = np.concatenate(parts)
                parts.clear()
        if "unit" in self.roles:
            found["unit"] = self.units.all()
        at = found["at"]
        if at is not None and (np.diff(at) < 0).any():
            order = np.argsort(at, kind="stable")
            found |= {name: rows[order] for name, rows in found.items() if rows is not None}
        return found | {
            "n_arms": len(self.places),
            "arms": tuple(self.places),
            "feedback": "votes" if "winner" in self.roles else "conversions",
        }


def _be(wrong: Mapping[int, str]) -> dict[int, str]:
    return {place: f"be {needs}" for place, needs in wrong.items()}
