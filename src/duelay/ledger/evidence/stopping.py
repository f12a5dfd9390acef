"""Looking at bets: the evidence of every pair, who is declared, and how it came to that.

Everything here happens at the end of a tick, when all its news is booked: see
`duelay.ledger.evidence.eprocess`.

**Arms that come and go.** Let K0 be the number of the first arms. By the clock they need
L = (K0 + 1) / error, and the n-th arm to join needs L n (n + 1): the shares of `error` that each
may use add up to `error` at most. An arm *passes* another once it has had this much evidence over
it. An arm that has passed every retired arm must pass every arm present. An arm that has not may
lead only because a better one was retired. It needs more over those present: K0 + 1 times as much
over one of the first arms, (K0 + 1) n (n + 1) times over the n-th to join. docs/theory.md has the
proof.
"""

from __future__ import annotations

import math
from typing import Any

from duelay._core.arrays import Floats
from duelay._core.jit.background import border_of
from duelay._core.jit.decorators import kernel

NOBODY = -1
_CASH = 0.05  # where a winner exists: the share of a bettor's money that stays out of the bets


@kernel
def touch(eprocess: Any, i: int, j: int) -> None:
    """Note that there is news of the pair."""
    low, high = min(i, j), max(i, j)
    if not eprocess.is_touched[low, high]:
        eprocess.is_touched[low, high] = True
        eprocess.touched[eprocess.n_touched[0]] = low * eprocess.doubts.size + high
        eprocess.n_touched[0] += 1


@kernel
def mix(log_weight: Floats, wealth: Floats) -> float:
    """Log E_ij: the log of the sum over g of weight_g times the wealth."""
    most = -math.inf
    for place in range(wealth.size):
        most = max(most, log_weight[place] + wealth[place])
    total = 0.0
    for place in range(wealth.size):
        total += math.exp(log_weight[place] + wealth[place] - most)
    return most + math.log(total)


@kernel
def divergence(p: float) -> float:
    """Return d(p, 1/2), the relative entropy of two coins.

    Parameters
    ----------
    p : float
        The probability of the first coin.

    Returns
    -------
    float
        The relative entropy, in nats.
    """
    return less_entropy(p, 1.0 - p)


@kernel
def less_entropy(p: float, q: float) -> float:
    """log 2 less the entropy of a coin with sides p and q = 1 - p."""
    total = math.log(2.0)
    if p > 0.0:
        total += p * math.log(p)
    if q > 0.0:
        total += q * math.log(q)
    return max(total, 0.0)


@kernel
def weigh(n: float, lead: float) -> float:
    """N d(mu^, 1/2) if j seems to beat i, else 0."""
    if lead >= 0.0 or n <= 0.0:
        return 0.0
    p = max(0.5 + 0.5 * lead / n, 0.0)
    return float(n * less_entropy(1.0 - p, p))


@kernel
def look(eprocess: Any, t: int) -> None:
    """Look at the evidence at tick t, when all its news is booked; declare a winner if there is."""
    k, was_open = eprocess.doubts.size, eprocess.winner[0] == NOBODY
    for place in range(eprocess.n_touched[0]):
        low, high = eprocess.touched[place] // k, eprocess.touched[place] % k
        eprocess.is_touched[low, high] = False
        for turn in range(2):
            i, j = (low, high) if turn == 0 else (high, low)
            eprocess.log_evidence[i, j] = mix(eprocess.log_weight, eprocess.wealth[i, j])
            eprocess.seen[i, j] = eprocess.wins[i, j]
            doubt(eprocess, i, j)
    for place in range(eprocess.n_touched[0]):
        low, high = eprocess.touched[place] // k, eprocess.touched[place] % k
        for turn in range(2):
            i, j = (low, high) if turn == 0 else (high, low)
            if eprocess.winner_exists:
                reject(eprocess, j, t)
            else:
                eprocess.best[i, j] = max(eprocess.best[i, j], eprocess.log_evidence[i, j])
                if eprocess.best[i, j] >= eprocess.level and passes_all(eprocess, i):
                    declare(eprocess, i, t)
    eprocess.n_touched[0] = 0
    eprocess.looked[0] = t - 1
    size, stride = eprocess.path_size[0], eprocess.stride[0]
    is_declared_now = was_open and eprocess.winner[0] != NOBODY
    if is_declared_now or size == 0 or (t - 1) // stride > eprocess.path_tick[size - 1] // stride:
        keep_path(eprocess, t)


@kernel
def doubt(eprocess: Any, i: int, j: int) -> None:
    """Reckon what speaks against i, after news of its duels with j."""
    eprocess.doubt[i, j] = weigh(eprocess.n[i, j], eprocess.lead[i, j])
    total = 0.0
    for rival in range(eprocess.doubts.size):
        total += eprocess.doubt[i, rival]
    eprocess.doubts[i] = total


@kernel
def reject(eprocess: Any, j: int, t: int) -> None:
    """Note the evidence that j is not the winner; if one arm alone is not rejected, declare it.

    The evidence is the product over k of (0.05 + 0.95 E_kj), each E_kj from the duels that k led.
    """
    k = eprocess.doubts.size
    total = 0.0
    for i in range(k):
        if i != j:
            gain = eprocess.log_evidence[i, j] + math.log(1.0 - _CASH)
            cash = math.log(_CASH)
            most = max(gain, cash)
            total += most + math.log(math.exp(gain - most) + math.exp(cash - most))
    if total > eprocess.against[j]:
        eprocess.against[j] = total
        n_left, left = 0, NOBODY
        for i in range(k):
            if eprocess.against[i] < eprocess.level:
                n_left += 1
                left = i
        if n_left == 1:
            declare(eprocess, left, t)


@kernel
def declare(eprocess: Any, i: int, t: int) -> None:
    """Declare i the winner at tick t, unless an arm is declared already."""
    if eprocess.winner[0] == NOBODY:
        eprocess.winner[0] = i
        eprocess.declared[0] = t - 1


@kernel
def is_passed(eprocess: Any, i: int, j: int) -> bool:
    """Whether i has passed j; where a winner exists, whether j is rejected."""
    if eprocess.winner_exists:
        return bool(eprocess.against[j] >= eprocess.level)
    return bool(eprocess.best[i, j] >= needed(eprocess, i, j))


@kernel
def late(joined: int) -> float:
    """Log n (n + 1) for the n-th arm to join, 0 for the first arms."""
    return math.log(joined * (joined + 1.0)) if joined > 0 else 0.0


@kernel
def needed(eprocess: Any, i: int, j: int) -> float:
    """Return the log evidence over j that i needs: more if it has not passed all retired arms."""
    if not eprocess.has_changed:
        return float(eprocess.level)
    return needed_of(eprocess, i, j, owed(eprocess, i))


@kernel
def owed(eprocess: Any, i: int) -> float:
    """Return log (K0 + 1), what i needs more, if i has not passed all retired arms; else -1."""
    if not eprocess.has_changed:
        return -1.0
    level = eprocess.level + late(eprocess.joined[i])
    first, owes = 0, False
    for other in range(eprocess.joined.size):
        first += int(eprocess.joined[other] == 0)
        owes = owes or (
            other != i and not eprocess.present[other] and eprocess.best[i, other] < level
        )
    return math.log(first + 1.0) if owes else -1.0


@kernel
def needed_of(eprocess: Any, i: int, j: int, owes: float) -> float:
    """Return the log evidence over j that i needs; `owes` is what `owed` returns for i."""
    level = eprocess.level + late(eprocess.joined[i])
    return float(level + (owes + late(eprocess.joined[j]) if owes >= 0.0 else 0.0))


@border_of(lambda eprocess, wanted: wanted.size // 200)
@kernel
def need_all(eprocess: Any, wanted: Floats) -> None:
    """Write down the log evidence that each arm needs over each other; infinite over itself."""
    for i in range(eprocess.joined.size):
        owes = owed(eprocess, i)
        for j in range(eprocess.joined.size):
            wanted[i, j] = math.inf if i == j else needed_of(eprocess, i, j, owes)


@kernel
def passes_all(eprocess: Any, i: int) -> bool:
    """Whether i has enough evidence over every other arm that is present."""
    if not eprocess.present[i]:
        return False
    for j in range(eprocess.joined.size):
        if j != i and eprocess.present[j] and eprocess.best[i, j] < needed(eprocess, i, j):
            return False
    return True


@kernel
def arm_evidence(eprocess: Any, i: int) -> float:
    """The log evidence of arm i: the least, over the opponents present, of its best log E_ij.

    What i needs over an opponent beyond the level is subtracted. The best is never below 0. Where a
    winner exists, it is the least evidence that an opponent is not the winner.
    """
    least, owes = math.inf, owed(eprocess, i)
    for j in range(eprocess.doubts.size):
        if least == 0.0 and not eprocess.has_changed:
            break
        if j != i and eprocess.winner_exists:
            least = min(least, eprocess.against[j])
        elif j != i and eprocess.present[j]:
            least = min(
                least, eprocess.best[i, j] - (needed_of(eprocess, i, j, owes) - eprocess.level)
            )
    return least


@border_of(lambda eprocess, arm: arm.size**2 // 200)
@kernel
def all_evidence(eprocess: Any, arm: Floats) -> None:
    """Write down the log evidence of each arm."""
    for i in range(arm.size):
        arm[i] = arm_evidence(eprocess, i)


@kernel
def keep_path(eprocess: Any, t: int) -> None:
    """Write down each arm's evidence; when there is no room, drop every second moment.

    The moment of the declaration is kept for ever. One of the same tick is replaced.
    """
    size = eprocess.path_size[0]
    if size > 0 and eprocess.path_tick[size - 1] == t - 1:
        size -= 1
    if size == eprocess.path_tick.size:
        size //= 2
        for place in range(size):
            kept = 2 * place
            if eprocess.winner[0] != NOBODY:
                kept += int(eprocess.path_tick[kept + 1] == eprocess.declared[0])
            eprocess.path_tick[place] = eprocess.path_tick[kept]
            for i in range(eprocess.doubts.size):
                eprocess.path[place, i] = eprocess.path[kept, i]
        eprocess.stride[0] *= 2
    eprocess.path_tick[size] = t - 1
    for i in range(eprocess.doubts.size):
        eprocess.path[size, i] = arm_evidence(eprocess, i)
    eprocess.path_size[0] = size + 1
