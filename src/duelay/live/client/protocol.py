"""The HTTP protocol of the clients: the requests of each call, and what their answers mean."""

from __future__ import annotations

import datetime
import math
import random
import time
import uuid
from collections.abc import Callable, Iterable
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from duelay._core import checks, timestamps
from duelay._core.duration import Duration
from duelay.errors import (
    AccessDeniedError,
    InvalidValueError,
    PausedError,
    StoreError,
    UnknownDuelError,
    UnknownExperimentError,
)
from duelay.inference.leader import rank_arms
from duelay.inference.rates import Rates, write_rates
from duelay.inference.standing import make_rows, write_rows
from duelay.live.arm_cost import ArmCostReport
from duelay.live.export import ExportedSettings
from duelay.live.standing import ReportedRates, StandingReport
from duelay.live.validation import check_word
from duelay.live.writes.requests import LiveDuel, OneArmDuel
from duelay.logs.history import History
from duelay.logs.unit_numbers import number_units

_FIRST, _LONGEST = 0.1, 5.0  # seconds between two tries
AGAIN = (429, 502, 503, 504)  # statuses after which a call is tried again
UNKNOWN_DUEL, INVALID = "unknown_duel", "invalid"  # codes of answers that are refused


class Call(NamedTuple):
    """A request, and how its answer is read."""

    method: str
    path: str
    body: Any = None
    key: str | None = None
    read: Callable[[Any], Any] = lambda found: found


class RemoteStanding:
    """Where an experiment of a service stands; `print` shows it as a table.

    It has the numbers of a `StandingReport`, arms as numbers, and matrices as arrays.
    """

    def __init__(self, report: StandingReport) -> None:
        self.report = report
        self.name, self.status, self.headline = report.name, report.status, report.headline
        self.booking, self.summary = report.booking, report.summary
        self.verdict, self.verdict_words = report.verdict, report.verdict_words
        self.choice = report.choice
        self.arms = tuple(report.arms)
        self.leader = None if report.leader is None else self.arms.index(report.leader)
        self.winner = None if report.winner is None else self.arms.index(report.winner)
        self.error, self.tick = report.error, report.duels
        self.plays = np.array(report.plays, dtype=np.int64)
        self.conversions = np.array(report.conversions, dtype=np.int64)
        self.pending = np.array(report.pending, dtype=np.int64)
        self.present = np.array(report.present, dtype=np.bool_)
        estimates = report.estimates
        self.mean = _array(estimates.mean, math.nan)
        self.lower = _array(estimates.lower, -math.inf)
        self.upper = _array(estimates.upper, math.inf)
        self.warnings, self.guardrails = tuple(report.warnings), tuple(report.guardrails)
        self.feedback, self.policy = report.feedback, report.policy
        self.window, self.now = report.window, report.now
        self.display, self.rates = report.display, _rates(report.rates)

    def __repr__(self) -> str:
        return f"RemoteStanding({self.name!r}, {self.headline!r})"

    def __str__(self) -> str:
        order = rank_arms(self.mean, self.leader, self.present)
        nothing = np.full(len(self.arms), math.nan)
        share = [
            nothing if self.leader is None else values[self.leader]
            for values in (self.mean, self.lower, self.upper)
        ]
        names = [
            arm + " (retired)" * (not is_present)
            for arm, is_present in zip(self.arms, self.present, strict=True)
        ]
        if self.rates is not None:
            table = write_rates(order, names, self.leader, self.rates)
            return "\n".join([self.headline, table, *(f"warning: {w}" for w in self.warnings)])
        leads = {} if self.leader is None else {self.leader: "leads"}
        lines = [self.headline, write_rows(make_rows(order, share, self), names, leads)]
        return "\n".join([*lines, *(f"warning: {words}" for words in self.warnings)])


def _array(values: Any, missing: float) -> NDArray[np.float64]:
    """Return numbers of JSON as an array, with a value in place of null."""
    found = np.array(values, dtype=np.float64)
    found[np.isnan(found)] = missing
    return found


def new_experiment(name: str, arms: Iterable[str], said: dict[str, Any]) -> dict[str, Any]:
    """Return the body that makes an experiment; lengths and times become texts and seconds."""
    body = {"name": name, "arms": list(arms), **said}
    for field, value in said.items():
        if isinstance(value, datetime.datetime):
            body[field] = timestamps.seconds(field, value)
        elif isinstance(value, Duration | datetime.timedelta):
            body[field] = str(checks.duration(field, value))
    return body


def _rates(report: ReportedRates | None) -> Rates | None:
    """Return rates with arrays, as a local standing has them."""
    if report is None:
        return None
    missing = {"lift_lower": -1.0, "lift_upper": math.inf}
    found: dict[str, Any] = {}
    for name, values in vars(report).items():
        is_count = name in ("shown", "conversions", "closed", "converted")
        kept = np.array(values, dtype=np.int64) if is_count else None
        found[name] = _array(values, missing.get(name, math.nan)) if kept is None else kept
    return Rates(**found)


def read_duel(found: dict[str, Any]) -> LiveDuel:
    """Return the duel that a service has sent; fields of later versions are left out."""
    fields = {name: found[name] for name in LiveDuel._fields}
    return LiveDuel(**fields) if found.get("arm") is None else OneArmDuel(**fields)


Done = TypeVar("Done")  # of a call without a result: None, or a coroutine that returns None


class Calls(Generic[Done]):
    """What can be asked of an experiment of a service: as requests, and sent with `_do`."""

    _do: Callable[
        [Call], Any
    ]  # sends a request; a coroutine function of a client with an event loop

    def __init__(self, name: str) -> None:
        self.name = name
        self._path = f"/experiments/{quote(name, safe='')}"

    def pause(self, fallback: str | None = None) -> Done:
        """Ask no more, and show the fallback meanwhile, as `Experiment.pause` does."""
        return self._change(status="paused", fallback=fallback)

    def resume(self) -> Done:
        """Go on after a pause."""
        return self._change(status="running")

    def finish(self, arm: str | None = None) -> Done:
        """End the experiment and show one arm from now on, as `Experiment.finish` does."""
        return self._change(status="finished", arm=arm)

    def reopen(self) -> Done:
        """Go on with an experiment that was finished."""
        return self._change(status="running")

    def archive(self, *, archived: bool = True) -> Done:
        """Leave an experiment that is finished out of lists."""
        return self._change(archived=archived)

    def hold_booking(self) -> Done:
        """Enter no duels into the evidence for a while, as `Experiment.hold_booking` does."""
        return self._change(booking="held")

    def release_booking(self) -> Done:
        """Go on entering duels into the evidence."""
        return self._change(booking="running")

    def add_arm(self, name: str) -> Done:
        """Let an arm join, or come back."""
        return self._change(add_arms=[name])

    def retire_arm(self, name: str) -> Done:
        """Ask an arm no more."""
        return self._change(retire_arms=[name])

    def add_guardrail(
        self, metric: str, bound: float | None = None, within: str | None = None
    ) -> Done:
        """Count another event of duels from now on, as `Experiment.add_guardrail` does."""
        return self._change(add_guardrails={metric: {"bound": bound, "within": within}})

    def delete(self) -> Done:
        """Remove it and all its duels, for ever."""
        done: Done = self._do(Call("DELETE", self._path))
        return done

    def _change(self, **changes: Any) -> Done:
        said = {name: value for name, value in changes.items() if value is not None}
        done: Done = self._do(Call("PATCH", self._path, said, read=lambda found: None))
        return done

    def _ask(self, unit: Any, key: Any) -> Call:
        unit, key = check_word("unit", unit), check_word("key", key)
        body = {} if unit is None else {"unit": unit}
        return Call("POST", f"{self._path}/duels", body, key or uuid.uuid4().hex,
                    read_duel)  # fmt: skip

    def _tell(self, duel: LiveDuel | str, winner: str | None, at: Any) -> Call:
        id = duel.id if isinstance(duel, LiveDuel) else duel
        if not isinstance(id, str) or not id:
            raise InvalidValueError(f"duel must be one that was asked, or its id, got {duel!r}")
        body: dict[str, Any] = {} if at is None else {"at": timestamps.seconds("at", at)}
        kind = "conversion" if winner is None else "vote"
        body |= {} if winner is None else {"winner": winner}
        path = f"/duels/{quote(id, safe='')}/{kind}"
        return Call("PUT", path, body, None, lambda found: found["status"])

    def _tell_any(self, duel: Any, winner: Any, at: Any, metric: Any, arm: Any) -> Call:
        """Return the call of an answer, or of an event."""
        if metric is not None and winner is None:
            return self._tell_metric(duel, metric, arm, at)
        if arm is not None or metric is not None:
            raise InvalidValueError("metric and arm are said together, and no winner with them")
        return self._tell(duel, winner, at)

    def _tell_metric(self, duel: LiveDuel | str, metric: str, arm: Any, at: Any) -> Call:
        told = self._tell(duel, None, at)
        path = f"{told.path.removesuffix('conversion')}metrics/{quote(metric, safe='')}"
        return told._replace(path=path, body=told.body | ({} if arm is None else {"arm": arm}))

    def _tell_all(self, answers: Iterable[Any]) -> Call:
        rows = []
        for each in answers:
            duel, winner, at = (*(each if type(each) is tuple else (each,)), None, None)[:3]
            id = duel.id if isinstance(duel, LiveDuel) else duel
            row = {"id": id, "winner": winner}
            rows.append(row | ({} if at is None else {"at": timestamps.seconds("at", at)}))
        return Call("POST", f"{self._path}/answers", {"answers": rows}, None,
                    _statuses)  # fmt: skip

    def _standing(self) -> Call:
        return Call(
            "GET", self._path, read=lambda said: RemoteStanding(StandingReport.from_json(said))
        )

    def _cost_of_arm(self, name: str | None) -> Call:
        query = "" if name is None else f"?arm={quote(name, safe='')}"
        return Call("GET", f"{self._path}/arm-cost{query}", read=ArmCostReport.from_json)

    def _log(self, after: int) -> Call:
        return Call("GET", f"{self._path}/log?after={after}&limit=10000")


class Tries:
    """How often a call is tried, and what its answer means."""

    def __init__(self, patience: float) -> None:
        self._until = time.monotonic() + patience
        self._wait = _FIRST

    def pause(self, trouble: str) -> float:
        """Return the seconds until the next try; raise where there is none."""
        wait = self._wait * random.uniform(0.5, 1.5)
        if time.monotonic() + wait > self._until:
            raise StoreError(f"the service does not answer ({trouble}): call again, nothing counts "
                             "twice")  # fmt: skip
        self._wait = min(2.0 * self._wait, _LONGEST)
        return wait


def read_answer(call: Call, response: Any) -> Any:
    """Return what an answer says; raise what the library would."""
    if response.is_success:
        return call.read(response.json() if response.content else None)
    try:
        words = str(response.json()["error"])
    except (ValueError, KeyError, TypeError):
        words = f"the service answered {response.status_code}"
    if response.status_code == 404:
        raise (UnknownDuelError if call.path.startswith("/duels/") else UnknownExperimentError)(
            words
        )
    if response.status_code == 409 and call.path.endswith("/duels"):
        raise PausedError(words)
    if response.status_code in (401, 403):
        raise AccessDeniedError(words)
    if response.status_code >= 500:
        raise StoreError(words)
    raise InvalidValueError(words)


def _statuses(found: Any) -> list[str]:
    """Return what became of several answers; raise for the first that is wrong."""
    for each in found["answers"]:
        if "error" in each:
            is_unknown = each.get("code") == UNKNOWN_DUEL
            raise (UnknownDuelError if is_unknown else InvalidValueError)(each["error"])
    return [each["status"] for each in found["answers"]]


class LogReader:
    """Collects the parts of a log."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.after: int | None = 0
        self._about: Any = None

    def add(self, found: Any) -> None:
        """Add a part; the last one says what the experiment is."""
        self.rows += found["duels"]
        self.after, self._about = found["next"], found["experiment"]

    def history(self) -> History:
        """Return the duels as a history."""
        return _history_of(self.rows, ExportedSettings.from_json(self._about))


def _history_of(rows: list[dict[str, Any]], about: ExportedSettings) -> History:
    number = {arm: place for place, arm in enumerate(about.arms)}
    numbers = np.array([row["number"] for row in rows], dtype=np.int64)
    # Rows may have been folded since the first part of the log was read.
    n_earlier = rows[0]["number"] - 1 if rows else about.forgotten
    asked = np.array([row["asked_at"] for row in rows], dtype=np.float64)
    told = np.array([row["answered_at"] for row in rows], dtype=np.float64)  # None is nan
    return History(
        n_arms=len(about.arms),
        first=np.array([number[row["first"]] for row in rows], dtype=np.int64),
        second=np.array([number[row["second"]] for row in rows], dtype=np.int64),
        delay=timestamps.whole(told - asked),
        first_won=np.array([row["first_won"] for row in rows], dtype=np.float64),
        window=None if about.window is None else Duration(about.window),
        feedback=about.feedback,
        order="coin",
        display=about.display,
        arms=about.arms,
        at=asked,
        now=about.now if rows else None,
        chosen_by=about.policy,
        changes=about.changes_among(numbers),
        declared=about.declared_among(numbers, n_earlier),
        unit=number_units([row["unit"] for row in rows]),
        n_earlier=n_earlier,
    )
