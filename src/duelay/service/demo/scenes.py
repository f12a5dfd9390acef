"""What `duelay demo-live` shows: a winner soon declared, a close race, broken assumptions."""

from __future__ import annotations

from duelay.delays import Duration, Never, Weibull
from duelay.service.demo.visitors import Scene
from duelay.traffic import Daily

_TRAFFIC = Daily(Duration("90s"), 0.5)
_HOURS = Never(0.25, Weibull(0.7, Duration("2h")))

SCENES = (
    Scene(
        "checkout button",
        "one of four is clearly better, and is declared in a minute or two",
        {"Buy now": 0.8, "Order": 0.0, "Continue": 0.1, "Add to basket": -0.1},
        _TRAFFIC,
        _HOURS,
        share=0.1,
    ),
    Scene(
        "headline",
        "five that are nearly as good as each other, and stay undecided",
        {"Plain": 0.0, "Question": 0.05, "Number": 0.06, "Quote": -0.02, "Long": -0.05},
        _TRAFFIC,
        _HOURS,
    ),
    # Only two arms: little is heard of arms that lose, so that no test would see them drift.
    Scene(
        "search ranking",
        "people change their minds, and wins of one arm are told late: two tests alarm",
        {"Newest first": 0.3, "Best match": -0.3},
        _TRAFFIC,
        Never(0.2, Weibull(0.8, Duration("40m"))),
        window="8h",
        feedback="votes",
        share=0.3,
        drift={"Newest first": -0.4, "Best match": 0.4},
        slower={"Newest first": 4.0},
    ),
)
