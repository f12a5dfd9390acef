"""Rules: who duels next, given the ledger. Each is a record and plain functions over it."""

from __future__ import annotations

from duelay.rules.borda import BordaRule
from duelay.rules.double_thompson import DoubleThompsonRule
from duelay.rules.mrr_db import MRRDBRule
from duelay.rules.rmed import RMEDRule
from duelay.rules.rr_db import RRDBRule
from duelay.rules.rucb import RUCBRule
from duelay.rules.turn import select, turn

__all__ = [
    "BordaRule",
    "DoubleThompsonRule",
    "MRRDBRule",
    "RMEDRule",
    "RRDBRule",
    "RUCBRule",
    "select",
    "turn",
]
