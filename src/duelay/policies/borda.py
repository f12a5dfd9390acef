"""Successive elimination for Borda's winner."""

from __future__ import annotations

from dataclasses import dataclass

from duelay import _checks
from duelay.delays import Delay
from duelay.policies.policy import AnyLedgerPolicy
from duelay.rules.borda import BordaRule, borda_rule
from duelay.text import named


@named("policy", "borda")
@dataclass(frozen=True)
class Borda(AnyLedgerPolicy):
    """Find the arm that beats another one drawn at random most often: Borda's winner.

    It need not beat every other arm, and there always is one. Every arm that may still win is
    compared with all others alike, and dropped when its score is below another one's for certain;
    the one that is left duels itself. Late conversions pull a score towards 1/2, a recent pair's
    more than an old one's, so the law is learned unless it is told.

    Parameters
    ----------
    delay : the law that is assumed; ``"learn"``, the default, learns it; None takes a silent duel
        for a lost one.
    order : ``"alternate"`` (each pair in turns, begun by a coin), ``"coin"`` or ``"champion"`` (the
        smaller index first).
    window : ticks after which a conversion is no longer counted; None waits for ever.
    alpha : width of the bounds, as in RUCB; 0.5 makes a wrong drop at any one tick as rare as 1/t.

    Examples
    --------
    >>> import duelay
    >>> problem = duelay.datasets.load("tennis-without-sampras")
    >>> result = duelay.simulate(problem, Borda(), delay="constant:1", horizon=5000, target="borda")
    >>> result.leader[0] == problem.winners("borda")[0]
    np.True_

    References
    ----------
    Jamieson, Katariya, Deshpande, Nowak. Sparse Dueling Bandits. AISTATS 2015 (Borda scores by
    successive elimination); Saha, Koren, Mansour. Adversarial Dueling Bandits. ICML 2021 (regret).
    """

    delay: Delay | str | None = "learn"
    order: str = "alternate"
    alpha: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "alpha", _checks.number("alpha", self.alpha, above=0))

    def rule(self, n_arms: int) -> BordaRule:
        """Return the rule at its start."""
        return borda_rule(self.alpha, n_arms)
