"""Tests of policies: the contract that every policy must keep."""

from __future__ import annotations

from duelay.testing.contract import PolicyContract, compiled_duels, live_duels

__all__ = ["PolicyContract", "compiled_duels", "live_duels"]
