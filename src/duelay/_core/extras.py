"""Packages beyond the core, which an extra brings: what is missing is said in one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

from duelay.errors import MissingExtraError


def need(what: str, names: Sequence[str], extra: str) -> None:
    """Say what is missing for something, which is in the plural, and how to install it.

    >>> need("reports", ["numpy"], "logs")
    """
    missing = [name for name in names if find_spec(name) is None]
    if missing:
        them = "it" if len(missing) == 1 else "them"
        raise MissingExtraError(
            f"{what} need {', '.join(missing)}: install {them} with pip install 'duelay[{extra}]'",
            name=missing[0],
        )
