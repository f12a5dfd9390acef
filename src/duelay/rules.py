"""Functions for compiled policies of your own (`duelay.CompiledPolicy`).

A rule is a NamedTuple and functions that are registered for its type: `select` chooses the duel;
`calm_until` and `declared` are optional; `kernel` compiles the functions that they call. The other
functions read the ledger, and are kernels that a rule may call.
"""

from __future__ import annotations

from duelay._core.jit.decorators import kernel
from duelay.ledger.delay_models.base import pair_counts
from duelay.ledger.evidence.winner_threshold import divergence
from duelay.policies.borda import BordaRule
from duelay.policies.decide import DecideRule
from duelay.policies.double_thompson.many_arms import ManyArmsRule
from duelay.policies.double_thompson.rule import DoubleThompsonRule
from duelay.policies.maillard import MaillardRule
from duelay.policies.mrr_db_delay import MRRDBRule
from duelay.policies.pair_statistics import is_beaten, upper_bound, wins_and_count
from duelay.policies.rmed import RMEDRule
from duelay.policies.rr_db_delay import RRDBRule
from duelay.policies.rucb import RUCBRule
from duelay.policies.self_duels import rival
from duelay.policies.turn import calm_until, declared, select, turn

evidence = pair_counts  # the name in earlier versions

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
    "is_beaten",
    "kernel",
    "pair_counts",
    "rival",
    "select",
    "turn",
    "upper_bound",
    "wins_and_count",
]
