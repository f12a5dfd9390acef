"""MRR-DB-Delay, Algorithm 2 of the paper: only the mean of the delay is known."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from duelay import theory
from duelay._core import checks
from duelay._core.feedback import check_feedback
from duelay.policies.policy import CompiledPolicy
from duelay.rules.mrr_db import MRRDBRule, mrr_db_rule
from duelay.text import named
from duelay.theory.bounds import check_constants


@named("policy", "mrr-db-delay")
@dataclass(frozen=True)
class MRRDBDelay(CompiledPolicy):
    """Rounds of round robin, long enough for the delay's mean; arms are dropped between rounds.

    By the end of round m every active pair has been played n_m times; arm i is dropped when some
    active j has ``Y bar_ij + gamma_m < 1/2``, gamma_m = 2^-m, Y bar_ij the share of conversions
    heard so far. There is no window: every conversion counts, however late.

    With the appendix's n_m, the default, the first round takes 893 plays a pair at T = 200,000 and
    a mean delay of 100, and six rankers are not separated within that horizon. The paper's figure
    suggests the brief form, with smaller constants; the paper does not give them.

    Parameters
    ----------
    mean_delay : E[D], finite. The paper's experiments: 100.
    horizon : T; `duelay.simulate` fills it in, `start` needs it.
    constants : C_1, C_2, C_3 of the brief form, Equation 6, in place of the appendix's n_m.
    schedule : n_1, n_2, ... of one's own, rising; after the last the round lasts to the horizon.
    pairs : ``"unordered"`` plays (i, j) for i < j and reads Y bar_ji = 1 - Y bar_ij, which Lemma 3
        allows and Theorem 3 counts; ``"ordered"`` is the literal "for i, j in A", twice the duels.
    feedback : ``"conversions"``, or ``"counts"`` (aggregated, Appendix C): the player is told only
        how many conversions arrived, by `tell_count`, and credits them to the pair in play.
    self_duels : False for always two different arms, see `DoubleThompson`.

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
                raise ValueError(
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
            raise ValueError(
                "horizon must be given to MRRDBDelay: its rounds depend on T, got None"
            )
        return theory.mrr_schedule(
            self.horizon, self.mean_delay, feedback=self.feedback, constants=self.constants
        )

    def rule(self, n_arms: int) -> MRRDBRule:
        """Return the rule at the start of round 1."""
        return mrr_db_rule(self.rounds(), self.pairs == "ordered", n_arms)

    def caution(self, n_arms: int, horizon: int | None) -> str | None:
        """Say so where the first round cannot end before the horizon."""
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
        raise ValueError(f"{needs}, got {schedule!r}")
    try:
        rounds = tuple(checks.whole("schedule", n) for n in schedule)
    except ValueError:
        raise ValueError(f"{needs}, got {schedule!r}") from None
    if any(after <= before for before, after in zip(rounds, rounds[1:], strict=False)):
        raise ValueError(f"{needs}, got {schedule!r}")
    return rounds
