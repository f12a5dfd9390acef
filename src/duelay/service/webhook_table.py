"""Webhooks in the store: the addresses that are told of events. `watching` tells them."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from typing import Any

from sqlalchemy import delete, insert, select

from duelay.live import Experiment
from duelay.live.storage import schema
from duelay.live.storage.schema import MICRO


def list_hooks(experiment: Experiment) -> list[dict[str, Any]]:
    """Return the addresses that are told of an experiment's events."""
    hooks = schema.webhooks
    with experiment.store.reading() as connection:
        experiment._writer.read_head(connection)
        rows = connection.execute(
            select(hooks.c.id, hooks.c.url, hooks.c.trouble)
            .where(hooks.c.experiment == experiment._writer.id)
            .order_by(hooks.c.created)
        )
        return [dict(row._mapping) for row in rows]


def add_hook(
    experiment: Experiment, url: str, *, now: Callable[[], float] = time.time
) -> dict[str, Any]:
    """Let an address be told of events from now on; return it with the secret that signs them."""
    events = schema.events
    id, secret, at = secrets.token_hex(8), secrets.token_hex(32), round(now() * MICRO)
    with experiment.store.explained(), experiment.store.writing() as connection:
        experiment._writer.read_head(connection)
        last = connection.execute(
            select(events.c.id)
            .where(events.c.experiment == experiment._writer.id)
            .order_by(events.c.id.desc())
            .limit(1)
        ).scalar()
        connection.execute(insert(schema.webhooks), {
            "id": id, "experiment": experiment._writer.id, "url": url, "secret": secret,
            "created": at, "due": at, "sent": last or 0,
        })  # fmt: skip
    return {"id": id, "url": url, "secret": secret}


def remove_hook(experiment: Experiment, id: str) -> bool:
    """Tell an address no more; return whether there was one."""
    hooks = schema.webhooks
    with experiment.store.explained(), experiment.store.writing() as connection:
        experiment._writer.read_head(connection)
        done = connection.execute(
            delete(hooks).where(hooks.c.experiment == experiment._writer.id, hooks.c.id == id)
        )
    return bool(done.rowcount)
