"""Rings of duels by number, where time is in seconds: nobody knows how many will be open."""

from __future__ import annotations

from typing import Any

import numpy as np


def widen(rings: dict[str, Any], oldest: int, t: int) -> dict[str, Any]:
    """Return rings with twice the room, or more: for the duels from number `oldest` to t."""
    size = next(iter(rings.values())).size
    wide = 2 * size
    while t - oldest >= wide:
        wide *= 2
    numbers = np.arange(oldest, min(t, oldest + size))
    found = {}
    for name, old in rings.items():
        found[name] = np.zeros(wide, dtype=old.dtype)
        found[name][numbers % wide] = old[numbers % size]
    return found
