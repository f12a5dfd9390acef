"""What all requests of a server share, and who is calling."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

from fastapi import Depends, Header, Request

from duelay.live.store import Store
from duelay.service.desks import Desks
from duelay.service.errors import RefusedError
from duelay.service.keys import ANYBODY, Key, Keyring
from duelay.service.metrics import Metrics

_SCHEME = "Bearer"


@dataclass
class Room:
    """What all requests of a server share."""

    store: Store
    desks: Desks
    ring: Keyring
    needs_key: bool
    opened: dict[str, Any]  # what `Experiment.open` takes
    metrics: Metrics = field(default_factory=Metrics)
    warm: Any = None  # the task that compiles kernels


def find_room(request: Request) -> Room:
    """Return what the application of a request shares."""
    room: Room = request.app.state.room
    return room


Here = Annotated[Room, Depends(find_room)]


async def caller(
    room: Here, authorization: Annotated[str | None, Header(description="Bearer KEY")] = None
) -> Key:
    """Find out who calls."""
    if not room.ring.is_fresh:
        await room.desks.call(room.ring.read)
    if room.ring.is_empty and not room.needs_key:
        return ANYBODY
    scheme, _, text = (authorization or "").partition(" ")
    key = room.ring.find(text.strip()) if scheme.lower() == _SCHEME.lower() else None
    if key is None:
        raise RefusedError(
            401, "send a key that is good: the header Authorization: Bearer duelay_...",
            WWW_Authenticate=_SCHEME,
        )  # fmt: skip
    return key


def needing(scope: str | None) -> Any:
    """Need a key that is for the experiment of the address, and may do something with it."""

    async def check(name: str, key: Annotated[Key, Depends(caller)]) -> Key:
        if not key.covers(name):
            raise RefusedError(403, "this key is for other experiments")
        if scope is not None and not key.may(scope, name):
            raise RefusedError(403, f"this key may not {scope} here")
        return key

    return Depends(check)


async def administering(key: Annotated[Key, Depends(caller)]) -> Key:
    """Need a key that may administer."""
    if not key.may("administer"):
        raise RefusedError(403, "this key may not administer")
    return key


Caller = Annotated[Key, Depends(caller)]
Maker = Annotated[Key, Depends(administering)]
Reader = Annotated[Key, needing(None)]
Asker = Annotated[Key, needing("ask")]
Keeper = Annotated[Key, needing("administer")]
Teller = Annotated[Key, needing("tell")]
