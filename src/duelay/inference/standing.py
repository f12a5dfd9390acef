"""The standing of a player: its estimates, intervals, leader and declared winner."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from duelay._core import checks
from duelay.assumptions.finding import Finding
from duelay.delays.delay import Delay
from duelay.errors import InvalidValueError
from duelay.inference.borda_scores import Scores
from duelay.inference.evidence import Evidence, evidence_of
from duelay.inference.forecast import DuelsLeft
from duelay.inference.guarantee import NONE, Guarantee
from duelay.inference.leader import beaten, rank_arms
from duelay.inference.posterior import Posterior, draw_posterior
from duelay.inference.verdicts import describe_verdict
from duelay.inference.warnings import find_doubts
from duelay.ledger.evidence.eprocess import EProcess
from duelay.logs.history import History
from duelay.show.text_table import table

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Row(NamedTuple):
    """An arm in the table of a standing: the leader's estimate against it, and its counts."""

    arm: int
    mean: float  # the leader's estimate against it, or its Borda score; nan where unheard
    lower: float  # the ends of its interval; like mean cut off at 0 and 1, see `_cut_off`
    upper: float
    beats: float  # how many arms it beats by the estimates, an even or unheard pair as one half
    duels: int  # with the arm in them
    conversions: int  # with the arm first
    pending: int | None  # with the arm first, silent and still open; None if it cannot be known


@dataclass(frozen=True, eq=False)
class Standing:
    """The estimates of a player at one moment, as arrays; `print` shows them as a table.

    The guarantee holds at all times together, however often the standing is read: a declared
    `winner` is wrong in at most a share `error` of experiments, and all intervals hold with
    probability `confidence`. If the guarantee is "none", the intervals are Hoeffding's. They hold
    for one look, and for pairs that were chosen without regard to outcomes.

    With a margin epsilon, the intervals agree with the verdict at every look, if `confidence` is
    left at its default. Where arm i is a winner, all of `lower[i]` is above 1/2. Where no arm beats
    it by the margin, `lower[i]` is at least 1/2 - epsilon. Where it is equivalent, one or the other
    holds of each rival, and in the second case `upper[i]` is at most 1/2 + epsilon. An interval
    excludes 1/2 only if the evidence does. With the end "good_enough" and more than two arms, the
    verdict and all intervals hold together with probability `confidence` less `error`.

    If the policy assumes no delay although there is one, `mean` describes the answers so far and
    not the preferences. An unbiased estimate from few answers may lie outside [0, 1]. The arrays
    show it unchanged, and the table clips it. `warnings` has a sentence if chance does not explain
    it.

    Attributes
    ----------
    arms : tuple of str
        The names of the arms.
    tick : int
        The number of duels asked so far.
    leader : int
        The arm that beats the most others, or that the policy puts first.
    mean : ndarray of float
        (K, K), the estimate of mu at the next tick; NaN for a pair without answers.
    lower, upper : ndarray of float
        (K, K), the ends of the intervals; -inf and inf for a pair without answers.
    plays : ndarray of int
        (K, K), the number of duels, by first and second arm.
    conversions : ndarray of int
        (K, K), the number of conversions that were counted.
    pending : ndarray of int or None
        (K, K), the number of duels that are silent and still open; None if it cannot be known.
    active : ndarray of bool
        (K,), whether the policy still plays the arm.
    present : ndarray of bool
        (K,), whether the arm has not been retired.
    joined : ndarray of int
        (K,), 0 for the arms of the start, n for the n-th arm that joined later.
    confidence : float
        The probability with which the intervals hold.
    takes_silence_for_defeat : bool
        Whether the policy assumes that no answer is late.
    is_learning : bool
        Whether the delay law is not yet learned.
    feedback : str
        ``"conversions"``, ``"votes"`` or ``"counts"``.
    corrects_position : bool
        Whether the advantage of being shown first is removed from the estimates.
    target : str
        The winner that the policy seeks: ``"condorcet"``, ``"copeland"`` or ``"borda"``.
    scores : Scores or None
        The Borda scores, if the target is ``"borda"``.
    order : str or None
        How the first arm is chosen; None if that is not known.
    learns_from : str or None
        ``"learn"`` or ``"learn-from-self-duels"`` if the delay law is learned.
    told : int
        The number of conversions from which the delay law has been learned.
    late : int
        The number of answers that came after the window.
    backwards : int
        The number of times passed by the caller that were before the latest known time.
    backwards_by : float
        The largest such difference, in seconds.
    is_frozen : bool
        Whether a call without a time set the latest known time.
    guarantee : Guarantee
        What the intervals and the winner rest on.
    policy_error : float or None
        The error of a policy that decides.
    counted : ndarray of float or None
        (K, K), the number of answers that carry as much information, N~^2 / N.
    one_look : tuple or None
        Hoeffding's intervals, which hold for this look alone.
    eprocess : EProcess or None
        The evidence process of a policy that decides.
    replayed : EProcess or None
        For any other policy, the evidence process of `Decide` on the same duels.
    history : History or None
        All duels so far; None with counts.
    law : Law, ByPair or None
        The known delay law, if the guarantee rests on it.
    """

    arms: tuple[str, ...]
    tick: int
    leader: int
    mean: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    plays: NDArray[np.int64]
    conversions: NDArray[np.int64]
    pending: NDArray[np.int64] | None
    active: NDArray[np.bool_]
    present: NDArray[np.bool_]
    joined: NDArray[np.int64]
    confidence: float
    takes_silence_for_defeat: bool
    is_learning: bool = False
    feedback: str = "conversions"
    corrects_position: bool = False
    target: str = "condorcet"
    scores: Scores | None = None
    order: str | None = None
    learns_from: str | None = None
    told: int = 0
    late: int = 0
    backwards: int = 0
    backwards_by: float = 0.0
    is_frozen: bool = False
    guarantee: Guarantee = NONE
    policy_error: float | None = None
    counted: NDArray[np.float64] | None = None
    one_look: tuple[Any, Any] | None = None
    eprocess: EProcess | None = None
    replayed: EProcess | None = None
    history: History | None = None
    law: Delay | None = None

    @property
    def error(self) -> float:
        """The largest share of experiments in which a declared winner is wrong."""
        return self.policy_error if self.policy_error is not None else 1.0 - self.confidence

    @functools.cached_property
    def evidence(self) -> Evidence | None:
        """The evidence for each arm, now and over time; None if there is no guarantee.

        A policy that decides keeps it. For any other policy the history was replayed.
        """
        if not self.guarantee.has_evidence or self.scores is not None or self.history is None:
            return None
        bets = self.eprocess if self.eprocess is not None else self.replayed
        return None if bets is None else evidence_of(bets)

    @property
    def winner(self) -> int | None:
        """The arm that is declared the winner; None before that, or without a guarantee."""
        if self.evidence is not None:
            return self.evidence.winner
        if not self.guarantee.holds or self.scores is not None:
            return None
        others = (np.arange(len(self.arms)) != self.leader) & self.present
        is_clear = bool((self.lower[self.leader][others] > 0.5).all())
        return self.leader if is_clear else None  # by the intervals, where the law is told

    @property
    def verdict(self) -> str:
        """What the evidence says, with the error of the guarantee.

        ``"running"``; ``"winner"``, an arm beats all others; with a margin ``"good_enough"``, no
        arm beats the leader by the margin or more; or ``"equivalent"``, the leader differs by less
        than the margin from every arm that it is not known to beat.
        """
        if self.evidence is not None and self.evidence.verdict != "running":
            return self.evidence.verdict
        return "running" if self.winner is None else "winner"

    @property
    def verdict_words(self) -> str:
        """The verdict as a sentence without its end; empty while it is running."""
        if self.verdict == "running":
            return ""
        alike, worse = self._alike_and_worse()
        margin = None if self.evidence is None else self.evidence.margin
        return describe_verdict(
            self.verdict, self.arms[self.leader], margin, alike, worse, shows_one=self._shows_one
        )

    def _alike_and_worse(self) -> tuple[list[str], list[str]]:
        """Return the arms that the leader is not known to beat, and those that it beats."""
        others = [arm for arm in range(len(self.arms)) if self.present[arm] and arm != self.leader]
        beats = None if self.evidence is None else self.evidence.beats[self.leader]
        names: tuple[list[str], list[str]] = ([], [])
        for arm in others:
            names[beats is not None and bool(beats[arm])].append(self.arms[arm])
        return names

    @property
    def candidates(self) -> NDArray[np.bool_]:
        """(K,): arms that may still be the winner.

        None of their intervals lies below 1/2, the evidence against them is too small, and no other
        arm is declared. If the target is Borda's winner, their score may be the best.
        """
        if self.scores is not None:
            return self.scores.is_candidate
        found = np.asarray((self.upper[:, self.present] >= 0.5).all(axis=1) & self.present)
        if self.evidence is not None:
            found &= ~self.evidence.is_out
            if self.evidence.winner is not None:
                found = np.arange(len(self.arms)) == self.evidence.winner
        return found

    @property
    def is_sure(self) -> bool:
        """Whether there is a verdict; for Borda's winner, whether one score is the best."""
        if self.scores is not None:
            others = np.arange(len(self.arms)) != self.leader
            return not bool(self.scores.is_candidate[others].any())
        return self.verdict not in ("running", "undecided")

    @functools.cached_property
    def _posterior(self) -> Posterior:
        evidence = self.evidence
        if evidence is not None:
            return draw_posterior(evidence.lead, evidence.n, self.leader, evidence, self.present)
        n = np.zeros_like(self.mean) if self.counted is None else self.counted
        lead = n * np.where(n > 0, np.clip(2.0 * self.mean - 1.0, -1.0, 1.0), 0.0)
        return draw_posterior(lead, n, self.leader, None, self.present)

    @property
    def chances(self) -> NDArray[np.float64]:
        """(K,): the posterior probability that each arm is the winner, without a guarantee."""
        return self._posterior.chances

    @property
    def loss(self) -> float:
        """The expected loss of stopping now, by the posterior and without a guarantee.

        It is how far the leader's probability of winning against its strongest rival is below 1/2.
        """
        return self._posterior.loss

    @property
    def duels_left(self) -> DuelsLeft | None:
        """An estimate of the duels until a winner is declared, without a guarantee.

        None for a policy that saves regret, which does not aim at a declaration, and if it seems
        that no arm beats all others.
        """
        return None if self.eprocess is None else self._posterior.duels_left

    @functools.cached_property
    def alarms(self) -> tuple[Finding, ...]:
        """The alarms of the tests of those assumptions on which the guarantee rests.

        If the assumptions hold, at most about 5 % of experiments ever have an alarm, at however
        many looks. Empty without a guarantee.
        """
        if self.history is None or not self.guarantee.holds:
            return ()
        declared = None if self.evidence is None else self.evidence.declared
        from duelay.inference.alarms import find_alarms  # changes no number of a simulation

        return find_alarms(self.history, self.law, declared)

    @property
    def estimate(self) -> NDArray[np.float64]:
        """(K, K): the estimates that the table shows.

        They are `mean`, except for a policy by coin that counts silence as a defeat. There `mean`
        is shrunk towards 1/2, and the estimate is the share of conversions instead.
        """
        if not (self.takes_silence_for_defeat and self.guarantee.holds):
            return self.mean
        heard = self.conversions + self.conversions.T
        with np.errstate(invalid="ignore"):
            share = np.where(heard > 0, self.conversions / np.maximum(heard, 1), np.nan)
        np.fill_diagonal(share, 0.5)
        return np.asarray(share)

    @functools.cached_property
    def is_heard(self) -> bool:
        """Whether any duel of two different arms has an answer."""
        others = ~np.eye(len(self.arms), dtype=bool)
        if self.feedback == "votes":
            return not bool(np.isnan(self.mean[others]).all())
        return bool(self.conversions[others].any())

    @property
    def heard(self) -> int:
        """The number of answers that count; of votes, also those for the second arm and ties."""
        if self.feedback == "votes" and self.history is not None:
            return int(self.history.is_heard.sum())
        return int(self.conversions.sum())

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences about problems, and about estimates that are not available yet."""
        return find_doubts(self)

    @property
    def headline(self) -> str:
        """A sentence that names the leader or winner and how sure that is."""
        unit = self._unit
        duels = f"1 {unit}" if self.tick == 1 else f"{self.tick:,} {unit}s"
        if not self.is_heard:
            return f"nothing has been heard after {duels}: no arm leads yet"
        from duelay.inference.alarms import in_words

        return self._verdict(duels) + in_words(self.alarms)

    @property
    def _unit(self) -> str:
        """What a duel is called: where one arm is shown at a time, it is a visitor."""
        return "visitor" if self._shows_one else "duel"

    @property
    def _shows_one(self) -> bool:
        """Whether one arm is shown at a time."""
        return self.eprocess is not None and bool(self.eprocess.shows_one)

    def _verdict(self, duels: str) -> str:
        leads, evidence = f"{self.arms[self.leader]} leads after {duels}", self.evidence
        if self.scores is not None:
            sure = "sure" if self.is_sure else "not yet sure"
            return (
                f"{leads} ({sure} at {100 * self.confidence:g} %, at one look: there is no "
                "stopping rule for Borda's winner yet)"
            )
        if not self.guarantee.holds:
            return f"{leads} (not guaranteed)"
        measured = ", measured, not proved" if self.guarantee.kind == "measured" else ""
        exists = self.eprocess is not None and self.eprocess.winner_exists
        wrong = f"wrong in at most {100 * self.error:g} % of experiments, however often you look"
        is_told = self.eprocess is not None and self.eprocess.told.is_told
        wrong += ", if the law is as told" * is_told
        wrong += ", if one arm beats all others" * exists + measured
        if self.winner is not None and evidence is None:
            return f"{self.arms[self.winner]} wins by its intervals, after {duels} ({wrong})"
        if self.winner is not None and evidence is not None:
            when = f"declared after {evidence.declared:,} {self._unit}s"
            return f"{self.arms[self.winner]} wins: {when} ({wrong})"
        if evidence is not None and evidence.verdict != "running":
            when = f"found after {evidence.declared:,} {self._unit}s"
            return f"{self.verdict_words}: {when} ({wrong})"
        if evidence is not None and evidence.is_out.all():
            return f"no arm beats all others, after {duels}: each has lost to another ({wrong})"
        sure = f"not yet sure at {100 * (1 - self.error):g} %{measured}"
        left = None if evidence is None else self.duels_left
        more = "" if left is None else f": {left}".replace("duels", f"{self._unit}s")
        if left is None and self.eprocess is not None:
            is_early = self.heard < len(self.arms)  # the prior alone says so of many arms
            more = ": it seems that no arm beats all others"
            if is_early:
                more = ": too early to say how long it will take"
        return f"{leads} ({sure}{more})"

    @property
    def weighed(self) -> str:
        """The basis of a declaration if the intervals have a smaller one; otherwise empty."""
        eprocess = self.eprocess
        if self.winner is None or eprocess is None or eprocess.is_vote or eprocess.told.is_told:
            return ""
        return "declared from conversions and silence; intervals are from conversions alone"

    def rows(self) -> list[Row]:
        """Return the rows of the table, one for each arm.

        The leader comes first, then the arms by the number of arms they beat, and retired arms
        last. If the target is Borda's winner, they are sorted by score.
        """
        leader, scores = self.leader, self.scores
        mean, lower, upper = (
            self.estimate[leader], self.lower[leader], self.upper[leader]
        ) if scores is None else scores[:3]  # fmt: skip
        order = rank_arms(self.mean, leader, self.present, None if scores is None else scores.score)
        return make_rows(order, (mean, lower, upper), self)

    def plot(self, ax: Axes | None = None, *, kind: str | None = None) -> Axes:
        """Draw the standing; needs matplotlib.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            The axes to draw on; new ones if None.
        kind : str, optional
            ``"evidence"`` for the evidence of each arm over time, with the line of a declaration;
            ``"intervals"`` for the leader against every other arm. By default the first, if there
            is evidence.
        """
        from duelay.show import plots

        if kind is None:
            kind = "intervals" if self.evidence is None or not self.is_heard else "evidence"
        checks.one_of("kind", kind, ("evidence", "intervals"))
        if kind == "intervals":
            return plots.draw_standing(ax, self)
        if self.evidence is None:
            raise InvalidValueError(f"kind must be 'intervals' here: {self.guarantee.words}")
        return plots.draw_evidence(ax, self)

    def _repr_html_(self) -> str:
        from duelay.show import notebook

        return notebook.show_standing(self)

    def __str__(self) -> str:
        states = np.where(self.present, np.where(self.active, "", " (dropped)"), " (retired)")
        names = [f"{arm}{state}" for arm, state in zip(self.arms, states, strict=True)]
        leads = {self.leader: "leads" if self.is_heard else ""} if self.scores is None else {}
        title = "leader beats it" if self.scores is None else "Borda score"
        lines = [self.headline, write_rows(self.rows(), names, leads, title)]
        kind, words = self.guarantee.kind, self.guarantee.words
        lines += [self.weighed] if self.weighed else []
        if kind != "proved":
            lines.append(f"not guaranteed: {words}" if kind == "none" else words)
        return "\n".join([*lines, *(f"warning: {words}" for words in self.warnings)])


def make_rows(order: Sequence[int], share: Sequence[Any], counts: Any) -> list[Row]:
    """Return rows of a table, in an order.

    `share` has the estimates and the ends of their intervals, by arm. `counts` has the arrays
    `mean`, `plays`, `conversions` and `pending`, as a standing has them.
    """
    beats, pending = beaten(counts.mean), counts.pending
    duels = counts.plays.sum(axis=1) + counts.plays.sum(axis=0) - counts.plays.diagonal()
    return [
        Row(
            arm,
            *_cut_off(*(values[arm] for values in share)),
            beats=float(beats[arm]),
            duels=int(duels[arm]),
            conversions=int(counts.conversions[arm].sum()),
            pending=None if pending is None else int(pending[arm].sum()),
        )
        for arm in order
    ]


def write_rows(
    rows: Sequence[Row],
    names: Sequence[str],
    shares: Mapping[int, str],
    title: str = "leader beats it",
) -> str:
    """Return rows as a text table; `shares` replaces the estimate of some arms, as the leader's."""
    cells = []
    for row in rows:
        share = f"{row.mean:.3f}  [{row.lower:.3f}, {row.upper:.3f}]"
        share = shares.get(row.arm, "unheard" if math.isnan(row.mean) else share)
        waits = "?" if row.pending is None else str(row.pending)
        counts = [f"{row.beats:g}", str(row.duels), str(row.conversions), waits]
        cells.append([names[row.arm], share, *counts])
    return table(["arm", title, "beats", "duels", "conversions", "pending"], cells, left=(0, 1))


def _cut_off(mean: float, lower: float, upper: float) -> tuple[float, float, float]:
    """Cut an estimate and its interval off at 0 and 1; not where it lies outside altogether."""
    if lower > 1.0 or upper < 0.0:
        return float(mean), float(lower), float(upper)
    mean, lower, upper = np.clip([mean, lower, upper], 0.0, 1.0)  # nan stays nan
    return float(mean), float(lower), float(upper)
