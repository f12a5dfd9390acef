"""Groups over HTTP: what many clients ask at one time is written in one transaction.

It does for tasks of an event loop what `duelay.live.writes.group_commit` does for threads: while a
group is being committed in a thread, the next one gathers.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Executor
from typing import Any

from duelay.live.writes.group_commit import MOST, Request
from duelay.live.writes.writer import Batch, Writer

_REMEMBERED = 10_000  # sizes of groups


class WriteQueue:
    """All that a server writes of one experiment."""

    def __init__(self, writer: Writer, threads: Executor) -> None:
        self.writer = writer
        self._threads = threads
        self._waiting: list[tuple[Sequence[Request], asyncio.Future[None]]] = []
        self._task: asyncio.Task[None] | None = None
        # Sizes of groups since /metrics last took them. Nobody may ever ask: so only the latest.
        self.sizes: deque[int] = deque(maxlen=_REMEMBERED)

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
                await loop.run_in_executor(self._threads, self.writer.submit, Batch(parts))
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
