"""RUCB-Delay, Algorithm 1 of the paper: RUCB on a ledger that knows the delay law."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field

from duelay._core.duration import Duration
from duelay.delays.delay import Delay
from duelay.delays.families import Geometric
from duelay.policies.policy import LawPolicy
from duelay.policies.rucb import RUCBRule, check_alpha, rucb_rule
from duelay.text import named


@named("policy", "rucb-delay")
@dataclass(frozen=True)
class RUCBDelay(LawPolicy):
    """RUCB with estimates that are corrected for the delay by its law.

    The upper bounds are ``mu^_ij + sqrt(alpha N_ij log t) / N~_ij`` (Equation 5), with the
    estimator of Section 3.1, unbiased for pairs chosen without looking. The second arm is the one
    most able to beat the first u, max over j of U_ju. The paper's text has U_uj: with it the winner
    never duels itself, and regret is linear. The paper's proof uses U_ju, as RUCB does.

    Parameters
    ----------
    delay : Law, ByPair or str, optional
        The delay law that is assumed; the paper's experiments have the true one, geometric 0.01.
    window : int or Duration, optional
        M: after so many ticks a silent duel is closed. The paper's experiments: 1000.
    alpha : float
        The width of the bounds; above 1/2. The paper's experiments: 1, where its bound on the
        expected regret is infinite (see `duelay.theory.expected_bound`).
    order : str
        ``"champion"``, as in the paper, ``"coin"`` or ``"alternate"``.
    self_duels : bool
        Whether the two arms of a duel may be the same; see `DoubleThompson`.

    Examples
    --------
    >>> player = RUCBDelay(window=500).start(["old", "new"], seed=0)
    >>> player.tell(player.ask())
    'counted'

    References
    ----------
    Yi, Kang, Li. Biased Dueling Bandits with Stochastic Delayed Feedback. TMLR 2024, Algorithm 1.
    """

    delay: Delay | str | None = field(default=Geometric(0.01), metadata={"of_the_world": True})
    window: int | Duration | None = 1000
    alpha: float = 1.0
    _: KW_ONLY
    order: str = "champion"
    self_duels: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "alpha", check_alpha(self.alpha))

    def rule(self, n_arms: int) -> RUCBRule:
        """Return RUCB's rule."""
        return rucb_rule(self.alpha, n_arms)
