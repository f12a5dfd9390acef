"""Webhooks: the addresses that an experiment tells of its events, and how messages are signed."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from typing import Any

from sqlalchemy import delete, insert, select

from duelay.live import Experiment
from duelay.live.storage import schema
from duelay.live.storage.schema import MICRO


def sign(secret: str, at: int, body: bytes) -> str:
    """Return the signature of a message: HMAC-SHA256 of its time, a dot and its body."""
    return hmac.new(secret.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()


def list_hooks(experiment: Experiment) -> list[dict[str, Any]]:
    """Return the addresses that are told of an experiment's events."""
    hooks = schema.webhooks
    with experiment.reading() as (connection, _):
        rows = connection.execute(
            select(hooks.c.id, hooks.c.url, hooks.c.trouble)
            .where(hooks.c.experiment == experiment.id)
            .order_by(hooks.c.created)
        ).mappings()
        return [dict(row) for row in rows]


def add_hook(
    experiment: Experiment, url: str, *, now: Callable[[], float] = time.time
) -> dict[str, Any]:
    """Let an address be told of events from now on; return it with the secret that signs them."""
    events = schema.events
    id, secret, at = secrets.token_hex(8), secrets.token_hex(32), round(now() * MICRO)
    with experiment.writing() as connection:
        last = connection.execute(
            select(events.c.id)
            .where(events.c.experiment == experiment.id)
            .order_by(events.c.id.desc())
            .limit(1)
        ).scalar()
        connection.execute(insert(schema.webhooks), {
            "id": id, "experiment": experiment.id, "url": url, "secret": secret,
            "created": at, "due": at, "sent": last or 0,
        })  # fmt: skip
    return {"id": id, "url": url, "secret": secret}


def remove_hook(experiment: Experiment, id: str) -> bool:
    """Tell an address no more; return whether there was one."""
    hooks = schema.webhooks
    with experiment.writing() as connection:
        done = connection.execute(
            delete(hooks).where(hooks.c.experiment == experiment.id, hooks.c.id == id)
        )
    return bool(done.rowcount)
