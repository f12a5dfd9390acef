"""The duels that a player has asked, and their answers."""

from __future__ import annotations

import math
from array import array
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from duelay.errors import UnknownDuelError
from duelay.logs.history import History


class Duel(NamedTuple):
    """Two arms to show together, in the order `first`, `second`.

    Attributes
    ----------
    id : int
        The number of the duel, from 0.
    first, second : int
        The indices of the two arms.
    """

    id: int
    first: int
    second: int


class DuelRecords:
    """The arms of every duel, its answer, and when both came: in ticks, or by the clock.

    A duel of tick t has the number t - 1. An answer in ticks came at the ask after it.
    """

    def __init__(self, n_arms: int, *, by_clock: bool) -> None:
        self.n_arms, self.by_clock = n_arms, by_clock
        self._pairs = array("q")  # i K + j
        self._told = bytearray()  # 0 silent, 1 the second won, 2 a tie, 3 the first
        self._heard: Any = array("d" if by_clock else "q")  # its tick or time, 0 and nan if silent
        self._asked = array("d")  # by the clock

    @classmethod
    def of(cls, history: History) -> DuelRecords:
        """Return the duels of a history."""
        found, heard = cls(history.n_arms, by_clock=history.at is not None), history.is_heard
        found._told = bytearray(np.where(heard, 1 + 2 * history.first_won, 0).astype(np.uint8))
        if found.by_clock:
            found._heard = array("d", history.answered.tobytes())
            found._asked = array("d", history.asked.tobytes())
        else:
            ticks = np.where(heard, np.ceil(history.answered), 0)
            found._heard = array("q", ticks.astype(np.int64).tobytes())
        found._pairs = array("q", (history.first * found.n_arms + history.second).tobytes())
        return found

    def __len__(self) -> int:
        return len(self._pairs)

    def add(self, first: int, second: int, at: float | None) -> Duel:
        """Write down a duel, asked at a time if there is a clock."""
        number = len(self._pairs)
        self._pairs.append(first * self.n_arms + second)
        self._told.append(0)
        self._heard.append(0 if at is None else math.nan)
        if at is not None:
            self._asked.append(at)
        return Duel(number, first, second)

    def answer(self, number: int, first_won: float, at: float | None) -> None:
        """Write down the answer of a duel, at a time if there is a clock."""
        self._told[number] = int(1 + 2 * first_won)
        self._heard[number] = len(self) + 1 if at is None else at

    def renumber(self, n_arms: int) -> None:
        """Go on with another number of arms."""
        first, second = np.divmod(np.array(self._pairs, dtype=np.int64), self.n_arms)
        self._pairs, self.n_arms = array("q", (first * n_arms + second).tobytes()), n_arms

    def find(self, duel: Duel | int) -> int:
        """Return the number of a duel that was asked."""
        given = duel if isinstance(duel, tuple) else (duel,)
        number = given[0] if given else None
        if isinstance(number, bool) or not isinstance(number, int | np.integer):
            raise UnknownDuelError(f"no duel {duel!r}: give what ask() returned, or its id")
        if not 0 <= number < len(self):
            raise UnknownDuelError(f"no duel {number}: {len(self)} have been asked")
        asked = Duel(int(number), *self.arms_of(int(number)))
        if len(given) > 1 and tuple(given) != tuple(asked):
            raise UnknownDuelError(f"no duel {tuple(given)}: duel {number} is {asked}")
        return int(number)

    def arms_of(self, number: int) -> tuple[int, int]:
        """Return the two arms of a duel; the latest one has the number -1."""
        return divmod(self._pairs[number], self.n_arms)

    def asked_at(self, number: int) -> float:
        """Return the time at which a duel was asked."""
        return self._asked[number]

    def is_answered(self, number: int) -> bool:
        """Whether a duel has an answer."""
        return self._told[number] > 0

    def is_late(self, number: int, window: float | None, now: float | None) -> bool:
        """Whether the window of a duel has closed: now, or in ticks at the next ask."""
        if window is None:
            return False
        return (len(self) - number if now is None else now - self._asked[number]) > window

    def count_pending(self, window: float | None, now: float | None) -> NDArray[np.int64]:
        """(K, K): the silent duels whose window is still open at the next ask."""
        start = 0
        if window is not None and now is None:
            start = max(0, len(self) - int(window))
        elif window is not None and now is not None:
            start = int(np.searchsorted(np.array(self._asked), now - window))
        pairs = np.frombuffer(self._pairs, dtype=np.int64)[start:]
        silent = np.frombuffer(self._told, dtype=np.uint8)[start:] == 0
        k = self.n_arms
        return np.bincount(pairs[silent], minlength=k * k).reshape(k, k).astype(np.int64)

    def columns(self) -> dict[str, Any]:
        """Return what a history has of each duel: `first`, `second`, `delay`, `first_won`, `at`."""
        first, second = np.divmod(np.array(self._pairs, dtype=np.int64), self.n_arms)
        told = np.array(self._told, dtype=np.float64)
        asked = np.array(self._asked) if self.by_clock else np.arange(1.0, len(self) + 1.0)
        return {
            "first": first,
            "second": second,
            "delay": np.where(told > 0, np.array(self._heard, dtype=np.float64) - asked, np.nan),
            "first_won": np.where(told > 0, (told - 1) / 2, np.nan),
            "at": asked if self.by_clock else None,
        }
