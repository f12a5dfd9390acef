"""Where a live experiment stands: the standing of a player, from what is in the store."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duelay._core import checks
from duelay._core.duration import Duration
from duelay.assumptions import Finding
from duelay.inference.alarms import find_alarms
from duelay.inference.confidence_sequences import of_shares, shares
from duelay.inference.evidence import Evidence, evidence_of
from duelay.inference.guarantee import Guarantee, find_guarantee
from duelay.inference.leader import intervals, leader_of
from duelay.inference.standing import Standing
from duelay.live.state import ExperimentState
from duelay.live.storage.schema import MICRO
from duelay.logs.history import History
from duelay.policies import Decide
from duelay.policies.policy import Policy

_LATEST = 100_000  # duels that the tests of assumptions look at
_MOST = 1.0 - 1e-12  # the highest confidence: with a tiny error, 1 - error would round to 1


@dataclass(frozen=True, eq=False)
class LiveStanding(Standing):
    """What the store knows of an experiment at one moment; `print` shows it as a table.

    `plays` and `conversions` count all duels; `repeats` are those of them that do not enter the
    evidence, being a unit's second or later on the same pair.
    """

    name: str = ""
    status: str = "running"  # or "paused"
    answers: NDArray[np.int64] | None = None  # (K, K): heard and counted, whoever won
    repeats: NDArray[np.int64] | None = None  # (K, K)
    policy: str = ""  # as text
    window: Duration | None = None
    now: float = 0.0  # the latest time known, in seconds since the epoch
    read: Callable[[int], History] | None = None  # returns the latest duels

    @property
    def evidence(self) -> Evidence | None:
        """How much speaks for each arm, now and in the past."""
        return None if self.eprocess is None else self._evidence

    @property
    def heard(self) -> int:
        """Answers that were heard and counted; of votes, those for the second and ties as well."""
        return super().heard if self.answers is None else int(self.answers.sum())

    @functools.cached_property
    def _evidence(self) -> Evidence:
        assert self.eprocess is not None
        return evidence_of(self.eprocess)

    @functools.cached_property
    def alarms(self) -> tuple[Finding, ...]:
        """The tests that alarm, of those that the guarantee rests on.

        They are over the latest 100,000 duels that enter the evidence.
        """
        if self.read is None or self.tick == 0:
            return ()
        history = self.read(_LATEST)
        if history.n == 0:  # all are folded into the counters
            return ()
        declared = None if history.declared is None else history.declared.tick
        return find_alarms(history, None, declared)

    def without_alarms(self) -> LiveStanding:
        """Return the same without the tests of assumptions, which go through many duels."""
        return self.with_alarms(())

    def with_alarms(self, alarms: tuple[Finding, ...]) -> LiveStanding:
        """Return the same with alarms that were found before; no test is run."""
        found = replace(self, read=None)
        found.__dict__["alarms"] = alarms  # where a cached property keeps it
        return found

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences about what is wrong or not yet known; empty when all is well."""
        return (*super().warnings, *self._repeats())

    def _repeats(self) -> tuple[str, ...]:
        n = 0 if self.repeats is None else int(self.repeats.sum())
        if n < 10 or n < 0.2 * self.tick:
            return ()
        return (
            f"{n:,} of {self.tick:,} duels were of a unit that had had the pair before, and do not "
            "count as evidence: ask more units",
        )

    @property
    def headline(self) -> str:
        """Who leads or has won, and how sure that is, in a sentence."""
        return super().headline + ("; paused" if self.status == "paused" else "")


def stand(
    state: ExperimentState,
    policy: Policy,
    read: Callable[[int], History],
    confidence: float | None = None,
) -> LiveStanding:
    """Return the standing of a book."""
    settings, eprocess, ledger = state.settings, state.eprocess, state.ledger
    confidence = min(1.0 - settings.error, _MOST) if confidence is None else confidence
    confidence = checks.number("confidence", confidence, above=0, below=1)
    estimates = ledger.estimates()
    is_deciding = isinstance(policy, Decide)
    guarantee = find_guarantee(eprocess if is_deciding else None, settings.feedback, "coin")
    if not is_deciding and not settings.is_vote:  # a store settles in the order of hearing
        guarantee = Guarantee(
            "measured",
            "measured, not proved: the pairs may depend on the order of open duels",
        )
    share = shares(eprocess.joined, has_room=True)
    lower, upper = of_shares(eprocess.seen, 1.0 - confidence, share)
    k = len(state.arms)
    more: dict[str, Any] = {"repeats": state.array("repeats"), "read": read}
    return LiveStanding(
        arms=state.arms,
        tick=state.head["asked"],
        leader=leader_of(ledger, np.ones(k, dtype=bool), policy),
        mean=estimates.mean,
        lower=lower,
        upper=upper,
        plays=ledger.plays,
        conversions=ledger.conversions,
        pending=pending_of(state),
        active=np.ones(k, dtype=bool),
        present=eprocess.present,
        joined=eprocess.joined,
        confidence=confidence,
        takes_silence_for_defeat=False,
        feedback=settings.feedback,
        order="coin",
        answers=state.array("answers"),
        late=int(state.array("late").sum()),
        backwards=state.head["backwards"],
        backwards_by=state.head["furthest"],
        guarantee=guarantee,
        policy_error=settings.error,
        counted=estimates.n,
        one_look=intervals(estimates, confidence),
        eprocess=eprocess,
        name=settings.name,
        status=state.head["status"],
        policy=settings.policy,
        window=settings.window,
        now=state.head["moment"] / MICRO,
        **more,
    )


def pending_of(state: ExperimentState) -> NDArray[np.int64]:
    """Silent duels whose window is still open, in each order; those of repeats left out."""
    enters = ledger_plays(state) - state.array("closed")
    heard = state.array("answers") - state.array("repeated_answers") - state.array("closed_answers")
    found = enters - heard
    np.fill_diagonal(found, 0)
    return np.asarray(found)


def ledger_plays(state: ExperimentState) -> NDArray[np.int64]:
    """Duels that enter the evidence, in each order."""
    return np.asarray(state.ledger.plays - state.array("repeats"))
