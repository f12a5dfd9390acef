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

from duelay._core.jit.background import border_of
from duelay._core.jit.decorators import kernel
from duelay.ledger.delay_models.base import Floats

NOBODY = -1
_CASH = 0.05  # where a winner exists: the share of a bettor's money that stays out of the bets


@kernel
def touch(bets: Any, i: int, j: int) -> None:
    """Note that there is news of the pair."""
    low, high = min(i, j), max(i, j)
    if not bets.is_touched[low, high]:
        bets.is_touched[low, high] = True
        bets.touched[bets.n_touched[0]] = low * bets.doubts.size + high
        bets.n_touched[0] += 1


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
    """d(p, 1/2), the relative entropy of two coins."""
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
def look(bets: Any, t: int) -> None:
    """Look at the evidence at tick t, when all its news is booked; declare a winner if there is."""
    k = bets.doubts.size
    for place in range(bets.n_touched[0]):
        low, high = bets.touched[place] // k, bets.touched[place] % k
        bets.is_touched[low, high] = False
        for turn in range(2):
            i, j = (low, high) if turn == 0 else (high, low)
            bets.log_evidence[i, j] = mix(bets.log_weight, bets.wealth[i, j])
            bets.seen[i, j] = bets.wins[i, j]
            doubt(bets, i, j)
    for place in range(bets.n_touched[0]):
        low, high = bets.touched[place] // k, bets.touched[place] % k
        for turn in range(2):
            i, j = (low, high) if turn == 0 else (high, low)
            if bets.winner_exists:
                reject(bets, j, t)
            else:
                bets.best[i, j] = max(bets.best[i, j], bets.log_evidence[i, j])
                if bets.best[i, j] >= bets.level and passes_all(bets, i):
                    declare(bets, i, t)
    bets.n_touched[0] = 0
    bets.looked[0] = t - 1
    size, stride = bets.path_size[0], bets.stride[0]
    if size == 0 or (t - 1) // stride > bets.path_tick[size - 1] // stride:
        keep_path(bets, t)


@kernel
def doubt(bets: Any, i: int, j: int) -> None:
    """Reckon what speaks against i, after news of its duels with j."""
    bets.doubt[i, j] = weigh(bets.n[i, j], bets.lead[i, j])
    total = 0.0
    for rival in range(bets.doubts.size):
        total += bets.doubt[i, rival]
    bets.doubts[i] = total


@kernel
def reject(bets: Any, j: int, t: int) -> None:
    """Note the evidence that j is not the winner; if one arm alone is not rejected, declare it.

    The evidence is the product over k of (0.05 + 0.95 E_kj), each E_kj from the duels that k led.
    """
    k = bets.doubts.size
    total = 0.0
    for i in range(k):
        if i != j:
            gain = bets.log_evidence[i, j] + math.log(1.0 - _CASH)
            cash = math.log(_CASH)
            most = max(gain, cash)
            total += most + math.log(math.exp(gain - most) + math.exp(cash - most))
    if total > bets.against[j]:
        bets.against[j] = total
        n_left, left = 0, NOBODY
        for i in range(k):
            if bets.against[i] < bets.level:
                n_left += 1
                left = i
        if n_left == 1:
            declare(bets, left, t)


@kernel
def declare(bets: Any, i: int, t: int) -> None:
    """Declare i the winner at tick t, unless somebody is declared already."""
    if bets.winner[0] == NOBODY:
        bets.winner[0] = i
        bets.declared[0] = t - 1


@kernel
def is_passed(bets: Any, i: int, j: int) -> bool:
    """Whether i has passed j; where a winner exists, whether j is rejected."""
    if bets.winner_exists:
        return bool(bets.against[j] >= bets.level)
    return bool(bets.best[i, j] >= needed(bets, i, j))


@kernel
def late(joined: int) -> float:
    """Log n (n + 1) for the n-th arm to join, 0 for the first arms."""
    return math.log(joined * (joined + 1.0)) if joined > 0 else 0.0


@kernel
def needed(bets: Any, i: int, j: int) -> float:
    """Return the log evidence over j that i needs: more if it has not passed all retired arms."""
    if not bets.has_changed:
        return float(bets.level)
    return needed_of(bets, i, j, owed(bets, i))


@kernel
def owed(bets: Any, i: int) -> float:
    """Return log (K0 + 1), what i needs more, if i has not passed all retired arms; else -1."""
    if not bets.has_changed:
        return -1.0
    level = bets.level + late(bets.joined[i])
    first, owes = 0, False
    for other in range(bets.joined.size):
        first += int(bets.joined[other] == 0)
        owes = owes or (other != i and not bets.present[other] and bets.best[i, other] < level)
    return math.log(first + 1.0) if owes else -1.0


@kernel
def needed_of(bets: Any, i: int, j: int, owes: float) -> float:
    """Return the log evidence over j that i needs; `owes` is what `owed` returns for i."""
    level = bets.level + late(bets.joined[i])
    return float(level + (owes + late(bets.joined[j]) if owes >= 0.0 else 0.0))


@border_of(lambda bets, wanted: wanted.size // 200)
@kernel
def need_all(bets: Any, wanted: Floats) -> None:
    """Write down the log evidence that each arm needs over each other; infinite over itself."""
    for i in range(bets.joined.size):
        owes = owed(bets, i)
        for j in range(bets.joined.size):
            wanted[i, j] = math.inf if i == j else needed_of(bets, i, j, owes)


@kernel
def passes_all(bets: Any, i: int) -> bool:
    """Whether i has enough evidence over every other arm that is present."""
    if not bets.present[i]:
        return False
    for j in range(bets.joined.size):
        if j != i and bets.present[j] and bets.best[i, j] < needed(bets, i, j):
            return False
    return True


@kernel
def arm_evidence(bets: Any, i: int) -> float:
    """The log evidence of arm i: the least, over the opponents present, of its best log E_ij.

    What i needs over an opponent beyond the level is subtracted. The best is never below 0. Where a
    winner exists, it is the least evidence that an opponent is not the winner.
    """
    least, owes = math.inf, owed(bets, i)
    for j in range(bets.doubts.size):
        if least == 0.0 and not bets.has_changed:
            break
        if j != i and bets.winner_exists:
            least = min(least, bets.against[j])
        elif j != i and bets.present[j]:
            least = min(least, bets.best[i, j] - (needed_of(bets, i, j, owes) - bets.level))
    return least


@border_of(lambda bets, arm: arm.size**2 // 200)
@kernel
def all_evidence(bets: Any, arm: Floats) -> None:
    """Write down the log evidence of each arm."""
    for i in range(arm.size):
        arm[i] = arm_evidence(bets, i)


@kernel
def keep_path(bets: Any, t: int) -> None:
    """Write down each arm's evidence; when there is no room, drop every second moment."""
    size = bets.path_size[0]
    if size == bets.path_tick.size:
        size //= 2
        for place in range(size):
            bets.path_tick[place] = bets.path_tick[2 * place]
            for i in range(bets.doubts.size):
                bets.path[place, i] = bets.path[2 * place, i]
        bets.stride[0] *= 2
    bets.path_tick[size] = t - 1
    for i in range(bets.doubts.size):
        bets.path[size, i] = arm_evidence(bets, i)
    bets.path_size[0] = size + 1
