"""The FastAPI application: its parts, how it starts and how it stops."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import os
import threading
from collections.abc import AsyncIterator
from concurrent.futures import Future
from typing import Any

from fastapi import FastAPI

from duelay._version import __version__
from duelay.live.maintenance import warm_up
from duelay.live.storage.store import Store, open_store
from duelay.service import errors
from duelay.service.background_worker import BackgroundWorker
from duelay.service.context import ServiceContext
from duelay.service.keys import KeyStore
from duelay.service.middleware import RequestMiddleware
from duelay.service.registry import ExperimentRegistry
from duelay.service.routes import ROUTES, shortcuts
from duelay.service.web.browser import to_people
from duelay.service.web.pages import PAGES

_LOG = logging.getLogger("duelay.service")


def make_app(
    store: Store | str,
    *,
    needs_key: bool = False,
    webhooks_to: str = "public",
    clock_of_new: str | None = None,
    **opened: Any,
) -> FastAPI:
    """Return the application for a store.

    Parameters
    ----------
    store : Store or str
        The store, or its address.
    needs_key : bool
        Whether callers need a key even if the store has none yet.
    webhooks_to : str
        Where webhooks may lead: to ``"public"`` addresses, also to those of this machine
        (``"loopback"``), or also to private networks (``"private"``).
    clock_of_new : str, optional
        The clock of experiments that are made here and name none, such as ``"1000x"``.
    **opened : object
        The keywords of `Experiment.open`.

    Returns
    -------
    fastapi.FastAPI
        The application.
    """
    store = open_store(store)
    context = ServiceContext(
        store, ExperimentRegistry(store, **opened), KeyStore(store), needs_key, opened,
        clock_of_new, webhooks_to,
    )  # fmt: skip
    worker = BackgroundWorker(store, webhooks_to=webhooks_to, **opened)

    @contextlib.asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        await context.registry.call(lambda: store.need(makes=True))
        context.warm = _start_warm_up()
        worker.start()
        yield
        context.warm.cancel()  # the thread goes on, and ends with the process
        await context.registry.call(worker.stop)
        await context.registry.call(context.checks.close)
        for _, write_queue in context.registry.write_queues:
            await write_queue.finish()
        context.registry.close()

    app = FastAPI(
        title="duelay",
        version=__version__,
        summary="Find the best of several arms from duels whose answers come late, or never.",
        lifespan=life,
        docs_url=None,  # the framework's own page loads scripts from other hosts
        redoc_url=None,
        **_telemetry(),
    )
    app.state.context = context
    app.add_middleware(RequestMiddleware, metrics=context.metrics, to_people=to_people)
    errors.install(app, to_people)
    app.include_router(ROUTES)
    app.router.routes[:0] = shortcuts()
    app.router.routes.extend(PAGES)
    return app


def _start_warm_up() -> asyncio.Future[None]:
    """Compile kernels in a thread; a server that stops does not wait for it, as a pool would."""
    done: Future[None] = Future()
    done.set_running_or_notify_cancel()

    def run() -> None:
        try:
            warm_up()
        except Exception as error:
            _LOG.exception("kernels could not be compiled")
            done.set_exception(error)
        else:
            done.set_result(None)

    threading.Thread(target=run, name="duelay-warm-up", daemon=True).start()
    return asyncio.wrap_future(done)


def _telemetry() -> dict[str, Any]:
    """Leave the framework's telemetry out unless it is set up: it looks at each request."""
    is_wanted = any(name.startswith("OTEL_") for name in os.environ)
    if is_wanted or "telemetry" not in inspect.signature(FastAPI).parameters:
        return {}
    return {"telemetry": {"tracing": False, "metrics": False, "logs": False}}
