"""The ledger of a policy that minimises regret, brought up to date from the log of the store.

It begins with the counts of closed duels, and replays the open ones. From time to time it replays
the duels and answers that have come since.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sqlalchemy import Connection, select

from duelay.inference.arm_set import ArmSet
from duelay.inference.event_replay import (
    ANSWERED,
    ASKED,
    COUNTS,
    IS_LEFT_OUT,
    TEACHES,
    Events,
    replay_events,
)
from duelay.ledger import age_to, clock_to, for_votes, with_room
from duelay.ledger.delay_models.continuous_time import ByClock, add_past
from duelay.ledger.votes import Votes
from duelay.live.state import ExperimentState
from duelay.live.storage import schema
from duelay.live.storage.delay_histogram import read_ages
from duelay.live.storage.schema import MICRO
from duelay.policies.policy import Policy

_COLUMNS = ("number", "first", "second", "asked", "enters", "told", "place", "first_won")


class LedgerReplica:
    """A policy's ledger and rule, for the arms that are present."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.read_at: int | None = None  # microseconds: when it was brought up to date
        self._changes = -1
        self._asked = self._heard = 0  # how far it has read
        self._ledger: Any = None
        self._rule: Any = None
        self._arm_set: Any = None

    def is_outdated(self, state: ExperimentState) -> bool:
        """Whether arms have come or gone since."""
        return self._changes != len(state.changes)

    def pick(self, t: int, n: int, rng: np.random.Generator) -> list[tuple[int, int]]:
        """Choose two arms n times, by the ledger as it was read."""
        shown = self._arm_set.shown.tolist()
        pairs = self.policy.pick(self._rule, self._ledger, t, rng, n)
        return [(shown[first], shown[second]) for first, second in pairs]

    def read(self, connection: Connection, state: ExperimentState, moment: int) -> None:
        """Bring the ledger up to date."""
        duels = schema.duels
        query = select(*(duels.c[name] for name in _COLUMNS)).where(
            duels.c.experiment == state.settings.id
        )
        if begins := self.is_outdated(state):
            self._begin(connection, state)
        asked = connection.execute(
            query.where(duels.c.number > self._asked).order_by(duels.c.number)
        ).all()
        if begins:
            heard: Sequence[Any] = [row for row in asked if row.told is not None]
        else:
            heard = connection.execute(
                query.where(duels.c.place > self._heard).order_by(duels.c.place)
            ).all()
        self._replay(asked, heard, state, moment)
        self._asked, self._heard = state.head["asked"], state.head["heard"]
        self.read_at = moment

    def _begin(self, connection: Connection, state: ExperimentState) -> None:
        """Begin with the counts of the closed duels."""
        arm_set = ArmSet(state.arms, state.changes, of_all=False)
        ledger = self.policy.ledger(len(arm_set.shown), by_clock=True)
        if state.settings.is_vote:
            ledger = for_votes(ledger)
        there, closed = np.ix_(arm_set.shown, arm_set.shown), state.head["closed"]
        ledger.plays[:] = state.counts.closed[there]
        ledger.conversions[:] = state.counts.closed_conversions[there]
        both = ledger.plays + ledger.conversions
        ledger.news[:] = both.sum(axis=0) + both.sum(axis=1)
        assumed = ledger.assumed
        if isinstance(assumed, Votes):
            assumed.answers[:] = state.counts.closed_answers[there]
            assumed.wins[:] = state.counts.closed_given[there]
        elif isinstance(assumed, ByClock):
            ages = read_ages(connection, schema.ages, state.settings.id, len(assumed.ages))
            add_past(assumed, closed, ledger.plays, *ages)
        self._ledger, self._rule = ledger, self.policy.rule(len(arm_set.shown))
        self._arm_set, self._changes, self._asked = arm_set, len(state.changes), closed

    def _replay(
        self, asked: Sequence[Any], heard: Sequence[Any], state: ExperimentState, moment: int
    ) -> None:
        rows = [*asked, *heard]
        kind: Any = np.array([ASKED] * len(asked) + [ANSWERED] * len(heard), dtype=np.int8)
        at: Any = np.array(
            [*(row.asked for row in asked), *(row.told for row in heard)], dtype=np.int64
        )
        order = np.lexsort((kind, at))  # a duel before the answers of the same moment
        first, second, number = (np.array([row[place] for row in rows], dtype=np.int64)
                                 for place in (1, 2, 0))  # fmt: skip
        won: Any = np.array([row.first_won or 0.0 for row in rows])
        i, j = self._arm_set.place[first], self._arm_set.place[second]
        is_away, repeats = (i < 0) | (j < 0), ~np.array([row.enters for row in rows], dtype=bool)
        what = np.where(repeats, IS_LEFT_OUT, np.where(is_away, TEACHES, COUNTS))
        i[what != COUNTS] = j[what != COUNTS] = 0
        self._ledger = with_room(self._ledger, state.head["asked"] + 1)
        t, now = state.head["asked"] + 1, moment / MICRO
        columns: Any = (kind, what, number, i, j, won, at / MICRO, np.full(kind.size, t))
        events = Events(*(values[order] for values in columns))
        replay_events(self._ledger, events, state.settings.is_vote, False)
        clock_to(self._ledger, now)
        age_to(self._ledger, t)
