"""Looking at bets: the evidence of every pair, who is declared, and how it came to that.

Everything here happens at a look, when all that is due has been booked: see
`duelay.ledger.evidence.eprocess`.

**The threshold.** An arm is declared once its evidence over every other arm has reached L. Bets on
different opponents are bets on different duels. So an arm that does not beat d of the others is
declared with probability L^-d at most. At most 2 m + 1 arms do not beat m or fewer others. Hence a
declaration is wrong with probability 3 / L + 2 / (L (L - 1)) at most, for any number of arms. With
a winner, which beats all others, it is 1 / L + 2 / (L (L - 1)). Where one arm is shown at a time,
arms are ordered by their conversion rates. Then at most m + 1 arms do not beat m or fewer others,
and the sums are 2 / L + 1 / (L (L - 1)) and 1 / L + 1 / (L (L - 1)). `log_threshold` solves for L.

**Arms that come and go.** By the clock an arm may join. Then the first arms need the L of
4 / L + 2 / (L (L - 1)) = 0.9 error, or of 3 / L + 1 / (L (L - 1)) = 0.9 error if arms are ordered,
and the n-th arm to join needs L n (n + 1). An arm *passes*
another once it has had this much evidence over it. An arm that has passed every retired arm must
pass every arm present. An arm that has not may lead only because a better one was retired. It needs
(K0 + 1)^2 / (0.1 error) over every arm present, K0 being the number of the first arms; times
n (n + 1) for each of the two that joined as the n-th. docs/theory.md has the proofs.
"""

from __future__ import annotations

import math
from typing import Any

from duelay._core.arrays import Floats
from duelay._core.jit.background import border_of
from duelay._core.jit.decorators import kernel
from duelay.ledger.evidence.margin import (
    RUNNING,
    WINNER,
    end_evidence,
    find_verdict,
    is_ahead,
    is_done,
    lacks_a_retired,
    look_at_tie,
    needed_with_margin,
)

NOBODY = -1
FOR_CHOICE, FOR_EVIDENCE = 1, 2  # what the news of a pair changes: doubts alone, or bets as well
_FIRST_WAY = 0.9  # the share of `error` of arms that have passed all retired ones


def log_threshold(
    n_arms: int,
    error: float,
    *,
    winner_exists: bool = False,
    may_join: bool = False,
    is_ordered: bool = False,
) -> float:
    """Return log L, for the first `n_arms` arms; `may_join` leaves room for arms that join.

    It solves alone / L + several / (L (L - 1)) = error. `alone` counts the arms that may fail to
    beat one arm only, and the shares of others; with few arms the second term is not needed.
    `is_ordered` says that no circle is possible, as with conversion rates.
    """
    alone, several, share = _losers(
        n_arms, winner_exists=winner_exists, may_join=may_join, is_ordered=is_ordered
    )
    error *= share
    middle = alone + error
    return math.log(
        (middle + math.sqrt(middle**2 - 4.0 * error * (alone - several))) / (2.0 * error)
    )


def error_at(
    log_evidence: float,
    n_arms: int,
    *,
    winner_exists: bool = False,
    may_join: bool = False,
    is_ordered: bool = False,
) -> float:
    """Return the error at which this evidence would just be enough: an any-time p-value."""
    alone, several, share = _losers(
        n_arms, winner_exists=winner_exists, may_join=may_join, is_ordered=is_ordered
    )
    rest = math.exp(-log_evidence)
    if rest >= 1.0:
        return 1.0
    return min(1.0, (alone * rest + several * rest * rest / (1.0 - rest)) / share)


def _losers(
    n_arms: int, *, winner_exists: bool, may_join: bool, is_ordered: bool
) -> tuple[float, float, float]:
    """Return `alone`, `several`, and the share of the error of both."""
    more = 1.0 if is_ordered else 2.0
    if winner_exists:
        return 1.0, more if n_arms > 2 else 0.0, 1.0
    alone = 2 if is_ordered else min(n_arms, 3)
    several = more if n_arms > alone else 0.0
    return (alone + 1.0, several, _FIRST_WAY) if may_join else (float(alone), several, 1.0)


def log_threshold_over_present(n_first: int, error: float) -> float:
    """Return the log evidence over each arm present for an arm that a retired one may beat."""
    return 2.0 * math.log(n_first + 1) - math.log(1.0 - _FIRST_WAY) - math.log(error)


@kernel
def touch(eprocess: Any, i: int, j: int, kind: int) -> None:
    """Note that there is news of the pair, FOR_CHOICE or FOR_EVIDENCE."""
    low, high = min(i, j), max(i, j)
    if eprocess.is_touched[low, high] == 0:
        eprocess.touched[eprocess.n_touched[0]] = low * eprocess.doubts.size + high
        eprocess.n_touched[0] += 1
    if kind > eprocess.is_touched[low, high]:
        eprocess.is_touched[low, high] = kind


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
        kind = eprocess.is_touched[low, high]
        eprocess.is_touched[low, high] = 0
        for turn in range(2):
            i, j = (low, high) if turn == 0 else (high, low)
            doubt(eprocess, i, j)
            if kind == FOR_EVIDENCE:
                eprocess.log_evidence[i, j] = mix(eprocess.log_weight, eprocess.wealth[i, j])
                eprocess.seen[i, j] = eprocess.wins[i, j]
                eprocess.best[i, j] = max(eprocess.best[i, j], eprocess.log_evidence[i, j])
                if eprocess.margin > 0.0:
                    look_at_tie(eprocess, i, j)
                elif eprocess.best[i, j] >= eprocess.level and passes_all(eprocess, i):
                    declare(eprocess, i, t, WINNER)
        if eprocess.margin > 0.0 and kind == FOR_EVIDENCE:
            first, then = (low, high) if is_ahead(eprocess, low, high) else (high, low)
            declare(eprocess, first, t, find_verdict(eprocess, first))
            declare(eprocess, then, t, find_verdict(eprocess, then))
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
def declare(eprocess: Any, i: int, t: int, verdict: int) -> None:
    """Say the verdict on i at tick t, unless something is said already; it may become WINNER."""
    if verdict != RUNNING and eprocess.winner[0] == NOBODY:
        eprocess.winner[0] = i
        eprocess.declared[0] = t - 1
        eprocess.verdict[0] = verdict
    elif verdict == WINNER and eprocess.winner[0] == i:
        eprocess.verdict[0] = WINNER


@kernel
def is_passed(eprocess: Any, i: int, j: int) -> bool:
    """Whether i has had enough evidence over j."""
    if eprocess.margin > 0.0:
        return bool(is_done(eprocess, i, j))
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
    return needed_of(eprocess, i, j, lacks_retired(eprocess, i))


@kernel
def lacks_retired(eprocess: Any, i: int) -> bool:
    """Whether i has not passed some retired arm."""
    if not eprocess.has_changed:
        return False
    if eprocess.margin > 0.0:
        return lacks_a_retired(eprocess, i, False)
    level = eprocess.level + late(eprocess.joined[i])
    for other in range(eprocess.joined.size):
        if other != i and not eprocess.present[other] and eprocess.best[i, other] < level:
            return True
    return False


@kernel
def needed_of(eprocess: Any, i: int, j: int, lacks: bool) -> float:
    """Return the log evidence over j that i needs; `lacks` is `lacks_retired` of i."""
    if eprocess.margin > 0.0:
        return needed_with_margin(eprocess, i, j, lacks)
    own = late(eprocess.joined[i])
    if lacks:
        return float(eprocess.level_over_present + own + late(eprocess.joined[j]))
    return float(eprocess.level + own)


@border_of(lambda eprocess, wanted: wanted.size // 200)
@kernel
def need_all(eprocess: Any, wanted: Floats) -> None:
    """Write down the log evidence that each arm needs over each other; infinite over itself."""
    for i in range(eprocess.joined.size):
        lacks = lacks_retired(eprocess, i)
        for j in range(eprocess.joined.size):
            wanted[i, j] = math.inf if i == j else needed_of(eprocess, i, j, lacks)


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

    What i needs over an opponent beyond the level is subtracted. The best is never below 0. With a
    margin it is the evidence for the end of the experiment.
    """
    least, lacks = math.inf, lacks_retired(eprocess, i)
    for j in range(eprocess.doubts.size):
        if least == 0.0 and not eprocess.has_changed:
            break
        if j != i and eprocess.present[j]:
            more = needed_of(eprocess, i, j, lacks) - eprocess.level
            best = end_evidence(eprocess, i, j) if eprocess.margin > 0.0 else eprocess.best[i, j]
            least = min(least, best - more)
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
