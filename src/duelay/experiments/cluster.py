"""Work on a Dask cluster: cells go out as there is room, and a cluster that is gone is noticed."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

LOST_SECONDS = 60  # how long to wait for another worker when all are gone
_WORKER_COUNT_SECONDS = 1.0  # between two counts of the workers
_CELLS_PER_THREAD = 3  # cells sent to each thread, so that it need not wait for the next


def outcomes(client: Any, work: Callable[..., Any], cells: Sequence[Any]) -> Iterator[Any]:
    """Yield the result of `work` for each cell as it is finished, in any order.

    If a worker is lost, another does its cells again. Without any worker for a minute, it raises
    TimeoutError.
    """
    from distributed import as_completed
    from distributed.client import CancelledError

    waiting = list(reversed(cells))
    running = as_completed(loop=client.loop, with_results=True, raise_errors=False)
    threads, looked = 0, 0.0
    seen = time.monotonic()  # when a worker was last there
    while waiting or not running.is_empty():
        for future, result in running.next_batch(block=False):
            if future.status == "error":
                raise result[1]
            # Not by its status: a result that is here counts, though its worker is lost since.
            if isinstance(result, CancelledError):
                raise ConnectionError("the Dask scheduler is gone: start it, and run again")
            yield result
        if time.monotonic() - looked >= _WORKER_COUNT_SECONDS:
            threads, looked = _threads(client), time.monotonic()
            seen = looked if threads else seen
        if time.monotonic() - seen >= LOST_SECONDS:
            raise TimeoutError(
                f"the Dask cluster has had no worker for {LOST_SECONDS} seconds: start some, and "
                f"run again"
            )
        while waiting and running.count() < _CELLS_PER_THREAD * threads:
            running.add(client.submit(work, waiting.pop(), None, pure=False))
        if not running.has_ready():
            time.sleep(0.01)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep Dask from logging the loss of a cluster with a traceback: we say it in a sentence."""
    logger = logging.getLogger("distributed.client")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


def _threads(client: Any) -> int:
    """Return how many threads the cluster has; 0 if the scheduler does not answer."""
    try:
        return sum(client.nthreads().values())
    except Exception:  # a scheduler that is gone: Dask has many ways to say so
        return 0
