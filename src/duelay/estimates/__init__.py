"""Logs of the past: one call from a table to an answer."""

from __future__ import annotations

from duelay.estimates.estimate import Estimate
from duelay.estimates.making import estimate

__all__ = ["Estimate", "estimate"]
