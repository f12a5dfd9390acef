"""Successive elimination for the Borda winner, on any ledger.

Every arm is compared equally often with all others, including the eliminated ones, because a Borda
score is a mean over all opponents. An arm is eliminated when its score is below that of another arm
with the required confidence. With probability 1 - delta the winner is never eliminated; the proof
is in docs/theory.md. Arms are compared only at ticks that grow by a tenth each time, so that the
error is divided among few comparisons.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from duelay._core import checks
from duelay._core.jit.decorators import kernel
from duelay.delays.delay import Delay
from duelay.delays.ticks_or_clock import WAYS
from duelay.errors import InvalidValueError
from duelay.inference.borda_scores import is_behind
from duelay.ledger.delay_models.base import FOREVER, is_known
from duelay.ledger.ledger import Ledger
from duelay.policies.policy import AnyLedgerPolicy
from duelay.policies.rr_db_delay import next_in_turn
from duelay.policies.turn import calm_until, select
from duelay.text import named


@named("policy", "borda")
@dataclass(frozen=True, kw_only=True)
class Borda(AnyLedgerPolicy):
    """Find the Borda winner: the arm that most often beats another one drawn at random.

    Every problem has such an arm; it need not beat every other one. Each arm that may still win
    meets all others equally often. It is dropped when its score is below another one's for certain.
    The last arm left duels itself.

    Late conversions pull a score towards 1/2, and those of recent duels pull more. So the law must
    be known: it is learned unless it is told, and no arm is dropped before.

    The probability that the winner is ever dropped is `delta` at most if the law is told, if
    nothing is late, or with votes. With a learned law this is measured, not proved (docs/policies).

    Parameters
    ----------
    delay : Law, ByPair or str, optional
        The law that is assumed; ``"learn"``, the default, learns it; None takes a silent duel for a
        lost one.
    order : str
        ``"coin"``, ``"alternate"`` (each pair in turns, begun by a coin) or ``"champion"`` (the
        smaller index first). With ``"champion"`` the law must be told: no duel teaches it.
    window : int, optional
        Ticks after which a conversion is no longer counted; None for no limit, or, where the law is
        learned, 10,000 ticks.
    delta : float
        The probability that the winner is ever dropped, at most.
    self_duels : bool
        Whether the two arms of a duel may be the same; see `DoubleThompson`.

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
            raise InvalidValueError(
                "Borda can learn the law only from duels whose order a coin or turns decide, since "
                "it shows no self-duel before it is done: take order='coin', or tell the law, got "
                f"delay={self.delay!r} and order={self.order!r}"
            )
        super().__post_init__()
        object.__setattr__(self, "delta", checks.number("delta", self.delta, above=0, below=1))

    def rule(self, n_arms: int) -> BordaRule:
        """Return the rule at its start."""
        return borda_rule(self.delta, n_arms)


_FIRST_LOOK_TICKS_PER_ARM = 10  # ticks an arm


class BordaRule(NamedTuple):
    """The memory of the elimination."""

    delta: float  # the probability that the winner is ever dropped
    active: NDArray[np.bool_]  # (K,): arms that may still be the winner
    drop: NDArray[np.bool_]  # (K,): arms about to be dropped
    look: NDArray[np.int64]  # (1,): the tick of the next look
    n_look: NDArray[np.int64]  # (1,): its number: 1, 2, ...
    first: NDArray[np.int64]  # (1,): the pair that was played last
    second: NDArray[np.int64]  # (1,)


def borda_rule(delta: float, n_arms: int) -> BordaRule:
    """Return the rule at its start: every arm is active."""
    return BordaRule(
        delta,
        np.ones(n_arms, dtype=np.bool_),
        np.zeros(n_arms, dtype=np.bool_),
        np.full(1, _FIRST_LOOK_TICKS_PER_ARM * n_arms, dtype=np.int64),
        np.ones(1, dtype=np.int64),
        np.zeros(1, dtype=np.int64),
        np.zeros(1, dtype=np.int64),
    )


@kernel
def log_error_at(delta: float, n_arms: int, look: int) -> float:
    """Return log(1 / error) of one comparison at one look.

    The errors of the K - 1 comparisons that could drop the winner add up to delta over all looks.
    """
    return math.log((n_arms - 1) * math.pi**2 * look**2 / (6.0 * delta))


@kernel
def drop_arms(rule: BordaRule, ledger: Ledger, t: int) -> None:
    """Look: drop the arms whose score is below another one's for certain."""
    k = ledger.plays.shape[0]
    log_error = log_error_at(rule.delta, k, rule.n_look[0])
    for i in range(k):
        rule.drop[i] = False
        if rule.active[i]:
            for j in range(k):
                if j != i and rule.active[j] and is_behind(ledger, i, j, log_error, t):
                    rule.drop[i] = True
                    break
    for i in range(k):
        if rule.drop[i]:
            rule.active[i] = False


@select.register(BordaRule)
def _select(rule: BordaRule, ledger: Ledger, t: int, rng: np.random.Generator) -> Any:
    n_active, last = count_active(rule)
    if n_active > 1 and t >= rule.look[0] and is_known(ledger.assumed):
        drop_arms(rule, ledger, t)
        rule.look[0] = t + t // 10
        rule.n_look[0] += 1
        n_active, last = count_active(rule)
    if n_active == 1:
        return last, last
    return next_in_turn(rule, ledger, False)


@kernel
def count_active(rule: BordaRule) -> Any:
    """Return how many arms are active, and the last of them."""
    n, last = 0, 0
    for i in range(rule.active.size):
        if rule.active[i]:
            n += 1
            last = i
    return n, last


@calm_until.register(BordaRule)
def _calm_until(rule: BordaRule, ledger: Ledger, arm: int, t: int) -> int:
    """Return FOREVER: the last arm left duels itself to the end."""
    return FOREVER
