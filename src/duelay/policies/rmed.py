"""RMED1 on the ledger."""

from __future__ import annotations

from dataclasses import dataclass

from duelay.policies.policy import AnyLedgerPolicy
from duelay.rules.rmed import RMEDRule, rmed_rule
from duelay.text import named


@named("policy", "rmed")
@dataclass(frozen=True, kw_only=True)
class RMED(AnyLedgerPolicy):
    """Relative Minimum Empirical Divergence: duel whoever is not yet unlikely to be the winner.

    I_i says how unlikely arm i is to be the winner: the sum of N~_ij d(mu^_ij, 1/2) over the arms j
    that seem to beat it. The arms whose I_i is within log t + 0.3 K^1.01 of the least take turns.
    Each duels the arm of least I if that arm seems to beat it, else the arm that beats it most
    clearly. An arm that nobody seems to beat duels the arm of least I: mostly itself.

    Parameters
    ----------
    delay : the law that is assumed; None, the default, takes a silent duel for a lost one;
        ``"learn"`` learns it from duels of two arms (`duelay.learned`), by coin or in turns.
    order : ``"coin"``, ``"alternate"`` or ``"champion"`` (the arm whose turn it is first).
    window : ticks after which a conversion is no longer counted; None waits for ever, or, where the
        law is learned, 10,000 ticks.
    self_duels : False for always two different arms, see `DoubleThompson`.

    Examples
    --------
    >>> RMED().start(3, seed=0).ask().id
    0

    References
    ----------
    Komiyama, Honda, Kashima, Nakagawa. Regret Lower Bound and Optimal Algorithm in Dueling Bandit
    Problem. COLT 2015, RMED1.
    """

    self_duels: bool = True

    def rule(self, n_arms: int) -> RMEDRule:
        """Return RMED1's rule."""
        return rmed_rule(n_arms)
