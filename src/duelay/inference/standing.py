"""The standing of a player: its estimates, intervals, leader and declared winner."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from duelay._core import checks
from duelay.assumptions.finding import Finding
from duelay.delays import Delay
from duelay.errors import InvalidValueError
from duelay.inference.alarms import find_alarms, in_words
from duelay.inference.borda_scores import Scores
from duelay.inference.evidence import Evidence, evidence_of
from duelay.inference.guarantee import NONE, Guarantee
from duelay.inference.leader import beaten
from duelay.inference.posterior import DuelsLeft, Posterior, opinions
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

    `guarantee` says what holds at every look: a declared `winner` is wrong in at most a share
    `error` of experiments, and all intervals hold together, at all times, with probability
    `confidence`. If the guarantee is "none", the intervals are Hoeffding's. They hold for one look,
    and for pairs that were chosen without regard to outcomes.

    If the policy assumes no delay although there is one, `mean` describes the answers so far and
    not the preferences. An unbiased estimate from few answers may lie outside [0, 1]. The arrays
    show it unchanged, and the table clips it. `warnings` has a sentence if chance does not explain
    it.
    """

    arms: tuple[str, ...]
    tick: int  # duels asked so far
    leader: int  # the arm that beats the most others, or that the policy puts first
    mean: NDArray[np.float64]  # (K, K): mu^, the estimate at the next tick; nan where unheard
    lower: NDArray[np.float64]  # (K, K): lower ends of the intervals; -inf where unheard
    upper: NDArray[np.float64]  # (K, K): upper ends; inf where unheard
    plays: NDArray[np.int64]  # (K, K): duels by first and second
    conversions: NDArray[np.int64]  # (K, K): heard and counted
    pending: NDArray[np.int64] | None  # (K, K): silent and still open; None if it cannot be known
    active: NDArray[np.bool_]  # (K,): arms that the policy has not dropped
    present: NDArray[np.bool_]  # (K,): arms that have not been retired
    joined: NDArray[np.int64]  # (K,): 0 for the first arms, n for the n-th that joined later
    confidence: float
    takes_silence_for_defeat: bool  # whether the policy assumes that nothing is late
    is_learning: bool = False  # whether the delay law is still to be learned
    feedback: str = "conversions"  # or "votes", "counts"
    corrects_position: bool = False  # whether the bonus of the first is taken out
    target: str = "condorcet"  # the winner that the policy seeks
    scores: Scores | None = None  # with Borda's winner for a target
    order: str | None = None  # in which the two arms are shown; None if nobody says
    learns_from: str | None = None  # "learn" or "learn-from-self-duels"
    told: int = 0  # conversions that the delay law has been learned from
    late: int = 0  # answers that came after the window
    backwards: int = 0  # how often a time was given that was before the latest one known ...
    backwards_by: float = 0.0  # ... and by how many seconds, at the most
    is_frozen: bool = False  # whether the latest time known was set by a call without a time
    guarantee: Guarantee = NONE  # what holds however often somebody looks
    policy_error: float | None = None  # of a policy that decides
    counted: NDArray[np.float64] | None = None  # (K, K): N~^2 / N, answers that tell as much
    one_look: tuple[Any, Any] | None = None  # Hoeffding's intervals, for this look alone
    eprocess: EProcess | None = None  # of a policy that decides: what it has bet so far
    replayed: EProcess | None = None  # of any other: what Decide would have bet on its duels
    history: History | None = None  # every duel so far; None with counts
    law: Delay | None = None  # the one that is told, where the guarantee rests on it

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
        return self.verdict != "running"

    @functools.cached_property
    def _posterior(self) -> Posterior:
        evidence = self.evidence
        if evidence is not None:
            return opinions(evidence.lead, evidence.n, self.leader, evidence, self.present)
        n = np.zeros_like(self.mean) if self.counted is None else self.counted
        lead = n * np.where(n > 0, np.clip(2.0 * self.mean - 1.0, -1.0, 1.0), 0.0)
        return opinions(lead, n, self.leader, None, self.present)

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
        duels = "1 duel" if self.tick == 1 else f"{self.tick:,} duels"
        if not self.is_heard:
            return f"nothing has been heard after {duels}: no arm leads yet"
        return self._verdict(duels) + in_words(self.alarms)

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
            when = f"declared after {evidence.declared:,} duels"
            return f"{self.arms[self.winner]} wins: {when} ({wrong})"
        if evidence is not None and evidence.margin is not None and self.is_sure:
            best = self.arms[self.leader]
            says = f"no arm beats {best} by {evidence.margin:g} or more"
            if self.verdict == "equivalent":
                says = f"{best} differs by less than {evidence.margin:g} from each arm that it is "
                says += "not known to beat"
            return f"{says}: found after {evidence.declared:,} duels ({wrong})"
        if evidence is not None and evidence.is_out.all():
            return f"no arm beats all others, after {duels}: each has lost to another ({wrong})"
        sure = f"not yet sure at {100 * (1 - self.error):g} %{measured}"
        left = None if evidence is None else self.duels_left
        more = "" if left is None else f": {left}"
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

        The leader comes first, then the arms by the number of arms they beat. If the target is
        Borda's winner, they are sorted by score.
        """
        leader, beats = self.leader, beaten(self.mean)
        mean, lower, upper, rank = (
            self.estimate[leader], self.lower[leader], self.upper[leader], beats
        ) if self.scores is None else (*self.scores[:3], self.scores.score)  # fmt: skip
        order = sorted(range(len(self.arms)), key=lambda arm: (arm != leader, -rank[arm]))
        duels = self.plays.sum(axis=1) + self.plays.sum(axis=0) - self.plays.diagonal()
        return [
            Row(
                arm,
                *_cut_off(mean[arm], lower[arm], upper[arm]),
                beats=float(beats[arm]),
                duels=int(duels[arm]),
                conversions=int(self.conversions[arm].sum()),
                pending=None if self.pending is None else int(self.pending[arm].sum()),
            )
            for arm in order
        ]

    def plot(self, ax: Axes | None = None, *, kind: str | None = None) -> Axes:
        """Draw the standing; needs matplotlib.

        Parameters
        ----------
        ax : the axes to draw on; new ones if None.
        kind : ``"evidence"`` for the evidence of each arm over time, with the line of a
            declaration; ``"intervals"`` for the leader against every other arm. By default the
            first, if there is evidence.
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
        rows = []
        for row in self.rows():
            share = f"{row.mean:.3f}  [{row.lower:.3f}, {row.upper:.3f}]"
            if row.arm == self.leader and self.scores is None:
                share = "leads" if self.is_heard else ""
            elif math.isnan(row.mean):
                share = "unheard"
            waits = "?" if row.pending is None else str(row.pending)
            name = self.arms[row.arm]
            if not self.present[row.arm]:
                name += " (retired)"
            elif not self.active[row.arm]:
                name += " (dropped)"
            counts = [f"{row.beats:g}", str(row.duels), str(row.conversions), waits]
            rows.append([name, share, *counts])
        shown = "leader beats it" if self.scores is None else "Borda score"
        columns = ["arm", shown, "beats", "duels", "conversions", "pending"]
        lines = [self.headline, table(columns, rows, left=(0, 1))]
        kind, words = self.guarantee.kind, self.guarantee.words
        lines += [self.weighed] if self.weighed else []
        if kind != "proved":
            lines.append(f"not guaranteed: {words}" if kind == "none" else words)
        return "\n".join([*lines, *(f"warning: {words}" for words in self.warnings)])


def _cut_off(mean: float, lower: float, upper: float) -> tuple[float, float, float]:
    """Cut an estimate and its interval off at 0 and 1; not where it lies outside altogether."""
    if lower > 1.0 or upper < 0.0:
        return float(mean), float(lower), float(upper)
    mean, lower, upper = np.clip([mean, lower, upper], 0.0, 1.0)  # nan stays nan
    return float(mean), float(lower), float(upper)
