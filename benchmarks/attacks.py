"""Attacks on the guarantee: ``python -m benchmarks attacks``.

The best arms are exactly tied, so that every declaration is false; each entry has 1000 runs, and
the guarantee allows 5 %. `operations` has what people do to a running experiment: answers told line
by line from a file that is sorted by winner, an outage, pauses by somebody who sees the open duels,
two processes, arms that an operator who sees everything retires and adds. `policies` has other
policies by coin, heavy tails, and answers that never come, at a share that depends on the pair.
`live` does such things to live experiments: see `live_attacks`.

What is in the folder ``attacks/`` already is not measured again.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np

import duelay
import live_attacks
import pages
from decide import ERROR, beside, tied
from duelay import delays
from duelay.ledger import age_to, clock_to, hear, record, with_room
from duelay.ledger.arms import change_arm
from duelay.ledger.display_order import arrange
from duelay.ledger.evidence.winner_threshold import NOBODY
from duelay.policies.turn import select

RESULTS = Path("attacks")
DAY = 200  # duels, one a second
STALE = 50  # duels, on average, until one of two processes looks at the evidence again
ARMS = (2, 3, 6, 12)
LAW = "never:0.3,geometric:0.05"


class Attack(NamedTuple):
    """What is done to an experiment."""

    nightly: bool = False  # answers are told once a day, sorted by winner, and looked at one by one
    outage: bool = False  # every second day no answer is told; then they are, sorted by winner
    lasts: bool = False  # to tell these takes a day, while duels become due
    by_event: bool = False  # these are told with their times
    held: bool = False  # no duel is booked until all of them are told
    lag: float = 0.0  # seconds by which duels are booked later
    pauses: bool = False  # an operator who sees the open duels asks, or waits
    processes: int = 1


ATTACKS = {
    "told at once": Attack(),
    "told every night, sorted by winner, with a look after each line": Attack(nightly=True),
    "told after an outage, sorted by winner, with event times": Attack(outage=True, by_event=True),
    "the same, in the course of a day, with booking held": Attack(
        outage=True, lasts=True, by_event=True, held=True
    ),
    "the same with a `lag` instead": Attack(
        outage=True, lasts=True, by_event=True, lag=2.0 * DAY
    ),
    "asked or paused by whoever sees the open duels": Attack(pauses=True),
    "two processes, each choosing by evidence of some 50 duels ago": Attack(processes=2),
    "an outage, sorted by winner, by the time of telling and without a hold (not allowed)": Attack(
        outage=True, lasts=True
    ),
}  # fmt: skip
OPERATORS = {
    "arms retired by an operator who sees everything": (False, False),
    "arms retired and added by such an operator": (True, False),
    "all arms but the luckiest two retired, and others added": (True, True),
}


class Queue(NamedTuple):
    """Answers that are not told yet, and the clock."""

    first: Any  # (duels,): by duel
    second: Any
    event: Any  # (duels,): when the first arm's win is reported
    waiting: Any  # (duels,): numbers of duels, from 1, in the order of asking
    size: Any  # (1,)
    now: Any  # (1,)
    pair: Any  # (2, 2): the arms that each of two processes asks


def empty_queue(n: int) -> Queue:
    """Return a queue for n duels."""
    return Queue(
        np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64), np.zeros(n),
        np.zeros(n, dtype=np.int64), np.zeros(1, dtype=np.int64), np.zeros(1),
        np.zeros((2, 2), dtype=np.int64),
    )  # fmt: skip


@numba.njit(nogil=True)
def settle(ledger: Any, queue: Queue, t: int, lag: float) -> None:
    """Book what is due now, and look; t - 1 duels are asked."""
    clock_to(ledger, queue.now[0])
    ledger.assumed.now[0] = queue.now[0] - lag
    age_to(ledger, t)
    ledger.assumed.now[0] = queue.now[0]


@numba.njit(nogil=True)
def tell_due(
    ledger: Any, queue: Queue, t: int, arm: int, by_event: bool, looks: bool, lag: float
) -> None:
    """Tell what has happened by now, of one arm's wins or of all (-1)."""
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
            settle(ledger, queue, t, lag)
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
def choose(
    rule: Any, ledger: Any, queue: Queue, t: int, processes: int, world_rng: Any, rng: Any
) -> Any:
    """Choose the arms of a duel and their order."""
    who = 0 if processes == 1 else int(world_rng.random() < 0.5)
    if processes == 1 or t == 1 or world_rng.random() < 2.0 / STALE:
        for place in range(processes if t == 1 else 1):
            i, j = select(rule, ledger, t, rng)
            queue.pair[(who + place) % 2, 0] = i
            queue.pair[(who + place) % 2, 1] = j
    return arrange(ledger.order, queue.pair[who, 0], queue.pair[who, 1], rng)


@numba.njit(nogil=True)
def play(
    rule: Any, ledger: Any, queue: Queue, mu: Any, delay: Any, begin: int, end: int,
    attack: Attack, world_rng: Any, rng: Any,
) -> None:  # fmt: skip
    """Ask duels `begin` to `end`, one a second, and tell their answers as the attack says."""
    k, lag = ledger.plays.shape[0], attack.lag
    for t in range(begin, end + 1):
        is_out = attack.outage and (t - 1) // DAY % 2 == 1
        is_night = attack.nightly and (t - 1) % DAY == 0
        queue.now[0] += 1.0
        if is_night or (attack.outage and (t - 1) % (2 * DAY) == 0):
            for arm in range(k):  # the answers of one arm after another's
                is_dated = attack.outage and attack.by_event
                tell_due(ledger, queue, t, arm, is_dated, not attack.held, lag)
                if attack.lasts and arm < k - 1:
                    queue.now[0] += DAY / (k - 1)
        if not is_out and not attack.nightly:
            tell_due(ledger, queue, t, -1, False, True, lag)
        if attack.pauses and tempts(ledger, queue, t):
            for _ in range(12):  # two minutes
                queue.now[0] += 10.0
                tell_due(ledger, queue, t, -1, False, True, lag)
                settle(ledger, queue, t, lag)
        clock_to(ledger, queue.now[0])
        if not (is_out and attack.held):
            settle(ledger, queue, t, lag)
        if ledger.assumed.winner[0] != NOBODY:
            return
        i, j = choose(rule, ledger, queue, t, attack.processes, world_rng, rng)
        record(ledger, i, j, t)
        queue.first[t - 1] = i
        queue.second[t - 1] = j
        queue.event[t - 1] = queue.now[0] + delay[t - 1]
        if world_rng.random() < mu[i, j] and delay[t - 1] < math.inf:
            queue.waiting[queue.size[0]] = t
            queue.size[0] += 1


def start(k: int, n: int) -> tuple[Any, Any, Queue]:
    """Return the rule, the ledger and the queue of `Decide` by the clock, for n duels."""
    policy = duelay.Decide(wait=f"{2 * DAY}s", self_duels=False)
    return policy.rule(k), with_room(policy.ledger(k, by_clock=True), n + 1), empty_queue(n)


def drawn(seed: int, run: int, n: int) -> tuple[Any, Any, Any]:
    """Return the delays of a run and its generators."""
    world_rng, rng = duelay.simulation.streams(seed, run)
    return law().sample(n, seed=world_rng), world_rng, rng


@functools.cache
def law() -> Any:
    """Return the law of the delays."""
    return delays.parse(LAW)


def attacked(attack: Attack, *, k: int, runs: int, n: int) -> float:
    """Return the share of runs with a false declaration; two arms are tied, others lose to both."""
    false, mu = 0, tied(k).matrix
    for run in range(runs):
        (rule, ledger, queue), (delay, *rngs) = start(k, n), drawn(4, run, n)
        play(rule, ledger, queue, mu, delay, 1, n, attack, *rngs)
        false += ledger.assumed.winner[0] != NOBODY
    return false / runs


def operated(how: tuple[bool, bool], *, k: int, runs: int, n: int, parts: int = 8) -> float:
    """Return the same where an operator who sees everything retires the luckiest arm's rivals.

    All arms are tied. `how` says whether arms join, until four are present, and whether only the
    rival stays over which that arm has the most evidence; else all stay over which it has much.
    """
    false = 0
    for run in range(runs):
        (rule, ledger, queue), (delay, *rngs) = start(k, n), drawn(5, run, n)
        for part in range(parts):
            bounds = 1 + part * n // parts, (part + 1) * n // parts
            mu = np.full(ledger.plays.shape, 0.5)
            play(rule, ledger, queue, mu, delay, *bounds, Attack(), *rngs)
            if ledger.assumed.winner[0] != NOBODY:
                false += 1
                break
            ledger = operate(ledger, *how)
    return false / runs


def operate(ledger: Any, adds: bool, keeps_two: bool) -> Any:
    """Retire what stands in the way of the arm with the most evidence over another."""
    eprocess = ledger.assumed
    present = np.flatnonzero(eprocess.present)
    among = eprocess.log_evidence[np.ix_(present, present)].copy()
    np.fill_diagonal(among, -np.inf)
    best, rival = (present[place] for place in np.unravel_index(among.argmax(), among.shape))
    for arm in present:
        is_easy = eprocess.log_evidence[best, arm] > 0.5 * eprocess.log_evidence[best, rival]
        if arm not in (best, rival) and (keeps_two or not is_easy):
            ledger = change_arm(ledger, int(arm), joins=False, error=ERROR)
    while adds and ledger.assumed.present.sum() < 4:
        ledger = change_arm(ledger, len(ledger.plays), joins=True, error=ERROR)
    return ledger


class Measured:
    """The shares of false declarations that are measured, in a file."""

    def __init__(self, path: Path) -> None:
        self._path, self._known = path, {}
        if path.exists():
            self._known = dict(json.loads(line) for line in path.read_text().splitlines())

    def share(self, runs: int, words: tuple[Any, ...], measure: Callable[..., float]) -> str:
        """Return a share in words, measured now unless it is known; the last word is K."""
        name = " | ".join(map(str, (runs, *words)))
        if name not in self._known:
            self._known[name] = float(measure(k=words[-1]))
            with self._path.open("a") as file:
                file.write(json.dumps([name, self._known[name]]) + "\n")
        print(name, self._known[name], flush=True)
        return f"{100 * self._known[name]:.1f} %"


def operations(runs: int, n: int, measured: Measured) -> pages.Part:
    """Make the table of what people do to a running experiment."""
    rows = []
    for name, attack in ATTACKS.items():
        each = functools.partial(attacked, attack, runs=runs, n=n)
        rows.append([name, *(measured.share(runs, (name, k), each) for k in ARMS)])
    for name, how in OPERATORS.items():
        each = functools.partial(operated, how, runs=runs, n=n)
        rows.append([name, "-", *(measured.share(runs, (name, k), each) for k in ARMS[1:])])
    return pages.table(["`Decide`", *(f"{k} arms" for k in ARMS)], rows)


def beside_law(policy: Any, law: Callable[[int], Any], runs: int, n: int, *, k: int) -> float:
    """Return the share of runs of a policy in which its evidence declares one of two tied arms."""
    return float(beside(policy, tied(k), law(k), 1, runs, n)[0])


def policies(runs: int, n: int, measured: Measured) -> pages.Part:
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
            each = functools.partial(beside_law, policy, law, runs, n)
            cells = [measured.share(runs, (name, law_name, k), each) for k in ARMS]
            rows.append([name, law_name, *cells])
    return pages.table(["policy, two arms tied", "delay", *(f"{k} arms" for k in ARMS)], rows)


def main() -> None:
    """Make the tables that are asked for."""
    RESULTS.mkdir(exist_ok=True)
    measured = Measured(RESULTS / "shares.jsonl")
    makers = {
        "operations": lambda part: operations(1000 // part, 2000, measured),
        "policies": lambda part: policies(1000 // part, 3000, measured),
        "live": lambda part: live_attacks.table(part, RESULTS / "live.jsonl"),
    }
    pages.make_tables("attacks", makers)


if __name__ == "__main__":
    main()
