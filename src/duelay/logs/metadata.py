"""What a file says of a whole history beside its duels, as values that JSON has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from duelay._core import checks, timestamps
from duelay._core.duration import Duration

if TYPE_CHECKING:
    from duelay.logs.history import History

_AS_THEY_ARE = ("order", "chosen_by", "n_earlier")


def describe(history: History) -> dict[str, Any]:
    """Return arms, window, now and the like."""
    window, now = history.window, history.now
    return {name: getattr(history, name) for name in _AS_THEY_ARE} | {
        "arms": history.arms,
        "window": str(window) if isinstance(window, Duration) else window,
        **({} if history.display == "pair" else {"display": history.display}),
        "now": None if now is None else timestamps.write(np.array([now]))[0],
    }


def read_fields(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a history from `describe`, as far as a file has them."""
    fields = {name: told[name] for name in (*_AS_THEY_ARE, "display") if name in told}
    if "arms" in told:
        fields["arms"] = tuple(map(str, told["arms"]))
    if "window" in told:
        fields["window"] = checks.window(told["window"])
    if told.get("now") is not None:
        fields["now"] = timestamps.read("now", told["now"]) / 1e6
    return fields
