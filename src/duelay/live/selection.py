"""Choosing: who duels next, by a policy, from what the book and the log say.

A policy that decides reads the evidence of the book. Any other policy has a ledger of its own. The
ledger is brought up to date from the log of duels once it is older than `freshness`; the study of
stale evidence in docs/studies.md shows that this costs next to nothing.
Coins are tossed from fresh entropy in each process.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from duelay.live.ledger_replica import Follower
from duelay.live.state import Book
from duelay.policies import Decide
from duelay.policies.policy import Policy


class Chooser:
    """A policy at work on the book."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.rng = np.random.default_rng()
        self.follower = None if isinstance(policy, Decide) else Follower(policy)
        self._rule: Any = None
        self._n_arms = 0

    def goes_on(self, share: float) -> bool:
        """Toss whether an ask gets a duel though a winner is declared."""
        return bool(share > 0.0 and self.rng.random() < share)

    def choose(self, book: Book, n: int) -> list[tuple[int, int]]:
        """Return n pairs of arms, each in the order to be shown; nothing is written down."""
        t = book.head["asked"] + 1
        if self.follower is not None:
            return self.follower.pick(t, n, self.rng)
        if self._n_arms != len(book.arms):
            self._rule, self._n_arms = self.policy.rule(len(book.arms)), len(book.arms)
        return self.policy.pick(self._rule, book.ledger, t, self.rng, n)
