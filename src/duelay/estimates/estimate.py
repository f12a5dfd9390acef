"""What a log of the past says: the delays, the preferences, who leads, and how sure that is."""

from __future__ import annotations

import dataclasses
import functools
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from duelay import delays as laws
from duelay._core import checks
from duelay._core.duration import in_brief
from duelay.assumptions import check_assumptions, independence, share_by_pair
from duelay.assumptions.finding import Finding
from duelay.assumptions.order import is_even
from duelay.delays import Delay, Law
from duelay.delays.fitting import DelayEstimate, estimate_delays
from duelay.delays.units import is_in_time
from duelay.estimates.notes import find_notes
from duelay.estimates.preferences import (
    Counts,
    Position,
    Preferences,
    count,
    find_naive,
    find_position,
    of_coin,
    of_joint,
    of_told_law,
    of_votes,
)
from duelay.estimates.units import Repeated, count_repeated, first_share, once, together
from duelay.ledger.bets import start_bets
from duelay.logs.history import History
from duelay.players.evidence import Evidence, replay
from duelay.players.guarantee import Guarantee, find_guarantee
from duelay.players.leading import beaten
from duelay.players.opinions import opinions
from duelay.players.replay import Past
from duelay.show.table import table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_JOINT = (
    "one delay law for all pairs, the place helping no arm, and an order that was chosen without "
    "knowing how the duel ends; for one look, where there are many answers"
)
_BONUS = (
    "the first place being worth the same to every arm, as is estimated from what was shown in "
    "both orders; for one look"
)
_ONE_ORDER = (
    "nobody says that a coin decided who was first, and nothing was shown in both orders: who is "
    "better, and what the first place is worth, cannot be told apart"
)
_SEEMS = ", if a coin decided who was first: nobody says so, and the log does not contradict it"
_FEW = 10.0  # answers of a pair, below which it says little about the ranking
_ON_THE_COIN = ("order balance", "delay by winner", "preference drift", "independence")
_ON_VOTES = ("delay by winner", "preference drift", "independence")
_ON_A_LAW = (*_ON_VOTES, "delay by pair", "law drift", "share by pair")
Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Estimate:
    """All that `duelay.estimate` found; `print` shows it, `save` writes it."""

    history: History
    error: float  # the share of experiments in which the intervals, or a winner, may be wrong
    order: str  # "coin", "alternate" or "champion"; "coin?" where it looks so, and else "unknown"
    counts: Counts  # by ordered pair, of all duels
    delays: DelayEstimate | None  # None where nothing is to be told of them
    told: Delay | None  # the law, where it was told
    preferences: Preferences
    position: Position | None  # what the first place is worth; of votes alone
    guarantee: Guarantee
    evidence: Evidence | None  # None where bets on what was heard would not be fair
    repeated: Repeated
    findings: tuple[Finding, ...]  # of the tests of assumptions
    why_no_law: str = ""  # where `delays` is None

    @property
    def arms(self) -> tuple[str, ...]:
        """Their names."""
        return self.history.arms

    @property
    def mean(self) -> NDArray[np.float64]:
        """(K, K): how often the row's arm beats the column's."""
        return self.preferences.mean

    @property
    def lower(self) -> NDArray[np.float64]:
        """(K, K): the lower ends of the intervals."""
        return self.preferences.lower

    @property
    def upper(self) -> NDArray[np.float64]:
        """(K, K): the upper ends of the intervals."""
        return self.preferences.upper

    @property
    def naive(self) -> NDArray[np.float64]:
        """(K, K): the same if silence were a win of the second; of votes, as they stand."""
        return self.preferences.naive

    @property
    def law(self) -> Law | None:
        """The delay law: the best that was fitted, or the learned curve where none fits."""
        return None if self.delays is None else self.delays.best

    @property
    def winner(self) -> int | None:
        """The arm that is better than all others, at the error; None where that is not sure."""
        if self.evidence is not None:
            return self.evidence.winner
        others = np.arange(len(self.arms)) != self._first
        is_clear = bool((self.lower[self._first][others] > 0.5).all())
        return self._first if is_clear and self.guarantee.holds else None

    @functools.cached_property
    def _first(self) -> int:
        return int(np.argmax(self._scores))

    @functools.cached_property
    def _gaps(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(K, K): wins less losses of each pair, and in how many answers."""
        if self.evidence is not None:
            return self.evidence.lead, self.evidence.n
        spread = np.where(self.preferences.error > 0, self.preferences.error, np.inf)
        n = np.nan_to_num(0.25 / spread**2)
        return np.nan_to_num(n * (2.0 * self.mean - 1.0)), n

    @functools.cached_property
    def _scores(self) -> NDArray[np.float64]:
        """(K,): how many others each arm beats, each by the probability that it does.

        Who has met them seldom, or never, is in the middle.
        """
        lead, n = self._gaps
        ahead = lead / np.sqrt(n + _FEW)
        normal = np.array([math.erf(z / math.sqrt(2.0)) for z in ahead.ravel()])
        return np.asarray(0.5 * normal.reshape(ahead.shape).sum(axis=1))

    @property
    def leader(self) -> int:
        """The arm that wins, or beats the most others by the estimates."""
        return self._first if self.winner is None else self.winner

    @property
    def candidates(self) -> Bools:
        """(K,): arms that may still be better than all others."""
        found = np.asarray((self.upper >= 0.5).all(axis=1))
        if self.evidence is not None:
            found &= ~self.evidence.is_out
        return found if self.winner is None else np.arange(len(self.arms)) == self.winner

    @functools.cached_property
    def chances(self) -> NDArray[np.float64]:
        """(K,): the probability that each arm is better than all others; an opinion."""
        everybody = np.ones(len(self.arms), dtype=bool)
        return opinions(*self._gaps, 0, None, everybody).chances

    @property
    def ranking(self) -> NDArray[np.int64]:
        """(K,): the arms, the leader first, then by how many others each seems to beat."""
        return np.lexsort((-self._scores, np.arange(len(self.arms)) != self.leader))

    @property
    def alarms(self) -> tuple[Finding, ...]:
        """The tests of assumptions that alarm."""
        return tuple(finding for finding in self.findings if finding.is_alarm)

    @property
    def doubts(self) -> tuple[Finding, ...]:
        """Those of them that find what the intervals, or the winner, rest on."""
        is_joint = self.delays is not None and self.delays.joint is not None
        rests_on: tuple[str, ...] = _ON_THE_COIN
        if self.history.feedback == "votes" and self.history.order not in ("coin", "alternate"):
            rests_on = _ON_VOTES
        elif self.told is not None or is_joint:
            rests_on = _ON_A_LAW
        return tuple(alarm for alarm in self.alarms if alarm.name in rests_on)

    @property
    def headline(self) -> str:
        """Who wins or leads, and how sure that is, in a sentence."""
        if not self.history.is_heard.any():
            return f"nothing has been heard in {self.history.n:,} duels: no arm leads"
        name = self.arms[self.leader]
        often = f"wrong in at most {100 * self.error:g} % of experiments"
        if self.guarantee.kind == "measured":
            often += ", measured, not proved"
        if self.winner is not None:
            words = f"{name} beats all others ({often})"
        elif self.evidence is not None and self.evidence.is_out.all():
            words = f"no arm beats all others: each has lost to another ({often})"
        else:
            rivals = [self.arms[arm] for arm in np.flatnonzero(self.candidates)]
            rivals = [rival for rival in rivals if rival != name]
            some = ", ".join(rivals[:3]) + (f" and {len(rivals) - 3} more" * (len(rivals) > 3))
            open_ = f": {some} may still be as good" if rivals else ""
            words = f"{name} leads, not sure at {100 * (1 - self.error):g} %{open_}"
        if self.doubts:
            words += f"; but doubtful: {', '.join(doubt.name for doubt in self.doubts)}"
        return words

    @property
    def delay_words(self) -> str:
        """The delays, in a sentence."""
        if self.delays is None:
            return self.why_no_law
        known, in_time = self.delays.learned, self.delays.in_time
        tau, error = (float(x) for x in known.at(known.last))
        age = in_brief(known.last) if in_time else f"{known.last:,.0f} ticks"
        low, high = (min(max(1.0 - tau + s * 1.96 * error, 0.0), 1.0) for s in (-1, 1))
        words = (
            f"{100 * min(max(1.0 - tau, 0.0), 1.0):.3g} % [{100 * low:.3g}, {100 * high:.3g}] of "
            f"the answers do not come within {age}"
        )
        if not self.delays.fits:
            return words
        best = self.delays.fits[0]
        if not best.fits:
            return f"{words}; no law fits the learned curve, the nearest is {best.law}"
        low, high = best.never_range or (best.never, best.never)
        never = f"{100 * best.never:.3g} % [{100 * low:.3g}, {100 * high:.3g}] never come"
        return f"{words}; {best.name} fits best, {best.law}: by it {never}"

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about the log that somebody should look at; none where all is well."""
        return find_notes(self.history)

    @property
    def how_sure(self) -> str:
        """What the intervals and the winner rest on, in a sentence."""
        kind, words = self.guarantee.kind, self.guarantee.words
        if kind == "none":
            return f"not guaranteed: {words}"
        together = f"all intervals hold together in {100 * (1 - self.error):g} % of experiments"
        if words.startswith("measured"):
            said = f"{together}; {words}"
        else:
            said = f"{together}, {kind}; it rests on {words}"
        if self.doubts:
            said += f". But {', '.join(d.name for d in self.doubts)}: that does not hold here"
        return said

    def __str__(self) -> str:
        rows = []
        for place, arm in enumerate(self.ranking, start=1):
            share = "unheard"
            if arm == self.leader and self.history.is_heard.any():
                share = "leads"
            if arm != self.leader and not math.isnan(self.mean[self.leader, arm]):
                low, high = (max(0.0, min(1.0, float(end[self.leader, arm])))
                             for end in (self.lower, self.upper))  # fmt: skip
                share = f"{self.mean[self.leader, arm]:.3f}  [{low:.3f}, {high:.3f}]"
            naive = self.naive[self.leader, arm]
            plain = "" if arm == self.leader or math.isnan(naive) else f"{naive:.3f}"
            duels = int(self.counts.duels[arm].sum() + self.counts.duels[:, arm].sum())
            beats = f"{beaten(self.mean)[arm]:g}"
            rows.append([str(place), self.arms[arm], share, plain, beats, f"{duels:,}"])
        columns = ["", "arm", "leader beats it", "naively", "beats", "duels"]
        words = [self.headline, table(columns, rows, left=(1, 2)), f"delays: {self.delay_words}"]
        if self.position is not None:
            low, high = (self.position.bonus + s * 1.96 * self.position.error for s in (-1, 1))
            words.append(
                f"being shown first adds {self.position.bonus:+.3f} [{low:+.3f}, {high:+.3f}] to "
                "the chance of winning"
            )
        words.append(self.how_sure)
        if self.repeated.units:
            words.append(
                f"{self.repeated.units:,} units; {self.repeated.answers:,} answers of a unit to a "
                "pair that it had answered are left out of the evidence"
            )
        if self.history.skipped:
            words.append(f"{len(self.history.skipped):,} bad rows were left out")
        words += [f"worth a look: {note}" for note in self.notes]
        for alarm in self.alarms:
            head = "warning" if alarm in self.doubts else "worth a look"
            words.append(f"{head}: {alarm.name}: {alarm.sentence}")
        return "\n".join(words)

    def save(self, folder: str | Path) -> list[Path]:
        """Write report.html, estimate.json, and tables as CSV and Parquet; return what is there."""
        from duelay.estimates import report

        return report.write(self, Path(folder))

    def as_data(self) -> dict[str, Any]:
        """All of it as what JSON knows: numbers, texts, lists; None where nothing is known."""
        from duelay.estimates import report

        return report.as_data(self)

    def plot(self) -> Figure:
        """Draw the delays, the preferences and the ranking; needs matplotlib."""
        from duelay.estimates import figures

        return figures.overview(self)


def estimate(log: Any, *, error: float = 0.05, delay: Any = None, **reading: Any) -> Estimate:
    """Estimate the delay law, the preferences and the winner from a log of the past.

    `log` is a `History`, or what `History.read` reads: the path of a CSV or Parquet file, or a
    table of pandas, polars or pyarrow. `reading` are its arguments, such as ``columns``, ``zone``
    or ``order``.

    With a coin that decided who is shown first, or votes, the preferences come from what was heard
    alone, and nothing is assumed about the delays. In another order they rest on the delay law: on
    `delay`, where it is told, and else on one that is estimated with them. A unit's answers to a
    pair count once. All intervals hold together but for a share `error` of experiments.

    """
    error = checks.number("error", error, above=0, below=1)
    if isinstance(log, History) and reading:
        raise ValueError(
            f"log is a History already: {', '.join(reading)} is for reading a table, give it to "
            "History.read"
        )
    history = log if isinstance(log, History) else History.read(log, **reading)
    told = None if delay is None else _check_law(delay, history)
    order, seems = _find_order(history)
    counted = together(history)
    single = once(history) if history.feedback == "votes" else counted
    found, why = _find_delays(dataclasses.replace(single, order=order), error)
    is_vote, is_coin = history.feedback == "votes", history.order in ("coin", "alternate")
    naive, position = find_naive(history), find_position(history, is_coin=is_coin)
    counts = count(counted)
    if told is not None and not is_vote:
        preferences = of_told_law(counted, told, error, naive)
        guarantee = Guarantee("proved", "the delay law being as it was told", bets=False)
    elif is_vote and not is_coin and position is None:
        preferences = of_coin(counts, error, naive)
        guarantee = Guarantee("none", _ONE_ORDER, bets=False)
    elif is_vote and not is_coin and position is not None:
        preferences = of_votes(counts, position, first_share(history), error, naive)
        guarantee = Guarantee("measured", _BONUS, bets=False)
    elif order is not None:
        preferences = of_coin(counts, error, naive)
        guarantee = _guarantee(history, order, seems)
    elif found is not None and found.joint is not None:
        preferences = of_joint(found.joint, naive)
        guarantee = Guarantee("measured", _JOINT, bets=False)
    else:
        raise ValueError(why)
    return Estimate(
        history=history,
        error=error,
        order=history.order or ("coin?" if seems else "unknown"),
        counts=count(history),
        delays=found,
        told=told,
        preferences=preferences,
        position=position,
        guarantee=guarantee,
        evidence=replay(counted, error, is_whole=True) if guarantee.bets else None,
        repeated=count_repeated(history),
        findings=_test(_as_shown(single, order), counted if is_vote else None),
        why_no_law=why,
    )


def _check_law(delay: Any, history: History) -> Delay:
    law = laws.check(delay, history.n_arms)
    if is_in_time(law) != (history.at is not None):
        ways = ("in ticks", "in time")
        raise ValueError(f"delay must be {ways[history.at is not None]} as the log is, got {law}")
    return law


def _find_order(history: History) -> tuple[str | None, bool]:
    """Return the order if it is even, else None; and whether it only seems so."""
    if history.order is not None:
        return (None if history.order == "champion" else history.order), False
    seems = is_even(history)
    return ("coin" if seems else None), seems


def _test(history: History, together: History | None) -> tuple[Finding, ...]:
    """Run the tests; of votes, whether they are independent is asked of units, not of votes.

    Where no coin decides the order, the law is the same for all pairs, or should be.
    """
    found = check_assumptions(history)
    if together is None and history.order == "champion":
        found.append(share_by_pair(history, level=0.05 / len(found)))
    if together is not None and together is not history:
        level = 0.05 / len(found)
        found = [independence(together, level=level) if one.name == "independence" else one
                 for one in found]  # fmt: skip
    return tuple(found)


def _as_shown(history: History, order: str | None) -> History:
    """The history for tests: an uneven order is no alarm, since nothing rests on it."""
    uneven = history.order is None and order is None
    return dataclasses.replace(history, order="champion") if uneven else history


def _find_delays(history: History, error: float) -> tuple[DelayEstimate | None, str]:
    """Return what is known of the delays; None and a sentence where nothing is."""
    try:
        found = estimate_delays(history, error)
    except ValueError as why:
        return None, str(why)
    at_once = 0.0 if history.at is not None else 1.0  # the next tick
    if not found.learned.ages.max(initial=0.0) > at_once:
        return None, "every answer was heard at once: there are no delays to learn"
    return found, ""


def _guarantee(history: History, order: str | None, seems: bool) -> Guarantee:
    by_clock = history.at is not None
    bets = start_bets(0.05, None, history.n_arms, by_clock=by_clock)
    past = Past(history.n, order, history.chosen_by, True)
    found = find_guarantee(bets, history.feedback, order, past)
    if not seems:
        return found
    # Bets go along the log: an order that is even at its end alone would not be fair on the way.
    return Guarantee("measured", found.words + _SEEMS, bets=False)
