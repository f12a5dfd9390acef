"""The plan on the form of a new experiment: its fields as arguments of `plan`, and its charts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from duelay._core import checks
from duelay._core.duration import DAY
from duelay.delays import check as check_delay
from duelay.errors import InvalidValueError
from duelay.page.view_models import Chart, Line, PlanView
from duelay.planning.report import PlanReport, WorldReport

FIELDS = ("visitors", "rates", "prefer", "delay", "answers")
_FIELD_OF = {  # the field of each argument of `plan`
    "visitors_per_day": "visitors", "horizon": "visitors", "preferences": "prefer",
}  # fmt: skip
_MAX_ARMS, _LONGEST = 10, 200
_BANDS = (  # of a chart, from below, with their colours
    ("winner", "a winner", 2), ("good_enough", "good enough", 5),
    ("equivalent", "no difference", 0), ("wrong", "wrong", 1),
)  # fmt: skip
_TITLES = {"as stated": "If the arms differ as stated", "all equal": "If no arm is better"}


def read_fields(said: Mapping[str, str]) -> dict[str, Any]:
    """Return the arguments of `plan` from the fields of the form.

    Raises
    ------
    InvalidValueError
        If a field has no number; its `argument` is the name of the field.
    """
    is_one = said.get("display") == "one"
    names = [name for name in said.get("arms", "").splitlines() if name.strip()]
    found: dict[str, Any] = {
        "visitors_per_day": _number("visitors", said, "the visitors of a day, such as 800"),
        "window": said.get("window") or None,
        "margin": _margin(said.get("margin", ""), is_one),
        "feedback": said.get("feedback") or "conversions",
    }
    if found["margin"] is not None:
        found["end"] = said.get("end") or "equivalent"
    found["delay"] = _law(said.get("delay", ""))
    if is_one:
        found["rates"] = _rates(said.get("rates", ""), len(names))
        return found
    found["preferences"] = _preferences(
        _number("prefer", said, "how many of 100 visitors prefer the better arm, such as 55"),
        len(names),
    )
    answered = _number("answers", said, "how many of 100 answers come, such as 70")
    if not 0 < answered <= 100:
        raise InvalidValueError("say a number above 0 and at most 100", argument="answers")
    if answered < 100:
        found["delay"] = f"never:{1 - answered / 100:.6g},({found['delay']})"
    return found


def field_of(argument: str | None) -> str:
    """Return the field that an argument of `plan` comes from; empty if it has none."""
    name = argument or ""
    return _FIELD_OF.get(name, name if name in (*FIELDS, "margin", "window") else "")


def make_view(report: PlanReport) -> PlanView:
    """Return what the page shows of a plan."""
    charts = tuple(_chart(place, world) for place, world in enumerate(report.worlds))
    return PlanView(report=report, charts=charts, is_open=True)


def _chart(place: int, world: WorldReport) -> Chart:
    shares = [(name, getattr(world, key), colour) for key, name, colour in _BANDS]
    lines = [Line(name, tuple(values), colour=colour) for name, values, colour in shares
             if any(values)]  # fmt: skip
    return Chart(
        id=f"plan-{place}",
        title=_TITLES.get(world.name, world.name),
        words=world.words,
        x=tuple(day * DAY for day in world.by_days),
        lines=tuple(lines) or (Line("a verdict", (0.0,) * len(world.by_days)),),
        x_kind="age",
        y_kind="share",
        is_stacked=True,
    )


def _number(field: str, said: Mapping[str, str], what: str) -> float:
    given = said.get(field, "").replace(",", "").removesuffix("%").strip()
    try:
        return float(given)
    except ValueError:
        got = f", not {given[:40]!r}" if given else ""
        raise InvalidValueError(f"say {what}{got}", argument=field) from None


def _law(given: str) -> str:
    """Return a law of delays: of answers of which half come within a time, or as it is written."""
    if not given:
        raise InvalidValueError("say how long answers take, such as 6h", argument="delay")
    if len(given) > _LONGEST:
        raise InvalidValueError(f"say it in at most {_LONGEST} characters", argument="delay")
    if ":" not in given:
        checks.duration("delay", given)
        return f"log-normal:{given},1"
    try:
        check_delay(given)
    except InvalidValueError as error:
        raise InvalidValueError(str(error), argument="delay") from None
    return given


def _margin(given: str, is_one: bool) -> float | str | None:
    """Return the margin; the form has a lift where one arm is shown, otherwise a share."""
    if not given:
        return None
    if is_one:
        return given
    return _number("margin", {"margin": given}, "a share, such as 0.05")


def _rates(given: str, n_arms: int) -> list[str]:
    """Return a rate in percent for each arm: arms without one have the first."""
    rates = [f"{part.removesuffix('%')}%" for part in re.split(r"[\s,;]+", given.replace(" %", "%"))
             if part]  # fmt: skip
    if len(rates) < 2:
        raise InvalidValueError(
            "say the rates of at least two arms in percent, such as 5, 6", argument="rates"
        )
    if max(len(rates), n_arms) > _MAX_ARMS:
        raise InvalidValueError(f"at most {_MAX_ARMS} arms can be planned here", argument="rates")
    return rates + [rates[0]] * (n_arms - len(rates))


def _preferences(of_100: float, n_arms: int) -> list[list[float]]:
    """Return the matrix in which one arm is preferred to all others, which are equal."""
    if not 50 <= of_100 < 100:
        raise InvalidValueError("say a number from 50 to 99 of 100 visitors", argument="prefer")
    k, share = max(n_arms, 2), of_100 / 100
    if k > _MAX_ARMS:
        raise InvalidValueError(f"at most {_MAX_ARMS} arms can be planned here", argument="prefer")
    matrix = [[0.5] * k for _ in range(k)]
    for other in range(1, k):
        matrix[0][other], matrix[other][0] = share, 1.0 - share
    return matrix
