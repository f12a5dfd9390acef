"""Where an experiment stands: who leads, the estimates behind it, and how sure they are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from duelay import _checks, notebook
from duelay._table import table
from duelay.ledger import Estimates

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Row(NamedTuple):
    """An arm in the table of a standing: the leader against it, and what was played and heard."""

    arm: int
    mean: float  # the leader's estimate against it, cut off at 0 and 1; nan where unheard
    lower: float
    upper: float
    beats: float  # how many arms it beats by the estimates, an even or unheard pair as one half
    duels: int  # with the arm in them
    conversions: int  # with the arm first
    pending: int | None  # with the arm first, silent and still open; None if it cannot be known


@dataclass(frozen=True, eq=False)
class Standing:
    """What a player knows at one moment, as arrays; `print` shows it as a table.

    The intervals are Hoeffding's, for all pairs together: at this one look they hold at once with
    probability `confidence`, for pairs chosen without looking at the outcomes; under a policy that
    looks they are approximate. Where the policy assumes no delay while there is one, estimates and
    intervals are of what has been heard so far, not of the preferences. While little has been heard
    an unbiased estimate may lie outside [0, 1]; the arrays show it as it is, the table cuts it off.
    """

    arms: tuple[str, ...]
    tick: int  # duels asked so far
    leader: int  # the arm that beats the most others by the estimates
    mean: NDArray[np.float64]  # (K, K): mu^, the estimate at the next tick; nan where unheard
    lower: NDArray[np.float64]  # (K, K): lower ends of the intervals; -inf where unheard
    upper: NDArray[np.float64]  # (K, K): upper ends; inf where unheard
    plays: NDArray[np.int64]  # (K, K): duels by first and second
    conversions: NDArray[np.int64]  # (K, K): heard and counted
    pending: NDArray[np.int64] | None  # (K, K): silent and still open; None if it cannot be known
    active: NDArray[np.bool_]  # (K,): arms that the policy has not dropped
    confidence: float
    takes_silence_for_defeat: bool  # whether the policy assumes that nothing is late

    @property
    def candidates(self) -> NDArray[np.bool_]:
        """(K,): arms that may still be the winner: none of their intervals lies below 1/2."""
        return np.asarray((self.upper >= 0.5).all(axis=1))

    @property
    def is_sure(self) -> bool:
        """Whether the leader beats every other arm beyond the intervals."""
        others = np.delete(self.lower[self.leader], self.leader)
        return bool((others > 0.5).all())

    @property
    def is_heard(self) -> bool:
        """Whether anything has been heard of any pair of different arms."""
        return not bool(np.isnan(self.mean[~np.eye(len(self.arms), dtype=bool)]).all())

    @property
    def headline(self) -> str:
        """Who leads and how sure that is, in a sentence."""
        duels = "1 duel" if self.tick == 1 else f"{self.tick} duels"
        if not self.is_heard:
            return f"nothing has been heard after {duels}: no arm leads yet"
        sure = f"{'sure' if self.is_sure else 'not yet sure'} at {100 * self.confidence:g} %"
        if self.takes_silence_for_defeat:
            sure += ", if nothing is late"
        return f"{self.arms[self.leader]} leads after {duels} ({sure})"

    def rows(self) -> list[Row]:
        """What the table shows: a row an arm, the leader first, then by how many each beats."""
        against, beats = self.leader, _beaten(self.mean)
        order = sorted(range(len(self.arms)), key=lambda arm: (arm != against, -beats[arm]))
        duels = self.plays.sum(axis=1) + self.plays.sum(axis=0) - self.plays.diagonal()
        return [
            Row(
                arm=arm,
                mean=float(np.clip(self.mean[against, arm], 0.0, 1.0)),  # nan stays nan
                lower=float(np.clip(self.lower[against, arm], 0.0, 1.0)),
                upper=float(np.clip(self.upper[against, arm], 0.0, 1.0)),
                beats=float(beats[arm]),
                duels=int(duels[arm]),
                conversions=int(self.conversions[arm].sum()),
                pending=None if self.pending is None else int(self.pending[arm].sum()),
            )
            for arm in order
        ]

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the leader against every other arm, with intervals; needs matplotlib."""
        from duelay import plots

        return plots.draw_standing(ax, self)

    def _repr_html_(self) -> str:
        return notebook.show_standing(self)

    def __str__(self) -> str:
        rows = []
        for row in self.rows():
            share = f"{row.mean:.3f}  [{row.lower:.3f}, {row.upper:.3f}]"
            if row.arm == self.leader:
                share = "leads"
            elif math.isnan(row.mean):
                share = "unheard"
            waits = "?" if row.pending is None else str(row.pending)
            name = self.arms[row.arm] + ("" if self.active[row.arm] else " (dropped)")
            counts = [f"{row.beats:g}", str(row.duels), str(row.conversions), waits]
            rows.append([name, share, *counts])
        columns = ["arm", "leader beats it", "beats", "duels", "conversions", "pending"]
        return self.headline + "\n" + table(columns, rows, left=(0, 1))


def _beaten(mean: NDArray[np.float64]) -> NDArray[np.float64]:
    """How many arms each one beats by the estimates; an unheard or even pair counts one half."""
    wins = np.where(np.isnan(mean), 0.5, np.where(mean > 0.5, 1.0, np.where(mean < 0.5, 0.0, 0.5)))
    return np.asarray(wins.sum(axis=1) - 0.5)


def find_leader(
    mean: NDArray[np.float64], active: NDArray[np.bool_], target: str = "condorcet"
) -> int:
    """Return the active arm that beats the most others; ties go to the larger sum of estimates.

    With Borda's winner for a target, the one with the largest sum.
    """
    beats = _beaten(mean)
    borda = np.where(np.isnan(mean), 0.5, mean).sum(axis=1)
    if target == "borda":
        beats = borda
    best = max(range(len(mean)), key=lambda arm: (active[arm], beats[arm], borda[arm]))
    return int(best)


def intervals(
    estimates: Estimates, confidence: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the ends of Hoeffding's intervals for all K (K - 1) / 2 pairs together.

    P(|Z - E Z| > r N~) <= 2 exp(-2 (r N~)^2 / N), as in Lemma 1's proof.
    """
    confidence = _checks.number("confidence", confidence, above=0, below=1)
    k = len(estimates.mean)
    log = math.log(k * (k - 1) / (1.0 - confidence))  # 2 / error, the error shared by all pairs
    known = estimates.heard > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        width = np.where(known, np.sqrt(estimates.n * log / 2) / estimates.heard, np.inf)
    mean = np.where(known, estimates.mean, 0.5)
    np.fill_diagonal(width, 0.0)
    return mean - width, mean + width
