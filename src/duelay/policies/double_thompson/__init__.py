"""Double Thompson sampling: the policy, its rules for few and for many arms, and their kernels."""

from __future__ import annotations

from duelay.policies.double_thompson.policy import DoubleThompson

__all__ = ["DoubleThompson"]
