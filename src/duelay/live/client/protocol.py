"""Calls of a service: how each is sent, and what its answer means. `remote` has the clients."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from duelay._core import timestamps
from duelay._core.duration import Duration
from duelay.errors import (
    InvalidValueError,
    PausedError,
    StoreError,
    UnknownDuelError,
    UnknownExperimentError,
)
from duelay.inference.leader import beaten
from duelay.live.validation import check_word
from duelay.live.writes.requests import LiveDuel
from duelay.logs.history import History
from duelay.logs.unit_numbers import number_units
from duelay.show.text_table import table

_FIRST, _LONGEST = 0.1, 5.0  # seconds between two tries
AGAIN = (429, 502, 503, 504)


class Call(NamedTuple):
    """A request, and how its answer is read."""

    method: str
    path: str
    body: Any = None
    key: str | None = None
    read: Callable[[Any], Any] = lambda found: found


@dataclass(frozen=True, eq=False)
class RemoteStanding:
    """Where an experiment of a service stands; `print` shows it as a table."""

    name: str
    status: str
    headline: str
    arms: tuple[str, ...]
    leader: int | None
    winner: int | None
    error: float
    tick: int
    plays: NDArray[np.int64]
    conversions: NDArray[np.int64]
    pending: NDArray[np.int64]
    present: NDArray[np.bool_]
    mean: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    warnings: tuple[str, ...]
    feedback: str
    policy: str
    window: str | None
    now: float  # the latest time known, in seconds since the epoch

    def __str__(self) -> str:
        duels = self.plays.sum(axis=0) + self.plays.sum(axis=1) - self.plays.diagonal()
        beats = beaten(self.mean)
        order = sorted(
            range(len(self.arms)), key=lambda place: (place != self.leader, -beats[place])
        )
        rows = [
            [self.arms[place] + " (retired)" * (not self.present[place]), self._share(place),
             f"{beats[place]:g}", str(duels[place]), str(self.conversions[place].sum()),
             str(self.pending[place].sum())]
            for place in order
        ]  # fmt: skip
        columns = ["arm", "leader beats it", "beats", "duels", "conversions", "pending"]
        lines = [self.headline, table(columns, rows, left=(0, 1))]
        return "\n".join([*lines, *(f"warning: {words}" for words in self.warnings)])

    def _share(self, place: int) -> str:
        if place == self.leader:
            return "leads"
        if self.leader is None or np.isnan(self.mean[self.leader, place]):
            return "unheard"
        mean, lower, upper = (float(np.clip(values[self.leader, place], 0.0, 1.0))
                              for values in (self.mean, self.lower, self.upper))  # fmt: skip
        return f"{mean:.3f}  [{lower:.3f}, {upper:.3f}]"


class Calls:
    """What can be asked of an experiment, as requests."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._path = f"/experiments/{quote(name, safe='')}"

    def _ask(self, unit: Any, key: Any) -> Call:
        unit, key = check_word("unit", unit), check_word("key", key)
        body = {} if unit is None else {"unit": unit}
        return Call("POST", f"{self._path}/duels", body, key or uuid.uuid4().hex,
                    lambda found: LiveDuel(**found))  # fmt: skip

    def _tell(self, duel: LiveDuel | str, winner: str | None, at: Any) -> Call:
        id = duel.id if isinstance(duel, LiveDuel) else duel
        if not isinstance(id, str) or not id:
            raise InvalidValueError(f"duel must be what ask() returned, or its id, got {duel!r}")
        body: dict[str, Any] = {} if at is None else {"at": timestamps.seconds("at", at)}
        kind = "conversion" if winner is None else "vote"
        body |= {} if winner is None else {"winner": winner}
        path = f"/duels/{quote(id, safe='')}/{kind}"
        return Call("PUT", path, body, None, lambda found: found["status"])

    def _tell_all(self, answers: Iterable[Any]) -> Call:
        rows = []
        for each in answers:
            duel, winner, at = (*(each if type(each) is tuple else (each,)), None, None)[:3]
            id = duel.id if isinstance(duel, LiveDuel) else duel
            row = {"id": id, "winner": winner}
            rows.append(row | ({} if at is None else {"at": timestamps.seconds("at", at)}))
        return Call("POST", f"{self._path}/answers", {"answers": rows}, None,
                    _statuses)  # fmt: skip

    def _standing(self) -> Call:
        return Call("GET", self._path, read=_standing)

    def _change(self, **changes: Any) -> Call:
        return Call("PATCH", self._path, changes, read=lambda found: None)

    def _log(self, after: int) -> Call:
        return Call("GET", f"{self._path}/log?after={after}&limit=10000")

    def _delete(self) -> Call:
        return Call("DELETE", self._path)


class Tries:
    """How often a call is tried, and what its answer means."""

    def __init__(self, patience: float) -> None:
        self._until = time.monotonic() + patience
        self._wait = _FIRST

    def pause(self, trouble: str) -> float:
        """Return the seconds until the next try; raise where there is none."""
        wait = self._wait * random.uniform(0.5, 1.5)
        if time.monotonic() + wait > self._until:
            raise StoreError(f"the service does not answer ({trouble}): call again, nothing counts "
                             "twice")  # fmt: skip
        self._wait = min(2.0 * self._wait, _LONGEST)
        return wait


def read_answer(call: Call, response: Any) -> Any:
    """Return what an answer says; raise what the library would."""
    if response.is_success:
        return call.read(response.json() if response.content else None)
    try:
        words = str(response.json()["error"])
    except (ValueError, KeyError, TypeError):
        words = f"the service answered {response.status_code}"
    if response.status_code == 404:
        raise (UnknownDuelError if call.path.startswith("/duels/") else UnknownExperimentError)(
            words
        )
    if response.status_code == 409 and call.path.endswith("/duels"):
        raise PausedError(words)
    if response.status_code in (401, 403):
        raise PermissionError(words)
    if response.status_code >= 500:
        raise StoreError(words)
    raise InvalidValueError(words)


def _statuses(found: Any) -> list[str]:
    """Return what became of several answers; raise for the first that is wrong."""
    for each in found["answers"]:
        if "error" in each:
            is_unknown = each["error"].startswith("no duel ")
            raise (UnknownDuelError if is_unknown else ValueError)(each["error"])
    return [each["status"] for each in found["answers"]]


def _standing(found: Any) -> RemoteStanding:
    arms = tuple(found["arms"])
    estimates = {
        name: np.array(values, dtype=np.float64) for name, values in found["estimates"].items()
    }
    for end, nothing in (("lower", -np.inf), ("upper", np.inf)):  # JSON has no word for these
        estimates[end][np.isnan(estimates[end])] = nothing
    return RemoteStanding(
        name=found["name"],
        status=found["status"],
        headline=found["headline"],
        arms=arms,
        leader=None if found["leader"] is None else arms.index(found["leader"]),
        winner=None if found["winner"] is None else arms.index(found["winner"]),
        error=found["error"],
        tick=found["duels"],
        plays=np.array(found["plays"]),
        conversions=np.array(found["conversions"]),
        pending=np.array(found["pending"]),
        present=np.array(found["present"]),
        warnings=tuple(found["warnings"]),
        feedback=found["feedback"],
        policy=found["policy"],
        window=found["window"],
        now=found["now"],
        **estimates,
    )


def history_of(rows: list[dict[str, Any]], standing: RemoteStanding) -> History:
    """Return the duels of a log as a history."""
    number = {arm: place for place, arm in enumerate(standing.arms)}
    asked = np.array([row["asked_at"] for row in rows], dtype=np.float64)
    told = np.array([row["answered_at"] for row in rows], dtype=np.float64)  # None is nan
    return History(
        n_arms=len(standing.arms),
        first=np.array([number[row["first"]] for row in rows], dtype=np.int64),
        second=np.array([number[row["second"]] for row in rows], dtype=np.int64),
        delay=timestamps.whole(told - asked),
        first_won=np.array([row["first_won"] for row in rows], dtype=np.float64),
        window=None if standing.window is None else Duration(standing.window),
        feedback=standing.feedback,
        order="coin",
        arms=standing.arms,
        at=asked,
        now=standing.now if rows else None,
        chosen_by=standing.policy,
        unit=number_units([row["unit"] for row in rows]),
    )
