"""Caches of what pages show: each view and each diagnosis is made once for all visitors."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from duelay.live import Experiment
from duelay.page import diagnostics
from duelay.page.view_models import Diagnostics
from duelay.service.registry import ExperimentRegistry

R = TypeVar("R")
_MIN_AGE = 1.0  # seconds for which a view is shown again, at the least ...
_AGE_PER_COST = 4.0  # ... or so many times as long as it took to make
_MAX_PARALLEL = (
    2  # views that are made at one time: the other threads are for those who ask and tell
)
_MAX_VIEWS = 200  # views that are kept
_MIN_PAUSE, _MAX_PAUSE = 5.0, 600.0  # seconds between two checks, at the least and at the most
_MAX_SHARE = 0.05  # of the time: checks of an experiment may take so much
_LOG = logging.getLogger("duelay.service")


@dataclass
class _Kept:
    task: asyncio.Task[Any]
    begun: float
    at: float = math.inf  # when it was made

    def is_good(self, now: float) -> bool:
        if not self.task.done():
            return True
        if self.task.cancelled() or self.task.exception() is not None:
            return False
        return now - self.at < max(_MIN_AGE, _AGE_PER_COST * (self.at - self.begun))


class ViewCache:
    """Views that are about a second old; however many look, each is made once."""

    def __init__(
        self, registry: ExperimentRegistry, passed: Callable[[], float] = time.monotonic
    ) -> None:
        self._registry, self._passed = registry, passed
        self._kept: dict[tuple[Any, ...], _Kept] = {}
        self._turns = asyncio.Semaphore(_MAX_PARALLEL)

    async def get(self, name: str, what: tuple[Any, ...], make: Callable[[], R]) -> R:
        """Return a view of an experiment, made in a thread where it is not there yet."""
        place = (name, *what)
        kept, now = self._kept.get(place), self._passed()
        if kept is None or not kept.is_good(now):
            kept = _Kept(asyncio.create_task(self.run(make)), now)
            kept.task.add_done_callback(lambda task: self._note(kept, task))
            good = {at: each for at, each in self._kept.items() if each.is_good(now)}
            self._kept = dict(list(good.items())[-_MAX_VIEWS + 1 :]) | {place: kept}
        # A client that goes away must not cancel the view for the others.
        found: R = await asyncio.shield(kept.task)
        return found

    async def run(self, make: Callable[[], R]) -> R:
        """Call something in a thread, few at a time."""
        async with self._turns:
            return await self._registry.call(make)

    def forget(self, name: str) -> None:
        """Have an experiment, and the list, looked at anew: something was changed."""
        for place in [place for place in self._kept if place[0] in (name, "")]:
            del self._kept[place]

    def _note(self, kept: _Kept, task: asyncio.Task[Any]) -> None:
        kept.at = self._passed()
        if not task.cancelled():
            task.exception()  # read here, so that asyncio does not warn where nobody waits for it


@dataclass
class _Found:
    checked: Diagnostics | None
    heard: str  # what had been heard when it was looked at
    due: float  # when it may be looked at again


class Checks:
    """Delays and tests of assumptions, looked at in a thread of their own, one at a time."""

    def __init__(self, passed: Callable[[], float] = time.monotonic) -> None:
        self.passed = passed
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="duelay-checks")
        self._found: dict[tuple[str, int], _Found] = {}
        self._waiting: set[tuple[str, int]] = set()

    def latest(self, experiment: Experiment, heard: str) -> Diagnostics | None:
        """Return what was found last, and start another look where one is due; None at first.

        Another look is due after a while, if something has been heard since the last one.
        """
        place = (experiment.name, experiment.id)
        found = self._found.get(place)
        is_due = found is None or (found.heard != heard and self.passed() > found.due)
        if is_due and place not in self._waiting:
            self._waiting.add(place)
            self._thread.submit(self._look, place, experiment, heard)
        return None if found is None else found.checked

    def _look(self, place: tuple[str, int], experiment: Experiment, heard: str) -> None:
        begun, before = self.passed(), self._found.get(place)
        checked = None if before is None else before.checked
        try:
            checked = diagnostics.diagnose(experiment)
        except Exception:
            _LOG.exception("a fault while checking %r", experiment.name)
        finally:
            now = self.passed()
            pause = min(max((now - begun) / _MAX_SHARE, _MIN_PAUSE), _MAX_PAUSE)
            is_empty = checked is not None and getattr(checked, "of", 1) == 0
            due = now + (_MIN_PAUSE if is_empty else pause)  # what saw nothing says nothing
            self._found[place] = _Found(checked, heard, due)
            self._waiting.discard(place)

    def close(self) -> None:
        """End, after what is being looked at."""
        self._thread.shutdown(wait=True, cancel_futures=True)
