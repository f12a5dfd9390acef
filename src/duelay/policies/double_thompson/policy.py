"""Double Thompson sampling, which needs no knowledge of the delays with the coin."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from duelay._core import checks
from duelay.delays.delay import Delay
from duelay.policies.double_thompson.many_arms import MANY_ARMS_FROM, ManyArmsRule, many_arms_rule
from duelay.policies.double_thompson.rule import DoubleThompsonRule, double_thompson_rule
from duelay.policies.policy import AnyLedgerPolicy
from duelay.policies.rucb import check_alpha
from duelay.text import named


@named("policy", "double-thompson")
@dataclass(frozen=True, kw_only=True)
class DoubleThompson(AnyLedgerPolicy):
    """Double Thompson sampling: both arms are chosen by samples from a Beta posterior.

    Every tick draws theta_ij ~ Beta(S_ij + 1, N~_ij - S_ij + 1) from the ledger, with S clipped to
    [0, N~]. The first arm beats the most others in this sample, among the arms whose upper bounds
    allow it. The second arm is the one most likely to beat the first in a second sample.

    With ``order="coin"``, the default, it needs no knowledge of the delays: late conversions count
    against both arms alike, and move estimates towards 1/2 but never across it.

    With a clock and a law that is given or learned, all pairs take turns until answers arrive, so
    that a burst of duels at the launch is not spent on one arm.

    Parameters
    ----------
    delay : Law, ByPair or str, optional
        The law that is assumed; None, the default, takes a silent duel for a lost one; ``"learn"``
        learns it from duels of two arms, by coin or in turns;
        ``"learn-from-self-duels"`` learns it from self-duels alone, which must really be shown.
    order : str
        ``"coin"``, ``"alternate"`` (each pair in turns, begun by a coin) or ``"champion"`` (the
        first arm of the rule first).
    window : int, optional
        Ticks after which a conversion is no longer counted; None for no limit, or, where the law is
        learned, 10,000 ticks.
    alpha : float
        The width of the bounds; above 1/2. The authors' choice: 0.51.
    ties : str
        ``"random"``, or ``"regret"`` for D-TS+: arms that tie for the first place are told apart by
        the regret that the sample promises.
    self_duels : bool
        False for always two different arms, if an arm cannot be shown alone or twice. The strongest
        rival then takes the second place, and regret grows for ever, by half the rival's gap a
        duel.

    Examples
    --------
    >>> player = DoubleThompson().start(["old", "new", "newer"], seed=0)
    >>> player.tell(player.ask())
    'counted'

    References
    ----------
    Wu, Liu. Double Thompson Sampling for Dueling Bandits. NIPS 2016: Algorithm 1, and D-TS+
    in its Section 6.
    """

    is_shared: ClassVar[bool] = True
    delay: Delay | str | None = field(default=None, kw_only=False)
    order: str = field(default="coin", kw_only=False)
    alpha: float = 0.51
    ties: str = "random"
    self_duels: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.one_of("ties", self.ties, ("random", "regret"))
        object.__setattr__(self, "alpha", check_alpha(self.alpha))

    def rule(self, n_arms: int) -> DoubleThompsonRule | ManyArmsRule:
        """Return double Thompson sampling's rule; many arms have one of their own."""
        if n_arms >= MANY_ARMS_FROM and self.ties == "random":
            return many_arms_rule(self.alpha, n_arms)
        return double_thompson_rule(self.alpha, self.ties == "regret", n_arms)
