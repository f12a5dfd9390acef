"""For tests of policies: the contract that each one must keep, and plain ones to measure by."""

from __future__ import annotations

from duelay.testing.contract import PolicyContract, compiled_duels, live_duels

__all__ = ["PolicyContract", "compiled_duels", "live_duels"]
