"""Units as numbers: the visitor, the prompt or the judge of each duel."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


class Numbers:
    """Gives every unit a number: itself if all are whole numbers, else in the order they came."""

    def __init__(self) -> None:
        self._parts: list[NDArray[np.int64]] = []
        self._by_name: dict[str, int] | None = None  # None while all are whole numbers

    def add(self, names: list[str]) -> None:
        """Take some more."""
        if self._by_name is None:
            numbers = _whole(names)
            if numbers is not None:
                self._parts.append(numbers)
                return
            self._by_name = {}
            self._parts = [self._numbered(list(map(str, part.tolist()))) for part in self._parts]
        self._parts.append(self._numbered(names))

    def _numbered(self, names: list[str]) -> NDArray[np.int64]:
        by_name: Any = self._by_name
        return np.array([by_name.setdefault(name, len(by_name)) for name in names], dtype=np.int64)

    def all(self) -> NDArray[np.int64]:
        """Return the numbers of all."""
        return np.concatenate([np.zeros(0, dtype=np.int64), *self._parts])


def _whole(names: list[str]) -> NDArray[np.int64] | None:
    """Return names that are whole numbers, written as Python does; None where one is not."""
    try:
        numbers = list(map(int, names))
        if list(map(str, numbers)) == names:
            return np.array(numbers, dtype=np.int64)
    except (ValueError, OverflowError):
        pass
    return None
