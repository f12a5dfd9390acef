"""Read a history from a table: a file, a frame or columns of any program."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import compress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from duelay._core import checks
from duelay._core.duration import Duration
from duelay._core.feedback import OUTCOMES
from duelay.errors import InvalidValueError
from duelay.logs import csv_format, parquet_format
from duelay.logs.cell_conversion import (
    as_numbers,
    as_text,
    as_texts,
    is_nothing,
    nothings,
    with_decimal_points,
)
from duelay.logs.column_roles import NEEDS_NO_TIMES, find_roles
from duelay.logs.table import Chunk, Table, begins, is_path, of_columns, part
from duelay.logs.time_columns import TimeReader
from duelay.logs.unit_numbers import UnitNumbers

_NUMERIC_ROLES = {"shown_at", "answered_at", "delay"}
_MAX_CELL = 80  # characters of a cell in an error
_TIE_WORDS = ("tie", "draw")
_NEEDS = "first, second, tie or the name of an arm of the duel"
_NEEDS_ONE = "one that says which arm: this one may mean either, write first or second"


def read(
    source: Any,
    *,
    columns: Mapping[str, str | None] | None,
    encoding: str | None,
    times: TimeReader,
    window: int | Duration | None,
    arms: tuple[str, ...],
    now: Any,
    skip_bad: bool,
) -> dict[str, Any]:
    """Return the fields of a history; refuse a bad row by its line and column, or skip it."""
    end = None if now is None else times.one("now", now)
    if columns is None and is_path(source) and is_parquet(Path(source)):
        if parquet_format.is_own(Path(source)):
            return _read_own_parquet(Path(source), window=window, arms=arms, now=end)
    table = open_table(source, encoding)
    roles = find_roles(table, columns)
    own = _read_about(table, by_clock="shown_at" in roles)
    duels = _DuelCollector(table, roles, times, arms, own.pop("arms", ()), end)
    _check_window(window, by_clock=duels.by_clock)
    if now is not None and not duels.by_clock:
        raise InvalidValueError(f"{table.name}: now needs times, and this log counts ticks")
    skipped: list[str] = []
    for chunk in table.chunks(list(roles.values())):
        bad = duels.add(chunk)
        if bad and not skip_bad:
            hint = f"; {NEEDS_NO_TIMES}" if duels.has_bad_times and "winner" in roles else ""
            raise InvalidValueError(f"{table.name}, {bad[min(bad)]}{hint}")
        skipped += [bad[place] for place in sorted(bad)]
    if not duels.n:
        why = f", {len(skipped)} bad rows left out: {skipped[0]}" if skipped else ""
        raise InvalidValueError(f"{table.name}: there are no duels in it{why}")
    if len(duels.places) < 2:
        alone = next(iter(duels.places))
        raise InvalidValueError(f"{table.name}: there must be two arms, got {alone!r} alone")
    if skipped:  # the ticks of changes count rows that are left out
        own = {name: own[name] for name in own if name not in ("changes", "declared")}
    for change in own.get("changes", ()):
        duels.places.setdefault(change.arm, len(duels.places))
    window = own.pop("window", None) if window is None else window
    end = own.pop("now", None) if end is None else end
    fields = own | duels.fields() | {"skipped": tuple(skipped)}
    return silence_late_answers(fields, window=window, now=end)


def _read_about(table: Table, *, by_clock: bool) -> dict[str, Any]:
    """Return what a CSV that duelay has written says beside its duels; rows are in their order."""
    if csv_format.ABOUT not in table.columns:
        return {}
    chunk = next(iter(table.chunks([csv_format.ABOUT])), None)
    first = [] if chunk is None else chunk.columns[csv_format.ABOUT][:1]
    if len(first) == 0:
        return {}
    told = csv_format.read_about(f"{table.name}: {csv_format.ABOUT}", as_text(first))
    if isinstance(told.get("window"), Duration) != by_clock:
        told.pop("window", None)  # the caller reads other columns than were written
    if not by_clock:
        told.pop("now", None)
    return told


def _read_own_parquet(
    path: Path, *, window: Any, arms: tuple[str, ...], now: float | None
) -> dict[str, Any]:
    """Return the fields of a file that duelay has written, or of the part that is asked for."""
    fields = parquet_format.read(path)
    if arms and arms != fields["arms"]:
        raise InvalidValueError(
            f"arms must be those of {path}, {', '.join(fields['arms'])}, or not given",
            argument="arms",
        )
    if window is None and now is None:
        return fields
    own = checks.window(fields["window"])
    _check_window(window, by_clock=fields.get("at") is not None)
    if window is not None and own is not None and float(window) > float(own):
        raise InvalidValueError(
            f"window must be at most {own}, that of {path}, got {window}", argument="window"
        )
    now = fields.get("now") if now is None else now
    return silence_late_answers(fields, window=own if window is None else window, now=now)


def name_of(source: Any) -> str:
    """Return what a sentence calls a source."""
    return str(source) if is_path(source) else "the table"


def open_table(source: Any, encoding: str | None = None) -> Table:
    """Return a source as a table; `encoding` is that of a CSV, if not UTF-8."""
    if not is_path(source):
        return of_columns(source)
    path = Path(source)
    return parquet_format.table(path) if is_parquet(path) else csv_format.table(path, encoding)


def is_parquet(path: Path) -> bool:
    """Whether a file is Parquet, by its ending or its first bytes."""
    return path.suffix.lower() in (".parquet", ".pq") or begins(path) == b"PAR1"


def silence_late_answers(
    fields: dict[str, Any], *, window: Any, now: float | None
) -> dict[str, Any]:
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
        raise InvalidValueError(
            f"window must be a duration where a log has times, such as '14d', got {window!r}",
            argument="window",
        )
    if isinstance(window, Duration) and not by_clock:
        raise InvalidValueError(
            f"window {window} is in time, and ticks are counted in this log, which has no times "
            "of its duels (shown_at): write ticks, such as 1000",
            argument="window",
        )


class _DuelCollector:
    """The duels of a table, chunk by chunk."""

    def __init__(
        self,
        table: Table,
        roles: dict[str, str],
        times: TimeReader,
        arms: tuple[str, ...],
        own_arms: tuple[str, ...],
        now: float | None,
    ) -> None:
        self.table, self.roles, self.times = table, roles, times
        self.by_clock = "shown_at" in roles
        self.end = math.inf if now is None else round(now * 1e6)
        self.places = {name: place for place, name in enumerate(arms or own_arms)}
        self.is_told = bool(arms)
        self.units = UnitNumbers()
        self.has_bad_times = False
        self.n = 0
        self._parts: dict[str, list[NDArray[Any]]] = {
            name: [] for name in ("at", "delay", "first_won", "first", "second")
        }

    def add(self, chunk: Chunk) -> dict[int, str]:
        """Take the good rows of a chunk; return a sentence for each bad one, by its place."""
        rows = _ChunkRows(chunk, self.table, self.roles)
        sides = {side: as_texts(rows.cells[side]) for side in ("first", "second")}
        values: dict[str, Any] = {}
        if self.by_clock:
            shown = self._read_shown_times(rows)
            values["at"] = shown / 1e6
        for side, names in sides.items():
            rows.note_faults(side, self._unknown_arms(names))
        delay = self._read_delays(rows, shown) if self.by_clock else _read_delays_in_ticks(rows)
        values["delay"], values["first_won"] = _read_outcomes(rows, sides, delay)
        units = as_texts(rows.cells["unit"]) if "unit" in self.roles else []
        if nobody := nothings(set(units)):
            empty = {k: "not be empty" for k, unit in enumerate(units) if unit in nobody}
            rows.note_faults("unit", empty)

        good = np.ones(rows.n, dtype=np.bool_)
        good[list(rows.bad)] = False
        if rows.bad:
            sides = {side: list(compress(names, good)) for side, names in sides.items()}
            units = list(compress(units, good))
        self._number_new_arms(**sides)
        for side, names in sides.items():
            values[side] = np.array([self.places[name] for name in names], dtype=np.int32)
        for name, column in values.items():
            self._parts[name].append(column if name in sides else column[good])
        self.units.add(units)
        self.n += int(good.sum())
        return rows.bad

    def _read_shown_times(self, rows: _ChunkRows) -> NDArray[np.int64]:
        """Return when the duels were shown."""
        found = self.times.column(rows.cells["shown_at"])
        self.has_bad_times |= bool(found.wrong) or not found.known.all()
        late = np.flatnonzero(found.early > self.end).tolist()
        empty = np.flatnonzero(~found.known).tolist()
        wrong = dict.fromkeys(late, "not be after now") | _must_be(found.wrong)
        rows.note_faults("shown_at", wrong | dict.fromkeys(empty, f"be {self.times.needs}"))
        return found.early

    def _read_delays(self, rows: _ChunkRows, shown: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the delays by the clock, nan for silence; without a column, answers are at once.

        An hour that the clock shows twice is read as the first, or as the second where the answer
        would else precede its duel.
        """
        if "answered_at" not in rows.cells:
            return np.zeros(rows.n)
        found = self.times.column(rows.cells["answered_at"])
        self.has_bad_times |= bool(found.wrong)
        heard = np.where(found.early < shown, found.late, found.early)
        early = np.flatnonzero(found.known & (heard < shown)).tolist()
        rows.note_faults(
            "answered_at", dict.fromkeys(early, "not be before shown_at") | _must_be(found.wrong)
        )
        return np.where(found.known, (heard - shown) / 1e6, np.nan)

    def _unknown_arms(self, names: Sequence[str]) -> dict[int, str]:
        wrong = {}
        for name in set(names):
            if not name.strip():
                wrong[name] = "be the name of an arm"
            elif self.is_told and name not in self.places:
                hint = checks.nearest(name, self.places)
                wrong[name] = f"be one of the arms given{hint}"
        return {k: wrong[name] for k, name in enumerate(names) if name in wrong} if wrong else {}

    def _number_new_arms(self, first: list[str], second: list[str]) -> None:
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


class _ChunkRows:
    """The cells of some rows by their roles, and a sentence for each bad row."""

    def __init__(self, chunk: Chunk, table: Table, roles: dict[str, str]) -> None:
        self.n, self._lines, self.roles = len(chunk.lines), chunk.lines, roles
        self._word = table.word
        self.cells = {role: chunk.columns[name] for role, name in roles.items()}
        if table.has_decimal_commas:
            for role in _NUMERIC_ROLES & roles.keys():
                self.cells[role] = with_decimal_points(self.cells[role])
        self.bad = {k: f"{self._where(k)}: {why}" for k, why in chunk.faults.items()}

    def note_faults(self, role: str, wrong: Mapping[int, str]) -> None:
        """Note what bad cells must be; the first fault of a row is kept."""
        column = self.roles[role]
        name = role if column == role else f"{column} ({role})"
        for k in [k for k in wrong if k not in self.bad]:
            said = as_text(part(self.cells[role], k, k + 1))
            self.bad[k] = f"{self._where(k)}: {name} must {wrong[k]}, got {_quote(said)}"

    def _where(self, place: int) -> str:
        return f"{self._word} {self._lines[place]}"


def _read_delays_in_ticks(rows: _ChunkRows) -> NDArray[np.float64]:
    """Return the delays in ticks, nan for silence; without a column, answers are at once."""
    if "delay" not in rows.cells:
        return np.ones(rows.n)
    delay, strange = as_numbers(rows.cells["delay"])
    low = np.flatnonzero(delay < 1).tolist()
    wrong = dict.fromkeys(low, "be from 1 to the duel's age, or empty")
    rows.note_faults("delay", wrong | dict.fromkeys(strange, "be a number of ticks or empty"))
    return delay


def _read_outcomes(
    rows: _ChunkRows, sides: dict[str, list[str]], delay: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return delays and who won, nan for silence in both."""
    is_silent = np.isnan(delay)
    if "winner" not in rows.cells:
        return delay, np.where(is_silent, np.nan, 1.0)
    columns = (rows.roles["first"], rows.roles["second"])
    won, wrong = read_winners(as_texts(rows.cells["winner"]), list(sides.values()), columns)
    nobody = np.isnan(won)
    answer = next((role for role in ("answered_at", "delay") if role in rows.cells), None)
    if answer is None:  # an empty winner is no answer
        rows.note_faults("winner", _must_be(wrong))
        return np.where(nobody, np.nan, delay), won
    wrong = dict.fromkeys(np.flatnonzero(~is_silent & nobody).tolist(), _NEEDS) | wrong
    too_much = np.flatnonzero(is_silent & ~nobody).tolist()
    words = f"be empty where {rows.roles[answer]} is"
    rows.note_faults("winner", _must_be(wrong) | dict.fromkeys(too_much, words))
    return delay, won


class Winners(NamedTuple):
    """A column of winners."""

    first_won: NDArray[np.float64]  # 1, 0 or 1/2; nan for an empty cell
    wrong: dict[int, str]  # by the place of a bad cell: what it must be


def read_winners(said: list[str], sides: Sequence[list[str]], columns: tuple[str, str]) -> Winners:
    """Return who won; `sides` are the arms, `columns` the names of the columns that have them.

    A cell is "first", "second" or "tie" in any case, a word that begins with "tie" or "draw", the
    name of an arm of its duel, or that of the column that has the arm, such as "model_a".
    """
    stripped = {cell: cell.strip() for cell in {*said, *sides[0], *sides[1]}}
    number = {name: k for k, name in enumerate(set(stripped.values()))}
    code = {cell: number[name] for cell, name in stripped.items()}
    winner, first, second = (
        np.array([code[cell] for cell in cells], dtype=np.int64) for cells in (said, *sides)
    )
    words = np.array([_outcome_of(name, columns) for name in number], dtype=np.float64).reshape(
        -1, 3
    )
    by_word, is_exact, is_empty = words[winner].T
    is_first, is_second = winner == first, winner == second
    is_named = (is_first | is_second) & (winner != number.get("", -1))
    won = np.where(is_named, is_first, by_word)
    is_either = is_named & np.where(is_exact, by_word != won, is_first & is_second)
    is_unknown = np.isnan(won) & (is_empty == 0)
    wrong = dict.fromkeys(np.flatnonzero(is_unknown).tolist(), _NEEDS)
    return Winners(won, wrong | dict.fromkeys(np.flatnonzero(is_either).tolist(), _NEEDS_ONE))


def _outcome_of(name: str, columns: tuple[str, str]) -> tuple[float, bool, bool]:
    """Return who won by the word alone, whether that is certain, and whether the cell is empty.

    Who won is nan where the word does not say. A word that merely begins like "tie" is not
    certain: it may be the name of an arm.
    """
    word = name.lower()
    if word in OUTCOMES:
        return OUTCOMES[word], True, False
    if name in columns:
        return 1.0 - columns.index(name), True, False
    if word.startswith(_TIE_WORDS):
        return 0.5, word in _TIE_WORDS, False
    return math.nan, False, is_nothing(name)


def _quote(said: str) -> str:
    """A cell as a sentence shows it; one that has swallowed lines says so."""
    short = repr(said if len(said) <= _MAX_CELL else f"{said[:_MAX_CELL]}...")
    breaks = said.count("\n")
    return short if not breaks else f"{short}, {breaks + 1} lines: is a quote left open?"


def _must_be(wrong: Mapping[int, str]) -> dict[int, str]:
    return {place: f"be {needs}" for place, needs in wrong.items()}
