"""From a live experiment to what its page shows: `duelay.page.view_models`.

The time that `see` takes does not depend on the number of duels: it reads counters that the store
keeps. `check` goes through the latest duels, and takes a second or so.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from duelay.live import Experiment, UnknownExperimentError
from duelay.live.book import MICRO
from duelay.live.series import Totals, asked_since, read_totals
from duelay.live.standing import LiveStanding
from duelay.live.store import Store
from duelay.page import view_models
from duelay.page.advice import DAY, advise, window_words
from duelay.page.charts.series import (
    ARMS,
    allocation_chart,
    chances_chart,
    colour_of,
    evidence_chart,
    pair_chart,
    pending_chart,
)
from duelay.page.diagnostics import check
from duelay.page.duel_log import read_log
from duelay.page.formats import times
from duelay.page.incremental import Look, forget_others, look, rank
from duelay.players.alarms import REMARKS

__all__ = ["check", "read_log", "see", "see_list", "see_pair"]

MATRIX = 30  # arms of the matrix, at the most
_SPARK = 40  # bars of a sparkline, at the most
_EVENTS = 50


def see(experiment: Experiment, *, settles: bool = True) -> view_models.Experiment:
    """Return what the page of an experiment shows.

    With `settles`, silence that is due is settled first; that writes to the store, at most once a
    second. Alarms that `check` has found before are in the headline and the advice.
    """
    with look(experiment, settles=settles) as seen:
        kept = seen.reader.view
        if kept is None or kept.version != seen.version:
            seen.reader.view = kept = _view(seen)
        return kept


def see_pair(experiment: Experiment, i: int, j: int) -> view_models.Pair:
    """Return all about two arms, by their numbers."""
    with look(experiment, settles=False) as seen:
        k = len(seen.book.arms)
        if i == j or not 0 <= i < k or not 0 <= j < k:
            raise LookupError(f"no pair of arms {i} and {j}: they are two of 0 to {k - 1}")
        return _pair(seen, i, j)


_OPENED: weakref.WeakKeyDictionary[Store, dict[str, Experiment]] = weakref.WeakKeyDictionary()


def see_list(
    store: Store, names: Sequence[str] | None = None, **opened: Any
) -> list[view_models.Listed]:
    """Return what the list shows of the experiments of a store, or of some of them.

    `opened` is what `Experiment.open` takes.
    """
    there = _OPENED.setdefault(store, {})
    every = Experiment.names(store)
    for gone in there.keys() - set(every):
        there.pop(gone, None)
    found = []
    for name in every if names is None else names:
        try:
            found.append(_listed(store, there, name, opened))
        except UnknownExperimentError:  # deleted just now
            continue
    desks = [experiment._desk for experiment in list(there.values())]
    if names is None:
        forget_others(store, {(desk.id, desk.created) for desk in desks})
    return found


def _listed(
    store: Store, there: dict[str, Experiment], name: str, opened: dict[str, Any]
) -> view_models.Listed:
    if name not in there:
        there[name] = Experiment.open(store, name, **opened)
    try:
        return _list_one(there[name])
    except UnknownExperimentError:  # deleted, and made anew under its name
        there[name] = Experiment.open(store, name, **opened)
        return _list_one(there[name])


def _list_one(experiment: Experiment) -> view_models.Listed:
    with look(experiment) as seen:
        kept = seen.reader.listed
        if kept is None or kept[0] != seen.version:
            seen.reader.listed = kept = (seen.version, _list_entry(seen))
        return kept[1]


def _list_entry(seen: Look) -> view_models.Listed:
    standing, head = seen.standing, seen.book.head
    totals, today = read_totals(seen.connection, seen.id), _today(seen)
    advice, evidence = advise(seen, today, totals), standing.evidence
    words = {"off": "something is off", "stop": "declared", "paused": "paused",
             "wait": "nothing heard yet" if head["asked"] else "no duels yet"}  # fmt: skip
    sure = None
    if evidence is not None and standing.is_heard:
        sure = _share(evidence.arm[standing.leader] / evidence.level)
    return view_models.Listed(
        name=standing.name,
        status=standing.status,
        leader=standing.arms[standing.leader] if standing.is_heard else None,
        winner=None if standing.winner is None else standing.arms[standing.winner],
        sure=sure,
        words=words.get(advice.kind) or advice.duels or "goes on by itself",
        spark=_spark(totals),
        duels=head["asked"],
        today=today,
        pending=_pending(standing),
        alarms=tuple(alarm.name for alarm in standing.alarms if alarm.name not in REMARKS),
    )


def _spark(totals: Totals) -> tuple[int, ...]:
    """Return the duels of the latest buckets, some together where there are many."""
    asked = totals.asked
    stride = math.ceil(len(asked) / _SPARK)
    padded = np.concatenate([np.zeros(-len(asked) % stride, dtype=np.int64), asked])
    return tuple(padded.reshape(-1, stride).sum(axis=1).tolist())


def _view(seen: Look) -> view_models.Experiment:
    standing, book = seen.standing, seen.book
    settings, head = book.settings, book.head
    today, totals = _today(seen), read_totals(seen.connection, seen.id)
    pending = _pending(standing)
    repeats = int((book.array("repeats") - book.array("repeated_answers")).sum())
    order = rank(standing)
    arms = _arms(seen, order)
    shown = order[:ARMS]
    present = [arm for arm in shown if standing.present[arm]]
    return view_models.Experiment(
        name=settings.name,
        status=head["status"],
        goal=settings.goal,
        policy=settings.policy,
        feedback=settings.feedback,
        window=window_words(settings.window),
        error=settings.error,
        created=settings.created / MICRO,
        now=seen.now,
        headline=standing.headline,
        advice=advise(seen, today, totals),
        guarantee=_guarantee(standing),
        weighed=_weighed(standing),
        warnings=standing.warnings,
        winner=None if standing.winner is None else standing.arms[standing.winner],
        leader=standing.arms[standing.leader] if standing.is_heard else None,
        duels=head["asked"],
        heard=head["heard"],
        pending=pending,
        silent=head["asked"] - head["heard"] - pending - repeats,
        repeats=repeats,
        late=standing.late,
        today=today,
        nobody=_share(1.0 - float(standing.chances.sum())) if standing.is_heard else None,
        arms=arms,
        matrix=_matrix(seen, order[:MATRIX]),
        evidence=evidence_chart(seen, present),
        allocation=allocation_chart(seen, totals, shown),
        chances=chances_chart(seen, totals, present, standing.chances),
        pending_ages=pending_chart(seen, totals),
        events=_events(seen),
        version=seen.version,
        share=settings.share,
    )


def _today(seen: Look) -> int:
    return asked_since(seen.connection, seen.id, round((seen.now - DAY) * MICRO))


def _pending(standing: LiveStanding) -> int:
    return 0 if standing.pending is None else int(standing.pending.sum())


def _share(value: float) -> float:
    return min(max(float(value), 0.0), 1.0)


def _known(value: float) -> float | None:
    """A share, from 0 to 1; None where it is not known."""
    return _share(value) if not math.isnan(value) else None


def _guarantee(standing: LiveStanding) -> str:
    """Say what a declaration, and the intervals, are worth."""
    kind, words = standing.guarantee.kind, standing.guarantee.words
    if kind == "none":
        return f"Nothing is guaranteed: {words}."
    often = (
        f"A winner that is declared is wrong in at most {100 * standing.error:g} % of experiments, "
        "however often you look"
    )
    return f"{often}: {words}." if kind == "measured" else f"{often}. It rests on {words}."


def _weighed(standing: LiveStanding) -> str:
    """Say why intervals may contain one half though a winner is declared; else empty."""
    if not standing.weighed or standing.winner is None:
        return ""
    return (
        f"{standing.arms[standing.winner]} is {standing.weighed}: these are wider, and may "
        "still contain 50 %."
    )


def _arms(seen: Look, order: Sequence[int]) -> tuple[view_models.Arm, ...]:
    standing = seen.standing
    rows = {row.arm: row for row in standing.rows()}
    heard, pending = (
        [0] * len(rows) if counts is None else _of_arms(counts)
        for counts in (standing.answers, standing.pending)
    )
    return tuple(_arm(standing, rows[arm], heard[arm], pending[arm]) for arm in order)


def _of_arms(counts: Any) -> list[int]:
    """Add up counts of pairs for each arm, in either place; a self-duel counts once."""
    found: list[int] = (counts.sum(axis=0) + counts.sum(axis=1) - counts.diagonal()).tolist()
    return found


def _arm(standing: LiveStanding, row: Any, heard: int, pending: int) -> view_models.Arm:
    evidence, chances = standing.evidence, standing.chances if standing.is_heard else None
    arm, is_present = row.arm, bool(standing.present[row.arm])
    is_leader = standing.is_heard and arm == standing.leader
    is_unheard = is_leader or not standing.is_heard or math.isnan(row.mean)
    is_weighed = is_present and standing.is_heard
    return view_models.Arm(
        number=arm,
        name=standing.arms[arm],
        colour=colour_of(arm),
        is_present=is_present,
        is_leader=is_leader,
        is_winner=arm == standing.winner,
        chance=float(chances[arm]) if is_weighed and chances is not None else None,
        evidence=_share(evidence.arm[arm] / evidence.level) if is_weighed and evidence else None,
        mean=None if is_unheard else _known(row.mean),
        lower=None if is_unheard else _known(row.lower),
        upper=None if is_unheard else _known(row.upper),
        duels=row.duels,
        heard=heard,
        conversions=row.conversions,
        pending=pending,
    )


def _matrix(seen: Look, arms: Sequence[int]) -> tuple[tuple[view_models.Cell | None, ...], ...]:
    """Return what is known of arms against each other."""
    standing, pending, answers = seen.standing, seen.standing.pending, seen.book.array("answers")
    plays = standing.plays
    both = np.ix_(arms, arms)
    waits = np.zeros_like(plays) if pending is None else pending
    # As lists: to take numbers out of arrays one by one is slow.
    tables = [values[both].tolist() for values in (standing.mean, standing.lower, standing.upper)]
    tables += [(values[both] + values.T[both]).tolist() for values in (plays, answers, waits)]
    return tuple(
        tuple(
            None if i == j else _cell(arms[i], arms[j], *(values[i][j] for values in tables))
            for j in range(len(arms))
        )
        for i in range(len(arms))
    )


def _cell(
    i: int, j: int, mean: float, lower: float, upper: float, plays: int, heard: int, pending: int
) -> view_models.Cell:
    known, low, high = _share(mean), _share(lower), _share(upper)
    is_heard = heard > 0 and not math.isnan(mean)
    return view_models.Cell(
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


def _pair(seen: Look, i: int, j: int) -> view_models.Pair:
    standing = seen.standing
    arms = {arm.number: arm for arm in _arms(seen, [i, j])}
    cell = _matrix(seen, [i, j])[0][1]
    assert cell is not None
    array = seen.book.array
    heard = array("answers") - array("repeated_answers")
    won = standing.conversions - array("repeated_conversions")
    ties = np.rint(2.0 * (array("given") - won)).astype(np.int64)  # each gives one half

    def either(values: Any) -> tuple[int, int]:
        return (0, 0) if values is None else (int(values[i, j]), int(values[j, i]))

    naive = _naive(seen, i, j)
    return view_models.Pair(
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
        words=_pair_words(seen, cell, naive),
        over_time=pair_chart(seen, read_totals(seen.connection, seen.id), i, j, cell.mean),
    )


def _naive(seen: Look, i: int, j: int) -> float | None:
    """Return how often i beats j, silence taken for a win of the second; for votes, their share."""
    book = seen.book
    if book.settings.is_vote:
        given = book.array("given")
        n = book.array("answers") - book.array("repeated_answers")
        wins = given[i, j] + n[j, i] - given[j, i]
    else:
        n, heard = seen.standing.plays, seen.standing.conversions
        wins = heard[i, j] + n[j, i] - heard[j, i]
    of = n[i, j] + n[j, i]
    return float(wins / of) if of else None


def _pair_words(seen: Look, cell: view_models.Cell, naive: float | None) -> str:
    """Say how the two compare."""
    first, second = (seen.book.arms[arm] for arm in (cell.first, cell.second))
    if cell.plays == 0:
        return f"{first} and {second} have never met."
    if cell.mean is None or cell.lower is None or cell.upper is None:
        return f"{first} and {second} have met in {cell.plays:,} duels, and nothing is settled yet."
    ends = f"{100 * cell.lower:.0f} to {100 * cell.upper:.0f} %"
    words = f"{first} beats {second} in about {100 * cell.mean:.0f} % of duels ({ends})"
    words += f": {_verdict(seen, cell, cell.lower, cell.upper)}"
    if seen.book.settings.is_vote or naive is None:
        return f"{words}."
    return (
        f"{words}. Silence is weighed by what it tells; taken for wins of the second shown, it "
        f"would be {100 * naive:.0f} %."
    )


def _verdict(seen: Look, cell: view_models.Cell, lower: float, upper: float) -> str:
    """Say which of two arms is better, if that is known: by a declaration, or the interval."""
    winner, bets, arms = seen.standing.winner, seen.book.bets, seen.book.arms
    if winner is not None and winner in (cell.first, cell.second):
        other = cell.second if winner == cell.first else cell.first
        log = float(bets.best[winner, other])
        if log >= bets.level:
            often = times(math.exp(min(log, 700.0)))  # a larger one overflows
            name, rival = arms[winner], arms[other]
            return f"{name} is declared the winner, with evidence of {often} over {rival}"
    if lower > 0.5 or upper < 0.5:
        return f"{arms[cell.first if lower > 0.5 else cell.second]} is better"
    return "which of them is better is not yet clear"


def _events(seen: Look) -> tuple[view_models.Event, ...]:
    """Return what happened, the latest first."""
    found = [view_models.Event(row["kind"], row["at"] / MICRO, row["words"]) for row in seen.events]
    for change in seen.book.changes:
        words = f"{change.arm} {'joined' if change.kind == 'joined' else 'was retired'}"
        found.append(view_models.Event(change.kind, float(change.at or 0.0), words))
    found.sort(key=lambda event: -event.at)
    return tuple(found[:_EVENTS])
