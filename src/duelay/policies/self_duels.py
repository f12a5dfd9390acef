"""Replace the opponent of a self-duel, for policies that do not allow an arm to duel itself."""

from __future__ import annotations

import math

from duelay._core.jit.background import border
from duelay._core.jit.decorators import kernel
from duelay.ledger.ledger import Ledger
from duelay.policies.pair_statistics import upper_bound

ALPHA = 0.51  # width of the bounds that choose the opponent


@border
@kernel
def rival(ledger: Ledger, i: int, t: int) -> int:
    """Return the arm other than i with the largest U_ji, as RUCB chooses it.

    Parameters
    ----------
    ledger : Ledger
        The plays and answers so far.
    i : int
        The champion.
    t : int
        The tick, from 1.

    Returns
    -------
    int
        The index of the rival.
    """
    best, highest = 0 if i else 1, -math.inf
    for j in range(ledger.plays.shape[0]):
        if j != i:
            u = upper_bound(ledger, j, i, ALPHA * math.log(t))
            if u > highest:
                best, highest = j, u
    return best
