"""The background thread of a server: it books due duels and sends events to webhooks.

One thread of one server at a time works: whoever has the lease. It books what is due in experiments
without calls, notes alarms and silence as events, and sends events to the webhooks. An event is
sent until the address answers with a 2xx, so at least once, with a signature.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

from sqlalchemy import func, or_, select, update

from duelay._core.duration import in_brief
from duelay.errors import InvalidValueError, StoreError
from duelay.live import Experiment
from duelay.live.clock import ExperimentClock, SteadyClock
from duelay.live.events import note, read_events
from duelay.live.maintenance import Upkeep
from duelay.live.storage import schema
from duelay.live.storage.rows import ExperimentRow
from duelay.live.storage.schema import MICRO
from duelay.live.storage.statements import HEAD_TO_WRITE, insert_missing
from duelay.live.storage.store import Store
from duelay.service.delivery import TIMEOUT, Deliverer
from duelay.service.webhooks import sign

_NAME = "watcher"  # of the lease, also in servers of earlier versions
_EVERY = 1.0  # seconds between two rounds
_LEASE = 15.0  # seconds for which a server has the lease
_ALARM_INTERVAL = 60.0  # seconds between two looks at the tests of assumptions of an experiment
_LONGEST = 3600.0  # seconds between two tries of a webhook, at the most
_MIN_SILENCE = 600.0  # seconds without a duel, at the least, that are silence ...
_SILENCE_IN_GAPS = 20  # ... and as many times the usual gap between two duels
_TRAFFIC_STARTS = ("resumed", "reopened", "withdrawn")  # events after which duels are asked again
_N_RECENT = 100  # duels that the usual gap is taken from
_LOG = logging.getLogger("duelay.service")


def _wait(tries: int) -> float:
    """Return the seconds between a try and the next one, after so many that failed."""
    return min(2.0 ** min(tries, 60), _LONGEST)


class BackgroundWorker:
    """A thread that books due duels, notes alarms and silence, and sends the events of a store."""

    def __init__(
        self,
        store: Store,
        *,
        every: float = _EVERY,
        quiet: float = _MIN_SILENCE,
        now: Callable[[], float] | None = None,
        passed: Callable[[], float] = time.monotonic,
        webhooks_to: str = "public",
        **opened: Any,
    ) -> None:
        self.store, self._every, self._quiet = store, every, quiet
        # The world's time: `opened`, which `Experiment.open` takes, may have another clock.
        self._now, self._passed = store.now if now is None else now, passed
        # By this duels are asked: a clock of the machine that jumps makes no duel older.
        is_own = now is None and store.is_sqlite
        self._steady = SteadyClock() if is_own else self._now
        self._opened = opened
        self._upkeep, self._troubles = Upkeep(store, **opened), dict[str, str]()
        self._me = secrets.token_hex(8)
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        # When an experiment was looked at, and at how many duels and answers. A new experiment may
        # have the name or the id of one that was deleted, but was not created at the same moment.
        self._looked: dict[tuple[int, int], tuple[float, int, int]] = {}
        self._deliverer = Deliverer(webhooks_to)

    def start(self) -> None:
        """Begin."""
        self._thread = threading.Thread(target=self._run, name="duelay-background", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End, after what is being done."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(TIMEOUT + 5.0)
        self._deliverer.stop(TIMEOUT + 5.0)

    def _run(self) -> None:
        while not self._stop.wait(self._every):
            try:
                if self.takes_lease():
                    self.settle()
                    self.deliver()
                    self.notice()
            except StoreError as error:
                _LOG.warning("%s", error)
            except Exception:
                _LOG.exception("a fault in the background")

    def takes_lease(self) -> bool:
        """Whether this server is the one that sends now; the lease is renewed in time."""
        leases, now = schema.leases, round(self._now() * MICRO)
        length = round(_LEASE * MICRO)
        with self.store.reading() as connection:
            row = connection.execute(select(leases).where(leases.c.name == _NAME)).first()
        # A lease that ends later than one from now on is of a clock that was ahead.
        least = now + (length // 2 if row is not None and row.holder == self._me else 0)
        if row is not None and least < row.until <= now + length:
            return bool(row.holder == self._me)
        with self.store.explained(), self.store.writing() as connection:
            insert_missing(connection, leases, {"name": _NAME, "holder": "", "until": 0})
            done = connection.execute(
                update(leases)
                .where(
                    leases.c.name == _NAME,
                    or_(
                        leases.c.holder == self._me,
                        leases.c.until <= now,
                        leases.c.until > now + length,
                    ),
                )
                .values(holder=self._me, until=now + length)
            )
        return bool(done.rowcount)

    def settle(self) -> None:
        """Settle what is due in all experiments; say once what stands in the way."""
        troubles = self._upkeep.settle()
        for name, words in troubles.items():
            if self._troubles.get(name) != words:
                _LOG.warning("%s: %s", name, words)
        self._troubles = troubles

    # Webhooks.

    def deliver(self) -> None:
        """Begin to tell each webhook that is due of its next events; a slow one delays no other."""
        hooks, now = schema.webhooks, round(self._now() * MICRO)
        with self.store.reading() as connection:
            every = connection.execute(select(hooks)).mappings().all()
            # One that waits for longer than it ever should is of a clock that was ahead.
            due = [hook for hook in every
                   if not now < hook["due"] <= now + _wait(hook["tries"]) * MICRO]  # fmt: skip
            waiting: list[Any] = [(hook, read_events(connection, hook["experiment"], hook["sent"]))
                       for hook in due]  # fmt: skip
            names = dict(
                connection.execute(select(schema.experiments.c.id, schema.experiments.c.name)).all()
            )
        for hook, events in waiting:
            if events:
                self._deliverer.start(hook["id"], partial(self._tell_all, hook, events, names))

    def wait(self) -> None:
        """Wait until what `deliver` has begun has ended."""
        self._deliverer.wait()

    async def _tell_all(self, hook: Any, events: Sequence[Any], names: dict[int, str]) -> None:
        """Tell a webhook of events, in their order, until it does not take one."""
        tries = hook["tries"]
        try:
            for event in events:
                if self._stop.is_set() or not await asyncio.to_thread(self.takes_lease):
                    return
                trouble = await self._tell(hook, event, names)
                await asyncio.to_thread(self._note_delivery, hook["id"], event, tries, trouble)
                if trouble:
                    return
                tries = 0
        except StoreError as error:
            _LOG.warning("%s", error)
        except Exception:
            _LOG.exception("a fault while sending events")

    async def _tell(self, hook: Any, event: Any, names: dict[int, str]) -> str:
        """Tell a webhook of an event; return what is wrong, empty where it has taken it."""
        body = json.dumps({
            "id": event["id"], "event": event["kind"], "experiment": names[event["experiment"]],
            "about": event["about"], "words": event["words"], "at": event["at"] / MICRO,
        }).encode()  # fmt: skip
        at = int(self._now())
        signature = f"t={at},v1={sign(hook['secret'], at, body)}"
        headers = {"Content-Type": "application/json", "Duelay-Signature": signature}
        return await self._deliverer.post(hook["url"], body, headers)

    def _note_delivery(self, id: str, event: Any, tries: int, trouble: str) -> None:
        """Write down whether a webhook has taken an event, and when to try again."""
        tries = tries + 1 if trouble else 0
        wait = _wait(tries) if trouble else 0.0
        values = {"tries": tries, "trouble": trouble[:500] or None,
                  "due": round((self._now() + wait) * MICRO)}  # fmt: skip
        if not trouble:
            values["sent"] = event["id"]
        with self.store.explained(), self.store.writing() as connection:
            connection.execute(
                update(schema.webhooks).where(schema.webhooks.c.id == id).values(values)
            )

    # Alarms and silence: no ask and no tell notices them.

    def notice(self) -> None:
        """Note alarms and silence of the running experiments that have a webhook."""
        table, hooks = schema.experiments, schema.webhooks
        with self.store.reading() as connection:
            heads = connection.execute(
                select(table).where(
                    table.c.id.in_(select(hooks.c.experiment)), table.c.status == "running"
                )
            ).mappings().all()  # fmt: skip
        for head in heads:
            try:
                self._notice(cast(ExperimentRow, head))
            except InvalidValueError as error:  # such as a policy that is not imported here
                _LOG.warning("the experiment %r cannot be opened: %s", head["name"], error)
            except StoreError:
                raise
            except Exception:  # one experiment must not stop the others
                _LOG.exception("a fault while looking at %r", head["name"])

    def _notice(self, head: ExperimentRow) -> None:
        self._notice_silence(head)
        which, news = (head["id"], head["created"]), (head["asked"], head["heard"])
        at, *seen = self._looked.get(which, (-math.inf, -1, -1))
        if self._passed() - at >= _ALARM_INTERVAL and news != tuple(seen):
            self._looked[which] = (self._passed(), *news)
            self._notice_alarms(head)

    def _notice_alarms(self, head: ExperimentRow) -> None:
        standing = Experiment.open(self.store, head["name"], **self._opened).standing()
        for alarm in standing.alarms:
            self._note(head, "alarm", alarm.name, str(alarm))

    def _notice_silence(self, head: ExperimentRow) -> None:
        duels, events = schema.duels, schema.events
        with self.store.reading() as connection:
            asked = connection.execute(
                select(duels.c.asked)
                .where(duels.c.experiment == head["id"])
                .order_by(duels.c.number.desc())
                .limit(_N_RECENT)
            ).scalars().all()  # fmt: skip
            began = connection.execute(
                select(func.max(events.c.at)).where(
                    events.c.experiment == head["id"], events.c.kind.in_(_TRAFFIC_STARTS)
                )
            ).scalar()
        if len(asked) < _N_RECENT or head["winner"] is not None or head["stopped"] is not None:
            return
        gap = (asked[0] - asked[-1]) / MICRO / (_N_RECENT - 1)
        silent = self._time_of(head) - max(asked[0], began or 0) / MICRO
        if silent > max(self._quiet, _SILENCE_IN_GAPS * gap):
            none = "visitor has come" if head["display"] == "one" else "duel has been asked"
            words = f"no {none} for {in_brief(silent)}, and usually there is one "
            self._note(head, "silent", str(asked[0]), words + f"every {in_brief(gap)}")

    def _note(self, head: ExperimentRow, kind: str, about: str, words: str) -> None:
        """Write an event down, unless it is there."""
        events = schema.events
        with self.store.explained(), self.store.writing() as connection:
            # Held, so that no other event of it gets a larger id and is read before this one.
            if connection.execute(HEAD_TO_WRITE, {"experiment": head["id"]}).first() is None:
                return
            there = connection.execute(
                select(events.c.id).where(
                    events.c.experiment == head["id"],
                    events.c.kind == kind,
                    events.c.about == about,
                )
            ).first()
            if there is None:
                at = round(self._time_of(head) * MICRO)
                note(connection, head["id"], kind, about, words, at)

    def _time_of(self, head: Any) -> float:
        """Return the time by the clock of an experiment; by the world's if that is a function."""
        clock = ExperimentClock(head["clock"], None, head["created"] / MICRO, is_shared=True)
        return clock.to_experiment(self._steady())
