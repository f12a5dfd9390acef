"""The experiments of a store: check and write a new one, find, list and delete them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, delete, insert, select
from sqlalchemy.exc import IntegrityError

from duelay import text
from duelay._core import checks
from duelay._core.duration import Duration
from duelay._core.feedback import check_display, check_feedback
from duelay.delays.ticks_or_clock import in_time
from duelay.errors import (
    InvalidValueError,
    StoreError,
    UnknownDuelError,
    UnknownExperimentError,
)
from duelay.ledger.evidence.silence import first_kappa
from duelay.live.clock import check_clock, wall
from duelay.live.guardrails import DeclaredGuardrail, check_guardrails, declare_guardrails, find_new
from duelay.live.storage import schema
from duelay.live.storage.schema import MICRO
from duelay.live.storage.store import Store
from duelay.live.validation import (
    MIN_ERROR,
    check_arm,
    check_forgetting,
    check_length,
    check_name,
    check_votes,
    find_arm,
    find_date,
    find_margin,
    find_policy,
)
from duelay.live.writes.writer import Writer
from duelay.policies import Decide
from duelay.policies.policy import Policy
from duelay.problems import check_arms
from duelay.recommendation import GOALS


class NewRows(NamedTuple):
    """An experiment whose arguments are checked, and which is in no store yet."""

    row: dict[str, Any]  # of `experiments`, without the times
    arms: tuple[str, ...]
    policy: Policy
    guardrails: list[DeclaredGuardrail]


def check_experiment(
    name: str,
    arms: Any,
    *,
    goal: str,
    policy: Policy | str | None,
    window: Any,
    feedback: str,
    display: str,
    error: float,
    self_duels: bool,
    share: float,
    forget_after: Any,
    lag: Any,
    margin: float | str | None,
    end: str | None,
    budget: int | None,
    fallback: str | None,
    guardrails: Any,
) -> NewRows:
    """Check the arguments of `Experiment.create`."""
    name, arms = check_name(name), tuple(check_arm(arm) for arm in check_arms(arms))
    checks.one_of("goal", goal, GOALS)
    if check_feedback(feedback, counts="each answer must say of which duel it is") == "votes":
        check_votes(arms)
    check_display(display, feedback)
    length = _length("window", window)
    error = checks.number("error", error, least=MIN_ERROR, below=1)
    checks.yes_or_no("self_duels", self_duels)
    least, ends = find_margin(margin, end, policy, display)
    chosen = find_policy(
        policy, goal, length, error, feedback,
        self_duels=self_duels, margin=least, end=ends, display=display,
    )  # fmt: skip
    if policy is not None:
        goal = "decide" if isinstance(chosen, Decide) else "regret"
        error = chosen.error if isinstance(chosen, Decide) else error
        checks.number("error", error, least=MIN_ERROR, below=1)
        length = _length("window", in_time(chosen))
    forget = _length("forget_after", forget_after)
    check_forgetting(forget, length)
    late = _length("lag", lag)
    metrics = check_guardrails(guardrails, length)
    row = {
        "name": name,
        "goal": goal,
        "policy": str(chosen),
        "feedback": feedback,
        "display": display,
        "window": _in_micro(length),
        "error": error,
        "self_duels": self_duels,
        "share": checks.number("share", share, least=0, most=1),
        "forget_after": _in_micro(forget),
        "lag": _in_micro(late) or 0,
        "margin": least,
        "ends": None if least is None else ends,
        "budget": None if budget is None else checks.whole("budget", budget, least=1),
        "fallback": None if fallback is None else find_arm("fallback", fallback, arms),
        "status": "running",
        "kappa": first_kappa(shows_one=display == "one"),
        "stride": 1,
    }
    return NewRows(row, arms, chosen, metrics)


def _length(name: str, given: Any) -> Duration | None:
    return None if given is None else check_length(name, given)


def _in_micro(length: Duration | None) -> int | None:
    return None if length is None else round(float(length) * MICRO)


def write_experiment(
    store: Store,
    new: NewRows,
    until: Any,
    clock: Callable[[], float] | str | None,
    **opened: Any,
) -> Writer:
    """Write a new experiment, and the store where there is none yet; return its writer."""
    name, noted = new.row["name"], check_clock(clock)
    writer = Writer(store, 0, name, new.policy, clock=clock, noted=noted, **opened)
    store.need(makes=True)
    try:
        with store.explained(), store.writing() as connection:
            shared, begun = store.read_time(connection), wall()
            writer.clock.created = writer.clock.of_creation(shared, begun)
            writer.created = now = round(writer.clock.created * MICRO)
            times = {"created": now, "moment": now, "settled": now, "until": find_date(until, now)}
            writer.id = connection.execute(
                insert(schema.experiments).returning(schema.experiments.c.id),
                new.row | times | {"clock": noted},
            ).scalar_one()
            connection.execute(
                insert(schema.arms),
                [{"experiment": writer.id, "number": number, "name": arm}
                 for number, arm in enumerate(new.arms)],
            )  # fmt: skip
            metrics = find_new(connection, writer.id, new.guardrails, new.row["window"])
            declare_guardrails(connection, metrics, new.row["fallback"] or 0)
    except StoreError as error:
        if isinstance(error.__cause__, IntegrityError):
            raise InvalidValueError(
                f"name must be new, and there is an experiment {name!r} in {store.name}: "
                "Experiment.open(...) goes on with it"
            ) from None
        raise
    return writer


def open_writer(store: Store, name: str, **opened: Any) -> Writer:
    """Return the writer of an experiment that is in a store."""
    store.need()
    table = schema.experiments
    columns = (table.c.id, table.c.policy, table.c.created, table.c.clock)
    with store.reading() as connection:
        row = connection.execute(select(*columns).where(table.c.name == name)).first()
    if row is None:
        raise unknown_experiment(store, name, list_names(store))
    policy = text.parse("policy", row.policy)
    return Writer(store, row.id, name, policy, created=row.created, noted=row.clock, **opened)


def list_names(store: Store, *, archived: bool = True) -> tuple[str, ...]:
    """Return the names of the experiments, oldest first, with or without those archived."""
    store.need()
    table = schema.experiments
    with store.reading() as connection:
        rows = connection.execute(select(table.c.name, table.c.archived).order_by(table.c.id))
        return tuple(row.name for row in rows if archived or row.archived is None)


def find_name(store: Store, id: str) -> str:
    """Return the name of the experiment to which a duel belongs."""
    store.need()
    duels, experiments = schema.duels, schema.experiments
    query = select(experiments.c.name).join(duels, duels.c.experiment == experiments.c.id)
    with store.reading() as connection:
        name = connection.execute(query.where(duels.c.id == id)).scalar()
    if name is None:
        raise UnknownDuelError(f"no duel {id!r} has been asked here")
    return str(name)


def delete_experiment(connection: Connection, experiment: int) -> None:
    """Delete an experiment and all its duels."""
    for table in schema.TABLES:
        connection.execute(delete(table).where(table.c.experiment == experiment))
    connection.execute(delete(schema.experiments).where(schema.experiments.c.id == experiment))


def unknown_experiment(store: Store, name: str, names: Sequence[str]) -> UnknownExperimentError:
    """Return the error that says which experiments there are."""
    there = ", ".join(sorted(names)) or "none"
    return UnknownExperimentError(
        f"no experiment {name!r}{checks.nearest(name, names)} in {store.name}; there are: {there}"
    )
