"""Accept the old names of arguments, with a DeprecationWarning."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from duelay.errors import InvalidTypeError

P = ParamSpec("P")
R = TypeVar("R")


def accept_old_names(**names: str | None) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let a function take keyword arguments by their old names.

    Parameters
    ----------
    **names : the new name of each old one; None for an argument that has no effect any more.

    Raises
    ------
    TypeError
        If an argument is given by its old name and by its new one.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def accept(*args: P.args, **kwargs: P.kwargs) -> R:
            given: dict[str, Any] = kwargs
            for old in names.keys() & given.keys():
                new = names[old]
                advice = "has no effect any more" if new is None else f"is deprecated: use {new}"
                warnings.warn(f"{old} {advice}", DeprecationWarning, stacklevel=2)
                value = given.pop(old)
                if new is not None:
                    if new in given:
                        raise InvalidTypeError(f"{new} is given twice, also by its old name {old}")
                    given[new] = value
            return function(*args, **kwargs)

        return accept

    return decorate
