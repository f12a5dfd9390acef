"""Bets while arms come and go: `duelay.ledger.declare` says what an arm needs then."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from duelay.ledger.bets import Bets
from duelay.ledger.declare import NOBODY, touch

_PAIR, _ARM = (0, 1), (0,)
_BY_ARM = {  # which axes of an array go by arm
    "joined": _ARM, "present": _ARM, "against": _ARM, "doubts": _ARM, "path": (1,), "wealth": _PAIR,
    "log_evidence": _PAIR, "best": _PAIR, "wins": _PAIR, "seen": _PAIR, "lead": _PAIR, "n": _PAIR,
    "doubt": _PAIR, "n_open": _PAIR, "is_touched": _PAIR,
}  # fmt: skip


def with_arm(bets: Bets, error: float) -> Bets:
    """Return the bets with one arm more, the next to join; nobody is declared any longer.

    From now on the bets do not assume that a winner exists.
    """
    k = len(bets.joined)
    wider: dict[str, Any] = {"touched": np.zeros((k + 1) ** 2, dtype=np.int64)}
    for name, axes in _BY_ARM.items():
        value = getattr(bets, name)
        room = [(0, 1) if axis in axes else (0, 0) for axis in range(value.ndim)]
        wider[name] = np.pad(value, room)
    told = bets.told._replace(law=np.pad(bets.told.law, (0, 1)))  # one law for all pairs
    bets = bets._replace(told=told, **wider)
    bets.joined[k] = bets.joined.max() + 1
    bets.present[k] = True
    return reopen(bets, error)


def reopen(bets: Bets, error: float) -> Bets:
    """Return the bets after an arm came or went: all pairs have news, and nobody is declared."""
    k, first = len(bets.joined), int((bets.joined == 0).sum())
    bets.winner[0] = NOBODY
    bets.n_touched[0] = 0
    bets.is_touched[:] = False
    for i in range(k):
        for j in range(i):
            touch(bets, i, j)
    level = math.log((first + 1) / error)
    return bets._replace(winner_exists=False, level=level, has_changed=True)
