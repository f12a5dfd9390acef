"""Estimate preferences, delays and the winner from a log."""

from __future__ import annotations

from duelay.estimates.estimate import Estimate
from duelay.estimates.estimator import estimate

__all__ = ["Estimate", "estimate"]
