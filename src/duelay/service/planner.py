"""Plans of experiments, simulated in processes of their own: one at a time, and not for long."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from starlette.requests import ClientDisconnect

from duelay._core.patience import at_least
from duelay.errors import InvalidValueError
from duelay.planning.report import PlanReport
from duelay.planning.simulated import PreparedPlan, prepare
from duelay.service.errors import RefusedError

MAX_RUNS, _MIN_RUNS = 100, 40  # simulated experiments of each world
MAX_VISITORS = 20_000_000  # in all experiments of a world
_MAX_WAITING = 4  # requests that wait for their turn
_LIMIT = at_least(120.0)  # seconds of a simulation; the first one on a machine compiles
_POLL_INTERVAL = 0.5  # seconds between two looks whether the caller is still there
_WORKER = (sys.executable, "-P", "-m", "duelay.planning.worker")
_LOG = logging.getLogger("duelay.service")


class Planner:
    """Simulates plans for the requests of a server."""

    def __init__(self) -> None:
        self._turn = asyncio.Semaphore(1)
        self._n_waiting = 0

    async def plan(
        self, said: Mapping[str, Any], is_gone: Callable[[], Awaitable[bool]]
    ) -> PlanReport:
        """Return a plan.

        Parameters
        ----------
        said : mapping
            The arguments of `duelay.plan`, as JSON has them.
        is_gone : callable
            Whether the caller has gone away: then the simulation is stopped.

        Raises
        ------
        InvalidValueError
            If an argument is invalid, or too many visitors would be simulated.
        RefusedError
            If too many others wait, or the simulation takes too long.
        ClientDisconnect
            If the caller has gone away.
        """
        prepared = await asyncio.to_thread(prepare, **said)
        runs = _limit_runs(prepared, said.get("runs"))
        if self._n_waiting >= _MAX_WAITING:
            raise RefusedError(
                503, "other plans are being simulated: try again in a minute", Retry_After="60"
            )
        self._n_waiting += 1
        try:
            async with self._turn:
                if await is_gone():
                    raise ClientDisconnect
                return await simulate({**said, "runs": runs}, is_gone)
        finally:
            self._n_waiting -= 1


def _limit_runs(prepared: PreparedPlan, wanted: int | None) -> int:
    """Return how many experiments are simulated; refuse what would take too long."""
    n = prepared.n_visitors
    most = min(MAX_RUNS, MAX_VISITORS // n)
    if most < _MIN_RUNS:
        visitors = prepared.simulation.visitors
        allowed = visitors * MAX_VISITORS / (_MIN_RUNS * n)
        raise InvalidValueError(
            f"visitors_per_day must be at most {allowed:,.0f} for a plan here, got {visitors:,.10g}"
            ": plan with a share of the visitors, or run `duelay plan` in a shell",
            argument="visitors_per_day",
        )
    return most if wanted is None else min(wanted, most)


async def simulate(said: Mapping[str, Any], is_gone: Callable[[], Awaitable[bool]]) -> PlanReport:
    """Simulate a plan in a process, which ends with this call."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*_WORKER, stdin=pipe, stdout=pipe, stderr=pipe)
    talk = asyncio.create_task(process.communicate(json.dumps(said).encode()))
    try:
        async with asyncio.timeout(_LIMIT):
            while not talk.done():
                await asyncio.wait({talk}, timeout=_POLL_INTERVAL)
                if not talk.done() and await is_gone():
                    raise ClientDisconnect
    except TimeoutError:
        raise RefusedError(
            503, "this plan takes too long here: plan with a share of the visitors, or run `duelay "
            "plan` in a shell",
        ) from None  # fmt: skip
    finally:
        if process.returncode is None:
            process.kill()
        out, trouble = await talk
    if process.returncode != 0:
        _LOG.error("a plan has failed: %s", trouble.decode(errors="replace")[-2000:])
        raise RefusedError(503, "the simulation of the plan has failed: the log says why")
    return PlanReport.from_json(json.loads(out))
