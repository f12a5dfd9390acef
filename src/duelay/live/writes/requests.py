"""The requests that callers send to a writer, and the duel that an ask returns."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from sqlalchemy import Connection

from duelay.live.state import ExperimentState
from duelay.live.writes.group_commit import Request


class LiveDuel(NamedTuple):
    """Two arms to show together, by their names; or the declared winner alone.

    If `id` is None, there is nothing to tell: show the winner.

    Attributes
    ----------
    id : str or None
        The id of the duel.
    first, second : str or None
        The names of the two arms.
    settled : bool
        Whether a winner is declared.
    winner : str or None
        The name of the winner.
    """

    id: str | None
    first: str | None
    second: str | None
    settled: bool = False
    winner: str | None = None

    @property
    def arm(self) -> str | None:
        """The one arm to show; None where both are shown."""
        return None

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON has them; `arm` where one arm is shown at a time."""
        return self._asdict() | ({} if self.arm is None else {"arm": self.arm})


class OneArmDuel(LiveDuel):
    """A duel of which a visitor sees one arm: the first, or the declared winner."""

    @property
    def arm(self) -> str | None:
        """The one arm to show."""
        return self.winner if self.id is None else self.first


class Ask(Request):
    """Ask for a duel."""

    def __init__(self, unit: str | None, key: str | None) -> None:
        super().__init__()
        self.unit, self.key = unit, key
        self.id = make_id()


class Tell(Request):
    """Tell the answer to a duel; `at` is in microseconds."""

    def __init__(self, id: str, winner: str | None, at: int | None) -> None:
        super().__init__()
        self.id, self.winner, self.at = id, winner, at
        self.tried: list[int] = []  # its time in each try: a commit may succeed unheard


class Operation(Request):
    """A function that is called in a transaction; afterwards, the changed state is written.

    Without `needs_clock` a process that lacks the clock of the experiment may submit it: its time
    is then the latest one of the store.
    """

    def __init__(
        self, do: Callable[[Connection, ExperimentState, int], Any], *, needs_clock: bool = True
    ) -> None:
        super().__init__()
        self.do, self.needs_clock = do, needs_clock


class Settle(Request):
    """Settle the duels that are due and look at the evidence, though it was done a moment ago."""


def make_id() -> str:
    """Return an id that grows with time and cannot be guessed: 80 of its 128 bits are random."""
    return f"{time.time_ns() >> 16:012x}{secrets.token_hex(10)}"
