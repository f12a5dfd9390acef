"""Guard-rails of a live experiment: other events of a duel, such as refunds, counted by arm.

A duel is booked for a metric in the order of asking, when it reaches the age `within` and the time
by which a late answer may be told. An event counts if it came by this age. So a booked duel is a
yes or a no for each arm that it showed, whatever pairs are chosen, and the counts of booked duels
are all that `duelay.inference.guardrails` needs. The counts are additive, by ordered pair. While
the booking of the experiment is held, nothing is booked for a metric either.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, insert, select

from duelay._core import checks
from duelay._core.duration import Duration, in_brief
from duelay._core.escapes import in_cell
from duelay.errors import InvalidValueError
from duelay.inference.guardrails import arm_shares, difference_interval, rate_interval
from duelay.live.state import ExperimentState
from duelay.live.storage import schema, statements
from duelay.live.storage.rows import DuelRows, ExperimentRow
from duelay.live.storage.schema import MICRO
from duelay.live.validation import check_length, check_word
from duelay.logs.arm_changes import joined_of
from duelay.show.text_table import table

MAX_METRICS = 50  # of an experiment
_MAX_ROWS = 10_000  # of duels that are read at once


class DeclaredGuardrail(NamedTuple):
    """A metric: its name, the excess over the baseline that is allowed, and its age.

    Attributes
    ----------
    name : str
        The name of the event.
    bound : float or None
        The excess of an arm's rate over that of the baseline above which an alarm is raised; None
        for a metric that is only measured.
    within : int or None
        The age in microseconds by which an event counts; None for the window of the experiment.
    """

    name: str
    bound: float | None
    within: int | None


@dataclass(frozen=True)
class ReportedMetricArm:
    """An arm of a metric; differences are from the baseline, and None for the baseline itself."""

    arm: str
    duels: int
    events: int
    rate: float | None
    lower: float
    upper: float
    difference: float | None
    difference_lower: float | None
    difference_upper: float | None
    alarm: bool


@dataclass(frozen=True)
class ReportedGuardrail:
    """A metric: how often its event follows a duel with each arm, by the age `within`."""

    metric: str
    bound: float | None
    within: str
    baseline: str
    arms: list[ReportedMetricArm]

    @property
    def alarms(self) -> list[str]:
        """The arms that are worse than the baseline by more than the bound."""
        return [arm.arm for arm in self.arms if arm.alarm]

    def __str__(self) -> str:
        """Return a table of the arms."""
        rows = [
            [
                arm.arm,
                f"{arm.duels:,}",
                f"{arm.events:,}",
                "-" if arm.rate is None else f"{100 * arm.rate:.3g} %",
                f"{100 * arm.lower:.3g} to {100 * arm.upper:.3g} %",
                _in_points(arm),
                "alarm" if arm.alarm else "",
            ]
            for arm in self.arms
        ]
        bound = "" if self.bound is None else f", at most {100 * self.bound:.3g} points allowed"
        head = f"{self.metric} within {self.within}, compared with {self.baseline}{bound}"
        columns = ["arm", "shown", "events", "rate", "interval", "difference, points", ""]
        return f"{head}\n{table(columns, rows, left=(0, 6))}"

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON has them."""
        return asdict(self)


def _in_points(arm: ReportedMetricArm) -> str:
    if arm.difference is None or arm.difference_lower is None or arm.difference_upper is None:
        return "-"
    ends = f"({100 * arm.difference_lower:+.2g} to {100 * arm.difference_upper:+.2g})"
    return f"{100 * arm.difference:+.2g} {ends}"


def check_guardrails(given: Any, window: Duration | None) -> list[DeclaredGuardrail]:
    """Return the guard-rails of an experiment.

    Parameters
    ----------
    given : mapping or None
        By the name of the event: the bound; None, to measure only; or a mapping with `bound` and
        `within`.
    window : Duration or None
        The window of the experiment, which `within` may not exceed.
    """
    if not isinstance(given or {}, Mapping):
        raise InvalidValueError(
            f"guardrails must be a mapping such as {{'refund': 0.02}}, got {given!r}",
            argument="guardrails",
        )
    return [_check_one(name, said, window) for name, said in (given or {}).items()]


def _check_one(name: Any, said: Any, window: Duration | None) -> DeclaredGuardrail:
    told = said if isinstance(said, Mapping) else {"bound": said}
    unknown = set(told) - {"bound", "within"}
    if unknown:
        raise InvalidValueError(
            f"guardrails of {name!r} may have bound and within, got {sorted(unknown)[0]!r}",
            argument="guardrails",
        )
    if check_word("metric", name) is None or "/" in name or name in (".", ".."):
        raise InvalidValueError(
            f"metric must be the name of an event, as a part of an address, so without a slash and "
            f"neither . nor .., got {name!r}",
            argument="metric",
        )
    bound, within = told.get("bound"), told.get("within")
    if bound is not None:
        bound = checks.number("bound", bound, least=0, below=1)
    if within is None:
        if window is None:
            raise InvalidValueError(
                f"within must be said of {name!r}, such as '2d', as there is no window",
                argument="within",
            )
        return DeclaredGuardrail(name, bound, None)
    length = check_length("within", within)
    if window is not None and float(length) > float(window):
        raise InvalidValueError(
            f"within must be at most the window, {window}, got {length}", argument="within"
        )
    return DeclaredGuardrail(name, bound, round(float(length) * MICRO))


def find_new(
    connection: Connection, experiment: int, given: Sequence[DeclaredGuardrail], window: int | None
) -> list[dict[str, Any]]:
    """Return the metrics that are not there yet, as rows for `declare_guardrails`.

    A metric does not change: one that is there with another bound or age is refused.
    """
    there = {row.name: row for row in read_metrics(connection, experiment)}
    number = itertools.count(len(there))
    new = []
    for metric in given:
        within = window if metric.within is None else metric.within
        row = there.get(metric.name)
        if row is None:
            new.append(metric._replace(within=within))
        elif (row.bound, row.within) != (metric.bound, within):
            raise InvalidValueError(
                f"metric {metric.name!r} is there already, with the bound {row.bound} within "
                f"{in_brief(row.within / MICRO)}, and cannot change: choose another name",
                argument="metric",
            )
    if len(there) + len(new) > MAX_METRICS:
        raise InvalidValueError(
            f"guardrails may be at most {MAX_METRICS}, got {len(there) + len(new)}",
            argument="guardrails",
        )
    return [{"experiment": experiment, "number": next(number), **metric._asdict(), "alarms": "{}"}
            for metric in new]  # fmt: skip


def declare_guardrails(
    connection: Connection, rows: Sequence[Mapping[str, Any]], baseline: int, asked: int = 0
) -> None:
    """Write new metrics down. Their baseline is fixed, and duels from the next one on count."""
    told = {"baseline": baseline, "since": asked, "booked": asked}
    if rows:
        connection.execute(insert(schema.metrics), [{**row, **told} for row in rows])


def read_metrics(connection: Connection, experiment: int) -> Sequence[Any]:
    """Return the metrics of an experiment, as rows."""
    metrics = schema.metrics
    return connection.execute(
        select(metrics).where(metrics.c.experiment == experiment).order_by(metrics.c.number)
    ).all()


def shows_one(head: ExperimentRow) -> bool:
    """Whether the first arm of a duel is shown alone."""
    return str(head["display"]) == "one"


def is_metric_due(connection: Connection, head: ExperimentRow, moment: int) -> bool:
    """Whether a duel is to be booked for a metric."""
    return head["held"] is None and any(
        _due(connection, head["id"], metric, metric.booked, moment, head["lag"], most=1)
        for metric in read_metrics(connection, head["id"])
        if metric.booked < head["asked"]
    )


# Booking.


class MetricCounts:
    """What booked duels have given, by ordered pair (first, second), (K, K) each.

    `shown` counts duels, `of_first` and `of_second` those with an event about that arm.
    """

    NAMES = ("shown", "of_first", "of_second")

    def __init__(self, n_arms: int) -> None:
        self.shown, self.of_first, self.of_second = (
            np.zeros((n_arms, n_arms), dtype=np.int64) for _ in self.NAMES
        )

    def by_arm(self, *, one: bool) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the duels that showed each arm, and those of them with an event about it."""
        if one:
            return self.shown.sum(axis=1), self.of_first.sum(axis=1)
        own = self.shown.diagonal()
        n = self.shown.sum(axis=1) + self.shown.sum(axis=0) - own
        return n, self.of_first.sum(axis=1) + self.of_second.sum(axis=0)

    def against(self, base: int, *, one: bool) -> tuple[NDArray[np.int64], ...]:
        """Return duels and events of each arm, and of the baseline, none of them in both.

        A duel that shows both counts for the one that is shown first.
        """
        n, k = self.by_arm(one=one)
        if one:
            return n, k, np.full_like(n, n[base]), np.full_like(k, k[base])
        return (
            n - self.shown[base],
            k - self.of_second[base],
            n[base] - self.shown[:, base],
            k[base] - self.of_second[:, base],
        )

    def add(self, rows: DuelRows, events: Sequence[Any]) -> None:
        """Add duels, and the events about them that count; units that repeat a pair do not."""
        pairs = {row["number"]: (row["first"], row["second"]) for row in rows if row["enters"]}
        for pair in pairs.values():
            self.shown[pair] += 1
        for event in events:
            if event.number in pairs:
                (self.of_second if event.place else self.of_first)[pairs[event.number]] += 1

    def rows(self, experiment: int, metric: int) -> list[dict[str, int]]:
        """Return the rows of a table that has them."""
        return [
            {"experiment": experiment, "metric": metric, "first": int(i), "second": int(j),
             **{name: int(getattr(self, name)[i, j]) for name in self.NAMES}}
            for i, j in zip(*np.nonzero(self.shown), strict=True)
        ]  # fmt: skip


def _due(
    connection: Connection, experiment: int, metric: Any, after: int, moment: int, lag: int,
    most: int = _MAX_ROWS,
) -> list[Any]:  # fmt: skip
    """Return the next duels that are due for a metric."""
    columns = ("number", "first", "second", "asked", "enters")
    latest = moment - metric.within - lag
    for n in (1, most):  # mostly none is due
        rows = connection.execute(
            statements.duels_after(*columns), {"experiment": experiment, "after": after, "n": n}
        ).mappings()
        due = list(itertools.takewhile(lambda row: row["asked"] <= latest, rows))
        if not due:
            break
    return due


def book_due(
    connection: Connection, experiment: int, metric: Any, counts: MetricCounts, moment: int,
    lag: int, reads: int | None,
) -> int:  # fmt: skip
    """Add the duels that are due to counts; return the number of the last one that is booked."""
    events, last = schema.metric_events, int(metric.booked)
    for _ in itertools.count() if reads is None else range(reads):
        rows = _due(connection, experiment, metric, last, moment, lag)
        if not rows:
            break
        found = connection.execute(
            select(events.c.number, events.c.place).where(
                events.c.experiment == experiment, events.c.metric == metric.number,
                events.c.number > last, events.c.number <= rows[-1]["number"], ~events.c.late,
            )
        ).all()  # fmt: skip
        counts.add(rows, found)
        last = int(rows[-1]["number"])
        if len(rows) < _MAX_ROWS:
            break
    return last


def describe_alarm(found: ReportedGuardrail, arm: ReportedMetricArm) -> str:
    """Return a sentence on an arm that is worse than the baseline."""
    assert found.bound is not None
    if arm.difference is None or arm.rate is None:
        return f"{found.metric}: {arm.arm} has been worse than {found.baseline}"
    return (
        f"{found.metric}: {arm.arm} has {100 * arm.rate:.3g} %, {100 * arm.difference:.3g} points "
        f"more than {found.baseline}, and at most {100 * found.bound:.3g} points are allowed"
    )


def read_counts(connection: Connection, experiment: int, n_arms: int) -> dict[int, MetricCounts]:
    """Return the counts of booked duels, by the number of the metric."""
    kept = schema.metric_counts
    found: dict[int, MetricCounts] = {}
    for row in connection.execute(select(kept).where(kept.c.experiment == experiment)):
        counts = found.setdefault(row.metric, MetricCounts(n_arms))
        for name in MetricCounts.NAMES:
            getattr(counts, name)[row.first, row.second] += getattr(row, name)
    return found


def read_guardrails(
    connection: Connection, state: ExperimentState, moment: int
) -> tuple[ReportedGuardrail, ...]:
    """Return the guard-rails with the duels that are due by a moment; nothing is written."""
    experiment, k = state.settings.id, len(state.arms)
    metrics = read_metrics(connection, experiment)
    if not metrics:
        return ()
    kept = read_counts(connection, experiment, k)
    joined = joined_of(state.arms, state.changes)
    found = []
    for metric in metrics:
        counts = kept.get(metric.number, MetricCounts(k))
        if state.head["held"] is None:
            book_due(connection, experiment, metric, counts, moment, state.settings.lag, None)
        found.append(report_metric(metric, counts, state.head, state.arms, joined))
    return tuple(found)


def report_metric(
    metric: Any, counts: MetricCounts, head: ExperimentRow, arms: Sequence[str], joined: Any
) -> ReportedGuardrail:
    """Return the rates and differences of a metric. An arm that has had an alarm keeps it."""
    base, one, known = int(metric.baseline), shows_one(head), json.loads(metric.alarms)
    n, k = counts.by_arm(one=one)
    error = float(head["error"])
    lower, upper = rate_interval(k, n, error)
    share = np.maximum(arm_shares(joined, base), 1e-300)
    own_n, own_k, base_n, base_k = counts.against(base, one=one)
    apart = difference_interval(own_k, own_n, base_k, base_n, error * share)
    rows = []
    for number, arm in enumerate(arms):
        is_other = number != base
        is_known = is_other and not np.isnan(apart.mean[number])
        is_over = metric.bound is not None and is_other and apart.lower[number] > metric.bound
        rows.append(
            ReportedMetricArm(
                arm=arm,
                duels=int(n[number]),
                events=int(k[number]),
                rate=float(k[number] / n[number]) if n[number] else None,
                lower=float(lower[number]),
                upper=float(upper[number]),
                difference=float(apart.mean[number]) if is_known else None,
                difference_lower=float(apart.lower[number]) if is_known else None,
                difference_upper=float(apart.upper[number]) if is_known else None,
                alarm=bool(is_over) or str(number) in known,
            )
        )
    within = str(Duration.of(metric.within / MICRO))
    return ReportedGuardrail(metric.name, metric.bound, within, arms[base], rows)


def write_events(connection: Connection, experiment: int, arms: Sequence[str]) -> str:
    """Return the events of duels that are kept, as CSV."""
    events, duels, metrics = schema.metric_events, schema.duels, schema.metrics
    rows = connection.execute(
        select(events, metrics.c.name, duels.c.first, duels.c.second)
        .join(duels, (duels.c.experiment == events.c.experiment)
              & (duels.c.number == events.c.number))
        .join(metrics, (metrics.c.experiment == events.c.experiment)
              & (metrics.c.number == events.c.metric))
        .where(events.c.experiment == experiment)
        .order_by(events.c.number, events.c.metric, events.c.place)
    )  # fmt: skip
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow(("duel", "metric", "arm", "at", "late"))
    for row in rows:
        arm = arms[row.second if row.place else row.first]
        at = f"{row.at / MICRO:.6f}"
        writer.writerow((row.number, in_cell(row.name), in_cell(arm), at, bool(row.late)))
    return lines.getvalue()
