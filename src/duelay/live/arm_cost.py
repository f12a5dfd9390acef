"""What a further arm costs a live experiment: a forecast, as numbers and in a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from duelay.errors import InvalidValueError
from duelay.inference.arm_cost import ArmCost, forecast_cost
from duelay.inference.forecast import MAX_DUELS, DuelsLeft
from duelay.live.arrivals import DAY, time_left
from duelay.live.standing import LiveStanding
from duelay.live.summary import MIN_ANSWERS, is_early
from duelay.policies import Decide
from duelay.policies.policy import Policy


@dataclass(frozen=True)
class ArmCostReport:
    """What a further arm costs, until a verdict. What cannot be told is None."""

    duels: list[int] | None  # more duels: the low end, the median and the high end
    days: list[float] | None  # the same in days, at the traffic of the last 24 hours
    left: list[int] | None  # duels until a verdict, with the arm
    words: str  # a sentence

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> ArmCostReport:
        """Return the report that a service has sent; fields of later versions are left out."""
        return cls(**{field.name: found[field.name] for field in fields(cls)})

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON has them."""
        return asdict(self)

    def __str__(self) -> str:
        return self.words


def report_cost(standing: LiveStanding, policy: Policy, name: str | None = None) -> ArmCostReport:
    """Return what a further arm costs.

    Parameters
    ----------
    standing : of the experiment now.
    policy : of the experiment.
    name : of the arm; a retired arm keeps its earlier duels.
    """
    arm = None
    if name in standing.arms:
        arm = standing.arms.index(name)
        if standing.present[arm]:
            raise InvalidValueError(
                f"name must be that of a further arm, and {name!r} is compared already",
                argument="name",
            )
    if why := _why_unknown(standing, policy):
        return ArmCostReport(None, None, None, f"What a further arm costs is not known: {why}.")
    assert standing.eprocess is not None
    found = forecast_cost(standing.eprocess, standing.leader, arm)
    if found is None:
        why = "it seems that no arm beats all others"
        return ArmCostReport(None, None, None, f"What a further arm costs is not known: {why}.")
    gap = standing.seconds_per_duel
    days = None if gap is None else [each * gap / DAY for each in found.more]
    unit = "visitors" if standing.display == "one" else "duels"
    return ArmCostReport(
        list(found.more), days, list(found.with_it), _in_words(found, gap, unit, name)
    )


def _why_unknown(standing: LiveStanding, policy: Policy) -> str:
    """Return why no forecast is made; empty if one is."""
    if not isinstance(policy, Decide):
        return "there is no forecast for an experiment that saves regret"
    if standing.is_stopped:
        return "the experiment has stopped, and asks for no more duels"
    if not standing.is_heard or is_early(standing):
        return f"it is too early to say, until each arm has {MIN_ANSWERS} answers"
    return ""


def _in_words(found: ArmCost, gap: float | None, unit: str, name: str | None) -> str:
    """Return the forecast in a sentence or two."""
    low, middle, high = found.more
    what = "A further arm" if name is None else name
    time = time_left(DuelsLeft(*(max(n, 0) for n in found.more)), gap)
    at_traffic = f", {time} at this traffic" if time else ""
    if middle >= MAX_DUELS:
        return f"{what} probably costs more than {max(low, 0):,} {unit}{at_traffic}."
    start = f"{low:,}" if low >= 0 else f"{-low:,} fewer"
    end = f"{high:,}" + (" more" if low < 0 else "")
    ends = f"between {start} and {end}"
    if high >= MAX_DUELS:
        ends = f"{start} or many more"
    return (
        f"{what} probably costs about {max(middle, 0):,} more {unit} until a verdict "
        f"({ends}){at_traffic}. How many depends on how good it is."
    )
