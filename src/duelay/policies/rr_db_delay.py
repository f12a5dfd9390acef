"""RR-DB-Delay, Remark 1 of the paper: round robin with elimination, given the delay law.

The rule is RR-DB (Saha and Gaillard, ICML 2022) on any ledger.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from duelay._core import checks
from duelay._core.duration import Duration
from duelay._core.jit.decorators import kernel
from duelay.delays.delay import Delay
from duelay.delays.families import Geometric
from duelay.ledger.delay_models.base import FOREVER
from duelay.ledger.ledger import Ledger
from duelay.policies.pair_statistics import is_beaten, only_one, stays_unbeaten
from duelay.policies.policy import LawPolicy
from duelay.policies.turn import calm_until, declared, select
from duelay.text import named


@named("policy", "rr-db-delay")
@dataclass(frozen=True)
class RRDBDelay(LawPolicy):
    """Round robin with elimination: an arm is dropped once another one beats it for certain.

    Plays the active pair with the fewest duels; drops i when some active j has
    ``U_ij = mu^_ij + sqrt(N_ij log(K t / delta)) / N~_ij < 1/2``. When one arm is left, it duels
    itself. Regret grows with the inverse of the smallest gap, not with the inverse of its square.

    Parameters
    ----------
    delay : Law, ByPair or str, optional
        The delay law that is assumed; the paper's experiments: geometric 0.01.
    window : int or Duration, optional
        M: after so many ticks a silent duel is closed. The paper's experiments: 1000.
    delta : float
        Confidence of the bounds. The paper does not give it; 0.05 shows its pattern of results, 1 /
        T nearly doubles the regret.
    order : str
        ``"champion"`` (the smaller index first), ``"coin"`` or ``"alternate"``.
    self_duels : bool
        Whether the two arms of a duel may be the same; see `DoubleThompson`.

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


class RRDBRule(NamedTuple):
    """The memory of RR-DB."""

    delta: float  # confidence of the bounds
    active: NDArray[np.bool_]  # (K,): arms still in play
    drop: NDArray[np.bool_]  # (K,): arms about to be dropped
    unbeaten_news: NDArray[np.int64]  # (K,): news of the arm when last found unbeaten, or -1
    first: NDArray[np.int64]  # (1,): the pair that was played last
    second: NDArray[np.int64]  # (1,)


def rr_db_rule(delta: float, n_arms: int) -> RRDBRule:
    """Return the rule at its start: every arm is active."""
    return RRDBRule(
        delta,
        np.ones(n_arms, dtype=np.bool_),
        np.zeros(n_arms, dtype=np.bool_),
        np.full(n_arms, -1, dtype=np.int64),
        np.zeros(1, dtype=np.int64),
        np.zeros(1, dtype=np.int64),
    )


@select.register(RRDBRule)
def _select(rule: RRDBRule, ledger: Ledger, t: int, rng: np.random.Generator) -> Any:
    k = ledger.plays.shape[0]
    active, drop = rule.active, rule.drop
    width = math.log(k * t / rule.delta)  # Remark 1

    n_active = 0
    n_drop = 0
    last = 0
    for i in range(k):
        if active[i]:
            n_active += 1
            last = i
    if n_active == 1:
        return last, last

    for i in range(k):  # drop i when some active j has U_ij < 1/2
        drop[i] = active[i] and loses(rule, ledger, i, width)
        n_drop += drop[i]
    if n_drop < n_active:  # bounds that drop every arm are wrong somewhere: drop none
        for i in range(k):
            if drop[i]:
                active[i] = False

    return next_in_turn(rule, ledger, True)


@kernel
def loses(rule: RRDBRule, ledger: Ledger, i: int, width: float) -> bool:
    """Whether some active j beats i for certain."""
    if rule.unbeaten_news[i] == ledger.news[i]:
        return False
    stays = True
    for j in range(ledger.plays.shape[0]):
        if j != i and rule.active[j]:
            if is_beaten(ledger, i, j, width):
                return True
            stays = stays and stays_unbeaten(ledger, i, j, width)
    if stays:
        rule.unbeaten_news[i] = ledger.news[i]
    return False


@kernel
def next_in_turn(rule: Any, ledger: Ledger, of_two: bool) -> Any:
    """Return the next active pair of the round: of the pairs played least, the first.

    The pairs up to the last one played have been played once more than those after it. A pair is
    active if both of its arms are; unless `of_two`, one active arm is enough.
    """
    k = ledger.plays.shape[0]
    i, j = rule.first[0], rule.second[0]
    for _ in range(k * k + 1):  # once around is enough, whatever is active
        j += 1
        if j >= k:
            i = i + 1 if i + 1 < k else 0
            j = i + 1
        if j >= k:
            continue
        n_active = int(rule.active[i]) + int(rule.active[j])
        if n_active == 2 or (n_active == 1 and not of_two):
            rule.first[0] = i
            rule.second[0] = j
            return i, j
    last = 0  # one arm is left: it duels itself
    for arm in range(k):
        if rule.active[arm]:
            last = arm
    return last, last


@declared.register(RRDBRule)
def _declared(rule: RRDBRule, ledger: Ledger) -> int:
    return only_one(rule.active)


@calm_until.register(RRDBRule)
def _calm_until(rule: RRDBRule, ledger: Ledger, arm: int, t: int) -> int:
    """Return FOREVER: the last arm left duels itself to the end."""
    return FOREVER
