"""Number the units of a log: the visitors, prompts or judges that may answer more than once."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray


def number_units(units: Sequence[str | None]) -> NDArray[np.int64] | None:
    """Return a number for the unit of each duel, in the order of their first duels.

    A duel without a unit gets a number of its own. Return None if no duel has a unit.
    """
    if all(unit is None for unit in units):
        return None
    known: dict[Hashable, int] = {}
    return _number((k if unit is None else unit for k, unit in enumerate(units)), known)


class UnitNumbers:
    """Number units as they come; units that are all whole numbers keep their numbers."""

    def __init__(self) -> None:
        self._parts: list[NDArray[np.int64]] = []
        self._known: dict[Hashable, int] | None = None  # None while all are whole numbers

    def add(self, names: list[str]) -> None:
        """Number the units of some more duels."""
        if self._known is None:
            numbers = _as_whole(names)
            if numbers is not None:
                self._parts.append(numbers)
                return
            known = self._known = {}
            self._parts = [_number(map(str, part.tolist()), known) for part in self._parts]
        self._parts.append(_number(names, self._known))

    def all(self) -> NDArray[np.int64]:
        """Return the numbers of all duels."""
        return np.concatenate([np.zeros(0, dtype=np.int64), *self._parts])


def _number(names: Iterable[Hashable], known: dict[Hashable, int]) -> NDArray[np.int64]:
    return np.array([known.setdefault(name, len(known)) for name in names], dtype=np.int64)


def _as_whole(names: list[str]) -> NDArray[np.int64] | None:
    """Return names that are whole numbers, written as Python does; None if one is not."""
    try:
        numbers = list(map(int, names))
        if list(map(str, numbers)) == names:
            return np.array(numbers, dtype=np.int64)
    except (ValueError, OverflowError):
        pass
    return None
