"""The JSON bodies of requests and answers, from which the OpenAPI schema is made.

A standing is answered as `duelay.live.standing.StandingReport`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    FailFast,
    Field,
    StringConstraints,
    model_validator,
)
from pydantic_core import PydanticCustomError

from duelay._core.checks import nearest
from duelay.live.guardrails import MAX_METRICS
from duelay.live.storage.schema import MICRO
from duelay.service.errors import UNKNOWN_FIELD

_MAX_SHOWN = 40  # characters of an unknown field
MOST_ARMS = 1000
MOST_PLANNED_ARMS = 10
MOST_DUELS = 100  # that one question may ask for
MOST_ANSWERS = 10_000

Word = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Length = Annotated[str, StringConstraints(min_length=2, max_length=40)]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    fixed: ClassVar[Mapping[str, str]] = {}  # why fields of other bodies are not taken here

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown(cls, given: Any) -> Any:
        """Stop at the first unknown field: to list thousands of them takes seconds."""
        for name in given if isinstance(given, dict) else ():
            if name not in cls.model_fields:
                shown, near = name[:_MAX_SHOWN], nearest(name[:_MAX_SHOWN], cls.model_fields)
                why = cls.fixed.get(name, f"extra inputs are not permitted{near}")
                raise PydanticCustomError(
                    UNKNOWN_FIELD, "{field}: {why}", {"field": shown, "why": why}
                )
        return given


class Guardrail(_Body):
    """The excess of an arm's rate over the baseline that is allowed, and the age of its events."""

    bound: float | None = Field(default=None, ge=0, lt=1)
    within: Length | None = None


Bound = float | Guardrail | None


class NewExperiment(_Body):
    """An experiment to be made."""

    name: Word = Field(examples=["buttons"])
    arms: list[Word] = Field(min_length=2, max_length=MOST_ARMS, examples=[["red", "green"]])
    goal: Literal["decide", "regret"] = "decide"
    policy: Annotated[str, StringConstraints(max_length=1000)] | None = None
    window: Length | None = Field(default="14d", examples=["14d"])
    feedback: Literal["conversions", "votes"] = "conversions"
    display: Literal["pair", "one"] = Field(
        default="pair", description="one: an A/B test, which shows one arm at a time"
    )
    error: float = Field(default=0.05, gt=0, lt=1)
    self_duels: bool = False
    share: float = Field(default=0.0, ge=0, le=1)
    forget_after: Length | None = None
    guardrails: dict[Word, Bound] | None = Field(
        default=None,
        max_length=MAX_METRICS,
        description="other events of a duel: the excess over the baseline that is allowed, or null",
        examples=[{"refund": 0.02}],
    )
    clock: Length | None = Field(
        default=None, description="how many times as fast as the world its time goes",
        examples=["1000x"],
    )  # fmt: skip
    lag: Length | None = Field(
        default=None, description="how long after it came an answer may be told", examples=["1d"]
    )
    margin: float | Length | None = Field(
        default=None, examples=[0.05, "5%"],
        description="the smallest difference that matters: a share of preferences, or with "
        "the display one also a lift of conversion rates",
    )  # fmt: skip
    end: Literal["good_enough", "equivalent"] | None = Field(
        default=None, description="with a margin, what ends it if no arm wins"
    )
    budget: int | None = Field(
        default=None, ge=1, le=2**53, description="the duels after which it stops"
    )
    until: Length | float | None = Field(
        default=None, examples=["30d"],
        description="when it stops: a time, in ISO 8601 or in seconds, or how long from now",
    )  # fmt: skip
    fallback: Word | None = Field(default=None, description="the arm that is shown in a pause")


class NewPlan(_Body):
    """An experiment whose length is to be simulated: with rates, or with preferences."""

    rates: list[float | Length] | None = Field(
        default=None, min_length=2, max_length=MOST_PLANNED_ARMS, examples=[[0.05, 0.06]],
        description="the conversion rate of each arm, where one arm is shown at a time",
    )  # fmt: skip
    preferences: float | list[list[float]] | None = Field(
        default=None, examples=[0.05],
        description="where two arms are shown: a gap, such as 0.05 for 55 : 45, or a matrix",
    )  # fmt: skip
    visitors_per_day: float = Field(gt=0, examples=[2000])
    delay: Annotated[str, StringConstraints(max_length=200)] = Field(
        default="exponential:1h", examples=["log-normal:6h,1"],
        description="the law of the time from the visit to the answer",
    )  # fmt: skip
    margin: float | Length | None = Field(
        default=None, examples=["20%"],
        description="the smallest difference that matters: with rates a lift, with preferences a "
        "difference from 1/2",
    )  # fmt: skip
    end: Literal["good_enough", "equivalent"] = "equivalent"
    error: float = Field(default=0.05, gt=0, lt=1)
    horizon: Length = Field(default="8w", description="how long an experiment lasts at most")
    window: Length | None = "14d"
    feedback: Literal["conversions", "votes"] = "conversions"
    add_arm_at: Length | None = Field(
        default=None, description="when the last arm joins; the notes then say what it costs"
    )
    runs: int | None = Field(
        default=None, ge=1, le=10_000, description="simulated experiments, at most 100"
    )
    seed: int = Field(default=0, ge=0, le=2**53)

    @model_validator(mode="after")
    def _check_size(self) -> NewPlan:
        matrix = self.preferences
        if isinstance(matrix, list) and len(matrix) > MOST_PLANNED_ARMS:
            raise ValueError(f"preferences: at most {MOST_PLANNED_ARMS} arms can be planned here")
        return self


_NO_CHANGE = "it is said when an experiment is made, and does not change"
_BY_MARGIN = (
    f"{_NO_CHANGE}: bets on a margin begin with the first duel, and to choose one by what is known "
    "would make its verdict wrong more often. Make a new experiment with it"
)
_FIXED = dict.fromkeys(NewExperiment.model_fields, _NO_CHANGE)
_FIXED |= {"margin": _BY_MARGIN, "end": _BY_MARGIN}
_FIXED |= {"arms": "say add_arms or retire_arms", "guardrails": "say add_guardrails"}


class ExperimentChange(_Body):
    """What is to be changed: the status, the booking, or arms that come or go."""

    fixed = _FIXED

    status: Literal["running", "paused", "finished"] | None = None
    arm: Word | None = Field(
        default=None, description="with the status finished: the arm to show, instead of the leader"
    )
    fallback: Word | None = Field(default=None, description="the arm that is shown in a pause")
    archived: bool | None = Field(default=None, description="whether lists leave it out")
    booking: Literal["running", "held"] | None = Field(
        default=None, description="held: no duels enter the evidence"
    )
    add_arms: list[Word] = Field(default=[], max_length=MOST_ARMS)
    retire_arms: list[Word] = Field(default=[], max_length=MOST_ARMS)
    add_guardrails: dict[Word, Bound] | None = Field(default=None, max_length=MAX_METRICS)


class Question(_Body):
    """A question for a duel, or for several."""

    unit: Word | None = Field(default=None, examples=["visitor-17"])
    count: int | None = Field(default=None, ge=1, le=MOST_DUELS)


class Vote(_Body):
    """Who won."""

    winner: Word = Field(examples=["first"], description="first, second, tie, or an arm's name")
    at: float | None = Field(
        default=None, description="when it was heard, in seconds since the epoch"
    )


class Conversion(_Body):
    """That the first arm won."""

    at: float | None = Field(
        default=None, description="when it was heard, in seconds since the epoch"
    )


class Event(_Body):
    """That the event of a metric followed a duel."""

    arm: Word | None = Field(
        default=None, description="first, second, or an arm's name, where two arms were shown"
    )
    at: float | None = Field(default=None, description="when it came, in seconds since the epoch")


class Answer(_Body):
    """An answer among several."""

    id: Annotated[str, StringConstraints(max_length=1000)]
    winner: Annotated[str, StringConstraints(max_length=1000)] | None = None
    at: float | None = None


class Answers(_Body):
    """Answers that are the news of one moment."""

    answers: Annotated[list[Answer], FailFast()] = Field(max_length=MOST_ANSWERS)


def _check_address(url: str) -> str:
    """Refuse what no event can be sent to."""
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:  # such as an open bracket
        is_address = False
    if not is_address:
        raise ValueError(
            f"must be an address such as https://example.org/events, got {url[:_MAX_SHOWN]!r}"
        )
    return url


class NewWebhook(_Body):
    """An address to which events are sent."""

    url: Annotated[str, StringConstraints(max_length=2000), AfterValidator(_check_address)] = Field(
        description="it begins with http:// or https://"
    )


class ErrorBody(BaseModel):
    """What is wrong."""

    error: str = Field(examples=["no experiment 'x' here"])


class DuelAnswer(BaseModel):
    """A duel; or, once the experiment has ended, one arm alone, which is called the winner."""

    id: str | None
    first: str | None
    second: str | None
    settled: bool
    winner: str | None
    arm: str | None = Field(
        default=None, description="what to show, where one arm is shown at a time"
    )


class DuelAnswers(BaseModel):
    """Several duels."""

    duels: list[DuelAnswer]


class AllTold(BaseModel):
    """What became of several answers, in their order."""

    answers: list[dict[str, Any]]


class Told(BaseModel):
    """What became of an answer."""

    id: str
    status: Literal["counted", "repeated", "late"]


class Experiments(BaseModel):
    """The experiments of a store."""

    experiments: list[dict[str, Any]]


class Log(BaseModel):
    """Duels, in the order in which they were asked."""

    duels: list[dict[str, Any]]
    next: int | None
    experiment: dict[str, Any] | None


class Webhook(BaseModel):
    """An address to which events are sent; the secret is shown once."""

    id: str
    url: str
    secret: str | None = None
    trouble: str | None = None


class Webhooks(BaseModel):
    """The webhooks of an experiment."""

    webhooks: list[Webhook]


def log_row(given: Any, arms: tuple[str, ...]) -> dict[str, Any]:
    """Return a duel of the log, from its row in the store."""
    return {
        "number": given["number"],
        "id": given["id"],
        "first": arms[given["first"]],
        "second": arms[given["second"]],
        "asked_at": given["asked"] / MICRO,
        "answered_at": None if given["told"] is None else given["told"] / MICRO,
        "late_at": None if given["late"] is None else given["late"] / MICRO,
        "first_won": given["first_won"],
        "unit": given["unit"],
        "enters": given["enters"],
    }
