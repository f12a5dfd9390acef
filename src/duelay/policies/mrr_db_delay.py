"""MRR-DB-Delay, Algorithm 2 of the paper: rounds of round robin, given only the mean delay.

Arms are eliminated at the end of each round.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from duelay._core import checks
from duelay._core.feedback import check_feedback
from duelay._core.jit.decorators import kernel
from duelay.errors import InvalidValueError
from duelay.ledger.delay_models.base import FOREVER, share_first
from duelay.ledger.ledger import Ledger
from duelay.policies.policy import CompiledPolicy
from duelay.policies.turn import calm_until, select
from duelay.text import named
from duelay.theory.round_lengths import check_constants, mrr_schedule


@named("policy", "mrr-db-delay")
@dataclass(frozen=True)
class MRRDBDelay(CompiledPolicy):
    """Rounds of round robin, with elimination between rounds; it needs only the mean delay.

    By the end of round m every active pair has been played n_m times; arm i is dropped when some
    active j has ``Y bar_ij + gamma_m < 1/2``, gamma_m = 2^-m, Y bar_ij the share of conversions
    received so far. There is no window: every conversion counts, however late.

    With the appendix's n_m, the default, the first round takes 893 plays a pair at T = 200,000 and
    a mean delay of 100, and six rankers are not separated within that horizon. The paper's figure
    suggests the brief form, with smaller constants; the paper does not give them.

    Parameters
    ----------
    mean_delay : float
        E[D], finite. The paper's experiments: 100.
    horizon : int, optional
        T; `duelay.simulate` fills it in, `start` needs it.
    constants : tuple of float, optional
        C_1, C_2, C_3 of the brief form, Equation 6, in place of the appendix's n_m.
    schedule : tuple of int, optional
        n_1, n_2, ... of one's own, rising; after the last the round lasts to the horizon.
    pairs : str
        ``"unordered"`` plays (i, j) for i < j and reads Y bar_ji = 1 - Y bar_ij, which Lemma 3
        allows and Theorem 3 counts; ``"ordered"`` is the literal "for i, j in A", twice the duels.
    feedback : str
        ``"conversions"``, or ``"counts"`` (aggregated, Appendix C): the player is told only how
        many conversions arrived, by `tell_count`, and credits them to the pair in play.
    self_duels : bool
        Whether the two arms of a duel may be the same; see `DoubleThompson`.

    Examples
    --------
    >>> MRRDBDelay(mean_delay=100, horizon=200_000).rounds()[:3]
    array([ 893, 1969, 4475])

    References
    ----------
    Yi, Kang, Li. TMLR 2024, Algorithm 2, Appendices B and C.
    """

    goes_by_clock: ClassVar[bool] = False
    mean_delay: float = field(default=100.0, metadata={"of_the_world": True})
    horizon: int | None = None
    _: KW_ONLY
    constants: tuple[float, float, float] | None = None
    schedule: tuple[int, ...] | None = None
    pairs: str = "unordered"
    feedback: str = "conversions"
    self_duels: bool = True

    def __post_init__(self) -> None:
        mean = checks.mean_delay(self.mean_delay)
        object.__setattr__(self, "mean_delay", mean)
        checks.one_of("pairs", self.pairs, ("unordered", "ordered"))
        check_feedback(self.feedback, votes='for votes, write start(feedback="votes")')
        checks.yes_or_no("self_duels", self.self_duels)
        if self.horizon is not None:
            object.__setattr__(self, "horizon", checks.whole("horizon", self.horizon))
        if self.constants is not None:
            object.__setattr__(self, "constants", check_constants(self.constants))
            if self.schedule is not None or self.counts_only:
                raise InvalidValueError(
                    "constants are those of Equation 6, which is for feedback='conversions' and "
                    "no schedule of one's own: give constants alone"
                )
        if self.schedule is not None:
            object.__setattr__(self, "schedule", _check_schedule(self.schedule))

    @property
    def counts_only(self) -> bool:
        """Whether players hear only how many conversions came."""
        return self.feedback == "counts"

    def for_horizon(self, horizon: int) -> MRRDBDelay:
        """Return the policy with this horizon, unless it has one."""
        return self if self.horizon is not None else replace(self, horizon=horizon)

    def rounds(self) -> NDArray[np.int64]:
        """Return n_1, n_2, ...: how often each pair has been played by the end of each round."""
        if self.schedule is not None:
            return np.array(self.schedule, dtype=np.int64)
        if self.horizon is None:
            raise InvalidValueError(
                "horizon must be given to MRRDBDelay: its rounds depend on T, got None"
            )
        return mrr_schedule(
            self.horizon, self.mean_delay, feedback=self.feedback, constants=self.constants
        )

    def rule(self, n_arms: int) -> MRRDBRule:
        """Return the rule at the start of round 1."""
        return mrr_db_rule(self.rounds(), self.pairs == "ordered", n_arms)

    def caution(self, n_arms: int, horizon: int | None) -> str | None:
        """Return a warning if the first round cannot end before the horizon."""
        rounds = self.rounds()
        horizon = horizon or self.horizon
        n_pairs = n_arms * (n_arms - 1) // (1 if self.pairs == "ordered" else 2)
        ticks = int(rounds[0]) * n_pairs if len(rounds) else math.inf
        if horizon is None or ticks < horizon:
            return None
        length = (
            f"takes {ticks} ticks ({rounds[0]} duels for each of {n_pairs} pairs)"
            if len(rounds)
            else "lasts to the horizon, since T gamma_1^2 <= e"
        )
        return (
            f"horizon {horizon} is too short for MRR-DB-Delay, whose first round {length}: "
            f"no arm will be dropped, and regret depends only on how the arms are numbered"
        )


def _check_schedule(schedule: object) -> tuple[int, ...]:
    needs = "schedule must be rising whole numbers of at least 1"
    if isinstance(schedule, np.ndarray):
        schedule = schedule.tolist()
    if isinstance(schedule, int):
        schedule = (schedule,)
    if not isinstance(schedule, tuple | list) or not schedule:
        raise InvalidValueError(f"{needs}, got {schedule!r}")
    try:
        rounds = tuple(checks.whole("schedule", n) for n in schedule)
    except ValueError:
        raise InvalidValueError(f"{needs}, got {schedule!r}") from None
    if any(after <= before for before, after in zip(rounds, rounds[1:], strict=False)):
        raise InvalidValueError(f"{needs}, got {schedule!r}")
    return rounds


class MRRDBRule(NamedTuple):
    """The memory of MRR-DB-Delay."""

    schedule: NDArray[np.int64]  # (rounds,): n_m; the round after the last lasts to the horizon
    ordered: bool  # whether (i, j) and (j, i) are two pairs
    active: NDArray[np.bool_]  # (K,): A_m
    drop: NDArray[np.bool_]  # (K,): arms about to be dropped
    round: NDArray[np.int64]  # (1,): m - 1


def mrr_db_rule(schedule: NDArray[np.int64], ordered: bool, n_arms: int) -> MRRDBRule:
    """Return the rule at the start of round 1."""
    return MRRDBRule(
        schedule,
        ordered,
        np.ones(n_arms, dtype=np.bool_),
        np.zeros(n_arms, dtype=np.bool_),
        np.zeros(1, dtype=np.int64),
    )


@kernel
def observed_mean(rule: MRRDBRule, ledger: Ledger, i: int, j: int) -> float:
    """Y bar_ij(m), the share of conversions heard among the duels of (i, j)  (line 11).

    Unordered pairs are played with the smaller index first, and Y bar_ji = 1 - Y bar_ij: Y <= X
    gives the other side of Lemma 3 by Hoeffding's inequality alone.
    """
    if rule.ordered or i < j:
        return float(share_first(ledger.assumed, ledger.plays, ledger.conversions, i, j))
    return 1.0 - float(share_first(ledger.assumed, ledger.plays, ledger.conversions, j, i))


@kernel
def end_round(rule: MRRDBRule, ledger: Ledger) -> None:
    """Drop i when some active j has Y bar_ij + gamma_m < 1/2  (line 13); gamma_m = 2^-m."""
    k = ledger.plays.shape[0]
    gamma = 0.5 ** (rule.round[0] + 1)
    n_active, n_drop = 0, 0
    for i in range(k):
        rule.drop[i] = False
        if rule.active[i]:
            n_active += 1
            for j in range(k):
                if rule.active[j] and j != i and observed_mean(rule, ledger, i, j) + gamma < 0.5:
                    rule.drop[i] = True
                    n_drop += 1
                    break
    if n_drop < n_active:  # a round that would drop every arm drops none
        for i in range(k):
            if rule.drop[i]:
                rule.active[i] = False
    rule.round[0] += 1


@kernel
def next_pair(rule: MRRDBRule, ledger: Ledger) -> Any:
    """Return the active pair that duels next in this round, -1 where the round is over.

    Pairs come one after the other, each until it has been played n_m times; in the round that lasts
    to the horizon, the one played least.
    """
    k = ledger.plays.shape[0]
    n_rounds = rule.schedule.size
    endless = rule.round[0] >= n_rounds
    first, second, fewest = -1, -1, 0
    for i in range(k):
        if rule.active[i]:
            for j in range(0 if rule.ordered else i + 1, k):
                if rule.active[j] and j != i:
                    n = ledger.plays[i, j]
                    if endless:
                        if first < 0 or n < fewest:
                            first, second, fewest = i, j, n
                    elif n < rule.schedule[rule.round[0]]:  # line 5
                        return i, j
    return first, second


@select.register(MRRDBRule)
def _select(rule: MRRDBRule, ledger: Ledger, t: int, rng: np.random.Generator) -> Any:
    k = ledger.plays.shape[0]
    while True:
        n_active, last = 0, 0
        for i in range(k):
            if rule.active[i]:
                n_active += 1
                last = i
        if n_active == 1:
            return last, last
        first, second = next_pair(rule, ledger)
        if first >= 0:
            return first, second
        end_round(rule, ledger)


@calm_until.register(MRRDBRule)
def _calm_until(rule: MRRDBRule, ledger: Ledger, arm: int, t: int) -> int:
    """Return FOREVER: the last arm left duels itself to the end."""
    return FOREVER
