"""RUCB: the policy, which knows nothing of delays, and its rule.

The rule is Algorithm 1 of Zoghi et al. (ICML 2014) on any ledger. On the ledger of the true delay
law it is RUCB-Delay, Algorithm 1 of the paper.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from duelay._core import checks
from duelay._core.duration import Duration
from duelay._core.jit.decorators import kernel
from duelay.delays.ticks_or_clock import in_ticks
from duelay.ledger.delay_models.base import FOREVER, pair_counts
from duelay.ledger.display_order import ORDERS
from duelay.ledger.ledger import Ledger, assume, open_ledger
from duelay.policies.pair_statistics import is_beaten, stays_unbeaten, upper_bound
from duelay.policies.policy import CompiledPolicy
from duelay.policies.turn import calm_until, select
from duelay.text import named

COUNTINGS = ("corrected", "append-only", "conversions")


@named("policy", "rucb")
@dataclass(frozen=True)
class RUCB(CompiledPolicy):
    """Relative Upper Confidence Bound, the baseline without knowledge of the delays.

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
    alpha : float
        The width of the bounds; above 1/2, as the analysis asks. RUCB's own choice: 0.51.
    counting : str
        How conversions are counted; see above.
    window : int or Duration, optional
        Ticks after which a conversion is no longer counted; None for no limit.
    order : str
        ``"champion"``, as RUCB has it, ``"coin"`` or ``"alternate"``.
    self_duels : bool
        Whether the two arms of a duel may be the same; see `DoubleThompson`.

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


class RUCBRule(NamedTuple):
    """The memory of RUCB. Line numbers are those of Algorithm 1 in the ICML edition."""

    alpha: float  # width of the bounds
    champion: NDArray[np.int64]  # (1,), B: the hypothesised best arm, -1 for none
    pool: NDArray[np.int64]  # (K,), room for C: arms that no other one beats for certain
    witness: NDArray[np.int64]  # (K,): for each arm, one that last beat it for certain
    rival: NDArray[np.bool_]  # (K,): arms that B does not beat for certain
    unbeaten_news: NDArray[np.int64]  # (K,): news of the arm when last found unbeaten, or -1


def rucb_rule(alpha: float, n_arms: int) -> RUCBRule:
    """Return the rule at its start."""
    return RUCBRule(
        alpha,
        np.full(1, -1, dtype=np.int64),
        np.zeros(n_arms, dtype=np.int64),
        np.roll(np.arange(n_arms), -1),
        np.zeros(n_arms, dtype=np.bool_),
        np.full(n_arms, -1, dtype=np.int64),
    )


@kernel
def find_rivals(rule: RUCBRule, ledger: Ledger, champion: int, width: float) -> int:
    """Find the arms that the champion does not beat for certain; return how many there are."""
    n = 0
    for j in range(ledger.plays.shape[0]):
        rule.rival[j] = j != champion and not is_beaten(ledger, j, champion, width)
        n += rule.rival[j]
    return n


@kernel
def has_witness(rule: RUCBRule, ledger: Ledger, i: int, width: float) -> bool:
    """Whether some arm beats i for certain; the one that did last time is tried first."""
    if rule.unbeaten_news[i] == ledger.news[i]:
        return False
    if is_beaten(ledger, i, rule.witness[i], width):
        return True
    stays = True
    for j in range(ledger.plays.shape[0]):
        if j != i:
            if is_beaten(ledger, i, j, width):
                rule.witness[i] = j
                return True
            stays = stays and stays_unbeaten(ledger, i, j, width)
    if stays:
        rule.unbeaten_news[i] = ledger.news[i]
    return False


@select.register(RUCBRule)
def _select(rule: RUCBRule, ledger: Ledger, t: int, rng: np.random.Generator) -> Any:
    k = ledger.plays.shape[0]
    pool = rule.pool
    width = rule.alpha * math.log(t)  # Equation 5
    before = champion = rule.champion[0]
    if champion >= 0 and find_rivals(rule, ledger, champion, width) == 0:
        return champion, champion  # C = {B}, and no bound U[v, B] reaches 1/2

    n_pool = 0  # line 6: C, with U_ii = 1/2
    champion_stays = False
    for i in range(k):
        if before >= 0 and i != before and not rule.rival[i]:
            continue  # the champion beats it
        if not has_witness(rule, ledger, i, width):
            pool[n_pool] = i
            n_pool += 1
            if i == champion:
                champion_stays = True

    if not champion_stays:  # line 8: B <- B intersected with C
        champion = -1
    if n_pool == 0:  # line 7: any arm
        c = int(rng.random() * k)
    elif n_pool == 1:  # line 9: B <- C
        c = pool[0]
        champion = c
    elif champion < 0:  # line 11 with B empty: all of C alike
        c = pool[int(rng.random() * n_pool)]
    elif rng.random() < 0.5:  # line 11: B with probability 1/2 ...
        c = champion
    else:  # ... otherwise the rest of C alike
        place = int(rng.random() * (n_pool - 1))
        c = pool[place]
        if c >= champion:  # C is in ascending order: step over B
            c = pool[place + 1]
    rule.champion[0] = champion

    # Line 13. The paper's text maximises U[u, v]; RUCB, and the paper's proof, take the arm most
    # able to beat c, U[v, c]. With ties at the top (U_cc = 1/2 included), it is not c.
    best = -math.inf
    ties = 0
    d = c
    for j in range(k):
        if j != c and (rule.rival[j] if c == before else not is_beaten(ledger, j, c, width)):
            bound = upper_bound(ledger, j, c, width)
            if bound > best:
                best, d, ties = bound, j, 1
            elif bound == best:
                ties += 1
                if rng.random() * ties < 1.0:
                    d = j
    return c, d


@calm_until.register(RUCBRule)
def _calm_until(rule: RUCBRule, ledger: Ledger, arm: int, t: int) -> int:
    """U_j,arm < 1/2 for all j until alpha log t N = (N~/2 - S)^2 for one of them."""
    if arm != rule.champion[0]:
        return t
    least = math.inf
    for j in range(ledger.plays.shape[0]):
        if j != arm:
            n, n_tilde, s = pair_counts(ledger.assumed, ledger.plays, ledger.conversions, j, arm)
            short = 0.5 * n_tilde - s
            if n_tilde <= 0.0 or short <= 0.0:
                return t
            least = min(least, short * short / (rule.alpha * n))
    if least > 43.0:  # beyond 4e18 ticks
        return FOREVER
    return max(t, int(math.exp(least) * (1.0 - 1e-9)) - 1)
