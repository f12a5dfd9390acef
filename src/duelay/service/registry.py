"""The registry of the experiments that a server has open, each with its queue of writes."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any, TypeVar

from duelay.live import Experiment
from duelay.live.storage.store import Store
from duelay.live.writes.group_commit import MOST, Request

R = TypeVar("R")
_MAX_DUELS = 100_000  # ids of duels whose experiment is known without asking the store
_THREADS = 8
_MAX_SIZES = 10_000  # sizes of commits that are kept for /metrics


class WriteQueue:
    """What a server writes to one experiment, many requests in each transaction.

    It does for tasks of an event loop what `duelay.live.writes.group_commit` does for threads:
    while a group is being committed in a thread, the next one gathers.
    """

    def __init__(self, experiment: Experiment, threads: Executor) -> None:
        self.experiment = experiment
        self._threads = threads
        self._waiting: list[tuple[Sequence[Request], asyncio.Future[None]]] = []
        self._task: asyncio.Task[None] | None = None
        # Sizes of commits since /metrics last took them: the latest, as nobody may call it.
        self.sizes: deque[int] = deque(maxlen=_MAX_SIZES)

    async def submit(self, *requests: Request) -> None:
        """Write requests; return once they are on the disk, and each has its result."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((requests, done))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())
        await done

    async def finish(self) -> None:
        """Wait until all that was asked for is written."""
        if self._task is not None:
            await self._task

    async def _run(self) -> None:
        while self._waiting:
            group, self._waiting = self._waiting[:MOST], self._waiting[MOST:]
            parts = [request for requests, _ in group for request in requests]
            error: BaseException | None = None
            try:
                loop = asyncio.get_running_loop()
                await loop.run_in_executor(self._threads, self.experiment.submit_all, parts)
            except Exception as found:
                error = found
            self.sizes.append(len(parts))
            for _, done in group:
                if not done.done():  # a client that has gone away is not waiting
                    _settle(done, error)


def _settle(done: asyncio.Future[None], error: Any) -> None:
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(error)


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
            experiment = await self.call(lambda: Experiment.open(self.store, name, **self._opened))
            # Another request may have opened it meanwhile.
            self._open.setdefault(name, (experiment, WriteQueue(experiment, self._threads)))
        return self._open[name]

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
