"""Choose the pairs of the next duels, by the policy of the experiment.

A policy that decides reads the evidence in the state of the experiment. Any other policy has a
ledger of its own. The ledger is brought up to date from the log of duels once it is older than
`freshness`; the study of stale evidence in docs/studies.md shows that this costs next to nothing.
The random numbers of each process have a seed of their own.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from duelay.live.ledger_replica import LedgerReplica
from duelay.live.state import ExperimentState
from duelay.policies import Decide
from duelay.policies.policy import Policy


class PairSelector:
    """A policy, with what it needs to choose pairs of a live experiment."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.rng = np.random.default_rng()
        self.replica = None if isinstance(policy, Decide) else LedgerReplica(policy)
        self._rule: Any = None
        self._n_arms = 0

    def goes_on(self, share: float) -> bool:
        """Draw whether an ask gets a duel though a winner is declared."""
        return bool(share > 0.0 and self.rng.random() < share)

    def choose(self, state: ExperimentState, n: int) -> list[tuple[int, int]]:
        """Return n pairs of arms, each in the order to be shown; nothing is written."""
        t = state.head["asked"] + 1
        if self.replica is not None:
            return self.replica.pick(t, n, self.rng)
        if self._n_arms != len(state.arms):
            self._rule, self._n_arms = self.policy.rule(len(state.arms)), len(state.arms)
        return self.policy.pick(self._rule, state.ledger, t, self.rng, n)
