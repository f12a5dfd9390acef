"""Serve the application with uvicorn, in one worker process or several."""

from __future__ import annotations

import contextlib
import inspect
import ipaddress
import math
import os
import secrets
import socket
import sys
import tempfile
import threading
import time
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI

from duelay._core import checks
from duelay._core.patience import at_least
from duelay._core.user_modules import bring_in
from duelay.errors import InvalidValueError
from duelay.live.clock import check_speed
from duelay.live.storage.store import Store, open_store
from duelay.service.app import make_app
from duelay.service.auth import SECRET, Sessions
from duelay.service.keys import list_keys
from duelay.service.middleware import log_lines

_STORE = "DUELAY_STORE"
_LOG_LEVEL = "DUELAY_LOG_LEVEL"
_WEBHOOKS = "DUELAY_WEBHOOKS"
_CLOCK = "DUELAY_CLOCK"
_MODULES = "DUELAY_IMPORT"  # names of modules, with commas between them
# Seconds that a thread has the interpreter while another waits: with the usual five milliseconds
# the thread that commits would hold up all requests.
TURN = 0.0005
_SHUTDOWN = math.ceil(at_least(20.0))  # seconds that requests have to end
_OPENS = at_least(60.0)  # seconds for which a browser waits to be opened


def serve(
    store: Store | str, host: str = "127.0.0.1", port: int = 8000, workers: int = 1,
    *, log_level: str = "INFO", modules: Sequence[str] = (),
    private_webhooks: bool = False, clock: str | None = None,
) -> None:  # fmt: skip
    """Serve a store until the process is stopped; every acknowledged answer is committed.

    Parameters
    ----------
    store : Store or str
        The store, or its address. It is made if there is none.
    host : str
        The address to listen on. Any but this machine's own requires that the store has a key.
    port : int
        The port.
    workers : int
        The number of processes.
    log_level : str
        The least severe level that is logged.
    modules : sequence of str
        The names of modules with policies of your own, which each process imports.
    private_webhooks : bool
        Whether webhooks may lead to private networks. To this machine they may also if `host` is
        its own.
    clock : str, optional
        The clock of experiments that are made here and name none: ``"1000x"`` goes a thousand times
        as fast as the world. Experiments that are there keep theirs.

    Raises
    ------
    InvalidValueError
        If an argument cannot be used.
    StoreError
        If the store cannot be opened.
    OSError
        If another program listens at the port.
    """
    store = open_store(store)
    store.need(makes=True)
    checks.whole("workers", workers)
    if checks.whole("port", port) > 65535:
        raise InvalidValueError(f"port must be at most 65535, got {port}")
    check_speed(clock)
    check_host(store, host)
    check_port(host, port)
    os.environ[_STORE] = store.url.render_as_string(hide_password=False)
    os.environ[_LOG_LEVEL] = log_level
    os.environ[_CLOCK] = clock or ""
    os.environ[_MODULES] = ",".join(modules)
    os.environ[_WEBHOOKS] = (
        "private" if private_webhooks else "loopback" if _is_loopback(host) else "public"
    )
    _import_modules()
    Sessions()  # refuses a secret that is too short here, once, and not in each worker
    with contextlib.ExitStack() as stack:
        if SECRET not in os.environ:  # one for all workers, as long as they run
            os.environ[SECRET] = secrets.token_hex(32)
            stack.callback(os.environ.pop, SECRET, None)
        if workers > 1:  # they add up their numbers in a folder
            folder = tempfile.TemporaryDirectory(prefix="duelay-metrics-")
            os.environ["PROMETHEUS_MULTIPROC_DIR"] = stack.enter_context(folder)
            stack.callback(os.environ.pop, "PROMETHEUS_MULTIPROC_DIR", None)
        uvicorn.run(
            "duelay.service.server:application",
            factory=True,
            host=host,
            port=port,
            workers=workers,
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=_SHUTDOWN,
            **_worker_answers(),
        )


def check_port(host: str, port: int) -> None:
    """Raise an error if the server could not listen."""
    kind = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(kind, socket.SOCK_STREAM) as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind((host, port))
        except OSError as error:
            why = os.strerror(error.errno) if error.errno else str(error)
            raise OSError(
                f"the service cannot listen at {host}, port {port}: {why}. Stop what listens "
                "there, or take another port with --port"
            ) from None


def _worker_answers() -> dict[str, Any]:
    """Say how long a worker may take to answer before it is replaced; earlier uvicorns cannot."""
    name = "timeout_worker_healthcheck"
    there = inspect.signature(uvicorn.run).parameters
    return {name: math.ceil(at_least(there[name].default))} if name in there else {}


def address_of(host: str, port: int) -> str:
    """Return the address of the page, for a browser on this machine."""
    shown = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{shown}]:{port}" if ":" in shown else f"http://{shown}:{port}"


def open_page(host: str, port: int) -> threading.Thread:
    """Open a browser as soon as the server listens; return the thread that waits for that."""

    def wait() -> None:
        until = time.monotonic() + _OPENS
        while time.monotonic() < until:
            try:
                socket.create_connection((host, port), 1.0).close()
            except OSError:
                time.sleep(0.1)
            else:
                webbrowser.open(f"{address_of(host, port)}/")
                return

    thread = threading.Thread(target=wait, name="duelay-open", daemon=True)
    thread.start()
    return thread


def check_host(store: Store, host: str) -> None:
    """Refuse to listen for others as long as there is no key."""
    if not list_keys(store) and not _is_loopback(host):
        raise InvalidValueError(
            f"host must be of this machine alone, such as 127.0.0.1, as long as there is no key, "
            f"got {host!r}: make one with `duelay key create {store.name}`"
        )


def application() -> FastAPI:
    """Return the application of a worker."""
    sys.setswitchinterval(TURN)
    log_lines(os.environ.get(_LOG_LEVEL, "INFO"))
    _import_modules()
    return make_app(
        os.environ[_STORE],
        webhooks_to=os.environ.get(_WEBHOOKS, "public"),
        clock_of_new=os.environ.get(_CLOCK) or None,
    )


def _import_modules() -> None:
    """Import the modules of the user, from the current folder or the search path."""
    for name in filter(None, os.environ.get(_MODULES, "").split(",")):
        bring_in(name, [Path()])


def _is_loopback(host: Any) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
