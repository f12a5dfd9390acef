"""Build the view models of a page from a live experiment.

The time does not depend on the number of duels, because the store keeps the counts. What depends on
the rows of the duels is in `duelay.page.diagnostics` and `duelay.page.duel_log`.
"""

from __future__ import annotations

import functools
import logging
import math
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np
from sqlalchemy import select

from duelay.errors import DuelayError, StoreError, UnknownExperimentError
from duelay.inference.alarms import REMARKS
from duelay.inference.leader import rank_arms
from duelay.live import Experiment
from duelay.live.arrivals import DAY, usual_gap
from duelay.live.clock import GIVEN
from duelay.live.standing import StandingReport
from duelay.live.storage import schema
from duelay.live.storage.schema import MICRO
from duelay.live.storage.store import Store
from duelay.live.storage.time_series import Totals, asked_since, read_totals
from duelay.page import view_models
from duelay.page.advice import advise
from duelay.page.charts.series import (
    MAX_ARMS_PER_CHART,
    colour_of,
    make_allocation_chart,
    make_chances_chart,
    make_evidence_chart,
    make_pair_chart,
    make_pending_chart,
)
from duelay.page.formats import times
from duelay.page.glossary import strength
from duelay.page.incremental import ExperimentSnapshot, forget_others, look

_MAX_MATRIX_ARMS = 30
_MAX_SPARKLINE_POINTS = 40
_MAX_EVENTS = 50


def build_experiment(experiment: Experiment) -> view_models.ExperimentView:
    """Return the page of an experiment, without its diagnostics.

    Alarms of the latest call of `duelay.page.diagnostics.diagnose` appear in the headline and in
    the advice.

    Parameters
    ----------
    experiment : the experiment to show.

    Returns
    -------
    The same object as before, as long as the experiment has not changed.
    """
    with look(experiment) as seen:
        kept = seen.reader.view
        if kept is None or kept.version != seen.version:
            seen.reader.view = kept = _build_view(seen)
        return kept


def build_pair(experiment: Experiment, i: int, j: int) -> view_models.PairView:
    """Return the page of two arms, by their numbers.

    Raises
    ------
    LookupError : if the experiment has no such pair of different arms.
    """
    with look(experiment) as seen:
        k = len(seen.state.arms)
        if i == j or not 0 <= i < k or not 0 <= j < k:
            raise LookupError(f"no pair of arms {i} and {j}: they are two of 0 to {k - 1}")
        return _build_pair(seen, i, j)


_OPENED: weakref.WeakKeyDictionary[Store, dict[str, Experiment]] = weakref.WeakKeyDictionary()
_LOG = logging.getLogger("duelay.page")


def build_list(
    store: Store, names: Sequence[str] | None = None, **opened: Any
) -> list[view_models.ListEntry]:
    """Return the list of the experiments of a store.

    Of an experiment that cannot be read, the entry says why.

    Parameters
    ----------
    store : Store
        The store to read.
    names : sequence of str, optional
        The experiments to list; all of them by default.
    opened : object
        The keywords of `Experiment.open`.
    """
    there, table = _OPENED.setdefault(store, {}), schema.experiments
    query = select(table.c.id, table.c.name, table.c.created).order_by(table.c.id)
    store.need()
    with store.reading() as connection:
        rows = connection.execute(query).all()
    every = [row.name for row in rows]
    for gone in there.keys() - set(every):
        there.pop(gone, None)
    forget_others(store, {(row.id, row.created) for row in rows})
    found = []
    for name in every if names is None else names:
        try:
            found.append(_open_and_list(store, there, name, opened))
        except UnknownExperimentError:  # deleted just now
            continue
        except Exception as error:  # one experiment must not hide the others
            if isinstance(error, StoreError):
                with store.reading() as connection:  # raises if it is the store that is away
                    connection.execute(query).all()
            found.append(_build_entry_of_unreadable(name, error))
    return found


@functools.lru_cache(maxsize=1000)
def _log_once(name: str, reason: str) -> None:
    """Log why an experiment cannot be read: once, as lists are built every second."""
    _LOG.error("the experiment %r cannot be read: %s", name, reason, exc_info=True)


def _build_entry_of_unreadable(name: str, error: Exception) -> view_models.ListEntry:
    _log_once(name, f"{type(error).__name__}: {error}")
    known = "the log of the server says why"
    if isinstance(error, StoreError):  # its sentence is about the store as a whole
        known = f"its rows in the store cannot be read, {known}"
    elif isinstance(error, DuelayError):
        known = str(error)
    return view_models.ListEntry(
        name=name, status="", leader=None, winner=None, sure=None, words="", duels_by_time=(),
        duels=0, today=0, pending=0, alarms=(), problem=f"It cannot be shown: {known}",
    )  # fmt: skip


def _open_and_list(
    store: Store, there: dict[str, Experiment], name: str, opened: dict[str, Any]
) -> view_models.ListEntry:
    if name not in there:
        there[name] = Experiment.open(store, name, **opened)
    try:
        return _list_cached(there[name])
    except UnknownExperimentError:  # deleted, and made anew under its name
        there[name] = Experiment.open(store, name, **opened)
        return _list_cached(there[name])


def _list_cached(experiment: Experiment) -> view_models.ListEntry:
    with look(experiment) as seen:
        kept = seen.reader.listed
        if kept is None or kept[0] != seen.version:
            seen.reader.listed = kept = (seen.version, _build_list_entry(seen))
        return kept[1]


def _build_list_entry(seen: ExperimentSnapshot) -> view_models.ListEntry:
    standing, head = seen.standing, seen.state.head
    totals, today = read_totals(seen.connection, seen.id), _count_today(seen)
    gap = _find_gap(seen, today, totals)
    advice, evidence = advise(seen, gap), standing.evidence
    stop = "finished" if standing.chosen else "declared"
    if standing.verdict in ("equivalent", "undecided"):
        stop = {"equivalent": "no difference", "undecided": "undecided"}[standing.verdict]
    unit = "visitor" if seen.state.settings.shows_one else "duel"
    status = {"off": "something is off", "stop": stop, "paused": "paused",
             "wait": "no answers yet" if head["asked"] else f"no {unit}s yet"}  # fmt: skip
    summary = standing.at_traffic(gap).summary
    time = f"{summary.time_left} left" if summary.days_left else ""
    sure = None
    if evidence is not None and standing.is_heard and advice.kind != "off":
        sure = _clip_share(evidence.arm[standing.leader] / evidence.level)
    return view_models.ListEntry(
        name=seen.state.settings.name,
        status=head["status"],
        headline=summary.headline,
        leader=standing.arms[standing.leader] if standing.is_heard else None,
        winner=None if standing.winner is None else standing.arms[standing.winner],
        sure=sure,
        words=status.get(advice.kind) or time or advice.duels or "goes on by itself",
        duels_by_time=_count_by_time(totals),
        duels=head["asked"],
        unit="visitor" if seen.state.settings.shows_one else "duel",
        today=today,
        pending=_count_pending(seen),
        alarms=tuple(alarm.name for alarm in standing.alarms if alarm.name not in REMARKS),
    )


def _count_by_time(totals: Totals) -> tuple[int, ...]:
    """Return the duels by time, with neighbouring buckets added up where there are many."""
    asked = totals.asked
    stride = math.ceil(len(asked) / _MAX_SPARKLINE_POINTS)
    padded = np.concatenate([np.zeros(-len(asked) % stride, dtype=np.int64), asked])
    return tuple(padded.reshape(-1, stride).sum(axis=1).tolist())


def _build_view(seen: ExperimentSnapshot) -> view_models.ExperimentView:
    standing, state = seen.standing, seen.state
    settings, head = state.settings, state.head
    today, totals = _count_today(seen), read_totals(seen.connection, seen.id)
    gap = _find_gap(seen, today, totals)
    pending = _count_pending(seen)
    repeats = int((state.array("repeats") - state.array("repeated_answers")).sum())
    leader = standing.leader if standing.is_heard else None
    order = rank_arms(standing.mean, leader, standing.present)
    arms = _build_arms(seen, order)
    shown = order[:MAX_ARMS_PER_CHART]
    present = [arm for arm in shown if standing.present[arm]]
    none = _clip_share(1.0 - float(standing.chances.sum())) if standing.is_heard else None
    return view_models.ExperimentView(
        standing=StandingReport.of(standing.at_traffic(gap)),
        goal=settings.goal,
        created=settings.created / MICRO,
        now=seen.now,
        advice=advise(seen, gap),
        guarantee=_describe_guarantee(seen),
        weighed=_explain_intervals(seen),
        heard=head["heard"],
        pending=pending,
        silent=head["asked"] - head["heard"] - pending - repeats,
        repeats=repeats,
        today=today,
        chance_of_none=none,
        arms=arms,
        matrix=_build_matrix(seen, order[:_MAX_MATRIX_ARMS]),
        evidence=make_evidence_chart(seen, present),
        allocation=make_allocation_chart(seen, totals, shown),
        chances=make_chances_chart(seen, totals, present, standing.chances),
        pending_ages=make_pending_chart(seen, totals),
        events=_build_events(seen),
        version=seen.version,
        share=settings.share,
        speed=(head["clock"] or "").removesuffix("x") if head["clock"] != GIVEN else "",
    )


def _count_today(seen: ExperimentSnapshot) -> int:
    return asked_since(seen.connection, seen.id, round((seen.now - DAY) * MICRO))


def _find_gap(seen: ExperimentSnapshot, today: int, totals: Totals) -> float | None:
    created = seen.state.settings.created / MICRO
    return usual_gap(totals, today, seen.last_asked, created=created, now=seen.now)


def _count_pending(seen: ExperimentSnapshot) -> int:
    pending = seen.standing.pending
    return 0 if pending is None else int(pending.sum())


def _clip_share(value: float) -> float:
    return min(max(float(value), 0.0), 1.0)


def _clip_known_share(value: float) -> float | None:
    """Return a share from 0 to 1, or None for NaN."""
    return _clip_share(value) if not math.isnan(value) else None


def _describe_guarantee(seen: ExperimentSnapshot) -> str:
    """Return a sentence on the error probability of a declaration."""
    standing = seen.standing
    kind, words = standing.guarantee.kind, standing.guarantee.words
    if kind == "none":
        return f"Nothing is guaranteed: {words}."
    often = (
        f"A declared winner is wrong in at most {100 * standing.error:g} % of experiments, "
        "however often you look"
    )
    return f"{often}: {words}." if kind == "measured" else f"{often}. It rests on {words}."


def _explain_intervals(seen: ExperimentSnapshot) -> str:
    """Return why intervals may contain one half though a winner is declared; empty if none is."""
    standing = seen.standing
    if standing.winner is None:
        return ""
    basis = " and use conversions alone, without what silence tells" if standing.weighed else ""
    reaches = "begins at +0 %" if standing.rates is not None else "contains 50 %"
    return (
        f"{standing.arms[standing.winner]} is declared by its evidence over each other arm, which "
        f"reached the threshold. The intervals hold for all pairs at once{basis}. So they are "
        f"wider: one that {reaches} does not speak against the declaration."
    )


def _build_arms(seen: ExperimentSnapshot, order: Sequence[int]) -> tuple[view_models.ArmView, ...]:
    standing = seen.standing
    rows = {row.arm: row for row in standing.rows()}
    heard, pending = (
        [0] * len(rows) if counts is None else _sum_by_arm(counts)
        for counts in (standing.answers, standing.pending)
    )
    return tuple(_build_arm(seen, rows[arm], heard[arm], pending[arm]) for arm in order)


def _sum_by_arm(counts: Any) -> list[int]:
    """Return the counts of each arm in either place; a self-duel counts once."""
    found: list[int] = (counts.sum(axis=0) + counts.sum(axis=1) - counts.diagonal()).tolist()
    return found


def _build_arm(seen: ExperimentSnapshot, row: Any, heard: int, pending: int) -> view_models.ArmView:
    standing = seen.standing
    evidence, chances = standing.evidence, standing.chances if standing.is_heard else None
    arm, is_present = row.arm, bool(standing.present[row.arm])
    is_leader = standing.is_heard and arm == standing.leader
    is_unheard = is_leader or not standing.is_heard or math.isnan(row.mean)
    is_weighed = is_present and standing.is_heard
    return view_models.ArmView(
        number=arm,
        name=standing.arms[arm],
        colour=colour_of(arm),
        is_present=is_present,
        is_leader=is_leader,
        is_winner=arm == standing.winner,
        chance=float(chances[arm]) if is_weighed and chances is not None else None,
        evidence=_clip_share(evidence.arm[arm] / evidence.level)
        if is_weighed and evidence
        else None,
        mean=None if is_unheard else _clip_known_share(row.mean),
        lower=None if is_unheard else _clip_known_share(row.lower),
        upper=None if is_unheard else _clip_known_share(row.upper),
        duels=row.duels,
        heard=heard,
        conversions=row.conversions,
        pending=pending,
        shown_pending=row.pending or 0,
    )


def _build_matrix(
    seen: ExperimentSnapshot, arms: Sequence[int]
) -> tuple[tuple[view_models.MatrixCell | None, ...], ...]:
    """Return the cells of some arms against each other; None for an arm against itself."""
    standing, pending, answers = seen.standing, seen.standing.pending, seen.state.array("answers")
    plays = standing.plays
    both = np.ix_(arms, arms)
    waits = np.zeros_like(plays) if pending is None else pending
    # Lists, because reading single numbers of an array is slow.
    tables = [values[both].tolist() for values in (standing.mean, standing.lower, standing.upper)]
    tables += [(values[both] + values.T[both]).tolist() for values in (plays, answers, waits)]
    return tuple(
        tuple(
            None if i == j else _build_cell(arms[i], arms[j], *(values[i][j] for values in tables))
            for j in range(len(arms))
        )
        for i in range(len(arms))
    )


def _build_cell(
    i: int, j: int, mean: float, lower: float, upper: float, plays: int, heard: int, pending: int
) -> view_models.MatrixCell:
    known, low, high = _clip_share(mean), _clip_share(lower), _clip_share(upper)
    is_heard = heard > 0 and not math.isnan(mean)
    return view_models.MatrixCell(
        first=i,
        second=j,
        mean=known if is_heard else None,
        lower=low if is_heard else None,
        upper=high if is_heard else None,
        shade=round(20.0 * (known - 0.5) * (1.0 - (high - low))) if is_heard else 0,
        plays=plays,
        heard=heard,
        pending=pending,
    )


def _build_pair(seen: ExperimentSnapshot, i: int, j: int) -> view_models.PairView:
    standing = seen.standing
    arms = {arm.number: arm for arm in _build_arms(seen, [i, j])}
    cell = _build_matrix(seen, [i, j])[0][1]
    assert cell is not None
    array = seen.state.array
    heard = array("answers") - array("repeated_answers")
    won = standing.conversions - array("repeated_conversions")
    ties = np.rint(2.0 * (array("given") - won)).astype(np.int64)  # each gives one half

    def either(values: Any) -> tuple[int, int]:
        return (0, 0) if values is None else (int(values[i, j]), int(values[j, i]))

    naive = _naive_share(seen, i, j)
    return view_models.PairView(
        first=arms[i],
        second=arms[j],
        cell=cell,
        plays=either(standing.plays),
        repeats=either(standing.repeats),
        heard=either(heard),
        conversions=either(won),
        ties=either(ties),
        pending=either(standing.pending),
        naive=naive,
        corrected=cell.mean,
        words=_describe_pair(seen, cell, naive),
        over_time=make_pair_chart(seen, read_totals(seen.connection, seen.id), i, j, cell.mean),
    )


def _naive_share(seen: ExperimentSnapshot, i: int, j: int) -> float | None:
    """Return how often i beats j if a silence is a win of the second; for votes, their share."""
    state = seen.state
    if state.settings.is_vote:
        given = state.array("given")
        n = state.array("answers") - state.array("repeated_answers")
        wins = given[i, j] + n[j, i] - given[j, i]
    else:
        n, heard = seen.standing.plays, seen.standing.conversions
        wins = heard[i, j] + n[j, i] - heard[j, i]
    of = n[i, j] + n[j, i]
    return float(wins / of) if of else None


def _describe_pair(
    seen: ExperimentSnapshot, cell: view_models.MatrixCell, naive: float | None
) -> str:
    """Return a sentence that compares two arms."""
    first, second = (seen.state.arms[arm] for arm in (cell.first, cell.second))
    if cell.plays == 0:
        return f"{first} and {second} have never met."
    if cell.mean is None or cell.lower is None or cell.upper is None:
        return f"{first} and {second} have met in {cell.plays:,} duels, and none is settled yet."
    ends = f"{100 * cell.lower:.0f} to {100 * cell.upper:.0f} %"
    words = f"{first} beats {second} in about {100 * cell.mean:.0f} % of duels ({ends})"
    words += f": {_name_better(seen, cell, cell.lower, cell.upper)}"
    if seen.state.settings.is_vote or naive is None:
        return f"{words}."
    return (
        f"{words}. If every silence counted as a win of the arm shown second, it would be "
        f"{100 * naive:.0f} %."
    )


def _name_better(
    seen: ExperimentSnapshot, cell: view_models.MatrixCell, lower: float, upper: float
) -> str:
    """Return which of two arms is better, by a declaration or by the interval."""
    winner, eprocess, arms = seen.standing.winner, seen.state.eprocess, seen.state.arms
    if winner is not None and winner in (cell.first, cell.second):
        other = cell.second if winner == cell.first else cell.first
        log = float(eprocess.best[winner, other])
        if log >= eprocess.level:
            value, level = (math.exp(min(x, 700.0)) for x in (log, eprocess.level))
            name, rival = arms[winner], arms[other]
            return (
                f"{name} is declared the winner, with {strength(value, level)} evidence over "
                f"{rival} ({times(value)})"
            )
    if lower > 0.5 or upper < 0.5:
        return f"{arms[cell.first if lower > 0.5 else cell.second]} is better"
    return "which of them is better is not yet clear"


def _build_events(seen: ExperimentSnapshot) -> tuple[view_models.EventView, ...]:
    """Return the history of the experiment, the latest event first."""
    found = [
        view_models.EventView(row["kind"], row["at"] / MICRO, row["words"]) for row in seen.events
    ]
    noted = {(row["kind"], row["about"], row["at"]) for row in seen.events}
    for change in seen.state.changes:
        if (change.kind, change.arm, round((change.at or 0.0) * MICRO)) in noted:
            continue  # changes of earlier versions are not among the events
        words = f"{change.arm} {'joined' if change.kind == 'joined' else 'was retired'}"
        found.append(view_models.EventView(change.kind, float(change.at or 0.0), words))
    found.sort(key=lambda event: -event.at)
    return tuple(found[:_MAX_EVENTS])
