"""What all requests of a server share, and who is calling."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Annotated, Any

from fastapi import Depends, Header, Request

from duelay.live.storage.store import Store
from duelay.service.errors import RefusedError
from duelay.service.keys import ANYBODY, Key, KeyStore
from duelay.service.metrics import Metrics
from duelay.service.registry import ExperimentRegistry
from duelay.service.sessions import Sessions, is_here, is_own
from duelay.service.view_cache import Checks, ViewCache

_SCHEME = "Bearer"


@dataclass
class ServiceContext:
    """What all requests of a server share."""

    store: Store
    registry: ExperimentRegistry
    ring: KeyStore
    needs_key: bool
    opened: dict[str, Any]  # what `Experiment.open` takes
    metrics: Metrics = field(default_factory=Metrics)
    sessions: Sessions = field(default_factory=Sessions)
    checks: Checks = field(default_factory=Checks)
    exporting: asyncio.Lock = field(default_factory=asyncio.Lock)  # one file at a time
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


Given = Annotated[str | None, Header(alias="Authorization", description="Bearer KEY")]


def check_nearby(request: Request) -> None:
    """Refuse requests that may come from elsewhere; called as long as there is no key.

    Somebody on this machine may look at another site in a browser. That site must not be able to
    act as this person, even if its name leads to this machine.
    """
    if not is_here(request):
        raise RefusedError(
            403, "as long as there is no key, this is for this machine alone, at 127.0.0.1 or "
            "localhost: make one with `duelay key create`",
        )  # fmt: skip
    if not is_own(request):
        raise RefusedError(403, "this was sent by a page of another site: make a key")


async def caller(request: Request, authorization: Given = None) -> Key:
    """Find out who calls."""
    context: ServiceContext = request.app.state.context
    if not context.ring.is_fresh:
        await context.registry.call(context.ring.read)
    if context.ring.is_empty and not context.needs_key:
        check_nearby(request)
        return ANYBODY
    scheme, _, text = (authorization or "").partition(" ")
    key = context.ring.find(text.strip()) if scheme.lower() == _SCHEME.lower() else None
    if key is None:
        raise RefusedError(
            401, "send a key that is good: the header Authorization: Bearer duelay_...",
            WWW_Authenticate=_SCHEME,
        )  # fmt: skip
    return key


async def check_key(request: Request, scope: str | None = None, name: str | None = None) -> Key:
    """Return the key of a caller that may do something with an experiment."""
    return _check(await caller(request, request.headers.get("authorization")), scope, name)


def _check(key: Key, scope: str | None, name: str | None) -> Key:
    if name is not None and not key.covers(name):
        raise RefusedError(403, "this key is for other experiments")
    if scope is not None and not key.may(scope, name):
        raise RefusedError(403, f"this key may not {scope} here")
    return key


def needing(scope: str | None) -> Any:
    """Need a key that is for the experiment of the address, and may do something with it."""

    async def check(request: Request, name: str, authorization: Given = None) -> Key:
        return _check(await caller(request, authorization), scope, name)

    return Depends(check)


async def administering(request: Request, authorization: Given = None) -> Key:
    """Need a key that may administer."""
    key = await caller(request, authorization)
    if not key.may("administer"):
        raise RefusedError(403, "this key may not administer")
    return key


Caller = Annotated[Key, Depends(caller)]
Maker = Annotated[Key, Depends(administering)]
Reader = Annotated[Key, needing(None)]
Teller = Annotated[Key, needing("tell")]
Keeper = Annotated[Key, needing("administer")]
