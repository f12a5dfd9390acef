"""Successive elimination for Borda's winner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from duelay._core import checks
from duelay.delays import Delay
from duelay.delays.units import WAYS
from duelay.policies.policy import AnyLedgerPolicy
from duelay.rules.borda import BordaRule, borda_rule
from duelay.text import named


@named("policy", "borda")
@dataclass(frozen=True, kw_only=True)
class Borda(AnyLedgerPolicy):
    """Find Borda's winner: the arm that most often beats another one drawn at random.

    Every problem has such an arm; it need not beat every other one. Each arm that may still win
    meets all others equally often. It is dropped when its score is below another one's for certain.
    The last arm left duels itself.

    Late conversions pull a score towards 1/2, and those of recent duels pull more. So the law must
    be known: it is learned unless it is told, and no arm is dropped before.

    The probability that the winner is ever dropped is `delta` at most if the law is told, if
    nothing is late, or with votes. With a learned law this is measured, not proved (docs/policies).

    Parameters
    ----------
    delay : the law that is assumed; ``"learn"``, the default, learns it; None takes a silent duel
        for a lost one.
    order : ``"coin"``, ``"alternate"`` (each pair in turns, begun by a coin) or ``"champion"`` (the
        smaller index first). With ``"champion"`` the law must be told: no duel teaches it.
    window : ticks after which a conversion is no longer counted; None waits for ever, or, where the
        law is learned, 10,000 ticks.
    delta : the probability that the winner is ever dropped, at most.
    self_duels : False for always two different arms, see `DoubleThompson`.

    Examples
    --------
    >>> import duelay
    >>> problem = duelay.datasets.load("tennis-without-sampras")
    >>> result = duelay.simulate(problem, Borda(), delay="constant:1", horizon=5000,
    ...                          setting=duelay.Setting(target="borda"))
    >>> result.leader[0] == problem.winners("borda")[0]
    np.True_

    References
    ----------
    Jamieson, Katariya, Deshpande, Nowak. Sparse Dueling Bandits. AISTATS 2015 (Borda scores by
    successive elimination); Saha, Koren, Mansour. Adversarial Dueling Bandits. ICML 2021 (regret).
    """

    delay: Delay | str | None = "learn"
    delta: float = 0.05
    self_duels: bool = True
    target: ClassVar[str] = "borda"

    def __post_init__(self) -> None:
        if self.delay in WAYS and (self.order == "champion" or self.delay != "learn"):
            raise ValueError(
                "Borda can learn the law only from duels whose order a coin or turns decide, since "
                "it shows no self-duel before it is done: take order='coin', or tell the law, got "
                f"delay={self.delay!r} and order={self.order!r}"
            )
        super().__post_init__()
        object.__setattr__(self, "delta", checks.number("delta", self.delta, above=0, below=1))

    def rule(self, n_arms: int) -> BordaRule:
        """Return the rule at its start."""
        return borda_rule(self.delta, n_arms)
