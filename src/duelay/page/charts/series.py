"""The data of the charts, from the evidence of an experiment and its counts by time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select

from duelay.inference.posterior import draw_posterior
from duelay.ledger.evidence.stored_duels import wait_now
from duelay.live.storage import schema
from duelay.live.storage.schema import MICRO
from duelay.live.storage.time_series import PairTimes, Totals, read_pairs, read_shown
from duelay.page.formats import times
from duelay.page.incremental import ExperimentSnapshot
from duelay.page.view_models import Chart, Line, Values

Floats = NDArray[np.float64]
N_COLOURS = 12  # of the palette
MAX_ARMS_PER_CHART = 12
_MAX_POINTS_PER_LINE = 128
_MIN_DUELS_PER_SHARE = 10
_MAX_CHANCE_POINTS = 40
_DRAWS_PER_POINT = 400
_PLACES = (
    "The share of all places, two a duel, in which each arm was shown.",
    "The share of all places, two a visitor: the arm that the visitor sees, by a coin, and the arm "
    "with which it is compared. A visitor sees one of them.",
)
_WAITING = (
    "Duels without an answer whose window is still open, by how long ago they were asked.",
    "Visitors without a conversion whose window is still open, by how long ago they came.",
)
_MAX_LOG_ABOVE_LEVEL = math.log(1000.0)  # evidence further above the level is cut off


def colour_of(arm: int) -> int:
    """Return the colour of an arm, which is the same in every chart."""
    return arm % N_COLOURS


def list_values(numbers: Any) -> Values:
    """Return the values of a line, with None for values that are not finite."""
    return tuple(float(x) if math.isfinite(x) else None for x in np.asarray(numbers).tolist())


def make_evidence_chart(look: ExperimentSnapshot, arms: Sequence[int]) -> Chart | None:
    """Return the evidence of each arm over time, and the level of a declaration."""
    evidence = look.standing.evidence
    if evidence is None or not look.standing.is_heard:
        return None
    paths = schema.paths
    rows = look.connection.execute(
        select(paths.c.tick, paths.c.at).where(paths.c.experiment == look.id)
    )
    at = {row.tick: row.at / MICRO for row in rows}
    x = np.array([at.get(tick, np.nan) for tick in evidence.tick[:-1].tolist()] + [look.now])
    path = np.minimum(evidence.path, evidence.level + _MAX_LOG_ABOVE_LEVEL)
    known = np.isfinite(x)
    x, path = x[known], path[known]
    keep = np.append(np.diff(x) > 0, True)  # of one moment, the last
    x, path = x[keep], path[keep]
    stride = math.ceil(len(x) / _MAX_POINTS_PER_LINE)
    declared_at = look.state.head["declared_at"] or -MICRO
    is_declaration = np.flatnonzero(x == declared_at / MICRO)
    place = np.union1d(np.arange(len(x) - 1, -1, -stride), is_declaration)
    if len(place) < 2:
        return None
    level = math.exp(evidence.level)
    x, path = _with_changes(look, x[place], np.exp(path[place]))
    lines = [_line(look, arm, path[:, arm]) for arm in arms]
    lines.append(Line("declared", (level,) * len(x), "level"))
    words = (
        "How many times more likely the answers are if the arm beats an opponent than if the two "
        "are equal, for the opponent against which this number is smallest. The first arm to reach "
        f"the dotted line, {times(level)}, is declared the winner."
    )
    if evidence.margin is not None:
        words = (
            "How much speaks for no arm beating this one by the margin or more, against the "
            f"opponent for which this number is smallest. At the dotted line, {times(level)}, it "
            "is enough."
        )
    return Chart(
        "evidence",
        "Evidence",
        f"{words} Evenly spaced lines stand for ten times as much as the line below."
        + _change_words(look),
        tuple(x.tolist()),
        tuple(lines),
        y_kind="evidence",
        is_stepped=True,
        marks=tuple(
            (change.at, f"{change.arm} {'joined' if change.kind == 'joined' else 'retired'}")
            for change in look.state.changes
            if change.at is not None and x[0] <= change.at <= x[-1]
        ),
    )


def _with_changes(look: ExperimentSnapshot, x: Floats, path: Floats) -> tuple[Floats, Floats]:
    """Add the moments at which arms joined or retired, so that the evidence steps there.

    An arm has no evidence before it joins and while it is retired.
    """
    changes = [(float(change.at or 0.0), change) for change in look.state.changes]
    for at, _ in changes:
        after = int(np.searchsorted(x, at, "right"))
        if 0 < after < len(x) and x[after - 1] < at:
            x = np.insert(x, after, at)
            path = np.insert(path, after, path[after], axis=0)
    for number, arm in enumerate(look.state.arms):
        own = [(at, change.kind) for at, change in changes if change.arm == arm]
        is_there = np.full(len(x), not own or own[0][1] == "retired")
        for at, kind in own:
            is_there[x >= at] = kind == "joined"
        path[~is_there, number] = np.nan
    return x, path


def _change_words(look: ExperimentSnapshot) -> str:
    """Return a sentence on the steps at which an arm joined or retired."""
    if not look.state.changes:
        return ""
    return (
        " The evidence of every arm falls when an arm joins, because no arm has evidence over the "
        "new one yet, and because one more opponent requires more evidence."
    )


def make_allocation_chart(
    look: ExperimentSnapshot, totals: Totals, arms: Sequence[int]
) -> Chart | None:
    """Return the share of places in which each arm was shown, over time."""
    asked = totals.asked
    if not asked.any():
        return None
    begin = group_buckets(asked)
    shown = np.add.reduceat(read_shown(look.connection, look.id, arms), begin)
    share = shown / (2.0 * np.add.reduceat(asked, begin))[:, None]
    share = np.vstack((share, share[-1:]))
    lines = [_line(look, arm, share[:, place]) for place, arm in enumerate(arms)]
    if len(arms) < len(look.state.arms):
        rest = np.maximum(1.0 - share.sum(axis=1), 0.0)
        lines.append(Line("all others", list_values(rest), "others"))
    return Chart(
        "allocation",
        "Who is shown",
        f"{_PLACES[look.state.settings.shows_one]} The better arms, and those that are hard to "
        "tell apart, are shown more.",
        (*totals.start[begin].tolist(), max(look.now, float(totals.start[-1]))),
        tuple(lines),
        y_kind="share",
        is_stacked=True,
    )


def group_buckets(asked: NDArray[np.int64]) -> list[int]:
    """Group buckets until each group has duels enough for a share; return where groups begin.

    >>> group_buckets(np.array([0, 12, 4, 0, 7, 30, 2, 0]))
    [0, 2, 5]
    """
    begin, n = [0], 0
    for bucket, more in enumerate(asked.tolist()):
        if n >= _MIN_DUELS_PER_SHARE:
            begin.append(bucket)
            n = 0
        n += more
    return begin[:-1] if len(begin) > 1 and n < _MIN_DUELS_PER_SHARE else begin


def make_chances_chart(
    look: ExperimentSnapshot, totals: Totals, arms: Sequence[int], chances: Floats
) -> Chart | None:
    """Return the probability over time that each arm is the winner; the last point is now."""
    if not look.standing.is_heard or len(arms) < 2:
        return None
    past = _past_chances(look, totals, sorted(arms))
    place = {arm: column for column, arm in enumerate(sorted(arms))}
    ends = [float(totals.start[bucket]) + totals.width for bucket in past]
    values = np.array([*past.values(), chances[sorted(arms)]])
    are_all = len(arms) == int(look.standing.present.sum())
    rest = "no arm does" if are_all else "another one does, or no arm"
    return Chart(
        "chances",
        "Chance of being the winner",
        "The probability that each arm beats all others, given the answers up to that time. The "
        f"rest up to 100 % is the probability that {rest}. No guarantee holds for it.",
        (*ends, max(look.now, ends[-1] if ends else 0.0)),
        tuple(_line(look, arm, values[:, place[arm]]) for arm in arms),
        y_kind="share",
        is_opinion=True,
    )


def _past_chances(
    look: ExperimentSnapshot, totals: Totals, arms: Sequence[int]
) -> dict[int, Floats]:
    """Return the chances at the end of some past buckets; the reader caches them."""
    stride = 1
    while len(totals.start) > stride * _MAX_CHANCE_POINTS:
        stride *= 2
    over = [bucket for bucket in range(stride - 1, len(totals.start), stride)
            if totals.start[bucket] + totals.width <= look.now]  # fmt: skip
    kept = look.reader.past
    present = look.standing.present[list(arms)]
    kind = ("chances", totals.width, tuple(arms), present.tobytes())
    missing = [bucket for bucket in over if (*kind, bucket) not in kept]
    if missing:
        for place in [place for place in kept if place[:4] != kind]:
            del kept[place]
        counts = _Cumulated(look, totals, arms)
        for bucket in missing:
            lead, n = counts.weigh(look, totals.start[bucket] + totals.width)
            found = draw_posterior(lead, n, 0, None, present, _DRAWS_PER_POINT).chances
            kept[(*kind, bucket)] = found
    return {bucket: kept[(*kind, bucket)] for bucket in over}


class _Cumulated:
    """Cumulated counts of pairs, up to any moment.

    Repeats of units do not enter the evidence. The store counts the repeats of each pair, but not
    when they came: an even share is taken out of every bucket.
    """

    def __init__(self, look: ExperimentSnapshot, totals: Totals, arms: Sequence[int]) -> None:
        self.totals, self.width = totals, totals.width
        self.all = read_pairs(look.connection, look.id, arms)
        both, array = np.ix_(arms, arms), look.state.array

        def entering(name: str, repeats: str) -> Floats:
            return np.asarray(1.0 - array(repeats)[both] / np.maximum(array(name)[both], 1))

        self.plays = _add_up(self.all.plays * entering("plays", "repeats"))
        self.answers = _add_up(self.all.answers * entering("answers", "repeated_answers"))
        self.given = _add_up(self.all.given)

    def at(self, values: Floats, moment: float) -> Floats:
        """Return cumulated counts at a moment; within a bucket they grow evenly."""
        place = (moment - self.totals.start[0]) / self.width
        place = min(max(place, 0.0), len(values) - 1.0)
        low = min(int(place), len(values) - 2)
        return np.asarray(values[low] + (place - low) * (values[low + 1] - values[low]))

    def weigh(self, look: ExperimentSnapshot, moment: float) -> tuple[Floats, Floats]:
        """Return the wins minus losses of each arm over each other arm, and the number of answers.

        A silence has the same weight as in the evidence. It counts from about the age at which
        silence is booked.
        """
        eprocess = look.state.eprocess
        given, answers = self.at(self.given, moment), self.at(self.answers, moment)
        wins = given + (answers - given).T if eprocess.is_vote else given
        lead, n = wins - wins.T, wins + wins.T
        longest, kappa = wait_now(eprocess), float(eprocess.kappa[0])
        if not eprocess.is_vote and math.isfinite(longest) and eprocess.n_heard[0] > 0:
            mean = float(eprocess.delays[0] / eprocess.n_heard[0])
            heard = self.at(self.answers, moment - longest + mean)
            silent = np.maximum(self.at(self.plays, moment - longest) - heard, 0.0)
            lead = lead + kappa * (silent.T - silent)
            n = n + kappa**2 * (silent + silent.T)
        np.fill_diagonal(lead, 0.0)
        np.fill_diagonal(n, 0.0)
        return lead, n


def _add_up(values: NDArray[Any]) -> Floats:
    """Return cumulated counts at the beginning of each bucket, and at the end of the last."""
    return np.concatenate([np.zeros((1, *values.shape[1:])), np.cumsum(values, axis=0)])


def make_pending_chart(look: ExperimentSnapshot, totals: Totals) -> Chart | None:
    """Return the number of open duels without an answer, by age."""
    asked = totals.asked
    open_ = np.clip(np.cumsum(asked) - look.state.head["closed"], 0, asked)
    waits = (asked - totals.answered) * open_ / np.maximum(asked, 1)
    if not waits.any():
        return None
    first = int(np.flatnonzero(open_)[0])
    middle = totals.start + 0.5 * np.minimum(totals.width, np.maximum(look.now - totals.start, 0.0))
    ages = np.maximum(look.now - middle, 0.0)
    ages, waits = ages[first:][::-1], waits[first:][::-1]
    return Chart(
        "pending",
        "Pending by age",
        _WAITING[look.state.settings.shows_one]
        + " Repeats of a unit are among them." * bool(look.state.array("repeats").any()),
        tuple(ages.tolist()),
        (Line("pending", list_values(np.rint(waits)), "total"),),
        x_kind="age",
    )


def make_pair_chart(
    look: ExperimentSnapshot, totals: Totals, i: int, j: int, corrected: float | None
) -> Chart | None:
    """Return the estimate of how often i beats j, over time; the last point is now.

    Past estimates use the counts of their time, and the present weight of a silence.
    """
    if not totals.asked.any():
        return None
    counts, is_vote = _Cumulated(look, totals, (i, j)), look.state.eprocess.is_vote
    ends = np.minimum(totals.start + totals.width, np.maximum(look.now, totals.start))
    known = np.full(len(ends), np.nan)
    for place, end in enumerate(ends[:-1].tolist()):
        lead, n = counts.weigh(look, end)
        if n[0, 1] > 0 and counts.answers[place + 1].any():
            known[place] = min(max(0.5 + 0.5 * lead[0, 1] / n[0, 1], 0.0), 1.0)
    known[-1] = np.nan if corrected is None else corrected
    first, second = look.state.arms[i], look.state.arms[j]
    words = f"How often {first} beats {second}, by all votes so far."
    lines = [Line("share of votes" if is_vote else "corrected", list_values(known), "corrected")]
    if not is_vote:
        words = (
            f"How often {first} beats {second}, estimated from the answers up to that time. The "
            "corrected estimate weights conversions and silences as the evidence does. The naive "
            "estimate counts every silence as a win of the arm shown second."
        )
        lines.append(Line("naive", list_values(_naive(counts.all)), "naive"))
    lines.append(Line("even", (0.5,) * len(ends), "level"))
    return Chart("pair", "Over time", words, tuple(ends.tolist()), tuple(lines), y_kind="share")


def _naive(pairs: PairTimes) -> Floats:
    """Return how often the first of two arms won, if a silence is a win of the second."""
    plays, won = np.cumsum(pairs.plays, axis=0), np.cumsum(pairs.conversions, axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(
            (won[:, 0, 1] + plays[:, 1, 0] - won[:, 1, 0]) / (plays[:, 0, 1] + plays[:, 1, 0])
        )


def _line(look: ExperimentSnapshot, arm: int, values: Any) -> Line:
    return Line(look.state.arms[arm], list_values(values), "arm", colour_of(arm))
