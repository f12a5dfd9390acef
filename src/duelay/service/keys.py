"""API keys and their scopes: ask, tell and administer, for all experiments or some.

A key is `duelay_ID_SECRET`. The store has a hash of the secret, which is 256 random bits: no guess
finds it, and the store does not reveal it.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import insert, select, update

from duelay._core import checks
from duelay.errors import InvalidValueError
from duelay.live.storage import schema
from duelay.live.storage.schema import MICRO
from duelay.live.storage.store import Store, open_store

SCOPES = ("ask", "tell", "administer")
_FORM = re.compile(r"duelay_([0-9a-f]{16})_([0-9a-f]{64})")
_FRESH = 2.0  # seconds after which a key that was made or revoked elsewhere is known here


@dataclass(frozen=True)
class Key:
    """What a key may do."""

    id: str
    name: str
    scopes: tuple[str, ...]
    experiments: tuple[str, ...] | None  # None for all
    created: float = 0.0
    is_revoked: bool = False

    def may(self, scope: str, experiment: str | None = None) -> bool:
        """Whether it may do something: with an experiment, or at all if none is named."""
        return scope in self.scopes and (experiment is None or self.covers(experiment))

    def covers(self, experiment: str) -> bool:
        """Whether it is for an experiment."""
        return self.experiments is None or experiment in self.experiments


ANYBODY = Key("", "anybody", SCOPES, None)  # on loopback, where there are no keys


def create_key(
    store: Store | str | Path,
    name: str,
    scopes: Iterable[str] = ("ask", "tell"),
    experiments: Sequence[str] | None = None,
) -> str:
    """Make a key, and return it. The store keeps a hash alone, so the key cannot be shown again.

    Parameters
    ----------
    store : Store, str or Path
        The store, or its address.
    name : str
        A name for lists, of at most 200 characters.
    scopes : iterable of str
        What the key permits: ``"ask"``, ``"tell"`` and ``"administer"``.
    experiments : sequence of str, optional
        The experiments that the key is for; None for all.

    Returns
    -------
    str
        The key.

    Raises
    ------
    InvalidValueError
        If the name or the scopes cannot be used.
    """
    store = open_store(store)
    store.need(makes=True)
    if not isinstance(name, str) or not name.strip() or len(name) > 200:
        raise InvalidValueError(f"name must be a text of at most 200 characters, got {name!r}")
    chosen = tuple(checks.one_of("scope", scope, SCOPES) for scope in scopes)
    if not chosen:
        raise InvalidValueError(f"scopes must name at least one of {', '.join(SCOPES)}")
    id, secret = secrets.token_hex(8), secrets.token_hex(32)
    row = {
        "id": id,
        "name": name,
        "hash": _hash(secret),
        "scopes": " ".join(chosen),
        "experiments": None if experiments is None else json.dumps(list(experiments)),
        "created": round(time.time() * MICRO),
    }
    with store.explained(), store.writing() as connection:
        connection.execute(insert(schema.keys), row)
    return f"duelay_{id}_{secret}"


def list_keys(store: Store | str | Path) -> tuple[Key, ...]:
    """Return all keys, including the revoked ones, without their secrets.

    Parameters
    ----------
    store : Store, str or Path
        The store, or its address.

    Returns
    -------
    tuple of Key
        The keys, oldest first.
    """
    store = open_store(store)
    store.need()
    with store.reading() as connection:
        rows = connection.execute(select(schema.keys).order_by(schema.keys.c.created)).all()
    return tuple(_key(row) for row in rows)


def revoke_key(store: Store | str | Path, id: str) -> None:
    """Revoke a key.

    Parameters
    ----------
    store : Store, str or Path
        The store, or its address.
    id : str
        The id of the key, or the whole key.

    Raises
    ------
    InvalidValueError
        If no such key exists, or it is revoked already.
    """
    store = open_store(store)
    store.need()
    found = _FORM.fullmatch(id)
    id = found[1] if found else id
    with store.explained(), store.writing() as connection:
        done = connection.execute(
            update(schema.keys)
            .where(schema.keys.c.id == id, schema.keys.c.revoked.is_(None))
            .values(revoked=round(time.time() * MICRO))
        )
    if not done.rowcount:
        raise InvalidValueError(f"no key {id!r} that is not revoked: `duelay key list` shows those")


class KeyStore:
    """The keys of a store, read again from time to time."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._keys: dict[str, tuple[Key, str]] = {}
        self._read_at = -1e9
        self._were_there = False

    def read(self) -> None:
        """Read the keys, if they are not fresh; keep those known if the store does not answer."""
        if time.monotonic() - self._read_at < _FRESH:
            return
        with self.store.reading() as connection:
            rows = connection.execute(select(schema.keys)).all()
        self._keys = {row.id: (_key(row), row.hash) for row in rows}
        self._were_there |= bool(rows)
        self._read_at = time.monotonic()

    def forget(self) -> None:
        """Have the keys read again: one was made or revoked."""
        self._read_at = -1e9

    @property
    def is_fresh(self) -> bool:
        """Whether they have been read lately."""
        return time.monotonic() - self._read_at < _FRESH

    @property
    def is_empty(self) -> bool:
        """Whether no key was ever seen: a store that loses its keys is not open to all."""
        return not self._were_there

    def get(self, id: str) -> Key | None:
        """Return the key of an id; None for one that is not there or revoked."""
        key, _ = self._keys.get(id, (None, ""))
        return key if key is not None and not key.is_revoked else None

    def find(self, text: str) -> Key | None:
        """Return the key that was presented; None for any that is wrong or revoked."""
        found = _FORM.fullmatch(text)
        key, wanted = self._keys.get(found[1], (None, "")) if found else (None, "")
        is_right = hmac.compare_digest(_hash(found[2] if found else ""), wanted)
        return key if key is not None and is_right and not key.is_revoked else None


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _key(row: Any) -> Key:
    names = None if row.experiments is None else tuple(json.loads(row.experiments))
    return Key(row.id, row.name, tuple(row.scopes.split()), names, row.created / MICRO,
               row.revoked is not None)  # fmt: skip
