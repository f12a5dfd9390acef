"""Clients: an experiment that lives in a service, with the face of `Experiment`.

Each call is tried again for a while where the service or the network does not answer. Nothing
counts twice by that: a question has a key of its own, and an answer counts once.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from duelay._core import checks, times
from duelay._core.duration import Duration
from duelay._core.extras import need
from duelay.live.booking import LiveDuel
from duelay.live.desk import PausedError, UnknownExperimentError
from duelay.live.exporting import write_history
from duelay.live.making import check_word
from duelay.live.store import StoreError
from duelay.logs.history import History
from duelay.players.player import UnknownDuelError
from duelay.show.table import table

_PATIENCE = 30.0  # seconds that a call is tried again
_TIMEOUT = 10.0  # seconds of one try
_FIRST, _LONGEST = 0.1, 5.0  # seconds between two tries
_AGAIN = (429, 502, 503, 504)


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
        rows = [
            [arm, "" if self.leader in (None, place) else self._share(place), str(duels[place]),
             str(self.conversions[place].sum()), str(self.pending[place].sum())]
            for place, arm in enumerate(self.arms)
        ]  # fmt: skip
        columns = ["arm", "leader beats it", "duels", "conversions", "pending"]
        lines = [self.headline, table(columns, rows, left=(0, 1))]
        return "\n".join([*lines, *(f"warning: {words}" for words in self.warnings)])

    def _share(self, place: int) -> str:
        mean, lower, upper = (values[self.leader, place]
                              for values in (self.mean, self.lower, self.upper))  # fmt: skip
        return "unheard" if np.isnan(mean) else f"{mean:.3f}  [{lower:.3f}, {upper:.3f}]"


class _Calls:
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
            raise ValueError(f"duel must be what ask() returned, or its id, got {duel!r}")
        body: dict[str, Any] = {} if at is None else {"at": times.seconds("at", at)}
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
            rows.append(row | ({} if at is None else {"at": times.seconds("at", at)}))
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


class _Tries:
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


def _read(call: Call, response: Any) -> Any:
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
    raise ValueError(words)


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


def _client(kind: Any, url: str, key: str | None) -> Any:
    if not isinstance(url, str) or not url.startswith(("http://", "https://")):
        raise ValueError(f"url must be the address of a service, http://... , got {url!r}")
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    return kind(base_url=url.rstrip("/"), headers=headers, timeout=_TIMEOUT)


class Service:
    """A service, as `connect` returns it: it makes and opens experiments."""

    def __init__(self, url: str, key: str | None = None, *, patience: float = _PATIENCE) -> None:
        need("clients", ["httpx"], "client")
        import httpx

        self.url = url
        self._patience = checks.number("patience", patience, least=0)
        self._trouble = httpx.TransportError
        self._make: Callable[[], Any] = lambda: _client(httpx.Client, url, key)
        self._client, self._process = self._make(), os.getpid()

    def create(self, name: str, arms: Sequence[str], **said: Any) -> RemoteExperiment:
        """Make an experiment; `said` is what `Experiment.create` takes."""
        self._do(Call("POST", "/experiments", {"name": name, "arms": list(arms), **said}))
        return RemoteExperiment(self, name)

    def open(self, name: str) -> RemoteExperiment:
        """Go on with an experiment."""
        experiment = RemoteExperiment(self, name)
        experiment.standing()
        return experiment

    def names(self) -> tuple[str, ...]:
        """Return the names of the experiments that the key is for."""
        found = self._do(Call("GET", "/experiments"))
        return tuple(each["name"] for each in found["experiments"])

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def __enter__(self) -> Service:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def _do(self, call: Call) -> Any:
        if self._process != os.getpid():
            # After a fork: two processes on one connection would read each other's answers. That of
            # the parent is left as it is.
            self._of_parent = self._client
            self._client, self._process = self._make(), os.getpid()
        headers = {} if call.key is None else {"Idempotency-Key": call.key}
        tries = _Tries(self._patience)
        while True:
            try:
                response = self._client.request(
                    call.method, call.path, json=call.body, headers=headers
                )
                if response.status_code not in _AGAIN:
                    return _read(call, response)
                trouble = f"it answered {response.status_code}"
            except self._trouble as error:
                trouble = f"{type(error).__name__}: {error}"
            time.sleep(tries.pause(trouble))


class RemoteExperiment(_Calls):
    """An experiment of a service; the calls are those of `Experiment`."""

    def __init__(self, service: Service, name: str) -> None:
        super().__init__(name)
        self._service = service

    def ask(self, unit: str | int | None = None, key: str | int | None = None) -> LiveDuel:
        """Return a duel, as `Experiment.ask` does."""
        duel: LiveDuel = self._service._do(self._ask(unit, key))
        return duel

    def tell(self, duel: LiveDuel | str, winner: str | None = None, at: Any = None) -> str:
        """Say that the duel's first arm won, or with votes who did, as `Experiment.tell` does."""
        return str(self._service._do(self._tell(duel, winner, at)))

    def tell_all(self, answers: Iterable[Any]) -> list[str]:
        """Tell several answers as the news of one moment, as `Experiment.tell_all` does."""
        return list(self._service._do(self._tell_all(answers)))

    def standing(self) -> RemoteStanding:
        """Return where it stands."""
        found: RemoteStanding = self._service._do(self._standing())
        return found

    def pause(self) -> None:
        """Ask no more; answers are still heard."""
        self._service._do(self._change(status="paused"))

    def resume(self) -> None:
        """Go on after a pause."""
        self._service._do(self._change(status="running"))

    def add_arm(self, name: str) -> None:
        """Let an arm join, or come back."""
        self._service._do(self._change(add_arms=[name]))

    def retire_arm(self, name: str) -> None:
        """Ask an arm no more."""
        self._service._do(self._change(retire_arms=[name]))

    def delete(self) -> None:
        """Remove it and all its duels, for ever."""
        self._service._do(self._delete())

    def log(self) -> list[dict[str, Any]]:
        """Return every duel that is kept."""
        rows: list[dict[str, Any]] = []
        after: int | None = 0
        while after is not None:
            found = self._service._do(self._log(after))
            rows, after = rows + found["duels"], found["next"]
        return rows

    def history(self) -> History:
        """Return every duel that is kept, and its answer."""
        rows = self.log()
        return _history(rows, self.standing())

    def export(self, path: str | Path) -> Path:
        """Write every duel that is kept as CSV or Parquet, for `duelay estimate`."""
        return write_history(self.history(), Path(path))

    @property
    def arms(self) -> tuple[str, ...]:
        """The names of all arms."""
        return self.standing().arms

    @property
    def status(self) -> str:
        """``"running"`` or ``"paused"``."""
        return self.standing().status


class AsyncService:
    """A service for programs with an event loop, as `connect_async` returns it."""

    def __init__(self, url: str, key: str | None = None, *, patience: float = _PATIENCE) -> None:
        need("clients", ["httpx"], "client")
        import httpx

        self.url = url
        self._patience = checks.number("patience", patience, least=0)
        self._trouble = httpx.TransportError
        self._client = _client(httpx.AsyncClient, url, key)

    async def create(self, name: str, arms: Sequence[str], **said: Any) -> AsyncExperiment:
        """Make an experiment; `said` is what `Experiment.create` takes."""
        await self._do(Call("POST", "/experiments", {"name": name, "arms": list(arms), **said}))
        return AsyncExperiment(self, name)

    async def open(self, name: str) -> AsyncExperiment:
        """Go on with an experiment."""
        experiment = AsyncExperiment(self, name)
        await experiment.standing()
        return experiment

    async def names(self) -> tuple[str, ...]:
        """Return the names of the experiments that the key is for."""
        found = await self._do(Call("GET", "/experiments"))
        return tuple(each["name"] for each in found["experiments"])

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def __aenter__(self) -> AsyncService:
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.close()

    async def _do(self, call: Call) -> Any:
        headers = {} if call.key is None else {"Idempotency-Key": call.key}
        tries = _Tries(self._patience)
        while True:
            try:
                response = await self._client.request(
                    call.method, call.path, json=call.body, headers=headers
                )
                if response.status_code not in _AGAIN:
                    return _read(call, response)
                trouble = f"it answered {response.status_code}"
            except self._trouble as error:
                trouble = f"{type(error).__name__}: {error}"
            await asyncio.sleep(tries.pause(trouble))


class AsyncExperiment(_Calls):
    """An experiment of a service, for programs with an event loop."""

    def __init__(self, service: AsyncService, name: str) -> None:
        super().__init__(name)
        self._service = service

    async def ask(self, unit: str | int | None = None, key: str | int | None = None) -> LiveDuel:
        """Return a duel, as `Experiment.ask` does."""
        duel: LiveDuel = await self._service._do(self._ask(unit, key))
        return duel

    async def tell(self, duel: LiveDuel | str, winner: str | None = None, at: Any = None) -> str:
        """Say that the duel's first arm won, or with votes who did, as `Experiment.tell` does."""
        return str(await self._service._do(self._tell(duel, winner, at)))

    async def tell_all(self, answers: Iterable[Any]) -> list[str]:
        """Tell several answers as the news of one moment, as `Experiment.tell_all` does."""
        return list(await self._service._do(self._tell_all(answers)))

    async def standing(self) -> RemoteStanding:
        """Return where it stands."""
        found: RemoteStanding = await self._service._do(self._standing())
        return found

    async def pause(self) -> None:
        """Ask no more; answers are still heard."""
        await self._service._do(self._change(status="paused"))

    async def resume(self) -> None:
        """Go on after a pause."""
        await self._service._do(self._change(status="running"))

    async def add_arm(self, name: str) -> None:
        """Let an arm join, or come back."""
        await self._service._do(self._change(add_arms=[name]))

    async def retire_arm(self, name: str) -> None:
        """Ask an arm no more."""
        await self._service._do(self._change(retire_arms=[name]))

    async def delete(self) -> None:
        """Remove it and all its duels, for ever."""
        await self._service._do(self._delete())

    async def log(self) -> list[dict[str, Any]]:
        """Return every duel that is kept."""
        rows: list[dict[str, Any]] = []
        after: int | None = 0
        while after is not None:
            found = await self._service._do(self._log(after))
            rows, after = rows + found["duels"], found["next"]
        return rows

    async def history(self) -> History:
        """Return every duel that is kept, and its answer."""
        rows = await self.log()
        return _history(rows, await self.standing())

    async def export(self, path: str | Path) -> Path:
        """Write every duel that is kept as CSV or Parquet, for `duelay estimate`."""
        return write_history(await self.history(), Path(path))


def connect(url: str, key: str | None = None, *, patience: float = _PATIENCE) -> Service:
    """Return a service at an address; `key` is a bearer key of it.

    ``connect("http://127.0.0.1:8000").open("buttons")`` has the face of `Experiment`. A call is
    tried again for `patience` seconds where the service does not answer.
    """
    return Service(url, key, patience=patience)


def connect_async(url: str, key: str | None = None, *, patience: float = _PATIENCE) -> AsyncService:
    """Return a service at an address, whose calls are awaited."""
    return AsyncService(url, key, patience=patience)


def _history(rows: list[dict[str, Any]], standing: RemoteStanding) -> History:
    """Return the duels of a log as a history."""
    number = {arm: place for place, arm in enumerate(standing.arms)}
    asked = np.array([row["asked_at"] for row in rows], dtype=np.float64)
    told = np.array([row["answered_at"] for row in rows], dtype=np.float64)  # None is nan
    units = [f"duel {row['number']}" if row["unit"] is None else f"unit {row['unit']}"
             for row in rows]  # fmt: skip
    known = {unit: place for place, unit in enumerate(dict.fromkeys(units))}
    has_units = any(row["unit"] is not None for row in rows)
    return History(
        n_arms=len(standing.arms),
        first=np.array([number[row["first"]] for row in rows], dtype=np.int64),
        second=np.array([number[row["second"]] for row in rows], dtype=np.int64),
        delay=times.whole(told - asked),
        first_won=np.array([row["first_won"] for row in rows], dtype=np.float64),
        window=None if standing.window is None else Duration(standing.window),
        feedback=standing.feedback,
        order="coin",
        arms=standing.arms,
        at=asked,
        now=standing.now if rows else None,
        chosen_by=standing.policy,
        unit=np.array([known[unit] for unit in units], dtype=np.int64) if has_units else None,
    )
