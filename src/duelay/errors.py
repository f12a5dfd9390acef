"""The errors of duelay. Each also derives from the built-in error that it refines.

>>> import duelay
>>> try:
...     duelay.RUCB(alpha=-1.0)
... except duelay.DuelayError as error:
...     print(error)
alpha must be greater than 0.5 (Lemma 2's bounds need it), got -1.0
"""

from __future__ import annotations

__all__ = [
    "AccessDeniedError",
    "ClockError",
    "DuelayError",
    "InvalidTypeError",
    "InvalidValueError",
    "MissingExtraError",
    "NoWinnerError",
    "PausedError",
    "StoreError",
    "UnknownDuelError",
    "UnknownExperimentError",
    "WorkFailedError",
]


class DuelayError(Exception):
    """The base class of all errors that duelay raises on purpose."""


class InvalidValueError(DuelayError, ValueError):
    """An argument, a file or a setting has a value that cannot be used.

    Attributes
    ----------
    argument : str or None
        The name of the argument, if the error is about one; the command line names its option.
    """

    def __init__(self, message: object = "", *, argument: str | None = None) -> None:
        super().__init__(message)
        self.argument = argument


class InvalidTypeError(DuelayError, TypeError):
    """An argument has a type that cannot be used."""


class MissingExtraError(DuelayError, ModuleNotFoundError):
    """A package is missing that an extra of duelay installs."""


class NoWinnerError(InvalidValueError):
    """A problem has no Condorcet winner: every arm loses to some other one."""


class UnknownDuelError(DuelayError, LookupError, ValueError):
    """An answer names a duel that was never asked."""


class UnknownExperimentError(DuelayError, LookupError, ValueError):
    """There is no experiment of this name in the database."""


class PausedError(DuelayError, RuntimeError):
    """A duel was asked of an experiment that is paused."""


class AccessDeniedError(DuelayError, PermissionError):
    """A service does not accept the key, or the key does not allow the call."""


class StoreError(DuelayError, RuntimeError):
    """A database could not be read or written. The call may be repeated: nothing counts twice."""


class ClockError(StoreError):
    """A process has a wrong clock, and must not write. Nothing was written; call again."""


class WorkFailedError(DuelayError, RuntimeError):
    """A cell of an experiment failed, or a cluster was lost. Finished cells are kept."""
