"""Group commit for tasks of an event loop: what many clients ask at one time is one transaction."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque

from duelay.live.writes.group_commit import Batch, Request
from duelay.live.writes.writer import Writer


class WriteQueue:
    """Lets the tasks of an event loop write to one experiment."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
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
        batch.outcome()

    async def finish(self) -> None:
        """Wait until all that was asked for is written."""
        if self._waiting:
            await asyncio.wait(self._waiting)
