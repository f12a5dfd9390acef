"""Read columns of times as whole microseconds since the epoch.

Times are texts of ISO 8601 or of a given format, numbers since the epoch, datetimes, or arrays of
them. Those without a time zone are local times of a given zone.
"""

from __future__ import annotations

import datetime
import itertools
import math
import numbers
import re
import zoneinfo
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from duelay._core import checks, timestamps
from duelay.errors import InvalidValueError
from duelay.logs.cell_conversion import are_known, as_array, as_list, has_zone

DAY = 86_400_000_000  # microseconds
LEAST = 1e8  # a smaller number is no time since the epoch: 1e8 seconds are March 1973
_EPOCH = datetime.datetime(1970, 1, 1)
_TICK = datetime.timedelta(microseconds=1)
_UTC = ("UTC", "GMT")
_NAMES_UTC = re.compile(r"(?<![A-Za-z])(UTC|GMT)(?![A-Za-z])", re.IGNORECASE)
_BLANK_BEFORE_OFFSET = re.compile(r"\s+(?=[+-]\d\d:?\d\d$)")
_LATEST = round(timestamps.FURTHEST * 1e6)  # microseconds


class Moments(NamedTuple):
    """A column of times."""

    early: NDArray[np.int64]  # microseconds
    late: NDArray[np.int64]  # the same; in an hour that the clock shows twice, the second time
    known: NDArray[np.bool_]  # False for an empty cell
    wrong: dict[int, str]  # by the place of a bad cell: what it must be


class Read(NamedTuple):
    """The times of cells before their zone is considered."""

    at: NDArray[np.int64]  # microseconds: of the epoch, or of a local clock
    is_local: NDArray[np.bool_]
    wrong: dict[int, str]


class TimeReader:
    """Reads columns of times, given a format or none, and a zone or none."""

    def __init__(self, time_format: str | None, zone: str | datetime.tzinfo | None) -> None:
        self.format = time_format
        self.zone = _zone(zone)
        self.needs = timestamps.SUCH_AS
        if self.zone is not None:
            self.needs = "a time of ISO 8601, or in the time format that is passed"
        if time_format is not None:
            if not isinstance(time_format, str) or "%" not in time_format:
                raise InvalidValueError(
                    f"time_format must be as of strptime, such as '%d.%m.%Y %H:%M', got "
                    f"{time_format!r}",
                    argument="time_format",
                )
            self.needs = f"a time as {time_format!r} has it"
            if "%Z" in time_format:
                self.needs += ", where %Z is UTC or GMT: other names of zones mean several"

    def column(self, column: Any) -> Moments:
        """Return the times of a column."""
        found = as_array(column)
        if found is not None:
            known = ~np.isnat(found) if found.dtype.kind == "M" else ~np.isnan(found)
            read = self._array(found[known], is_local=not has_zone(column))
        else:
            cells = as_list(column)
            known = are_known(cells)
            read = self._cells(list(itertools.compress(cells, known.tolist())))
        return self._placed(read, known)

    def one(self, name: str, cell: Any) -> float:
        """Return the seconds of a single time; a number is in seconds."""
        if isinstance(cell, numbers.Real):
            return timestamps.seconds(name, cell)
        read = self._one_by_one([cell])
        if read.wrong and self.format is not None:
            read = TimeReader(None, self.zone)._one_by_one([cell])
        found = self._placed(read, np.ones(1, dtype=np.bool_))
        if found.wrong:
            raise InvalidValueError(f"{name} must be {found.wrong[0]}, got {cell!r}", argument=name)
        return int(found.early[0]) / 1e6

    def _array(self, found: NDArray[Any], *, is_local: bool) -> Read:
        if found.dtype.kind == "M":
            at = found.astype("datetime64[us]").astype(np.int64)
            return Read(at, np.full(len(at), is_local), {})
        at, good = _since_epoch(found.astype(np.float64))
        wrong = {int(k): self._is_no_epoch() for k in np.flatnonzero(~good)}
        return Read(at, np.zeros(len(at), dtype=np.bool_), wrong)

    def _cells(self, cells: list[Any]) -> Read:
        """Read all at once, and one by one where that fails."""
        try:
            stamps = self._at_once(cells)
            if isinstance(stamps, np.ndarray):
                return Read(stamps, np.zeros(len(stamps), dtype=np.bool_), {})
            is_local = {stamp.tzinfo is None for stamp in stamps}
            if is_local == {True}:
                at = np.array(stamps, dtype="datetime64[us]").astype(np.int64)
                return Read(at, np.ones(len(at), dtype=np.bool_), {})
            if is_local <= {False}:
                seconds = np.array(list(map(datetime.datetime.timestamp, stamps)), dtype=np.float64)
                return Read(
                    timestamps.microseconds(seconds), np.zeros(len(seconds), dtype=np.bool_), {}
                )
        except (TypeError, ValueError, OverflowError):
            pass
        return self._one_by_one(cells)

    def _at_once(self, cells: list[Any]) -> Sequence[datetime.datetime] | NDArray[np.int64]:
        """Return datetimes, or microseconds of numbers; raise where some are neither."""
        if all(isinstance(cell, datetime.datetime) for cell in cells):
            return cells
        if self.format is not None:
            by_text = {text: self._by_format(text) for text in set(cells)}
            return [by_text[text] for text in cells]
        if is_number(cells[0]):
            at, good = _since_epoch(np.array(cells, dtype=np.float64))
            if good.all():
                return at
        elif all("-" in text for text in cells):  # without, a number could pass for a date
            try:
                return list(map(datetime.datetime.fromisoformat, cells))  # the quickest
            except ValueError:
                return list(map(_from_iso, cells))
        raise InvalidValueError("not all of one kind")

    def _one_by_one(self, cells: list[Any]) -> Read:
        at, is_local, wrong = [], [], {}
        for place, cell in enumerate(cells):
            try:
                moment, local = self._one(cell)
            except (TypeError, ValueError, OverflowError):
                said = str(cell).strip()
                wrong[place] = self._is_no_epoch() if is_number(said) else self.needs
                moment, local = 0, False
            at.append(moment)
            is_local.append(local)
        return Read(np.array(at, dtype=np.int64), np.array(is_local, dtype=np.bool_), wrong)

    def _one(self, cell: Any) -> tuple[int, bool]:
        """Return the microseconds of a cell, and whether they are of a local clock."""
        if isinstance(cell, np.datetime64):
            return int(cell.astype("datetime64[us]").astype(np.int64)), True
        if isinstance(cell, str):
            cell = cell.strip()
            if self.format is not None:
                cell = self._by_format(cell)
        if isinstance(cell, datetime.date) and not isinstance(cell, datetime.datetime):
            cell = datetime.datetime.combine(cell, datetime.time())
        if not isinstance(cell, datetime.datetime):
            if is_number(cell):
                at, good = _since_epoch(np.array([cell], dtype=np.float64))
                if good[0]:
                    return int(at[0]), False
            cell = _from_iso(cell)
        if cell.tzinfo is None:
            return (cell - _EPOCH) // _TICK, True
        return (cell - _EPOCH.replace(tzinfo=datetime.UTC)) // _TICK, False

    def _by_format(self, text: str) -> datetime.datetime:
        """Read a text; UTC and GMT are known as zones, in it for %Z and in the format itself."""
        text, pattern = text.strip(), str(self.format)
        found = datetime.datetime.strptime(text, pattern)
        if found.tzinfo is None and "%Z" in pattern:
            if not _NAMES_UTC.search(text):  # strptime would also take the zone of this machine
                raise InvalidValueError("%Z must be UTC or GMT")
            return found.replace(tzinfo=datetime.UTC)
        if found.tzinfo is None and pattern.rstrip().upper().endswith(_UTC):
            return found.replace(tzinfo=datetime.UTC)
        return found

    def _is_no_epoch(self) -> str:
        return self.needs if self.format else f"{self.needs}, or a number since the epoch"

    def _placed(self, read: Read, known: NDArray[np.bool_]) -> Moments:
        """Give local times their zone, and every time its place in the column."""
        early, late, wrong = read.at.copy(), read.at.copy(), dict(read.wrong)
        for k in np.flatnonzero(np.abs(read.at) > _LATEST).tolist():
            wrong[k] = "a time before the year 5138"
        local = read.is_local.copy()
        local[list(wrong)] = False
        if local.any() and self.zone is None:
            hint = f"{timestamps.SUCH_AS}; or pass the zone of all of them, such as Europe/Berlin"
            wrong |= dict.fromkeys(np.flatnonzero(local).tolist(), hint)
        elif local.any() and self.zone is not None:
            early[local], late[local] = both(read.at[local], self.zone)
            gap = np.flatnonzero(local & (early > late)).tolist()
            wrong |= dict.fromkeys(
                gap, f"a time that there is: clocks of {self.zone} skip this one"
            )
        places = np.flatnonzero(known)
        whole_early = np.zeros(len(known), dtype=np.int64)
        whole_late = whole_early.copy()
        whole_early[places], whole_late[places] = early, late
        return Moments(
            whole_early, whole_late, known, {int(places[k]): words for k, words in wrong.items()}
        )


def _from_iso(text: str) -> datetime.datetime:
    """Read a text of ISO 8601, which may also end in UTC or GMT, or have a blank before +0200."""
    try:
        return datetime.datetime.fromisoformat(text)
    except ValueError:
        if text[-3:].upper() not in _UTC:
            return datetime.datetime.fromisoformat(_BLANK_BEFORE_OFFSET.sub("", text))
        found = datetime.datetime.fromisoformat(text[:-3].rstrip())
        if found.tzinfo is not None:
            raise
        return found.replace(tzinfo=datetime.UTC)


def both(
    local: NDArray[np.int64], zone: datetime.tzinfo
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return when a local clock shows these times, for the first and for the second time.

    The two differ in an hour that the clock shows twice, or skips. In an hour that it skips, the
    first is the later.
    """
    days, place = np.unique(local // DAY, return_inverse=True)
    offsets = np.array([_offset_of_day(int(day), zone) for day in days], dtype=np.float64)[place]
    is_plain = ~np.isnan(offsets)
    first = local - np.where(is_plain, offsets, 0).astype(np.int64)
    second = first.copy()
    for k in np.flatnonzero(~is_plain).tolist():
        at = _EPOCH + int(local[k]) * _TICK
        first[k], second[k] = (local[k] - _offset(at.replace(fold=fold), zone) for fold in (0, 1))
    return first, second


def _offset_of_day(day: int, zone: datetime.tzinfo) -> float:
    """The offset of a zone in a day, in microseconds; nan where it changes in that day."""
    start = _EPOCH + datetime.timedelta(days=day)
    ends = (start, start + datetime.timedelta(days=1))
    found = {_offset(at.replace(fold=fold), zone) for at in ends for fold in (0, 1)}
    return found.pop() if len(found) == 1 else math.nan


def _offset(at: datetime.datetime, zone: datetime.tzinfo) -> int:
    return (zone.utcoffset(at) or datetime.timedelta()) // _TICK


def is_number(cell: Any) -> bool:
    """Whether a cell is a number, or a text that is one."""
    return not isinstance(cell, bool) and (
        isinstance(cell, numbers.Number) or (isinstance(cell, str) and checks.is_number(cell))
    )


def _since_epoch(found: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return numbers since the epoch as microseconds, and which are such numbers.

    The size of a number shows its unit: seconds, milliseconds, microseconds or nanoseconds.
    """
    good = (found >= LEAST) & (found <= timestamps.FURTHEST * 1e9)
    kept = np.where(good, found, LEAST)
    at = np.select(
        [kept < 1e11, kept < 1e14, kept < 1e17], [1e6 * kept, 1e3 * kept, kept], kept / 1e3
    )
    return np.rint(at).astype(np.int64), good


def _zone(zone: str | datetime.tzinfo | None) -> datetime.tzinfo | None:
    """Return a time zone by its name."""
    if zone is None or isinstance(zone, datetime.tzinfo):
        return zone
    try:
        return zoneinfo.ZoneInfo(zone)
    except (KeyError, ValueError, TypeError, OSError):
        known = zoneinfo.available_timezones()
        hint = "" if known else " (no time zones are installed: pip install tzdata)"
        for name in known:
            if str(zone).lower() in (name.lower(), name.lower().rpartition("/")[2]):
                hint = f" (did you mean {name}?)"
        raise InvalidValueError(
            f"zone must be the name of a time zone, such as Europe/Berlin{hint}, got {zone!r}",
            argument="zone",
        ) from None
