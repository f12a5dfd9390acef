"""What a simulation is about beside problem, policy and law: its target and how answers come."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from duelay._core import checks
from duelay.ledger.votes import is_votes
from duelay.problems import TARGETS


@dataclass(frozen=True)
class Setting:
    """Whose regret, and how answers come; `str` names what is not as in the paper.

    >>> str(Setting(feedback="votes", stale=100))
    'feedback=votes, stale=100'
    """

    target: str = "condorcet"  # the winner that regret is measured against
    feedback: str = "conversions"  # or "votes", "corrected-votes": both outcomes are reported
    stale: int = 0  # ticks by which the evidence is old that the policy sees
    batch: int = 1  # duels that are asked before anything is heard

    def __post_init__(self) -> None:
        checks.one_of("target", self.target, TARGETS)
        is_votes(self.feedback)
        object.__setattr__(self, "stale", checks.whole("stale", self.stale, least=0))
        object.__setattr__(self, "batch", checks.whole("batch", self.batch))

    @property
    def is_held(self) -> bool:
        """Whether evidence is held back."""
        return self.stale > 0 or self.batch > 1

    def __str__(self) -> str:
        return ", ".join(
            f"{field.name}={getattr(self, field.name)}"
            for field in dataclasses.fields(self)
            if getattr(self, field.name) != field.default
        )
