"""Attacks on the guarantee: ``python -m benchmarks attacks``.

The best arms are exactly tied, so that every declaration is false; each entry has 400 runs, and
the guarantee allows 5 %. `operations` has what people do to a running experiment: answers told line
by line from a file that is sorted by winner, an outage, pauses by somebody who sees the open duels,
arms that an operator who sees everything retires and adds. `policies` has other policies by coin,
heavy tails, and answers that never come, at a share that depends on the pair.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numba
import numpy as np

import duelay
import pages
from decide import ERROR, beside, tied
from duelay import delays
from duelay.ledger import age_to, clock_to, hear, record, with_room
from duelay.ledger.arms import change_arm
from duelay.ledger.evidence.winner_threshold import NOBODY
from duelay.policies.turn import pick

DAY = 200  # duels, one a second
AT_ONCE, NIGHTLY, HELD, BY_TELLING, PAUSED = range(5)
ATTACKS = {
    "told at once": AT_ONCE,
    "told every night, sorted by winner, with a look after each line": NIGHTLY,
    "told after an outage, sorted by winner, with event times and booking held": HELD,
    "asked or paused by whoever sees the open duels": PAUSED,
    "an outage, sorted by winner, by the time of telling and without a hold (not allowed)":
        BY_TELLING,
}  # fmt: skip
LAW = "never:0.3,geometric:0.05"


class Queue(NamedTuple):
    """Answers that are not told yet, and the clock."""

    first: Any  # (duels,): by duel
    second: Any
    event: Any  # (duels,): when the first arm's win is reported
    waiting: Any  # (duels,): numbers of duels, from 1, in the order of asking
    size: Any  # (1,)
    now: Any  # (1,)


def empty_queue(n: int) -> Queue:
    """Return a queue for n duels."""
    return Queue(
        np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64), np.zeros(n),
        np.zeros(n, dtype=np.int64), np.zeros(1, dtype=np.int64), np.zeros(1),
    )  # fmt: skip


@numba.njit(nogil=True)
def tell_due(ledger: Any, queue: Queue, t: int, arm: int, by_event: bool, looks: bool) -> None:
    """Tell what has happened by now, of one arm's wins or of all (-1); t - 1 duels are asked."""
    kept = 0
    for place in range(queue.size[0]):
        born = queue.waiting[place]
        i, j, event = queue.first[born - 1], queue.second[born - 1], queue.event[born - 1]
        if event > queue.now[0] or arm not in (-1, i):
            queue.waiting[kept] = born
            kept += 1
            continue
        clock_to(ledger, event if by_event else queue.now[0])
        hear(ledger, i, j, born, t)
        if looks:
            age_to(ledger, t)
    queue.size[0] = kept


@numba.njit(nogil=True)
def tempts(ledger: Any, queue: Queue, t: int) -> bool:
    """Whether the silence of the open duels would speak for the arm with the most evidence."""
    eprocess = ledger.assumed
    ahead, most = 0, -math.inf
    for i in range(eprocess.doubts.size):
        least = math.inf
        for j in range(eprocess.doubts.size):
            if j != i:
                least = min(least, eprocess.log_evidence[i, j])
        if least > most:
            ahead, most = i, least
    balance = 0
    for number in range(max(1, t - 60), t):
        i, j = queue.first[number - 1], queue.second[number - 1]
        balance += int(j == ahead) - int(i == ahead)
    return balance >= 6


@numba.njit(nogil=True)
def play(
    rule: Any, ledger: Any, queue: Queue, mu: Any, delay: Any, begin: int, end: int, attack: int,
    world_rng: Any, rng: Any,
) -> None:  # fmt: skip
    """Ask duels `begin` to `end`, one a second, and tell their answers as the attack says."""
    k = ledger.plays.shape[0]
    for t in range(begin, end + 1):
        is_out = attack in (HELD, BY_TELLING) and (t - 1) // DAY % 2 == 1  # every second day
        queue.now[0] += 1.0
        if attack == AT_ONCE or attack == PAUSED or (attack > NIGHTLY and not is_out):
            is_back = attack in (HELD, BY_TELLING) and (t - 1) % (2 * DAY) == 0
            for arm in range(k if is_back else 0):  # the answers of one arm after another's
                tell_due(ledger, queue, t, arm, attack == HELD, attack == BY_TELLING)
                queue.now[0] += DAY / (k - 1)
            tell_due(ledger, queue, t, -1, False, attack != HELD)
        elif attack == NIGHTLY and (t - 1) % DAY == 0:
            for arm in range(k):
                tell_due(ledger, queue, t, arm, False, True)
        if attack == PAUSED and tempts(ledger, queue, t):
            for _ in range(120):
                queue.now[0] += 1.0
                tell_due(ledger, queue, t, -1, False, True)
                clock_to(ledger, queue.now[0])
                age_to(ledger, t)
        clock_to(ledger, queue.now[0])
        if not (is_out and attack == HELD):
            age_to(ledger, t)
        if ledger.assumed.winner[0] != NOBODY:
            return
        i, j = pick(rule, ledger, t, rng)
        record(ledger, i, j, t)
        queue.first[t - 1] = i
        queue.second[t - 1] = j
        queue.event[t - 1] = queue.now[0] + delay[t - 1]
        if world_rng.random() < mu[i, j] and delay[t - 1] < math.inf:
            queue.waiting[queue.size[0]] = t
            queue.size[0] += 1


def start(k: int, n: int) -> tuple[Any, Any, Queue]:
    """Return the rule, the ledger and the queue of `Decide` by the clock, for n duels."""
    policy = duelay.Decide(wait=f"{2 * DAY}s")
    return policy.rule(k), with_room(policy.ledger(k, by_clock=True), n + 1), empty_queue(n)


def drawn(seed: int, run: int, n: int) -> tuple[Any, Any, Any]:
    """Return the delays of a run and its generators."""
    world_rng, rng = duelay.simulation.streams(seed, run)
    return delays.parse(LAW).sample(n, seed=world_rng), world_rng, rng


def attacked(attack: int, k: int, runs: int, n: int) -> float:
    """Return the share of runs with a false declaration; two arms are tied, others lose to both."""
    false, mu = 0, tied(k).matrix
    for run in range(runs):
        (rule, ledger, queue), (delay, *rngs) = start(k, n), drawn(4, run, n)
        play(rule, ledger, queue, mu, delay, 1, n, attack, *rngs)
        false += ledger.assumed.winner[0] != NOBODY
    return false / runs


def operated(k: int, adds: bool, runs: int, n: int, parts: int = 8) -> float:
    """Return the same where an operator who sees everything retires the luckiest arm's rivals.

    All arms are tied. The operator keeps those over which that arm has much evidence. With `adds`,
    arms join until four are present.
    """
    false = 0
    for run in range(runs):
        (rule, ledger, queue), (delay, *rngs) = start(k, n), drawn(5, run, n)
        for part in range(parts):
            bounds = 1 + part * n // parts, (part + 1) * n // parts
            mu = np.full(ledger.plays.shape, 0.5)
            play(rule, ledger, queue, mu, delay, *bounds, AT_ONCE, *rngs)
            if ledger.assumed.winner[0] != NOBODY:
                false += 1
                break
            ledger = operate(ledger, adds)
    return false / runs


def operate(ledger: Any, adds: bool) -> Any:
    """Retire what stands in the way of the arm with the most evidence over another."""
    eprocess = ledger.assumed
    present = np.flatnonzero(eprocess.present)
    among = eprocess.log_evidence[np.ix_(present, present)].copy()
    np.fill_diagonal(among, -np.inf)
    best, rival = (present[place] for place in np.unravel_index(among.argmax(), among.shape))
    for arm in present:
        is_easy = eprocess.log_evidence[best, arm] > 0.5 * eprocess.log_evidence[best, rival]
        if arm not in (best, rival) and not is_easy:
            ledger = change_arm(ledger, int(arm), joins=False, error=ERROR)
    while adds and ledger.assumed.present.sum() < 4:
        ledger = change_arm(ledger, len(ledger.plays), joins=True, error=ERROR)
    return ledger


def operations(runs: int, n: int) -> pages.Part:
    """Make the table of what people do to a running experiment."""
    rows = []
    for name, attack in ATTACKS.items():
        shares = [attacked(attack, k, runs, n) for k in (2, 4, 12)]
        rows.append([name, *(f"{100 * share:.1f} %" for share in shares)])
        print(*rows[-1], flush=True)
    for name, adds in (("arms retired by an operator who sees everything", False),
                       ("arms retired and added by such an operator", True)):  # fmt: skip
        shares = [operated(k, adds, runs, n) for k in (4, 12)]
        rows.append([name, "-", *(f"{100 * share:.1f} %" for share in shares)])
        print(*rows[-1], flush=True)
    return pages.table(["`Decide`", "2 arms", "4 arms", "12 arms"], rows)


def policies(runs: int, n: int) -> pages.Part:
    """Make the table of policies, under heavy tails and never-shares that depend on the pair."""

    def by_pair(k: int) -> delays.ByPair:
        return delays.ByPair.of(
            k, lambda i, j: delays.Never(0.15 * ((i + j) % 5), delays.Geometric(0.05))
        )

    chosen = {
        "Decide": duelay.Decide(),
        "double Thompson sampling by coin": duelay.DoubleThompson(),
        "RMED by coin": duelay.RMED(),
    }
    laws = {
        "log-normal, sigma 2.5": lambda k: delays.parse("log-normal:20,2.5"),
        "0 to 60 % never answer, by pair": by_pair,
    }
    rows = []
    for name, policy in chosen.items():
        for law_name, law in laws.items():
            shares = [beside(policy, tied(k), law(k), 1, runs, n)[0] for k in (2, 12)]
            rows.append([name, law_name, *(f"{100 * share:.1f} %" for share in shares)])
            print(*rows[-1], flush=True)
    return pages.table(["policy, two arms tied", "delay", "2 arms", "12 arms"], rows)


def main() -> None:
    """Make the tables that are asked for."""
    makers = {
        "operations": lambda part: operations(400 // part, 2000),
        "policies": lambda part: policies(400 // part, 3000),
    }
    pages.make_tables("attacks", makers)


if __name__ == "__main__":
    main()
