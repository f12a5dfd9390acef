"""Who won a duel, in the words of whoever wrote the log."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from duelay.logs.cells import is_nothing
from duelay.logs.csv_log import WORDS

_TIES = ("tie", "draw")
NEEDS = "first, second, tie or the name of an arm of the duel"
_BOTH = "one that says which arm: this one may mean either, write first or second"


class Votes(NamedTuple):
    """A column of winners."""

    first_won: NDArray[np.float64]  # 1, 0 or 1/2; nan for an empty cell
    wrong: dict[int, str]  # what a cell must be that is none of them, by its place


def read(said: list[str], sides: Sequence[list[str]], columns: tuple[str, str]) -> Votes:
    """Return who won; `sides` are the arms, `columns` the names of the columns that have them.

    A cell is "first", "second" or "tie" in any case, a word that begins with "tie" or "draw", the
    name of an arm of its duel, or that of the column that has the arm, such as "model_a".
    """
    words = {cell: _word(cell, columns) for cell in set(said)}
    first, second = sides
    arms = {name.strip() for name in {*first, *second}}
    if arms.isdisjoint(cell.strip() for cell in words):
        won, wrong = [words[cell] for cell in said], dict[int, str]()
    else:
        won, wrong = _by_arm(said, first, second, words)
    unknown = {cell for cell, meant in words.items() if math.isnan(meant) and not is_nothing(cell)}
    if unknown:
        cells = enumerate(zip(said, won, strict=True))
        wrong |= {k: NEEDS for k, (cell, meant) in cells if cell in unknown and math.isnan(meant)}
    return Votes(np.array(won, dtype=np.float64), wrong)


def _by_arm(
    said: list[str], first: list[str], second: list[str], words: dict[str, float]
) -> tuple[list[float], dict[int, str]]:
    """Return who won where cells may be names of arms, and which of them may mean either arm."""
    won, wrong = [], {}
    for place, (cell, one, other) in enumerate(zip(said, first, second, strict=True)):
        name, by_word = cell.strip(), words[cell]
        is_first, is_second = name == one.strip(), name == other.strip()
        if not name or not (is_first or is_second):
            won.append(by_word)
            continue
        by_arm = 1.0 if is_first else 0.0
        is_exact = not math.isnan(by_word) and not (by_word == 0.5 and name.lower() not in _TIES)
        won.append(by_arm)
        if by_word != by_arm if is_exact else is_first and is_second:
            wrong[place] = _BOTH
    return won, wrong


def _word(cell: str, columns: tuple[str, str]) -> float:
    """Return who won by the words alone; nan where they do not say."""
    name = cell.strip()
    word = name.lower()
    if word in WORDS:
        return WORDS[word]
    if name in columns:
        return 1.0 - columns.index(name)
    return 0.5 if word.startswith(_TIES) else math.nan
