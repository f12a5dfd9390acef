"""What a log of the past says: the delays, the preferences, who leads, and how sure that is."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from duelay import text
from duelay.assumptions.finding import Finding
from duelay.delays import Delay, Law
from duelay.delays.fitted_laws import DelayEstimate
from duelay.estimates.data_warnings import find_data_warnings
from duelay.estimates.delays import describe_delays
from duelay.estimates.preferences import Counts, Position, Preferences
from duelay.estimates.repeated_answers import Repeated
from duelay.inference.evidence import Evidence
from duelay.inference.guarantee import Guarantee
from duelay.inference.leader import beaten
from duelay.inference.posterior import draw_posterior
from duelay.inference.rates import Rates, write_rates
from duelay.logs.history import History
from duelay.show.text_table import table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MIN_ANSWERS = 10.0  # answers of a pair, below which it says little about the ranking
_ON_THE_COIN = ("order balance", "delay by winner", "preference drift", "independence")
_ON_VOTES = ("delay by winner", "preference drift", "independence")
_ON_A_LAW = (*_ON_VOTES, "delay by pair", "law drift", "share by pair")
_DELAYS_DIFFER = ("delay by winner", "delay by pair", "law drift", "share by pair")
_AVERAGES = "averages over duels that differ"
Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Estimate:
    """The result of `duelay.estimate`; `print` shows it, and `save` writes it to a folder.

    Attributes
    ----------
    history : History
        The duels and their answers.
    error : float
        The share of experiments in which some interval, or a declared winner, may be wrong.
    order : str
        How the first arm was chosen: ``"coin"``, ``"alternate"`` or ``"champion"``; ``"coin?"`` if
        the log looks like a coin; otherwise ``"unknown"``.
    counts : Counts
        The counts of all duels, by ordered pair.
    delays : DelayEstimate or None
        The estimate of the delay law; None if it cannot be estimated.
    told : Law, ByPair or None
        The delay law that the caller passed.
    preferences : Preferences
        The estimated probabilities that one arm beats another.
    position : Position or None
        The estimated advantage of being shown first; None unless the log has votes.
    guarantee : Guarantee
        What the intervals and the winner rest on.
    evidence : Evidence or None
        The evidence of all pairs; None if the log does not allow a fair test.
    repeated : Repeated
        The answers that are left out because the same unit had answered the pair before.
    findings : tuple of Finding
        The results of the tests of assumptions.
    why_no_law : str
        Why `delays` is None.
    rates : Rates or None
        The conversion rates and lifts, if one arm was shown at a time.
    """

    history: History
    error: float
    order: str
    counts: Counts
    delays: DelayEstimate | None
    told: Delay | None
    preferences: Preferences
    position: Position | None
    guarantee: Guarantee
    evidence: Evidence | None
    repeated: Repeated
    findings: tuple[Finding, ...]
    why_no_law: str = ""
    rates: Rates | None = None

    @property
    def arms(self) -> tuple[str, ...]:
        """The names of the arms."""
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
        """(K, K): the same with silence taken for a win of the second; for votes, their share."""
        return self.preferences.naive

    @property
    def law(self) -> Law | None:
        """The delay law: the best that was fitted, or the learned curve where none fits."""
        return None if self.delays is None else self.delays.best

    @property
    def winner(self) -> int | None:
        """The arm that is better than all others at this error; None if there is none yet.

        If the history says that its experiment has declared an arm, it is that arm.
        """
        if self.history.declared is not None:
            return self.arms.index(self.history.declared.arm)
        if self.evidence is not None:
            return self.evidence.winner
        is_clear = self.guarantee.holds and self._is_ahead_of_all(self._first)
        return self._first if is_clear else None

    def _is_ahead_of_all(self, arm: int) -> bool:
        """Whether the intervals of an arm over all others are above 1/2."""
        others = self.history.present & (np.arange(len(self.arms)) != arm)
        return bool((self.lower[arm][others] > 0.5).all())

    @functools.cached_property
    def _first(self) -> int:
        return int(np.argmax(np.where(self.history.present, self._scores, -np.inf)))

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

        An arm that has met few others, or none, is in the middle. Others are arms that are not
        retired.
        """
        lead, n = self._gaps
        ahead = lead / np.sqrt(n + _MIN_ANSWERS)
        normal = np.array([math.erf(z / math.sqrt(2.0)) for z in ahead.ravel()])
        return np.asarray(0.5 * normal.reshape(ahead.shape)[:, self.history.present].sum(axis=1))

    @property
    def leader(self) -> int:
        """The arm that wins, or beats the most others by the estimates."""
        return self._first if self.winner is None else self.winner

    @property
    def candidates(self) -> Bools:
        """(K,): arms that may still be better than all others; a retired arm may not."""
        present = self.history.present
        found = np.asarray((self.upper[:, present] >= 0.5).all(axis=1) & present)
        if self.evidence is not None:
            found &= ~self.evidence.is_out
        return found if self.winner is None else np.arange(len(self.arms)) == self.winner

    @functools.cached_property
    def chances(self) -> NDArray[np.float64]:
        """(K,): the probability that each arm is better than all others; an opinion."""
        return draw_posterior(*self._gaps, self.leader, None, self.history.present).chances

    @property
    def ranking(self) -> NDArray[np.int64]:
        """The arms, the leader first, then by how many others each seems to beat.

        Retired arms are left out.
        """
        order = np.lexsort((-self._scores, np.arange(len(self.arms)) != self.leader))
        return np.asarray(order[self.history.present[order]])

    @property
    def retired(self) -> tuple[str, ...]:
        """The arms that were retired: they are not ranked."""
        return tuple(
            arm for arm, is_there in zip(self.arms, self.history.present, strict=True)
            if not is_there
        )  # fmt: skip

    @property
    def alarms(self) -> tuple[Finding, ...]:
        """The tests of assumptions that alarm."""
        return tuple(finding for finding in self.findings if finding.is_alarm)

    @property
    def doubts(self) -> tuple[Finding, ...]:
        """The alarms that question what the intervals, or the winner, rest on."""
        is_joint = self.delays is not None and self.delays.joint is not None
        rests_on: tuple[str, ...] = _ON_THE_COIN
        if self.history.feedback == "votes" and self.history.order not in ("coin", "alternate"):
            rests_on = _ON_VOTES
        elif self.told is not None or is_joint:
            rests_on = _ON_A_LAW
        return tuple(alarm for alarm in self.alarms if alarm.name in rests_on)

    @property
    def unit(self) -> str:
        """What a row of the log is: a duel, or a visitor if one arm was shown at a time."""
        return "duel" if self.rates is None else "visitor"

    @property
    def headline(self) -> str:
        """Who wins or leads, and how sure that is, in a sentence."""
        if not self.history.is_heard.any():
            return f"nothing has been heard in {self.history.n:,} {self.unit}s: no arm leads"
        name = self.arms[self.leader]
        declared = self.history.declared
        often = f"wrong in at most {100 * self.error:g} % of experiments"
        if self.guarantee.kind == "measured":
            often += ", measured, not proved"
        if declared is not None:
            earlier = self.history.n_earlier
            allowed = _error_of(declared.policy, has_changed=bool(self.history.changes))
            sure = f"declared by {declared.policy}"
            if allowed is not None:
                sure = f"wrong in at most {100 * allowed:g} % of experiments"
            words = f"{name} wins: declared after {declared.tick + earlier:,} {self.unit}s ({sure})"
        elif self.winner is not None:
            words = f"{name} beats all others ({often})"
        elif self.evidence is not None and self.evidence.is_out.all():
            words = f"no arm beats all others: each has lost to another ({often})"
        else:
            rivals = [self.arms[arm] for arm in np.flatnonzero(self.candidates)]
            rivals = [rival for rival in rivals if rival != name]
            some = ", ".join(rivals[:3]) + (f" and {len(rivals) - 3} more" * (len(rivals) > 3))
            open_ = f": {some} may still be as good" if rivals else ""
            sure = f"{100 * (1 - self.error):g} %"
            words = f"{name} leads, not sure at {sure}{open_}"
            if self.guarantee.holds and self._is_ahead_of_all(self.leader):
                words = (
                    f"{name} leads, and all its intervals are above 1/2 ({often}); the evidence "
                    "does not yet declare it"
                )
        if self.doubts:
            words += f"; but doubtful: {', '.join(doubt.name for doubt in self.doubts)}"
        return words

    @property
    def delay_words(self) -> str:
        """The delays, in a sentence."""
        if self.delays is None:
            return self.why_no_law
        words = describe_delays(self.delays)
        differs = [alarm.name for alarm in self.alarms if alarm.name in _DELAYS_DIFFER]
        return words + (f" ({_AVERAGES}: {', '.join(differs)})" if differs else "")

    @property
    def caveats(self) -> tuple[str, ...]:
        """Sentences on what the ranking averages, and whom it leaves out; none where nothing."""
        found = []
        if any(alarm.name == "preference drift" for alarm in self.alarms):
            found.append(f"the preferences are {_AVERAGES}: preference drift")
        if earlier := self.history.n_earlier:
            found.append(
                f"{earlier:,} earlier {self.unit}s are not in the log, and not in the estimates"
            )
        if self.retired:
            found.append(f"retired, and left out of the ranking: {', '.join(self.retired)}")
        return tuple(found)

    @functools.cached_property
    def notes(self) -> tuple[str, ...]:
        """Warnings about the log, in sentences; empty if there are none."""
        return find_data_warnings(self.history)

    @property
    def how_sure(self) -> str:
        """What the intervals and the winner rest on, in a sentence."""
        kind, words = self.guarantee.kind, self.guarantee.words
        if kind == "none":
            return f"not guaranteed: {words}"
        together = f"all intervals hold together in {100 * (1 - self.error):g} % of experiments"
        said = f"{together}; {words}"
        if kind == "proved":
            said = f"{together}, proved; it rests on {words}"
        if self.doubts:
            said += f". But {', '.join(d.name for d in self.doubts)}: that does not hold here"
        return said

    def _ranked(self) -> str:
        """Return a table of the arms, the leader first."""
        if self.rates is not None:
            leader = self.leader if self.history.is_heard.any() else None
            return write_rates(self.ranking.tolist(), self.arms, leader, self.rates)
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
            beats = f"{beaten(self.mean[:, self.history.present])[arm]:g}"
            rows.append([str(place), self.arms[arm], share, plain, beats, f"{duels:,}"])
        columns = ["", "arm", "leader beats it", "naively", "beats", "duels"]
        return table(columns, rows, left=(1, 2))

    def __str__(self) -> str:
        words = [self.headline, self._ranked(), f"delays: {self.delay_words}"]
        if self.position is not None:
            low, high = (self.position.bonus + s * 1.96 * self.position.error for s in (-1, 1))
            words.append(
                f"being shown first adds {self.position.bonus:+.3f} [{low:+.3f}, {high:+.3f}] to "
                "the chance of winning"
            )
        words.append(self.how_sure)
        words += self.caveats
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
        """Write report.html, estimate.json, and tables as CSV and Parquet to a folder.

        Parameters
        ----------
        folder : str or Path
            The folder, which is made if it does not exist.
        """
        from duelay.estimates import report

        report.need_packages()
        return report.write(self, Path(folder))

    def as_data(self) -> dict[str, Any]:
        """All of it as what JSON knows: numbers, texts, lists; None where nothing is known."""
        from duelay.estimates import report

        return report.as_data(self)

    def plot(self) -> Figure:
        """Draw the delays, the preferences and the ranking; needs matplotlib."""
        from duelay.estimates import figures

        return figures.overview(self)


def _error_of(policy: str, *, has_changed: bool) -> float | None:
    """Return the error at which a policy declares, by its text; None where that does not say.

    It is twice as large where the policy took a winner for granted and arms came or went.
    """
    try:
        recipe = text.parse("policy", policy)
        doubles = has_changed and getattr(recipe, "winner_exists", False)
        return float(recipe.error) * (2.0 if doubles else 1.0)
    except (ValueError, AttributeError):
        return None
