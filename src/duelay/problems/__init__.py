"""Problems: who beats whom, and how often (Section 2 of the paper)."""

from __future__ import annotations

from duelay.problems.check import check_arms, check_matrix
from duelay.problems.generated import (
    GENERATORS,
    arithmetic,
    bradley_terry,
    close_rival,
    cyclic,
    generate,
    leader,
    mslr_like,
    no_winner,
)
from duelay.problems.problem import TARGETS, NoWinnerError, Problem

__all__ = [
    "GENERATORS",
    "TARGETS",
    "NoWinnerError",
    "Problem",
    "arithmetic",
    "bradley_terry",
    "check_arms",
    "check_matrix",
    "close_rival",
    "cyclic",
    "generate",
    "leader",
    "mslr_like",
    "no_winner",
]
