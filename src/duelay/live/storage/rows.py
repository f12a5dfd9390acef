"""The rows of `experiments` and `duels`, as they pass between readers and writers.

At run time they are mappings by the names of the columns, which `schema` explains. Times are
microseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NotRequired, TypedDict


class ExperimentRow(TypedDict):
    """The row of an experiment: what `create` was told, and what has happened since."""

    id: int
    name: str
    goal: str
    policy: str
    feedback: str
    window: int | None
    error: float
    self_duels: bool
    share: float
    forget_after: int | None
    lag: int
    created: int
    margin: float | None
    ends: str | None
    budget: int | None
    until: int | None
    display: str
    clock: str | None
    status: str
    fallback: int | None
    chosen: int | None
    archived: int | None
    moment: int
    asked: int
    heard: int
    backwards: int
    furthest: float
    version: int
    changes: int
    matured: int
    closed: int
    forgotten: int
    settled: int
    kappa: float
    refit: int
    n_matured: int
    n_answered: int
    n_heard: int
    delays: float
    winner: int | None
    verdict: int
    declared: int
    declared_at: int | None
    stride: int
    width: int
    swept: int
    stopped: int | None
    held: int | None
    earlier: int
    shared_time: NotRequired[float]  # seconds, by the clock of the database


class DuelRow(TypedDict, total=False):
    """The row of a duel; a reader that needs few columns reads only these."""

    id: str
    experiment: int
    number: int
    first: int
    second: int
    asked: int
    unit: str | None
    key: str | None
    enters: bool
    # Any, as those who read these columns know from other columns that they are not None.
    told: Any  # int; None without an answer
    place: Any
    first_won: Any  # float; None without an answer
    late: int | None
    wait: Any  # int; None where nothing is bet
    stake: Any
    settled_by: int | None
    odds: Any


DuelRows = Sequence[DuelRow]
