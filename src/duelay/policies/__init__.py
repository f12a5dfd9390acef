"""Policies: one module or folder for each algorithm, with its recipe and its compiled rule."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from duelay import text
from duelay.policies.borda import Borda
from duelay.policies.decide import Decide
from duelay.policies.double_thompson import DoubleThompson
from duelay.policies.maillard import MaillardSampling
from duelay.policies.mrr_db_delay import MRRDBDelay
from duelay.policies.policy import Policy
from duelay.policies.rmed import RMED
from duelay.policies.rr_db_delay import RRDBDelay
from duelay.policies.rucb import RUCB
from duelay.policies.rucb_delay import RUCBDelay

__all__ = [
    "RMED",
    "RUCB",
    "Borda",
    "Decide",
    "DoubleThompson",
    "MRRDBDelay",
    "MaillardSampling",
    "RRDBDelay",
    "RUCBDelay",
]


def parse(form: str, defaults: Mapping[str, Any] | None = None) -> Policy:
    """Return a policy from its text form.

    Parameters
    ----------
    form : str
        The text form, such as ``"rucb-delay:alpha=0.6,window=500"``, or ``"recommended"``.
    defaults : mapping of str to object, optional
        Values of fields that the form leaves out.

    Returns
    -------
    The policy.

    Raises
    ------
    ValueError
        If there is no such policy, or a value is invalid.

    Examples
    --------
    >>> parse("rucb-delay:alpha=0.6,window=500")
    RUCBDelay(delay=Geometric(p=0.01), window=500, alpha=0.6, order='champion', self_duels=True)
    """
    policy: Policy = text.parse("policy", form, defaults)
    return policy
