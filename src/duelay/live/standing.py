"""The standing of a live experiment, and the report of it that HTTP, clients and the page share."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from duelay._core import checks
from duelay._core.duration import Duration
from duelay._core.records import read_record
from duelay.assumptions import Finding
from duelay.inference.alarms import find_alarms
from duelay.inference.confidence_sequences import of_margin, of_shares, shares
from duelay.inference.evidence import Evidence, evidence_of
from duelay.inference.guarantee import find_guarantee
from duelay.inference.leader import intervals, leader_of, rank_arms
from duelay.inference.rates import Rates, find_rates, write_rates
from duelay.inference.standing import Standing
from duelay.inference.verdicts import difference, lost
from duelay.ledger.evidence.margin import ENDS
from duelay.live.guardrails import ReportedGuardrail, describe_alarm
from duelay.live.state import ExperimentState
from duelay.live.storage.schema import MICRO
from duelay.live.summary import Summary, is_early, summarise
from duelay.logs.history import History
from duelay.policies import Decide
from duelay.policies.policy import Policy

_MAX_TESTED_DUELS = 100_000  # duels that the tests of assumptions look at
_MOST_DIFFERENCE = 0.15  # of preference: wider intervals are not worth a sentence
_MAX_CONFIDENCE = 1.0 - 1e-12  # with a tiny error, 1 - error would round to 1


@dataclass(frozen=True, eq=False)
class LiveStanding(Standing):
    """The standing of an experiment in a store; `print` shows it as a table.

    `plays` and `conversions` count all duels. Further attributes are those of `duelay.Standing`.

    Attributes
    ----------
    name : str
        The name of the experiment.
    status : str
        ``"running"``, ``"paused"`` or ``"finished"``.
    answers : ndarray of int or None
        (K, K), the number of answers that were counted, for either winner.
    repeats : ndarray of int or None
        (K, K), the number of duels that do not enter the evidence, since the unit had answered the
        pair before.
    policy : str
        The text form of the policy.
    window : Duration or None
        The time after which a silent duel is closed.
    now : float
        The latest known time, in seconds since the epoch.
    booking : str
        ``"running"``, or ``"held"`` while no duels enter the evidence.
    is_stopped : bool
        Whether the budget was spent, or the date had come, before there was a verdict.
    budget : int or None
        The duels after which it stops.
    until : float or None
        When it stops, in seconds since the epoch.
    fallback, chosen : str or None
        The arm that is shown in a pause, and the one with which the experiment was finished.
    is_archived : bool
        Whether lists leave it out.
    display : str
        ``"pair"``, or ``"one"`` if one arm is shown at a time.
    rates : Rates or None
        The conversion rates and lifts, if one arm is shown at a time.
    read : callable or None
        A function that returns the latest duels.
    wins : ndarray of float or None
        (K, K), the answers that count in which i won over j, in either order; a tie is half a win.
    seconds_per_duel : float or None
        The mean time between two duels of the last 24 hours; None if no duels come now.
    guardrails : tuple of ReportedGuardrail
        The rates of other events by arm, and whether an arm is worse than the baseline.
    """

    name: str = ""
    status: str = "running"
    answers: NDArray[np.int64] | None = None
    repeats: NDArray[np.int64] | None = None
    policy: str = ""
    window: Duration | None = None
    now: float = 0.0
    booking: str = "running"
    is_stopped: bool = False
    budget: int | None = None
    until: float | None = None
    fallback: str | None = None
    chosen: str | None = None
    is_archived: bool = False
    display: str = "pair"
    rates: Rates | None = None
    read: Callable[[int], History] | None = None
    wins: NDArray[np.float64] | None = None
    seconds_per_duel: float | None = None
    guardrails: tuple[ReportedGuardrail, ...] = ()

    @property
    def evidence(self) -> Evidence | None:
        """How much speaks for each arm, now and in the past."""
        return None if self.eprocess is None else self._evidence

    @property
    def verdict(self) -> str:
        """What is known: ``"running"``, ``"winner"``, ``"good_enough"``, ``"equivalent"``.

        Or ``"undecided"``: the budget is spent, or the date has come. Then the open duels may still
        give another verdict, once they are booked.
        """
        found = super().verdict
        return "undecided" if found == "running" and self.is_stopped else found

    @property
    def verdict_words(self) -> str:
        """The verdict as a sentence without its end; while it is running, how far arms differ."""
        if self.verdict == "running":
            return self._differences()
        if self.verdict != "undecided":
            return super().verdict_words
        why = f"after {self.tick:,} {self._unit}s"
        if self.budget is not None and self.tick >= self.budget:
            why = f"within the budget of {self.budget:,} {self._unit}s"
        guess = f"undecided {why}: {self.arms[self.leader]} is the best guess, and to choose it "
        guess += f"loses {lost(self.loss, self._shows_one)} on average"
        if self.p_value is not None:
            guess += f" (p = {self.p_value:.2g})"
        waiting = 0 if self.evidence is None else int(self.evidence.n_open.sum()) // 2
        return guess + (f"; {waiting:,} open {self._unit}s may still decide" if waiting else "")

    @property
    def p_value(self) -> float | None:
        """The smallest error at which there would be a verdict on the leader; valid at any time."""
        return None if self.evidence is None else float(self.evidence.p_value[self.leader])

    @property
    def choice(self) -> str | None:
        """The arm that `ask` returns alone now; None if it asks for duels."""
        if self.chosen is not None:
            return self.chosen
        if self.verdict != "running":
            return self.arms[self.leader]
        return self.fallback if self.status == "paused" else None

    def _differences(self) -> str:
        """Say how far the other arms can differ from the leader, once that is known somewhat."""
        others = self.present & (np.arange(len(self.arms)) != self.leader)
        ends = np.abs(np.array([self.lower[self.leader], self.upper[self.leader]])[:, others] - 0.5)
        if not self.is_heard or not ends.size or ends.max() > _MOST_DIFFERENCE:
            return ""
        which = "the other arm differs" if others.sum() == 1 else "the other arms differ"
        most = difference(float(ends.max()), self._shows_one)
        return (
            f"{which} from {self.arms[self.leader]} by at most {most}; to stop now with "
            f"{self.arms[self.leader]} loses {lost(self.loss, self._shows_one)} on average"
        )

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
        history = self.read(_MAX_TESTED_DUELS)
        if history.n == 0:  # all are folded into the counters
            return ()
        declared = None if history.declared is None else history.declared.tick
        return find_alarms(history, None, declared)

    @functools.cached_property
    def summary(self) -> Summary:
        """The numbers that a manager asks for, and sentences on them."""
        return summarise(self)

    def at_traffic(self, seconds_per_duel: float | None) -> LiveStanding:
        """Return the same standing for another traffic; nothing else is computed again.

        Parameters
        ----------
        seconds_per_duel : float or None
            The mean time between two duels; None if no duels come now.

        Returns
        -------
        LiveStanding
            A copy with this traffic.
        """
        found = copy.copy(self)
        found.__dict__.pop("summary", None)
        found.__dict__["seconds_per_duel"] = seconds_per_duel
        return found

    def without_alarms(self) -> LiveStanding:
        """Return the same without the tests of assumptions, which go through many duels."""
        return self.with_alarms(())

    def with_alarms(self, alarms: tuple[Finding, ...]) -> LiveStanding:
        """Return the same standing with alarms that were found before; no test is run.

        Parameters
        ----------
        alarms : tuple of Finding
            The alarms.

        Returns
        -------
        LiveStanding
            A copy with the alarms.
        """
        found = replace(self, read=None)
        found.__dict__["alarms"] = alarms  # where a cached property keeps it
        return found

    def with_guardrails(self, found: tuple[ReportedGuardrail, ...]) -> LiveStanding:
        """Return the same standing with guard-rails.

        Parameters
        ----------
        found : tuple of ReportedGuardrail
            The guard-rails.

        Returns
        -------
        LiveStanding
            A copy with the guard-rails.
        """
        return replace(self, guardrails=found) if found else self

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences about what is wrong or not yet known; empty when all is well."""
        return (*super().warnings, *self._repeats(), *self.harms)

    @property
    def harms(self) -> tuple[str, ...]:
        """A sentence for each arm that a guard-rail alarms about."""
        return tuple(
            describe_alarm(found, arm)
            for found in self.guardrails
            for arm in found.arms
            if arm.alarm
        )

    def _repeats(self) -> tuple[str, ...]:
        n = 0 if self.repeats is None else int(self.repeats.sum())
        if n < 10 or n < 0.2 * self.tick:
            return ()
        return (
            f"{n:,} of {self.tick:,} {self._unit}s were of a unit that had had the pair before, "
            "and do not count as evidence: ask more units",
        )

    def __str__(self) -> str:
        if self.rates is None:
            return super().__str__()
        order = rank_arms(self.mean, self.leader, self.present)
        names = [f"{arm}{'' if is_present else ' (retired)'}"
                 for arm, is_present in zip(self.arms, self.present, strict=True)]  # fmt: skip
        leader = self.leader if self.is_heard else None
        lines = [self.headline, write_rates(order, names, leader, self.rates)]
        return "\n".join([*lines, *(f"warning: {words}" for words in self.warnings)])

    @property
    def headline(self) -> str:
        """Who leads or has won, and how sure that is, in a sentence."""
        held = f"; booking is held, no {self._unit} enters the evidence"
        held = held if self.booking == "held" else ""
        shown = f" with {self.chosen}, which is shown to everybody" if self.chosen else ""
        status = "" if self.status == "running" else f"; {self.status}{shown}"
        return super().headline + held + status

    def _verdict(self, duels: str) -> str:
        if self.verdict == "undecided":
            return self.verdict_words
        return f"too early to say after {duels}" if is_early(self) else super()._verdict(duels)


Matrix = list[list[float | None]]  # None where JSON has no number: nan and infinities


@dataclass(frozen=True)
class ReportedGuarantee:
    """What holds however often somebody looks, and why."""

    kind: str  # "proved", "measured" or "none"
    words: str


@dataclass(frozen=True)
class ReportedAlarm:
    """A test of an assumption that alarms."""

    name: str
    words: str


@dataclass(frozen=True)
class ReportedEstimates:
    """How often the row's arm beats the column's, with the ends of an interval for all looks."""

    mean: Matrix
    lower: Matrix
    upper: Matrix


@dataclass(frozen=True)
class ReportedRates:
    """Conversion rates by arm, and the lift of the row's arm over the column's, with intervals.

    A rate is that of the visitors whose window has `closed`: of these, `converted` did so in time.
    """

    shown: list[int]
    conversions: list[int]
    closed: list[int]
    converted: list[int]
    rate: list[float | None]
    lower: list[float | None]
    upper: list[float | None]
    lift: Matrix
    lift_lower: Matrix
    lift_upper: Matrix


@dataclass(frozen=True)
class StandingReport:
    """Where an experiment stands, as plain data.

    The service sends these fields as JSON and describes them in its OpenAPI schema, clients read
    them, and the page shows them. Rows of matrices are arms shown first, columns arms shown second.
    """

    name: str
    status: Literal["running", "paused", "finished"]
    headline: str
    leader: str | None
    winner: str | None
    error: float
    confidence: float
    guarantee: ReportedGuarantee
    feedback: str
    policy: str
    window: str | None
    now: float  # the latest time known, in seconds since the epoch
    arms: list[str]
    present: list[bool]
    duels: int
    plays: list[list[int]]
    conversions: list[list[int]]
    pending: list[list[int]]
    repeats: list[list[int]]
    late: int
    estimates: ReportedEstimates
    evidence: list[float | None] | None
    needed: float | None
    warnings: list[str]
    alarms: list[ReportedAlarm]
    booking: Literal["running", "held"]  # held: no duels enter the evidence
    verdict: Literal["running", "winner", "good_enough", "equivalent", "undecided"]
    verdict_words: str  # the verdict, or while it is running how far arms can differ
    choice: str | None  # the arm that an ask gets alone now
    margin: float | None
    end: str | None
    budget: int | None
    until: float | None
    fallback: str | None
    archived: bool
    loss: float | None  # expected, of choosing the leader now: an opinion
    p_value: float | None  # the error at which there would be a verdict on the leader
    summary: Summary
    guardrails: list[ReportedGuardrail] = field(default_factory=list)
    display: Literal["pair", "one"] = "pair"  # one: one arm is shown at a time
    rates: ReportedRates | None = None  # where one arm is shown at a time

    @classmethod
    def of(cls, given: LiveStanding) -> StandingReport:
        """Return the report of a standing."""
        evidence, arms, winner = given.evidence, given.arms, given.winner
        verdict: Any = given.verdict
        status: Any = given.status
        eprocess = given.eprocess
        has_margin = eprocess is not None and eprocess.margin > 0.0
        return cls(
            name=given.name,
            status=status,
            headline=given.headline,
            leader=arms[given.leader] if given.is_heard else None,
            winner=None if winner is None else arms[winner],
            error=given.error,
            confidence=given.confidence,
            guarantee=ReportedGuarantee(given.guarantee.kind, given.guarantee.words),
            feedback=given.feedback,
            policy=given.policy,
            window=None if given.window is None else str(given.window),
            now=given.now,
            arms=list(arms),
            present=given.present.tolist(),
            duels=given.tick,
            plays=given.plays.tolist(),
            conversions=given.conversions.tolist(),
            pending=[] if given.pending is None else given.pending.tolist(),
            repeats=[] if given.repeats is None else given.repeats.tolist(),
            late=given.late,
            estimates=ReportedEstimates(
                _finite(given.mean), _finite(given.lower), _finite(given.upper)
            ),
            evidence=None if evidence is None else _finite(evidence.arm),
            needed=None if evidence is None else _finite(evidence.level),
            warnings=list(given.warnings),
            alarms=[ReportedAlarm(alarm.name, str(alarm)) for alarm in given.alarms],
            booking="held" if given.booking == "held" else "running",
            verdict=verdict,
            verdict_words=given.verdict_words,
            choice=given.choice,
            margin=eprocess.margin if eprocess is not None and has_margin else None,
            end=ENDS[eprocess.is_two_sided] if eprocess is not None and has_margin else None,
            budget=given.budget,
            until=given.until,
            fallback=given.fallback,
            archived=given.is_archived,
            loss=given.loss if given.is_heard else None,
            p_value=given.p_value,
            summary=given.summary,
            guardrails=list(given.guardrails),
            display="one" if given.display == "one" else "pair",
            rates=None
            if given.rates is None
            else ReportedRates(
                **{
                    field.name: _finite(values) if values.dtype == np.float64 else values.tolist()
                    for field in fields(ReportedRates)
                    for values in [getattr(given.rates, field.name)]
                }
            ),
        )

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> StandingReport:
        """Return the report that a service has sent; fields of later versions are left out."""
        return read_record(cls, found)

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON has them; matrices are not copied."""
        return vars(self) | {
            "guarantee": vars(self.guarantee),
            "estimates": vars(self.estimates),
            "rates": None if self.rates is None else vars(self.rates),
            "alarms": [vars(alarm) for alarm in self.alarms],
            "summary": self.summary.to_json(),
            "guardrails": [found.to_json() for found in self.guardrails],
        }


def _finite(values: Any) -> Any:
    """Return numbers as lists, with None for those that are not finite."""
    numbers = np.asarray(values, dtype=np.float64)
    found: Any = np.where(np.isfinite(numbers), numbers, np.array(None))
    return found.tolist()


def stand(
    state: ExperimentState,
    policy: Policy,
    read: Callable[[int], History],
    confidence: float | None = None,
    seconds_per_duel: float | None = None,
) -> LiveStanding:
    """Return the standing of an experiment, from its state."""
    settings, eprocess, ledger = state.settings, state.eprocess, state.ledger
    confidence = min(1.0 - settings.error, _MAX_CONFIDENCE) if confidence is None else confidence
    confidence = checks.number("confidence", confidence, above=0, below=1)
    estimates = ledger.estimates()
    is_deciding = isinstance(policy, Decide)
    if eprocess.margin > 0.0:
        lower, upper = of_margin(eprocess, 1.0 - confidence)
    else:
        share = shares(eprocess.joined, has_room=True)
        lower, upper = of_shares(eprocess.seen, 1.0 - confidence, share)
    k = len(state.arms)
    rates = None
    if settings.shows_one:
        closed, converted = state.array("closed"), state.array("closed_conversions")
        rates = find_rates(
            ledger.plays, ledger.conversions, closed, converted, estimates.mean, (lower, upper),
            1.0 - confidence, eprocess.joined,
        )  # fmt: skip
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
        guarantee=find_guarantee(eprocess if is_deciding else None, settings.feedback, "coin"),
        policy_error=settings.error,
        counted=estimates.n,
        one_look=intervals(estimates, confidence),
        eprocess=eprocess,
        name=settings.name,
        status=state.head["status"],
        policy=settings.policy,
        window=settings.window,
        now=state.head["moment"] / MICRO,
        booking="running" if state.head["held"] is None else "held",
        repeats=state.array("repeats"),
        is_stopped=state.head["stopped"] is not None,
        budget=settings.budget,
        until=None if settings.until is None else settings.until / MICRO,
        fallback=_name(state, state.head["fallback"]),
        chosen=_name(state, state.head["chosen"]),
        is_archived=state.head["archived"] is not None,
        display=settings.display,
        rates=rates,
        read=read,
        wins=wins_of(state),
        seconds_per_duel=seconds_per_duel,
    )


def wins_of(state: ExperimentState) -> NDArray[np.float64]:
    """(K, K): answers that enter in which i won over j, in either order; a tie is half a win."""
    given, answers = state.array("given"), state.array("answers") - state.array("repeated_answers")
    found = given + (answers - given).T if state.settings.is_vote else given.astype(np.float64)
    np.fill_diagonal(found, 0.0)
    return np.asarray(found)


def _name(state: ExperimentState, arm: int | None) -> str | None:
    return None if arm is None else state.arms[arm]


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
