"""Check what an experiment is created with: its policy, names, and lengths of time."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Iterable, Sequence
from typing import Any

from duelay import text
from duelay._core import checks, timestamps
from duelay._core.duration import Duration
from duelay._core.feedback import OUTCOMES
from duelay.delays.ticks_or_clock import check_clock
from duelay.errors import InvalidValueError
from duelay.inference.rates import margin_of_lift
from duelay.ledger.evidence.margin import ENDS
from duelay.live.storage.schema import MICRO
from duelay.policies import Decide
from duelay.policies.decide import find_planned
from duelay.policies.policy import Policy
from duelay.recommendation import recommend

WINDOW, ERROR = "14d", 0.05  # where nothing else is said
MIN_ERROR = 1e-12  # of a declaration: nobody has the duels for less
LONGEST = 200  # characters of a name, a unit or a key
_MAX_LENGTH = Duration("36500d")


def find_policy(
    given: Policy | str | None,
    goal: str,
    window: Duration | None,
    error: float,
    feedback: str,
    *,
    self_duels: bool,
    margin: float | None = None,
    end: str = ENDS[-1],
    display: str = "pair",
) -> Policy:
    """Return the policy of an experiment; refuse one that many processes cannot share."""
    if display == "one" and self_duels:
        raise InvalidValueError("self_duels must be left out where one arm is shown at a time")
    if given is None:
        recommended = recommend(
            goal=goal,
            window=window,
            feedback=feedback,
            self_duels=self_duels,
            error=error if goal == "decide" else None,
        ).policy
        if not isinstance(recommended, Decide):
            return recommended
        return _state_plan(
            dataclasses.replace(recommended, margin=margin, end=end, display=display)
        )
    policy = text.parse("policy", given) if isinstance(given, str) else given
    if not isinstance(policy, Policy):
        raise InvalidValueError(f"policy must be a policy or its text, got {given!r}")
    check_clock(policy, has_clock=True)
    if not policy.is_shared:
        raise InvalidValueError(
            f"policy {policy} cannot serve many processes: it remembers more than what was played "
            "and heard, such as the rounds that it is in, and each process would be in another one;"
            " take 'decide' or 'double-thompson:delay=learn'"
        )
    if policy.order != "coin":
        raise InvalidValueError(
            f"policy must show the two arms in an order that a coin decides, order='coin', got "
            f"{policy}"
        )
    if isinstance(policy, Decide) and policy.delay is not None:
        raise InvalidValueError(
            f"policy {policy} is told a law, and then bets on every silence at every moment, which "
            "many processes cannot share: leave the law out"
        )
    if isinstance(policy, Decide):
        policy.ledger(2, by_clock=True)  # refuses a `wait` in ticks
    if isinstance(policy, Decide) and policy.winner_exists:
        raise InvalidValueError(
            f"policy {policy} takes a winner for granted, which an arm that joins would end: leave "
            "winner_exists out"
        )
    shown = getattr(policy, "display", "pair")
    if shown != display and shown != "pair":
        raise InvalidValueError(f"display must be said once, got {display!r} and that of {policy}")
    if isinstance(policy, Decide):
        policy = dataclasses.replace(policy, margin=margin, end=end)
    return _state_plan(
        _complete(policy, goal, window, error, self_duels=self_duels, display=display)
    )


def _state_plan(policy: Policy) -> Policy:
    """State the gap on which bets are centred, so that the store says it in every later version."""
    if not isinstance(policy, Decide):
        return policy
    return dataclasses.replace(policy, planned=find_planned(policy))


def find_margin(
    given: Any, end: str | None, policy: Policy | str | None, display: str
) -> tuple[Any, str]:
    """Return the margin, in points of preference such as 0.05, and the end that it makes.

    Both may be said here or by a policy that decides, and must agree. None for no margin. A
    percentage is a lift of conversion rates.
    """
    own = text.parse("policy", policy) if isinstance(policy, str) else policy
    margin, ends = (own.margin, own.end) if isinstance(own, Decide) else (None, ENDS[-1])
    if given is not None:
        given = _points(given, display)
        if margin not in (None, given):
            raise InvalidValueError(f"margin must be said once, got {given:g} and that of {own}")
    if end is not None:
        checks.one_of("end", end, ENDS)
        if margin is not None and end != ends:
            raise InvalidValueError(f"end must be said once, got {end!r} and that of {own}")
        if margin is None and given is None:
            raise InvalidValueError(
                f"end says how an experiment with a margin ends: say margin, too, got {end!r}"
            )
        ends = end
    return given if margin is None else margin, ends


def _points(given: Any, display: str) -> float:
    """Return a margin in points of preference, also of a lift such as "5%"."""
    if isinstance(given, str) and given.strip().endswith("%"):
        if display != "one":
            raise InvalidValueError(
                "margin must be a number, such as 0.05, where two arms are shown together; a "
                f"percentage is a lift of conversion rates, for display='one', got {given!r}",
                argument="margin",
            )
        return margin_of_lift(checks.share("margin", given))
    return checks.number("margin", given, above=0, below=0.5)


def find_date(given: Any, created: int) -> int | None:
    """Return when an experiment stops, in microseconds: a time, or how long after its creation."""
    if given is None:
        return None
    if isinstance(given, str) and given[:4].isdecimal() and "-" in given:
        until = timestamps.read("until", given)
    elif isinstance(given, str | datetime.timedelta | Duration):
        until = created + round(float(check_length("until", given)) * MICRO)
    else:
        until = round(timestamps.seconds("until", given) * MICRO)
    if until > timestamps.FURTHEST * MICRO:
        raise InvalidValueError(
            f"until must be before {timestamps.iso(timestamps.FURTHEST)}, got {given!r}",
            argument="until",
        )
    if until <= created:
        raise InvalidValueError(f"until must be later than now, got {given!r}")
    return until


def find_arm(name: str, given: Any, arms: Sequence[str]) -> int:
    """Return the number of an arm."""
    if given not in arms:
        raise InvalidValueError(
            f"{name} must be the name of an arm, one of {list(arms)}, got {given!r}"
        )
    return list(arms).index(given)


def _complete(
    policy: Policy, goal: str, window: Duration | None, error: float, *, self_duels: bool,
    display: str,
) -> Policy:  # fmt: skip
    """Fill in window, error and self-duels of a policy; refuse a policy that contradicts them."""
    said: dict[str, Any] = {"self_duels": self_duels, "display": display}
    if not isinstance(policy.window, Duration):
        said["window"] = window
    elif window not in (policy.window, Duration(WINDOW)):
        raise InvalidValueError(f"window must be said once, got {window} and that of {policy}")
    if isinstance(policy, Decide):
        if goal == "regret":
            raise InvalidValueError(f"goal='regret' does not fit {policy}, which decides")
        if policy.error == ERROR:
            said["error"] = error
        elif error not in (policy.error, ERROR):
            raise InvalidValueError(f"error must be said once, got {error:g} and that of {policy}")
    if not dataclasses.is_dataclass(policy):
        return policy
    fields = {field.name for field in dataclasses.fields(policy)}
    return dataclasses.replace(policy, **{n: v for n, v in said.items() if n in fields})


def check_votes(arms: Iterable[str]) -> None:
    """Refuse arms whose names are words for a place: a vote for one could mean either."""
    for arm in arms:
        if arm in OUTCOMES:
            raise InvalidValueError(
                f"arms must not be called 'first', 'second' or 'tie' where votes are told: a vote "
                f"for {arm!r} could mean the place or the arm"
            )


def check_length(name: str, given: Any) -> Duration:
    """Return a length of time; refuse one that is too long for microseconds in 64 bits."""
    length = checks.duration(name, given)
    if float(length) > float(_MAX_LENGTH):
        raise InvalidValueError(f"{name} must be at most {_MAX_LENGTH}, got {given!r}")
    return length


def check_forgetting(forget: Duration | None, window: Duration | None) -> None:
    """Refuse to forget duels that are open."""
    if forget is None:
        return
    if window is None:
        raise InvalidValueError("forget_after needs a window: without one no duel is ever closed")
    if float(forget) < float(window):
        raise InvalidValueError(
            f"forget_after must be at least the window, {window}, since a duel is open as long, "
            f"got {forget}"
        )


def check_name(name: Any) -> str:
    """Return the name of a new experiment; refuse one that cannot be part of an address."""
    checked = _check_text("name", name, "the name of the experiment")
    if "/" in checked or checked in (".", ".."):
        raise InvalidValueError(
            f"name must not have a slash, being part of an address, got {name!r}"
        )
    return checked


def check_arm(name: Any) -> str:
    """Return the name of an arm."""
    name = str(name) if isinstance(name, int) and not isinstance(name, bool) else name
    return _check_text("name", name, "the name of an arm")


def check_word(name: str, value: Any) -> str | None:
    """Return a unit or a key, as text."""
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    return _check_text(name, value, "of the visitor, prompt or question")


def _check_text(name: str, value: Any, what: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InvalidValueError(f"{name} must be a text, {what}, got {value!r}")
    if len(value) > LONGEST:
        raise InvalidValueError(f"{name} must have at most {LONGEST} characters, got {len(value)}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidValueError(f"{name} must be text that can be written, got {value!r}") from None
    if "\0" in value:
        raise InvalidValueError(f"{name} must have no NUL character, got {value!r}")
    return value
