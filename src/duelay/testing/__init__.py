"""Tests of policies: the contract that each must keep, and plain policies to compare with."""

from __future__ import annotations

from duelay.testing.contract import PolicyContract, compiled_duels, live_duels

__all__ = ["PolicyContract", "compiled_duels", "live_duels"]
