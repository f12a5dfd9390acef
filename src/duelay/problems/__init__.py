"""Problems: who beats whom, and how often (Section 2 of the paper)."""

from __future__ import annotations

from duelay.errors import NoWinnerError
from duelay.problems.generated import GENERATORS as GENERATORS
from duelay.problems.generated import (
    arithmetic,
    bradley_terry,
    close_rival,
    cyclic,
    generate,
    leader,
    mslr_like,
    no_winner,
)
from duelay.problems.problem import TARGETS as TARGETS
from duelay.problems.problem import Problem

# Other rooms import these from here; `X as X` says so. They are no part of what is promised.
from duelay.problems.validation import check_arms as check_arms
from duelay.problems.validation import check_matrix as check_matrix

__all__ = [
    "NoWinnerError",
    "Problem",
    "arithmetic",
    "bradley_terry",
    "close_rival",
    "cyclic",
    "generate",
    "leader",
    "mslr_like",
    "no_winner",
]
