"""Maillard sampling on the ledger: challengers by the evidence against them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from duelay.delays import Delay
from duelay.ledger import Estimates
from duelay.policies.policy import AnyLedgerPolicy
from duelay.rules.maillard import MaillardRule, lowest_ratios, maillard_rule
from duelay.text import named

SPREAD, NOISE, BEYOND = 0.15, 0.1, 0.5  # tuned on generated problems (benchmarks/tenth.py)


@named("policy", "maillard")
@dataclass(frozen=True, kw_only=True)
class MaillardSampling(AnyLedgerPolicy):
    """Duel the leader with itself, and with others by the evidence against them.

    D_i says how surely arm i is beaten. Let j be the arm that beats i most surely: D_i is -log of
    twice the chance that i beats j. The arm with the least D leads. Arm i challenges it with the
    chance p_i / p_leader, where p_i = exp(-D_i) / (1 + D_i), or exp(-D_i) for the runner-up.
    Without a challenger the leader duels itself. The belief about a pair begins as a ranking with
    exceptions; the pair's own duels override it.

    **The risk.** On the six datasets under five laws, and on hard problems (34 cells, 33,040 runs),
    its mean regret is three quarters of that of what `recommend` gives, and its 99th percentile is
    lower, too. But 56 runs had more than four times the other's mean, up to 162 times, against 22
    runs: a winner that was unlucky early is asked again only after some exp(D) ticks. 4 runs on
    datasets never came back, against none. In 175 runs against none, mostly where answers are late,
    another arm than the winner beat the most others in the end, as clear losers are asked little:
    the leader of a standing is therefore the arm with the least D, as in the rule.
    docs/choosing.md has all numbers.

    Parameters
    ----------
    delay : the law that is assumed; ``"learn"``, the default, learns it from duels of two arms
        (`duelay.learned`), by coin or in turns; None takes a silent duel for a lost one.
    order : ``"coin"``, ``"alternate"`` (each pair in turns, begun by a coin) or ``"champion"`` (the
        leader first). With ``"champion"`` the law must be told: no duel of two arms teaches it.
    window : ticks after which a conversion is no longer counted; None waits for ever, or, where the
        law is learned, 10,000 ticks.
    self_duels : False for always two different arms, see `DoubleThompson`.

    Examples
    --------
    >>> player = MaillardSampling().start(["old", "new", "newer"], seed=0)
    >>> player.tell(player.ask())
    'counted'

    References
    ----------
    Maillard. Apprentissage séquentiel: bandits, statistique et renforcement. Thesis, Lille 2011.
    Bian, Jun. Maillard Sampling: Boltzmann Exploration Done Optimally. AISTATS 2022.
    """

    delay: Delay | str | None = "learn"
    self_duels: bool = True

    def rule(self, n_arms: int) -> MaillardRule:
        """Return the rule at its start."""
        return maillard_rule(SPREAD, NOISE, BEYOND, n_arms)

    def leads_by(self, estimates: Estimates) -> NDArray[np.float64]:
        """Return how little speaks against each arm: the arm with the least D leads."""
        return lowest_ratios(estimates, SPREAD, NOISE, BEYOND)
