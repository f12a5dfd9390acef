"""Estimate preferences, delays and the winner from a log."""

from __future__ import annotations

from duelay.estimates.estimator import estimate
from duelay.estimates.result import Estimate

__all__ = ["Estimate", "estimate"]
