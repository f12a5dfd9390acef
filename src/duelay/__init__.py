"""duelay: dueling bandits whose answers come late or never.

>>> import duelay
>>> player = duelay.RUCBDelay(window=1000).start(["red", "green", "blue"], seed=0)
>>> duel = player.ask()
>>> player.tell(duel)
'counted'
"""

from __future__ import annotations

from duelay import assumptions, datasets, delays, rules, theory, traffic
from duelay._version import __version__
from duelay.advice import Recommendation, recommend
from duelay.engine import Result, Setting, simulate
from duelay.estimates import Estimate, estimate
from duelay.logs.history import History
from duelay.players.player import Duel, Player, UnknownDuelError
from duelay.players.standing import Standing
from duelay.policies import (
    RMED,
    RUCB,
    Borda,
    Decide,
    DoubleThompson,
    MaillardSampling,
    MRRDBDelay,
    RRDBDelay,
    RUCBDelay,
)
from duelay.policies.policy import CompiledPolicy, Policy
from duelay.problems import NoWinnerError, Problem
from duelay.warming import warm_up

__all__ = [
    "Borda",
    "CompiledPolicy",
    "Decide",
    "DoubleThompson",
    "Duel",
    "Estimate",
    "History",
    "MRRDBDelay",
    "MaillardSampling",
    "NoWinnerError",
    "Player",
    "Policy",
    "Problem",
    "RMED",
    "RRDBDelay",
    "RUCB",
    "RUCBDelay",
    "Recommendation",
    "Result",
    "Setting",
    "Standing",
    "UnknownDuelError",
    "__version__",
    "assumptions",
    "datasets",
    "delays",
    "estimate",
    "recommend",
    "rules",
    "simulate",
    "theory",
    "traffic",
    "warm_up",
]
