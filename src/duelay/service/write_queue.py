"""The queue of writes of one experiment, for the tasks of an event loop."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Awaitable, Callable

from duelay.errors import UnknownExperimentError
from duelay.live.writes.group_commit import Batch, Request
from duelay.live.writes.writer import Writer


class WriteQueue:
    """Lets the tasks of an event loop write to one experiment, in the same groups as threads."""

    def __init__(
        self, writer: Writer, reopen: Callable[[], Awaitable[WriteQueue]] | None = None
    ) -> None:
        self.writer, self._reopen = writer, reopen
        self._waiting: set[asyncio.Future[None]] = set()

    @property
    def sizes(self) -> deque[int]:
        """How many asks and answers each commit had, since /metrics last took the numbers."""
        return self.writer.sizes

    async def submit(self, *requests: Request) -> None:
        """Write requests; return once they are on the disk, and each has its result."""
        loop = asyncio.get_running_loop()
        batch, done = Batch(requests), loop.create_future()
        self._waiting.add(done)
        done.add_done_callback(self._waiting.discard)

        def go_on() -> None:
            if batch.is_done:
                with contextlib.suppress(RuntimeError):  # the loop is closed, and nobody waits
                    loop.call_soon_threadsafe(done.set_result, None)
            else:
                # Not a thread of a pool: all of its threads may wait for this very commit.
                threading.Thread(target=self.writer.lead, args=(batch,)).start()

        batch.notify = go_on
        if self.writer.enqueue(batch):
            go_on()
        await asyncio.shield(done)  # what is enqueued is written, though its client has gone away
        try:
            batch.outcome()
        except UnknownExperimentError:  # another worker may have made it anew under its name
            if self._reopen is None:
                raise
            await (await self._reopen()).submit(*requests)

    async def finish(self) -> None:
        """Wait until all that was asked for is written."""
        if self._waiting:
            await asyncio.wait(self._waiting)
