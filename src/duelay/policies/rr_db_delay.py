"""RR-DB-Delay, Remark 1 of the paper: round robin with elimination, knowing the delay law."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field

from duelay._core import checks
from duelay._core.duration import Duration
from duelay.delays import Delay, Geometric
from duelay.policies.policy import LawPolicy
from duelay.rules.rr_db import RRDBRule, rr_db_rule
from duelay.text import named


@named("policy", "rr-db-delay")
@dataclass(frozen=True)
class RRDBDelay(LawPolicy):
    """Round robin over the arms still in play; an arm is dropped once another beats it for certain.

    Plays the active pair with the fewest duels; drops i when some active j has
    ``U_ij = mu^_ij + sqrt(N_ij log(K t / delta)) / N~_ij < 1/2``. When one arm is left, it duels
    itself. Regret grows with the inverse of the smallest gap, not with the inverse of its square.

    Parameters
    ----------
    delay : the delay law that is assumed; the paper's experiments: geometric 0.01.
    window : M: after so many ticks a silent duel is closed. The paper's experiments: 1000.
    delta : confidence of the bounds. The paper does not give it; 0.05 shows its pattern of results,
        1 / T nearly doubles the regret.
    order : ``"champion"`` (the smaller index first), ``"coin"`` or ``"alternate"``.
    self_duels : False for always two different arms, see `DoubleThompson`.

    Examples
    --------
    >>> RRDBDelay(delta=0.1).start(4, seed=0).ask()
    Duel(id=0, first=0, second=1)

    References
    ----------
    Yi, Kang, Li. TMLR 2024, Remark 1, after Saha and Gaillard, Versatile Dueling Bandits:
    Best-of-both World Analyses for Learning from Relative Preferences, ICML 2022 (RR-DB).
    """

    delay: Delay | str | None = field(default=Geometric(0.01), metadata={"of_the_world": True})
    window: int | Duration | None = 1000
    delta: float = 0.05
    _: KW_ONLY
    order: str = "champion"
    self_duels: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "delta", checks.number("delta", self.delta, above=0, below=1))

    @property
    def error(self) -> float:
        """The probability with which the last arm left may be wrong: delta."""
        return self.delta

    def rule(self, n_arms: int) -> RRDBRule:
        """Return RR-DB's rule."""
        return rr_db_rule(self.delta, n_arms)
