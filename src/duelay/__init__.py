"""duelay: dueling bandits whose answers come late or never.

>>> import duelay
>>> player = duelay.RUCBDelay(window=1000).start(["red", "green", "blue"], seed=0)
>>> duel = player.ask()
>>> player.tell(duel)
'counted'
"""

from __future__ import annotations

from duelay import assumptions, datasets, delays, errors, rules, theory, traffic
from duelay._version import __version__
from duelay.errors import DuelayError, NoWinnerError, UnknownDuelError
from duelay.estimates import Estimate, estimate
from duelay.inference.standing import Standing
from duelay.logs.history import History
from duelay.planning import Plan, plan
from duelay.players.duel_records import Duel
from duelay.players.player import Player
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
from duelay.precompilation import warm_up
from duelay.problems import Problem
from duelay.recommendation import Recommendation, recommend
from duelay.simulation import Result, Setting, simulate

__all__ = [
    "Borda",
    "CompiledPolicy",
    "Decide",
    "DoubleThompson",
    "Duel",
    "DuelayError",
    "Estimate",
    "History",
    "MRRDBDelay",
    "MaillardSampling",
    "NoWinnerError",
    "Plan",
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
    "errors",
    "estimate",
    "plan",
    "recommend",
    "rules",
    "simulate",
    "theory",
    "traffic",
    "warm_up",
]
