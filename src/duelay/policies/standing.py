"""Where an experiment stands: who leads, the estimates behind it, and how sure they are."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from duelay import _checks
from duelay._table import table
from duelay.ledger import Estimates


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

    def __str__(self) -> str:
        against = self.leader
        beats = _beaten(self.mean)
        order = sorted(range(len(self.arms)), key=lambda arm: (arm != against, -beats[arm]))
        rows = []
        for arm in order:
            if arm == against:
                share = "leads"
            elif math.isnan(self.mean[against, arm]):
                share = "unheard"
            else:
                low = max(0.0, self.lower[against, arm])
                high = min(1.0, self.upper[against, arm])
                mean = min(1.0, max(0.0, self.mean[against, arm]))
                share = f"{mean:.3f}  [{low:.3f}, {high:.3f}]"
            plays = int(self.plays[arm].sum() + self.plays[:, arm].sum() - self.plays[arm, arm])
            won = int(self.conversions[arm].sum())
            waits = "?" if self.pending is None else str(int(self.pending[arm].sum()))
            name = self.arms[arm] + ("" if self.active[arm] else " (dropped)")
            rows.append([name, share, f"{beats[arm]:g}", str(plays), str(won), waits])
        sure = f"{'sure' if self.is_sure else 'not yet sure'} at {100 * self.confidence:g} %"
        if self.takes_silence_for_defeat:
            sure += ", if nothing is late"
        duels = "1 duel" if self.tick == 1 else f"{self.tick} duels"
        head = f"{self.arms[against]} leads after {duels} ({sure})"
        if np.isnan(self.mean[~np.eye(len(self.arms), dtype=bool)]).all():
            head = f"nothing has been heard after {duels}: no arm leads yet"
        columns = ["arm", "leader beats it", "beats", "duels", "conversions", "pending"]
        return head + "\n" + table(columns, rows, left=(0, 1))


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
