"""The load of a service: asks and tells a second, beside a bare route that writes the same rows.

    python benchmarks/load.py [--write]

Each server is a process with one worker on a file of SQLite, `synchronous=FULL`; 32 clients of
another process ask, and half of the time tell. The bare one is a FastAPI route that commits the
same rows of duels in groups, without counters, evidence or policy. Both are measured in turns.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from fastapi import FastAPI
from sqlalchemy import insert

import pages
from duelay.live import Experiment, Store
from duelay.live.storage import schema
from duelay.live.storage.statements import DUELS_BY_ID, find_rows, write_duels
from duelay.live.writes.requests import make_id

CLIENTS = 32
SECONDS = 6.0
ROUNDS = 3
_NAME = "load"


def bare() -> FastAPI:
    """Return an application with two routes that write rows of duels in groups."""
    store, waiting = Store(os.environ["DUELAY_STORE"]), []
    app = FastAPI()
    state: dict[str, Any] = {"task": None, "number": 0}

    def commit(group: list[Any]) -> None:
        with store.writing() as connection:
            rows = []
            for kind, each, _ in group:
                if kind == "ask":
                    state["number"] += 1
                    rows.append({
                        "id": each, "experiment": 1, "number": state["number"], "first": 0,
                        "second": 1, "asked": time.time_ns() // 1000, "enters": True,
                    })  # fmt: skip
            told = [each for kind, each, _ in group if kind == "tell"]
            if told:
                found = list(find_rows(connection, DUELS_BY_ID, told))
                now = time.time_ns() // 1000
                connection.execute(
                    write_duels("told", "first_won"),
                    [{"b_id": row["id"], "told": now, "first_won": 1.0} for row in found],
                )
            if rows:
                connection.execute(insert(schema.duels), rows)

    async def run() -> None:
        while waiting:
            group, waiting[:] = waiting[:500], waiting[500:]
            await asyncio.get_running_loop().run_in_executor(None, commit, group)
            for _, _, done in group:
                done.set_result(None)

    async def submit(kind: str, id: str) -> None:
        done = asyncio.get_running_loop().create_future()
        waiting.append((kind, id, done))
        if state["task"] is None or state["task"].done():
            state["task"] = asyncio.create_task(run())
        await done

    @app.post("/experiments/{name}/duels")
    async def ask(name: str) -> dict[str, str]:
        id = make_id()
        await submit("ask", id)
        return {"id": id, "first": "a", "second": "b"}

    @app.put("/duels/{id}/conversion")
    async def tell(id: str) -> dict[str, str]:
        await submit("tell", id)
        return {"id": id, "status": "counted"}

    @app.get("/healthz")
    async def health() -> dict[str, str]:
        return {"status": "ok"}

    return app


@contextmanager
def server(application: str, store: Path) -> Iterator[int]:
    """Serve an application in a process of its own; give its port."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    env = {**os.environ, "DUELAY_STORE": f"sqlite:///{store}", "DUELAY_LOG_LEVEL": "WARNING"}
    env["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    process = subprocess.Popen(
        [sys.executable, "-m", "uvicorn", application, "--factory", "--port", str(port),
         "--no-access-log", "--log-level", "warning"],
        env=env,
    )  # fmt: skip
    try:
        for _ in range(600):
            time.sleep(0.2)
            try:
                if asyncio.run(once(port, "GET", "/healthz"))[0] == 200:
                    break
            except OSError:
                continue
        yield port
    finally:
        process.terminate()
        process.wait(30)


async def once(port: int, method: str, path: str) -> tuple[int, bytes]:
    """Send one request on a connection of its own."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        return await send(reader, writer, method, path)
    finally:
        writer.close()


async def send(reader: Any, writer: Any, method: str, path: str) -> tuple[int, bytes]:
    """Send a request without a body on an open connection; a client that costs little itself."""
    writer.write(f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n".encode())
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
    return int(head.split(b" ", 2)[1]), await reader.readexactly(length)


async def client(port: int, until: float, taken: list[float]) -> None:
    """Ask, and half of the time tell, until it is over."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while time.perf_counter() < until:
        start = time.perf_counter()
        status, body = await send(reader, writer, "POST", f"/experiments/{_NAME}/duels")
        taken.append(time.perf_counter() - start)
        assert status == 200, body
        if random.random() < 0.5:
            id = json.loads(body)["id"]
            start = time.perf_counter()
            status, body = await send(reader, writer, "PUT", f"/duels/{id}/conversion")
            taken.append(time.perf_counter() - start)
            assert status == 200, body
    writer.close()


async def load(port: int) -> tuple[float, float, float]:
    """Return requests a second, and the median and the 99th percentile of their time."""
    taken: list[float] = []
    start = time.perf_counter()
    await asyncio.gather(*(client(port, start + SECONDS, taken) for _ in range(CLIENTS)))
    rate = len(taken) / (time.perf_counter() - start)
    return rate, float(np.percentile(taken, 50)), float(np.percentile(taken, 99))


def main() -> None:
    """Measure both in turns; keep the table."""
    found: dict[str, list[tuple[float, float, float]]] = {"bare route": [], "duelay": []}
    with tempfile.TemporaryDirectory() as folder:
        stores = [Path(folder) / "bare.db", Path(folder) / "duelay.db"]
        for store in stores:
            Experiment.create(store, _NAME, 6, error=1e-12).close()
        with (
            server("load:bare", stores[0]) as plain,
            server("duelay.service.server:application", stores[1]) as ours,
        ):
            for port in (plain, ours):
                asyncio.run(load(port))  # warm
            for _ in range(ROUNDS):
                found["bare route"].append(asyncio.run(load(plain)))
                found["duelay"].append(asyncio.run(load(ours)))
    rows, base = [], np.median(found["bare route"], axis=0)
    for name, measured in found.items():
        rate, middle, slow = np.median(measured, axis=0)
        rows.append([
            name, f"{rate:,.0f}", f"{rate / base[0]:.2f}", f"{1000 * middle:.1f}",
            f"{1000 * slow:.1f}", f"{slow / base[2]:.2f}",
        ])  # fmt: skip
    columns = [f"one worker, {CLIENTS} clients", "asks and tells a second", "ratio",
               "median, ms", "99th percentile, ms", "ratio"]  # fmt: skip
    pages.show("load", "load", [pages.table(columns, rows)])


if __name__ == "__main__":
    main()
