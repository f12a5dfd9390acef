"""Who won a duel, in the words of whoever wrote the log."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from duelay._core.feedback import OUTCOMES
from duelay.logs.cells import is_nothing

_TIES = ("tie", "draw")
NEEDS = "first, second, tie or the name of an arm of the duel"
_EITHER = "one that says which arm: this one may mean either, write first or second"


class Votes(NamedTuple):
    """A column of winners."""

    first_won: NDArray[np.float64]  # 1, 0 or 1/2; nan for an empty cell
    wrong: dict[int, str]  # by the place of a bad cell: what it must be


def read(said: list[str], sides: Sequence[list[str]], columns: tuple[str, str]) -> Votes:
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
    words = np.array([_word(name, columns) for name in number], dtype=np.float64).reshape(-1, 3)
    by_word, is_exact, is_empty = words[winner].T
    is_first, is_second = winner == first, winner == second
    is_named = (is_first | is_second) & (winner != number.get("", -1))
    won = np.where(is_named, is_first, by_word)
    is_either = is_named & np.where(is_exact, by_word != won, is_first & is_second)
    is_unknown = np.isnan(won) & (is_empty == 0)
    wrong = dict.fromkeys(np.flatnonzero(is_unknown).tolist(), NEEDS)
    return Votes(won, wrong | dict.fromkeys(np.flatnonzero(is_either).tolist(), _EITHER))


def _word(name: str, columns: tuple[str, str]) -> tuple[float, bool, bool]:
    """Return who won by the word alone, whether that is certain, and whether the cell is empty.

    Who won is nan where the word does not say. A word that merely begins like "tie" is not
    certain: it may be the name of an arm.
    """
    word = name.lower()
    if word in OUTCOMES:
        return OUTCOMES[word], True, False
    if name in columns:
        return 1.0 - columns.index(name), True, False
    if word.startswith(_TIES):
        return 0.5, word in _TIES, False
    return math.nan, False, is_nothing(name)
