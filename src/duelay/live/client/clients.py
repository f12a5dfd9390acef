"""HTTP clients of a service, synchronous and asynchronous, with the calls of `Experiment`.

Each call is tried again for a while where the service or the network does not answer. Nothing
counts twice by that: a question has a key of its own, and an answer counts once.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from pathlib import Path
from typing import Any

from duelay._core import checks
from duelay._core.extras import need
from duelay._core.patience import at_least
from duelay.errors import InvalidValueError
from duelay.live.arm_cost import ArmCostReport
from duelay.live.client.protocol import (
    AGAIN,
    Call,
    Calls,
    LogReader,
    RemoteStanding,
    Tries,
    new_experiment,
    read_answer,
)
from duelay.live.export import write_history
from duelay.live.writes.requests import LiveDuel
from duelay.logs.history import History

PATIENCE = at_least(30.0)  # seconds that a call is tried again
_TIMEOUT = at_least(10.0)  # seconds of one try


def _client(kind: Any, url: str, key: str | None) -> Any:
    if not isinstance(url, str) or not url.startswith(("http://", "https://")):
        raise InvalidValueError(f"url must be the address of a service, http://... , got {url!r}")
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    return kind(base_url=url.rstrip("/"), headers=headers, timeout=_TIMEOUT)


class Service:
    """A service, as `connect` returns it: it makes and opens experiments."""

    def __init__(self, url: str, key: str | None = None, *, patience: float = PATIENCE) -> None:
        need("clients", ["httpx"], "client")
        import httpx

        self.url = url
        self._patience = checks.number("patience", patience, least=0)
        self._trouble = httpx.TransportError
        self._make: Callable[[], Any] = lambda: _client(httpx.Client, url, key)
        self._client, self._process = self._make(), os.getpid()

    def create(self, name: str, arms: Sequence[str], **said: Any) -> RemoteExperiment:
        """Make an experiment; `said` is what `Experiment.create` takes."""
        self._do(Call("POST", "/experiments", new_experiment(name, arms, said)))
        return RemoteExperiment(self, name)

    def open(self, name: str) -> RemoteExperiment:
        """Go on with an experiment."""
        experiment = RemoteExperiment(self, name)
        experiment.standing()
        return experiment

    def names(self, *, archived: bool = False) -> tuple[str, ...]:
        """Return the names of the experiments that the key is for, archived ones if wanted."""
        found = (self._do(Call("GET", "/experiments")))["experiments"]
        if archived:
            found += (self._do(Call("GET", "/experiments?status=archived")))["experiments"]
        return tuple(each["name"] for each in found)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def __enter__(self) -> Service:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def _do(self, call: Call) -> Any:
        if self._process != os.getpid():
            # After a fork: two processes on one connection would read each other's answers. The
            # parent's connection is left as it is.
            self._of_parent = self._client
            self._client, self._process = self._make(), os.getpid()
        headers = {} if call.key is None else {"Idempotency-Key": call.key}
        tries = Tries(self._patience)
        while True:
            try:
                response = self._client.request(
                    call.method, call.path, json=call.body, headers=headers
                )
                if response.status_code not in AGAIN:
                    return read_answer(call, response)
                trouble = f"it answered {response.status_code}"
            except self._trouble as error:
                trouble = f"{type(error).__name__}: {error}"
            time.sleep(tries.pause(trouble))


class RemoteExperiment(Calls[None]):
    """An experiment of a service; the calls are those of `Experiment`."""

    def __init__(self, service: Service, name: str) -> None:
        super().__init__(name)
        self._do = service._do

    def ask(self, unit: str | int | None = None, key: str | int | None = None) -> LiveDuel:
        """Return a duel, as `Experiment.ask` does."""
        duel: LiveDuel = self._do(self._ask(unit, key))
        return duel

    def tell(
        self,
        duel: LiveDuel | str,
        winner: str | None = None,
        at: Any = None,
        *,
        metric: str | None = None,
        arm: str | None = None,
    ) -> str:
        """Say that the duel's first arm won, or with votes who did, as `Experiment.tell` does."""
        return str(self._do(self._tell_any(duel, winner, at, metric, arm)))

    def tell_all(self, answers: Iterable[Any]) -> list[str]:
        """Tell several answers as the news of one moment, as `Experiment.tell_all` does."""
        return list(self._do(self._tell_all(answers)))

    def standing(self) -> RemoteStanding:
        """Return where it stands."""
        found: RemoteStanding = self._do(self._standing())
        return found

    def cost_of_arm(self, name: str | None = None) -> ArmCostReport:
        """Return what a further arm costs until a verdict, as `Experiment.cost_of_arm` does."""
        found: ArmCostReport = self._do(self._cost_of_arm(name))
        return found

    def log(self) -> list[dict[str, Any]]:
        """Return every duel that is kept."""
        return self._read_log().rows

    def history(self) -> History:
        """Return every duel that is kept, and its answer."""
        return self._read_log().history()

    def _read_log(self) -> LogReader:
        reader = LogReader()
        while reader.after is not None:
            reader.add(self._do(self._log(reader.after)))
        return reader

    def export(self, path: str | Path) -> Path:
        """Write every duel that is kept as CSV or Parquet, for `duelay estimate`."""
        return write_history(self.history(), Path(path))

    @property
    def arms(self) -> tuple[str, ...]:
        """The names of all arms."""
        return self.standing().arms

    @property
    def status(self) -> str:
        """``"running"``, ``"paused"`` or ``"finished"``."""
        return self.standing().status


class AsyncService:
    """A service for programs with an event loop, as `connect_async` returns it."""

    def __init__(self, url: str, key: str | None = None, *, patience: float = PATIENCE) -> None:
        need("clients", ["httpx"], "client")
        import httpx

        self.url = url
        self._patience = checks.number("patience", patience, least=0)
        self._trouble = httpx.TransportError
        self._client = _client(httpx.AsyncClient, url, key)

    async def create(self, name: str, arms: Sequence[str], **said: Any) -> AsyncExperiment:
        """Make an experiment; `said` is what `Experiment.create` takes."""
        await self._do(Call("POST", "/experiments", new_experiment(name, arms, said)))
        return AsyncExperiment(self, name)

    async def open(self, name: str) -> AsyncExperiment:
        """Go on with an experiment."""
        experiment = AsyncExperiment(self, name)
        await experiment.standing()
        return experiment

    async def names(self, *, archived: bool = False) -> tuple[str, ...]:
        """Return the names of the experiments that the key is for, archived ones if wanted."""
        found = (await self._do(Call("GET", "/experiments")))["experiments"]
        if archived:
            found += (await self._do(Call("GET", "/experiments?status=archived")))["experiments"]
        return tuple(each["name"] for each in found)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def __aenter__(self) -> AsyncService:
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.close()

    async def _do(self, call: Call) -> Any:
        headers = {} if call.key is None else {"Idempotency-Key": call.key}
        tries = Tries(self._patience)
        while True:
            try:
                response = await self._client.request(
                    call.method, call.path, json=call.body, headers=headers
                )
                if response.status_code not in AGAIN:
                    return read_answer(call, response)
                trouble = f"it answered {response.status_code}"
            except self._trouble as error:
                trouble = f"{type(error).__name__}: {error}"
            await asyncio.sleep(tries.pause(trouble))


class AsyncExperiment(Calls[Coroutine[Any, Any, None]]):
    """An experiment of a service, for programs with an event loop."""

    def __init__(self, service: AsyncService, name: str) -> None:
        super().__init__(name)
        self._do = service._do

    async def ask(self, unit: str | int | None = None, key: str | int | None = None) -> LiveDuel:
        """Return a duel, as `Experiment.ask` does."""
        duel: LiveDuel = await self._do(self._ask(unit, key))
        return duel

    async def tell(
        self,
        duel: LiveDuel | str,
        winner: str | None = None,
        at: Any = None,
        *,
        metric: str | None = None,
        arm: str | None = None,
    ) -> str:
        """Say that the duel's first arm won, or with votes who did, as `Experiment.tell` does."""
        return str(await self._do(self._tell_any(duel, winner, at, metric, arm)))

    async def tell_all(self, answers: Iterable[Any]) -> list[str]:
        """Tell several answers as the news of one moment, as `Experiment.tell_all` does."""
        return list(await self._do(self._tell_all(answers)))

    async def standing(self) -> RemoteStanding:
        """Return where it stands."""
        found: RemoteStanding = await self._do(self._standing())
        return found

    async def cost_of_arm(self, name: str | None = None) -> ArmCostReport:
        """Return what a further arm costs until a verdict, as `Experiment.cost_of_arm` does."""
        found: ArmCostReport = await self._do(self._cost_of_arm(name))
        return found

    async def log(self) -> list[dict[str, Any]]:
        """Return every duel that is kept."""
        return (await self._read_log()).rows

    async def history(self) -> History:
        """Return every duel that is kept, and its answer."""
        return (await self._read_log()).history()

    async def _read_log(self) -> LogReader:
        reader = LogReader()
        while reader.after is not None:
            reader.add(await self._do(self._log(reader.after)))
        return reader

    async def export(self, path: str | Path) -> Path:
        """Write every duel that is kept as CSV or Parquet, for `duelay estimate`."""
        return write_history(await self.history(), Path(path))


def connect(url: str, key: str | None = None, *, patience: float = PATIENCE) -> Service:
    """Connect to a service: ``connect("http://127.0.0.1:8000").open("buttons")``.

    The experiment that it opens has the methods of `Experiment`.

    Parameters
    ----------
    url : str
        The address of the service.
    key : str, optional
        A key of the service.
    patience : float
        The seconds for which a call is repeated while the service does not answer.

    Returns
    -------
    Service
        The service.
    """
    return Service(url, key, patience=patience)


def connect_async(url: str, key: str | None = None, *, patience: float = PATIENCE) -> AsyncService:
    """Connect to a service as `connect` does; the methods of the result are coroutines.

    Parameters
    ----------
    url : str
        The address of the service.
    key : str, optional
        A key of the service.
    patience : float
        The seconds for which a call is repeated while the service does not answer.

    Returns
    -------
    AsyncService
        The service.
    """
    return AsyncService(url, key, patience=patience)
