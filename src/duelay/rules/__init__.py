"""Rules: who duels next, given the ledger. Each is a record and plain functions over it.

For a compiled policy of one's own (`duelay.CompiledPolicy`): `select`, registered for a NamedTuple,
chooses the duel; `calm_until` and `declared` may be registered for it, too; `kernel` compiles what
they call. The other functions read the ledger, and are kernels that a rule may call.
"""

from __future__ import annotations

from duelay._core.jit import kernel
from duelay.ledger.assumption import evidence
from duelay.ledger.declare import divergence
from duelay.rules.borda import BordaRule
from duelay.rules.decide import DecideRule
from duelay.rules.double_thompson import DoubleThompsonRule
from duelay.rules.maillard import MaillardRule
from duelay.rules.many_arms import ManyArmsRule
from duelay.rules.mrr_db import MRRDBRule
from duelay.rules.rmed import RMEDRule
from duelay.rules.rr_db import RRDBRule
from duelay.rules.rucb import RUCBRule
from duelay.rules.turn import (
    calm_until,
    declared,
    is_beaten,
    rival,
    select,
    turn,
    upper_bound,
    wins_and_count,
)

__all__ = [
    "BordaRule",
    "DecideRule",
    "DoubleThompsonRule",
    "MRRDBRule",
    "MaillardRule",
    "ManyArmsRule",
    "RMEDRule",
    "RRDBRule",
    "RUCBRule",
    "calm_until",
    "declared",
    "divergence",
    "evidence",
    "is_beaten",
    "kernel",
    "rival",
    "select",
    "turn",
    "upper_bound",
    "wins_and_count",
]
