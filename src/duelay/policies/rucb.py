"""RUCB, the paper's baseline, which knows nothing of delays."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from duelay._core import checks
from duelay._core.duration import Duration
from duelay.delays.units import in_ticks
from duelay.ledger import Ledger, assume, open_ledger
from duelay.ledger.order import ORDERS
from duelay.policies.policy import CompiledPolicy
from duelay.rules.rucb import RUCBRule, rucb_rule
from duelay.text import named

COUNTINGS = ("corrected", "append-only", "conversions")


@named("policy", "rucb")
@dataclass(frozen=True)
class RUCB(CompiledPolicy):
    """Relative Upper Confidence Bound: optimism about every pair of arms, blind to delays.

    A plausible champion duels the arm that it has most to fear from. An arm is plausible if none of
    its optimistic win rates ``w_ij / n_ij + sqrt(alpha ln t / n_ij)`` is below 1/2.

    The paper's baseline "updates the count as soon as the delayed feedback is received", which can
    be read in three ways:

    - ``"corrected"``: a silent duel is a loss of its first arm, taken back when its conversion
      comes. It converges, a little behind RUCB-Delay, unless many never answer.
    - ``"append-only"``: the false loss stays, and the win is added. Linear regret.
    - ``"conversions"``: only conversions count, silence says nothing. Linear regret.

    The paper's "fails to converge across all datasets" fits the second and third reading only.

    Parameters
    ----------
    alpha : width of the bounds; above 1/2, as the analysis asks. RUCB's own choice: 0.51.
    counting : how conversions are counted, see above.
    window : ticks after which a conversion is no longer counted; None waits for ever.
    order : ``"champion"``, as RUCB has it, ``"coin"`` or ``"alternate"``.
    self_duels : False for always two different arms, see `DoubleThompson`.

    Examples
    --------
    >>> RUCB(alpha=1.0).start(3, seed=0).ask().id
    0

    References
    ----------
    Zoghi, Whiteson, Munos, de Rijke. Relative Upper Confidence Bound for the K-Armed Dueling Bandit
    Problem. ICML 2014, Algorithm 1 (the arXiv edition differs).
    """

    alpha: float = 0.51
    counting: str = "corrected"
    window: int | Duration | None = None
    _: KW_ONLY
    order: str = "champion"
    self_duels: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", check_alpha(self.alpha))
        checks.one_of("counting", self.counting, COUNTINGS)
        object.__setattr__(self, "window", checks.window(self.window))
        checks.one_of("order", self.order, ORDERS)
        checks.yes_or_no("self_duels", self.self_duels)

    def ledger(self, n_arms: int, *, by_clock: bool = False) -> Ledger:
        """Return a ledger that counts a conversion as soon as it comes."""
        reading = None if self.counting == "corrected" else self.counting
        window = None if by_clock else in_ticks(self.window)  # the player drops later conversions
        assumed = assume(reading, window, n_arms)
        return open_ledger(assumed, n_arms, self.order, self_duels=self.self_duels)

    def rule(self, n_arms: int) -> RUCBRule:
        """Return RUCB's rule."""
        return rucb_rule(self.alpha, n_arms)


def check_alpha(alpha: float) -> float:
    """Return alpha, above 1/2."""
    return checks.number("alpha", alpha, above=0.5, why="Lemma 2's bounds need it")
