"""`plan`: how long an experiment takes until its verdict, by simulation before it starts."""

from __future__ import annotations

from duelay.planning.result import Plan, PlannedWorld
from duelay.planning.simulated import plan

__all__ = ["Plan", "PlannedWorld", "plan"]
