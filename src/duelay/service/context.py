"""The context of the application: what all requests of a server share."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Annotated, Any

from fastapi import Depends, Request

from duelay.live.storage.store import Store
from duelay.service.auth import Sessions
from duelay.service.errors import RefusedError
from duelay.service.keys import KeyStore
from duelay.service.metrics import Metrics
from duelay.service.planner import Planner
from duelay.service.registry import ExperimentRegistry
from duelay.service.view_cache import Checks, ViewCache

_MAX_BATCHES = 2  # large ones, that are told at one time: other calls wait for few of them


@dataclass
class ServiceContext:
    """What all requests of a server share."""

    store: Store
    registry: ExperimentRegistry
    keys: KeyStore
    needs_key: bool
    opened: dict[str, Any]  # what `Experiment.open` takes
    clock: str | None = None  # of experiments that are made here and name none, such as "1000x"
    webhooks_to: str = "public"  # where webhooks may lead
    metrics: Metrics = field(default_factory=Metrics)
    sessions: Sessions = field(default_factory=Sessions)
    checks: Checks = field(default_factory=Checks)
    planner: Planner = field(default_factory=Planner)
    exporting: asyncio.Lock = field(default_factory=asyncio.Lock)  # one file at a time
    telling: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_MAX_BATCHES))
    warm: Any = None  # the task that compiles kernels

    def __post_init__(self) -> None:
        self.view_cache = ViewCache(self.registry)


def check_warm(context: ServiceContext) -> None:
    """Refuse as long as kernels are being compiled."""
    if not context.warm.done():
        raise RefusedError(503, "kernels are being compiled", Retry_After="1")
    if context.warm.exception() is not None:
        raise RefusedError(503, "kernels could not be compiled: the log says why")


async def find_context(request: Request) -> ServiceContext:
    """Return what the application of a request shares."""
    context: ServiceContext = request.app.state.context
    return context


Here = Annotated[ServiceContext, Depends(find_context)]
