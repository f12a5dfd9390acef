"""Bets on the coin: evidence that needs to know nothing about the delays.

A fair coin decides who of i and j is shown first, and the delay does not depend on who won. Then
each conversion heard on the pair is i's with probability mu_ij, whatever the delay law. And a duel
that is still silent at an age W, fixed before, had i second with probability
(1 - F mu_ji) / (2 - F), F = tau(W): one half where the two are equal, more where i is better. So
at mu_ij = 1/2 bets on conversions are fair, and so are bets on silence. The evidence of i over j is
what a bettor on i has made of 1:

    E_ij = sum over g of weight_g times the product of
           1 + 2 g for a conversion of i,            1 - 2 g for one of j,
           1 + 2 kappa g for silence with i second,  1 - 2 kappa g with i first,

with kappa = F^ / (2 - F^) and F^ an estimate of F, fixed before. Where mu_ij <= 1/2, E_ij is a
non-negative supermartingale. So it ever reaches 1 / error with probability `error` at most (Ville's
inequality); docs/theory.md has the proof.

A duel is settled once: by its conversion, or by silence at age W. The order of a
duel is not read before it is settled: a choice that read it would reveal the coin. The
evidence is not read before all answers of a tick are recorded.

With votes there is no silence to bet on. A vote for i counts 1 + 2 g, a vote for j 1 - 2 g, a tie
1. Several votes of one visitor count once: with x their mean for i, 1 + 2 g (2 x - 1).

Where a delay law is told, silence is a bet at every age, and no coin is needed: see
`duelay.ledger.evidence.known_law`.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from duelay._core.arrays import Floats, Integers
from duelay._core.jit.decorators import kernel
from duelay.delays.delay import Delay
from duelay.ledger.delay_models.base import (
    FOREVER,
    advance,
    convert,
    enter,
    evidence,
    expected,
    set_clock,
    set_leader,
    settles,
    vote,
    widen_rings,
)
from duelay.ledger.evidence.known_law import (
    KnownLawEvidence,
    age_booked,
    kappa_at,
    last_age,
    start_known_law,
    start_known_law_in_time,
)
from duelay.ledger.evidence.silence import fill_silent, fix_kappa, patience
from duelay.ledger.evidence.stopping import NOBODY, look, touch

GAPS = np.array([0.01, 0.02, 0.035, 0.055, 0.08, 0.11, 0.15, 0.2, 0.27, 0.35, 0.45])
_SCALE = 0.1  # of the weight of a gap, exp(-g^2 / (2 * 0.1^2))
_MAX_WAIT = 1 << 16  # ticks: W is at most this
_NONE, _FIRST_LED, _SECOND_LED, _CONVERTED = 0, 1, 2, 3
ROOM = 1024  # places for unsettled duels at the start, where time is in seconds
PATH = 256  # moments of the past that are kept, at the most


class EProcess(NamedTuple):
    """The evidence of every ordered pair, the duels that are not settled, and who is declared."""

    by_clock: bool  # whether time is in seconds; else it is in ticks, a duel each
    window: float  # W is at most this
    now: Floats  # (1,): the time
    told: KnownLawEvidence  # what silence is worth by age, where a law is told
    is_vote: bool  # whether both outcomes are told
    winner_exists: bool  # whether a Condorcet winner is taken for granted
    level: float  # log of the evidence that the first arms need
    joined: Integers  # (K,): 0 for the first arms, n for the n-th that joined later
    present: NDArray[np.bool_]  # (K,): whether an arm has not been retired
    has_changed: bool  # whether an arm has ever come or gone
    gaps: Floats  # (G,): g
    log_weight: Floats  # (G,): of each g
    won: Floats  # (G,): log (1 + 2 g)
    lost: Floats  # (G,): log (1 - 2 g)
    silent_won: Floats  # (G,): log (1 + 2 kappa g)
    silent_lost: Floats  # (G,): log (1 - 2 kappa g)
    kappa: Floats  # (1,): what a silence is worth, in conversions
    refit: Integers  # (1,): the number of matured duels at which kappa is fixed anew
    wealth: Floats  # (K, K, G): log of what a bettor on i over j has made, by g
    log_evidence: Floats  # (K, K): log E_ij at the last look
    best: Floats  # (K, K): the largest log E_ij at any look
    against: Floats  # (K,): where a winner exists: the most log evidence that j is not the winner
    wins: Floats  # (K, K): conversions of i over j in bets, a tied vote as one half
    seen: Floats  # (K, K): `wins` at the last look
    lead: Floats  # (K, K): conversions of i less those of j, a silence counting kappa
    n: Floats  # (K, K): all that is settled, in conversions: a silence counts kappa^2
    doubt: Floats  # (K, K): N d(mu^, 1/2) where j seems to beat i, else 0
    doubts: Floats  # (K,): the sum of `doubt` over the opponents j
    n_open: Integers  # (K, K): duels of i and j that are not settled, in either order
    touched: Integers  # (K * K,): the pairs with news since the last look
    n_touched: Integers  # (1,)
    is_touched: NDArray[np.bool_]  # (K, K)
    born: Floats  # (R,): when each duel was asked, by its number modulo R; numbers are from 1 on
    first: NDArray[np.int32]  # (R,): its arms
    second: NDArray[np.int32]  # (R,)
    state: NDArray[np.int8]  # (R,): whether it is open, and who led
    oldest: Integers  # (1,): the oldest duel that has not reached age W
    matured: Integers  # (1,): duels of two arms that have reached age W ...
    answered: Integers  # (1,): ... and those of them that had converted by then
    n_heard: Integers  # (1,): conversions in bets
    delays: Floats  # (1,): the sum of their delays
    leader: Integers  # (1,): who leads the duel of this tick, for a rule to write
    winner: Integers  # (1,): who is declared
    declared: Integers  # (1,): how many duels had been asked when the winner was declared
    looked: Integers  # (1,): the duels asked at the last look
    path: Floats  # (PATH, K): each arm's log evidence in the past
    path_tick: Integers  # (PATH,): the duels asked by then
    path_size: Integers  # (1,)
    stride: Integers  # (1,): ticks between two moments that are kept


def evidence_weights() -> Floats:
    """Return weight_g, (G,): exp(-g^2 / (2 * 0.1^2)) times the spacing of the gaps, scaled to 1."""
    weight = np.exp(-(GAPS**2) / (2 * _SCALE**2)) * np.gradient(GAPS)
    return np.asarray(weight / weight.sum())


def start_eprocess(
    error: float,
    window: float | None,
    n_arms: int,
    *,
    winner_exists: bool = False,
    delay: Delay | None = None,
    by_clock: bool = False,
) -> EProcess:
    """Return the state before the first duel; `delay` is the law, where it is told.

    A winner is declared once its evidence over each opponent has reached K / error; by the clock,
    where arms may join, (K + 1) / error (`duelay.ledger.evidence.stopping`). Where a winner exists,
    an arm is rejected once all evidence against it together has reached 1 / error.
    """
    longest = float(_MAX_WAIT if window is None else min(int(window), _MAX_WAIT))
    if by_clock:
        longest = math.inf if window is None else float(window)
    if by_clock and delay is not None:
        told = start_known_law_in_time(delay, longest, n_arms, GAPS)
    else:
        told = start_known_law(delay, 1 if by_clock else int(longest), n_arms, GAPS)
    if told.is_told:
        longest = last_age(told)
    size = ROOM - 1 if by_clock else int(longest)
    pairs, one = (n_arms, n_arms), np.zeros(1, dtype=np.int64)
    return EProcess(
        by_clock=by_clock,
        window=longest,
        now=np.full(1, -math.inf),
        told=told,
        is_vote=False,
        winner_exists=winner_exists,
        level=math.log((1 if winner_exists else n_arms + by_clock) / error),
        joined=np.zeros(n_arms, dtype=np.int64),
        present=np.ones(n_arms, dtype=np.bool_),
        has_changed=False,
        gaps=GAPS,
        log_weight=np.log(evidence_weights()),
        won=np.log1p(2 * GAPS),
        lost=np.log1p(-2 * GAPS),
        silent_won=np.zeros_like(GAPS),
        silent_lost=np.zeros_like(GAPS),
        kappa=np.zeros(1),
        refit=one.copy(),
        wealth=np.zeros((*pairs, GAPS.size)),
        log_evidence=np.zeros(pairs),
        best=np.zeros(pairs),
        against=np.zeros(n_arms),
        wins=np.zeros(pairs),
        seen=np.zeros(pairs),
        lead=np.zeros(pairs),
        n=np.zeros(pairs),
        doubt=np.zeros(pairs),
        doubts=np.zeros(n_arms),
        n_open=np.zeros(pairs, dtype=np.int64),
        touched=np.zeros(n_arms * n_arms, dtype=np.int64),
        n_touched=one.copy(),
        is_touched=np.zeros(pairs, dtype=np.bool_),
        born=np.zeros(size + 1),
        first=np.zeros(size + 1, dtype=np.int32),
        second=np.zeros(size + 1, dtype=np.int32),
        state=np.zeros(size + 1, dtype=np.int8),
        oldest=one + 1,
        matured=one.copy(),
        answered=one.copy(),
        n_heard=one.copy(),
        delays=np.zeros(1),
        leader=one.copy(),
        winner=one + NOBODY,
        declared=one.copy(),
        looked=one.copy(),
        path=np.zeros((PATH, n_arms)),
        path_tick=np.zeros(PATH, dtype=np.int64),
        path_size=one.copy(),
        stride=one + 1,
    )


@kernel
def bet(
    eprocess: Any, i: int, j: int, size: float, won: Floats, lost: Floats, led: int, sign: float
) -> None:
    """Settle a bet of `size` in favour of i over j; `led` is the arm that led the duel.

    Bettors on either arm take part. Where a winner exists, only those on the arm that led do.
    `sign` is 1, or -1 to take a bet back.
    """
    for place in range(eprocess.gaps.size):
        if not eprocess.winner_exists or led == i:
            eprocess.wealth[i, j, place] += sign * won[place]
        if not eprocess.winner_exists or led == j:
            eprocess.wealth[j, i, place] += sign * lost[place]
    eprocess.lead[i, j] += sign * size
    eprocess.lead[j, i] -= sign * size
    eprocess.n[i, j] += sign * size * size
    eprocess.n[j, i] += sign * size * size
    touch(eprocess, i, j)


@kernel
def bet_on_mean(eprocess: Any, i: int, j: int, size: float, led: int) -> None:
    """Settle a tie (size 0), or a mean of several votes: a smaller bet, and still one answer."""
    for place in range(eprocess.gaps.size):
        if not eprocess.winner_exists or led == i:
            eprocess.wealth[i, j, place] += math.log1p(2.0 * size * eprocess.gaps[place])
        if not eprocess.winner_exists or led == j:
            eprocess.wealth[j, i, place] += math.log1p(-2.0 * size * eprocess.gaps[place])
    eprocess.lead[i, j] += size
    eprocess.lead[j, i] -= size
    eprocess.n[i, j] += 1.0
    eprocess.n[j, i] += 1.0
    touch(eprocess, i, j)


@kernel
def bet_on_silence(eprocess: Any, slot: int, age: float, sign: float) -> None:
    """Bet, or take back, what the silence of a duel is worth at an age under the law told."""
    told, i, j = eprocess.told, eprocess.first[slot], eprocess.second[slot]
    row, led = told.law[i, j], leader_of(i, j, eprocess.state[slot])
    if eprocess.by_clock:
        kappa = kappa_at(told, row, age)
        fill_silent(eprocess, kappa)
        bet(eprocess, j, i, kappa, eprocess.silent_won, eprocess.silent_lost, led, sign)
    else:
        tick = int(age)
        kappa, won, lost = told.kappa[row, tick], told.won[row, tick], told.lost[row, tick]
        bet(eprocess, j, i, kappa, won, lost, led, sign)


@kernel
def refresh(eprocess: Any, t: int) -> None:
    """Bring the silence of every duel open before tick t up to now, under the law told."""
    for number in range(eprocess.oldest[0], t):
        if is_open(eprocess.oldest[0], eprocess.state, number):
            slot = number % eprocess.state.size
            born = eprocess.born[slot]
            bet_on_silence(eprocess, slot, age_booked(eprocess.told, born), -1.0)
            bet_on_silence(eprocess, slot, eprocess.now[0] - born, 1.0)
    eprocess.told.fresh[0] = eprocess.now[0]


@kernel
def bet_on_answer(eprocess: Any, i: int, j: int, first_won: float, led: int) -> None:
    """Bet on the answer to a duel of i, first, and j: 1 for i, 0 for j, between them a mean."""
    eprocess.wins[i, j] += first_won
    eprocess.wins[j, i] += 1.0 - first_won
    if first_won == 1.0:
        bet(eprocess, i, j, 1.0, eprocess.won, eprocess.lost, led, 1.0)
    elif first_won == 0.0:
        bet(eprocess, j, i, 1.0, eprocess.won, eprocess.lost, led, 1.0)
    else:
        bet_on_mean(eprocess, i, j, 2.0 * first_won - 1.0, led)


@kernel
def settle_answer(eprocess: Any, i: int, j: int, first_won: float, led: int, delay: float) -> None:
    """Settle an open duel of i, first, and j by its answer, which took `delay`."""
    eprocess.n_heard[0] += 1
    eprocess.delays[0] += delay
    leave_open(eprocess.n_open, i, j, -1)
    bet_on_answer(eprocess, i, j, first_won, led)


@kernel
def settle_silence(eprocess: Any, i: int, j: int, led: int) -> None:
    """Settle an open duel of i, first, and j by its silence at age W, which speaks for j."""
    leave_open(eprocess.n_open, i, j, -1)
    if not eprocess.is_vote:
        bet(eprocess, j, i, eprocess.kappa[0], eprocess.silent_won, eprocess.silent_lost, led, 1.0)


@kernel
def mature(eprocess: Any, is_answered: bool) -> None:
    """Count a duel of two arms that has reached age W; now and then, fix kappa anew."""
    eprocess.matured[0] += 1
    eprocess.answered[0] += int(is_answered)
    if eprocess.matured[0] >= eprocess.refit[0]:
        fix_kappa(eprocess)


@kernel
def leave_open(n_open: Integers, i: int, j: int, n: int) -> None:
    """Count n more open duels of the pair."""
    n_open[i, j] += n
    n_open[j, i] += n


@kernel
def is_open(oldest: int, state: NDArray[np.int8], born: int) -> bool:
    """Whether the duel with number `born` is not settled yet."""
    if born < oldest:
        return False
    return bool(state[born % state.size] in (_FIRST_LED, _SECOND_LED))


@kernel
def leader_of(i: int, j: int, state: int) -> Any:
    """Who led an open duel of i, first, and j."""
    return i if state == _FIRST_LED else j


@kernel
def delay_of(eprocess: Any, born: int, t: int) -> float:
    """How long an open duel's answer took."""
    if eprocess.by_clock:
        return float(eprocess.now[0] - eprocess.born[born % eprocess.state.size])
    return float(t - born)


def with_room(eprocess: EProcess, t: int) -> EProcess:
    """Return the same with room for the duel with number t, where time is in seconds."""
    size = eprocess.state.size
    if not eprocess.by_clock or t - int(eprocess.oldest[0]) < size:
        return eprocess
    names = ("born", "first", "second", "state")
    rings = {name: getattr(eprocess, name) for name in names}
    return eprocess._replace(**widen_rings(rings, int(eprocess.oldest[0]), t))


@set_clock.register(EProcess)
def _set_clock(assumed: EProcess, now: float) -> None:
    if assumed.by_clock and now > assumed.now[0]:
        assumed.now[0] = now


@set_leader.register(EProcess)
def _set_leader(assumed: EProcess, arm: int) -> None:
    assumed.leader[0] = arm


@enter.register(EProcess)
def _enter(assumed: EProcess, i: int, j: int, t: int) -> None:
    slot = t % assumed.state.size
    assumed.born[slot] = assumed.now[0]
    assumed.first[slot] = i
    assumed.second[slot] = j
    assumed.state[slot] = _NONE
    if i != j:
        assumed.state[slot] = _SECOND_LED if assumed.leader[0] == j else _FIRST_LED
        leave_open(assumed.n_open, i, j, 1)


@convert.register(EProcess)
def _convert(assumed: EProcess, born: int, t: int) -> None:
    if not is_open(assumed.oldest[0], assumed.state, born):
        return  # a self-duel, or settled by its silence: it stays in the ledger alone
    slot = born % assumed.state.size
    i, j = assumed.first[slot], assumed.second[slot]
    led = leader_of(i, j, assumed.state[slot])
    if assumed.told.is_told:
        bet_on_silence(assumed, slot, age_booked(assumed.told, assumed.born[slot]), -1.0)
    assumed.state[slot] = _CONVERTED
    settle_answer(assumed, i, j, 1.0, led, delay_of(assumed, born, t))


@vote.register(EProcess)
def _vote(assumed: EProcess, i: int, j: int, first_won: float, born: int, t: int) -> None:
    if i == j:
        return
    if is_open(assumed.oldest[0], assumed.state, born):
        slot = born % assumed.state.size
        led = leader_of(i, j, assumed.state[slot])
        assumed.state[slot] = _CONVERTED
        settle_answer(assumed, i, j, first_won, led, delay_of(assumed, born, t))
    elif not assumed.winner_exists:  # where one exists, the leader matters, and it is forgotten
        bet_on_answer(assumed, i, j, first_won, NOBODY)


@advance.register(EProcess)
def _advance(assumed: EProcess, t: int) -> None:
    if not assumed.by_clock:
        assumed.now[0] = t
    told, last = assumed.told, assumed.now[0] - patience(assumed)
    while assumed.oldest[0] < t:
        slot = assumed.oldest[0] % assumed.state.size
        if assumed.born[slot] > last:
            break
        state = assumed.state[slot]
        if state in (_FIRST_LED, _SECOND_LED):
            i, j = assumed.first[slot], assumed.second[slot]
            led = leader_of(i, j, state)
            if told.is_told:  # silence speaks for the second
                leave_open(assumed.n_open, i, j, -1)
                bet_on_silence(assumed, slot, age_booked(told, assumed.born[slot]), -1.0)
                bet_on_silence(assumed, slot, last_age(told), 1.0)
            else:
                settle_silence(assumed, i, j, led)
        if state != _NONE:
            mature(assumed, state == _CONVERTED)
        assumed.state[slot] = _NONE
        assumed.oldest[0] += 1
    if told.is_told:
        if assumed.now[0] < told.fresh[0] + told.period:
            return  # nobody looks before all silences are booked up to the same moment
        refresh(assumed, t)
    look(assumed, t)


@evidence.register(EProcess)
def _evidence(assumed: EProcess, plays: Integers, conversions: Integers, i: int, j: int) -> Any:
    """N_ij and N~_ij, both the evidence counted in conversions, and S_ij, i's part of it.

    A silence tells kappa of a conversion and counts kappa^2, so that mu^ = S / N is consistent if
    F^ is right: E[lead] = (2 mu - 1) N.
    """
    n = assumed.n[i, j]
    return n, n, 0.5 * (n + assumed.lead[i, j])


@expected.register(EProcess)
def _expected(assumed: EProcess, plays: Integers, i: int, j: int) -> float:
    return 0.5 * float(assumed.n[i, j])


@settles.register(EProcess)
def _settles(assumed: EProcess) -> int:
    return FOREVER if assumed.by_clock else int(assumed.window)
