"""How long is waited for a store, a service or an address that does not answer.

On a machine that is very slow the usual seconds may be too few. The environment variable
`DUELAY_PATIENCE` then says after how many seconds, at the least, something is given up.
"""

from __future__ import annotations

import math
import os

from duelay.errors import InvalidValueError

VARIABLE = "DUELAY_PATIENCE"


def at_least(usual: float) -> float:
    """Return how many seconds to wait: as many as usual, or more where the environment says so.

    >>> at_least(30.0) >= 30.0
    True
    """
    said = os.environ.get(VARIABLE, "").strip()
    try:
        least = float(said or 0.0)
    except ValueError:
        least = math.nan
    if not 0.0 <= least < math.inf:
        raise InvalidValueError(f"{VARIABLE} must be a number of seconds, such as 60, got {said!r}")
    return max(usual, least)
