"""The registry of the experiments that a server has open, each with its queue of writes."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from duelay.errors import InvalidValueError
from duelay.live import Experiment
from duelay.live.storage.store import Store
from duelay.service.errors import RefusedError
from duelay.service.write_queue import WriteQueue

R = TypeVar("R")
_MAX_DUELS = 100_000  # ids of duels whose experiment is known without asking the store
_THREADS = 8


class ExperimentRegistry:
    """The open experiments, each with its queue of writes, and threads that wait for the store."""

    def __init__(self, store: Store, **opened: Any) -> None:
        self.store, self._opened = store, opened
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="duelay")
        self._open: dict[str, tuple[Experiment, WriteQueue]] = {}
        self._of_duel: OrderedDict[str, str] = OrderedDict()

    async def call(self, do: Callable[..., R], *args: Any) -> R:
        """Call something that waits for the store, in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, lambda: do(*args))

    async def open(self, name: str) -> tuple[Experiment, WriteQueue]:
        """Return an experiment, and the queue of what is written to it."""
        if name not in self._open:
            experiment = await self.call(self._read, name)
            # Another request may have opened it meanwhile.
            queue = WriteQueue(experiment.writer, lambda: self._reopen(name, experiment))
            self._open.setdefault(name, (experiment, queue))
        return self._open[name]

    async def _reopen(self, name: str, deleted: Experiment) -> WriteQueue:
        """Return the queue of the experiment that now has the name of one that is deleted."""
        if name in self._open and self._open[name][0] is deleted:
            self.forget(name)
        return (await self.open(name))[1]

    def _read(self, name: str) -> Experiment:
        try:
            return Experiment.open(self.store, name, **self._opened)
        except InvalidValueError as error:  # its policy may be in a module that is not imported
            raise RefusedError(503, f"the experiment cannot be opened: {error}") from error

    def forget(self, name: str) -> None:
        """Forget an experiment that is deleted."""
        self._open.pop(name, None)

    def remember(self, id: str, name: str) -> None:
        """Note to which experiment a duel belongs."""
        self._of_duel[id] = name
        if len(self._of_duel) > _MAX_DUELS:
            self._of_duel.popitem(last=False)

    async def experiment_of(self, id: str) -> str:
        """Return the name of the experiment to which a duel belongs."""
        if id not in self._of_duel:
            self.remember(id, await self.call(Experiment.name_of, self.store, id))
        return self._of_duel[id]

    def close(self) -> None:
        """Wait for what is being written, and close the store."""
        self._threads.shutdown(wait=True)
        self.store.close()

    @property
    def write_queues(self) -> list[tuple[str, WriteQueue]]:
        """The name and the queue of each open experiment."""
        return [(name, queue) for name, (_, queue) in self._open.items()]
