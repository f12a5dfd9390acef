"""Bets on the coin: evidence that needs to know nothing about the delays.

A fair coin decides who of i and j is shown first, and the delay does not depend on who won. When a
duel is asked, it gets an age W_s and a stake kappa_s. Once it has reached age W_s, it is *booked*:
as a conversion if it was heard by that age, otherwise as a silence. Duels are booked in the order
in which they were asked. With F = tau(W_s), a conversion is i's with probability mu_ij, and after
a silence i was second with probability (1 - F mu_ji) / (2 - F): one half where the two are equal,
more where i is better. So at mu_ij = 1/2 bets on both are fair. The evidence of i over j is what a
bettor on i has made of 1:

    E_ij = sum over g of weight_g times the product of
           1 + 2 g for a conversion of i,              1 - 2 g for one of j,
           1 + 2 kappa_s g for silence with i second,  1 - 2 kappa_s g with i first,

with kappa_s = F^ / (2 - F^) and F^ an estimate of F. W_s and kappa_s may depend on everything that
is known when the duel is asked. Where mu_ij <= 1/2, E_ij is a non-negative supermartingale over the
booked duels. So it ever reaches L with probability 1 / L at most (Ville's inequality), however the
pairs are chosen; docs/theory.md has the proof. An answer after age W_s is late for the evidence,
even if the duel is not booked yet. A duel that is asked before ten conversions have been heard has
no W_s, unless a first one is given: it is no bet.

Pairs are chosen by everything that is heard: a conversion counts at once, a silence when its duel
is booked (`lead`, `n`, `doubt`).

With votes there is no silence to bet on. A vote for i counts 1 + 2 g, a vote for j 1 - 2 g, a tie
1. Several votes of one visitor count once: with x their mean for i, 1 + 2 g (2 x - 1).

**One arm at a time.** Where the first arm of a duel is shown alone, it converts with its own rate,
p_i or p_j. All of this holds with mu_ij = p_i / (p_i + p_j) and F = (p_i + p_j) tau(W_s), also
where F is above 1: both bets are fair where the rates are equal.

Where a delay law is told, silence is a bet at every age, and no coin is needed. A conversion is
then a bet at once: see `duelay.ledger.evidence.known_law`.
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
    expected,
    final_age,
    pair_counts,
    set_clock,
    vote,
    widen_rings,
)
from duelay.ledger.evidence.booking import (
    NO_STAKE,
    bet,
    book_answer,
    book_silence,
    count_answer,
    count_booked,
    count_silence,
    hear_delay,
    leave_open,
    next_stake,
    weigh_pair,
)
from duelay.ledger.evidence.known_law import (
    KnownLawEvidence,
    age_booked,
    kappa_at,
    last_age,
    start_known_law,
    start_known_law_in_time,
)
from duelay.ledger.evidence.margin import bet_on_ties, log_level, log_level_over_present
from duelay.ledger.evidence.silence import (
    fill_silent,
    first_kappa,
    next_wait,
)
from duelay.ledger.evidence.winner_threshold import (
    NOBODY,
    log_threshold,
    log_threshold_over_present,
    look,
)

GAPS = np.array([0.01, 0.02, 0.035, 0.055, 0.08, 0.11, 0.15, 0.2, 0.27, 0.35, 0.45])
_SCALE = 0.1  # of the weight of a gap, exp(-g^2 / (2 * 0.1^2))
# In planned gaps, closer to each other near to one; three more go from the last to that of GAPS.
_OF_PLANNED = 2.0 ** np.array([-3.0, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0])
_MAX_WAIT = 1 << 16  # ticks: W is at most this
# A slot of the rings: empty or booked as nothing, an open duel, one answered in time, one booked.
NONE, OPEN, ANSWERED, BOOKED = 0, 1, 2, 3
ROOM = 8192  # places for duels that are not booked at the start, where time is in seconds
PATH = 256  # moments of the past that are kept, at the most


class EProcess(NamedTuple):
    """The evidence of every ordered pair, the duels that are not booked, and who is declared."""

    by_clock: bool  # whether time is in seconds; else it is in ticks, a duel each
    window: float  # W is at most this
    now: Floats  # (1,): the time
    event: Floats  # (1,): by the clock, the time of the news that is being told
    told: KnownLawEvidence  # what silence is worth by age, where a law is told
    is_vote: bool  # whether both outcomes are told
    winner_exists: bool  # whether a Condorcet winner is taken for granted
    shows_one: bool  # whether the first arm of a duel is shown alone
    error: float  # of a declaration
    first_wait: float  # W before conversions have been heard; 0 for none
    level: float  # log L, the evidence that the first arms need
    level_over_present: float  # the same, for an arm that has not passed every retired arm
    joined: Integers  # (K,): 0 for the first arms, n for the n-th that joined later
    present: NDArray[np.bool_]  # (K,): whether an arm has not been retired
    has_changed: bool  # whether an arm has ever come or gone
    gaps: Floats  # (G,): g
    log_weight: Floats  # (G,): of each g
    won: Floats  # (G,): log (1 + 2 g)
    lost: Floats  # (G,): log (1 - 2 g)
    silent_won: Floats  # (G,): log (1 + 2 kappa g), of the latest silence that was booked
    silent_lost: Floats  # (G,): log (1 - 2 kappa g)
    silent_kappa: Floats  # (1,): its kappa
    kappa: Floats  # (1,): what the silence of a new duel is worth, in conversions
    refit: Integers  # (1,): the number of booked duels at which kappa is fixed anew
    wealth: Floats  # (K, K, G): log of what a bettor on i over j has made, by g
    log_evidence: Floats  # (K, K): log E_ij at the last look
    best: Floats  # (K, K): the largest log E_ij at any look
    margin: float  # epsilon, with which arms are much alike; 0 for none
    is_two_sided: bool  # whether the experiment ends once arms are equivalent
    tie_wealth: Floats  # (K, K, 2): log of what a tie bettor on i over j has made, by h
    tie_kappa: Floats  # (1,): the stake of the latest booked duel ...
    tie_odds: Floats  # (4, 2): ... and what a tie bettor makes of it: converted with the own arm
    # first, with the other, silent with the own, with the other
    log_bar: Floats  # (K, K): log Ebar_ij at the last look
    best_bar: Floats  # (K, K): the largest at any look
    wins: Floats  # (K, K): booked conversions of i over j, a tied vote as one half
    seen: Floats  # (K, K): `wins` at the last look
    lead: Floats  # (K, K): conversions heard of i less those of j, a silence counting kappa
    n: Floats  # (K, K): all that is heard, in conversions: a silence counts kappa^2
    doubt: Floats  # (K, K): N d(mu^, 1/2) where j seems to beat i, else 0
    doubts: Floats  # (K,): the sum of `doubt` over the opponents j
    n_open: Integers  # (K, K): duels of i and j neither heard nor booked, in either order
    touched: Integers  # (K * K,): the pairs with news since the last look
    n_touched: Integers  # (1,)
    is_touched: NDArray[np.int8]  # (K, K): 0, FOR_CHOICE or FOR_EVIDENCE, i below j
    born: Floats  # (R,): when each duel was asked, by its number modulo R; numbers are from 1 on
    first: NDArray[np.int32]  # (R,): its arms
    second: NDArray[np.int32]  # (R,)
    state: NDArray[np.int8]  # (R,): whether it is open, answered or booked
    wait: Floats  # (R,): W_s
    stake: Floats  # (R,): kappa_s; NO_STAKE for a duel that is no bet
    first_won: Floats  # (R,): of an answered one: 1 for its first arm, 0 for the second
    oldest: Integers  # (1,): the oldest duel that is not booked
    n_booked: Integers  # (1,): duels of two arms that are booked ...
    n_answered: Integers  # (1,): ... and those of them that were answered in time
    n_heard: Integers  # (1,): answers of two arms, late ones as well
    delays: Floats  # (1,): the sum of their delays
    winner: Integers  # (1,): the arm with which the experiment ended
    verdict: Integers  # (1,): what is said of it: `duelay.ledger.evidence.margin` has the words
    declared: Integers  # (1,): how many duels had been asked when the winner was declared
    looked: Integers  # (1,): the duels asked at the last look
    path: Floats  # (PATH, K): each arm's log evidence in the past
    path_tick: Integers  # (PATH,): the duels asked by then
    path_size: Integers  # (1,)
    stride: Integers  # (1,): ticks between two moments that are kept


def evidence_weights(*, shows_one: bool = False) -> Floats:
    """Return weight_g, (G,): exp(-g^2 / (2 * 0.1^2)) times the spacing of the gaps, scaled to 1.

    Where one arm is shown at a time, gaps of 0.02 to 0.13, which are lifts of 8 to 70 %, have most
    of the weight, in equal parts on a logarithmic scale.
    """
    if shows_one:
        spacing = np.gradient(np.log(GAPS))
        usual = spacing / (1.0 + (np.abs(np.log(GAPS / 0.052)) / 0.95) ** 10)
        return np.asarray(0.85 * usual / usual.sum() + 0.15 * spacing / spacing.sum())
    weight = np.exp(-(GAPS**2) / (2 * _SCALE**2)) * np.gradient(GAPS)
    return np.asarray(weight / weight.sum())


def planned_bets(planned: float) -> tuple[Floats, Floats]:
    """Return g and weight_g, (G,), for a gap that is planned: from an eighth of it to 0.45.

    On a logarithmic scale, a tenth of the weight is spread evenly over all g, and the rest in
    proportion to min((g / planned)^2, (planned / g)^1.5).
    """
    near, most = planned * _OF_PLANNED, GAPS[-1]
    far = np.geomspace(min(near[-1], most), most, 4)
    gaps = np.unique(np.minimum([*near, *far[1:]], most))
    spacing = np.gradient(np.log(gaps))
    weight = np.minimum((gaps / planned) ** 2, (planned / gaps) ** 1.5) * spacing
    return gaps, np.asarray(0.9 * weight / weight.sum() + 0.1 * spacing / spacing.sum())


def start_eprocess(
    error: float,
    window: float | None,
    n_arms: int,
    *,
    winner_exists: bool = False,
    delay: Delay | None = None,
    by_clock: bool = False,
    first_wait: float | None = None,
    margin: float | None = None,
    end: str = "equivalent",
    shows_one: bool = False,
    planned: float | None = None,
) -> EProcess:
    """Return the state before the first duel.

    `delay` is the law, where it is told; `first_wait` is W before conversions have been heard. With
    a `margin`, `end` is GOOD_ENOUGH or EQUIVALENT, in words. `planned` is the gap on which bets are
    centred; None for gaps of all sizes.
    """
    gaps, weight = GAPS, evidence_weights(shows_one=shows_one)
    if planned is not None:
        gaps, weight = planned_bets(planned)
    level = log_threshold(
        n_arms, error, winner_exists=winner_exists, may_join=by_clock, is_ordered=shows_one
    )
    is_two_sided = margin is not None and end == "equivalent"
    over_present = log_threshold_over_present(n_arms, error)
    if margin is not None:
        level = log_level(n_arms, error, two_sided=is_two_sided, may_change=by_clock)
        over_present = log_level_over_present(n_arms, error, two_sided=is_two_sided)
    longest = float(_MAX_WAIT if window is None else min(int(window), _MAX_WAIT))
    if by_clock:
        longest = math.inf if window is None else float(window)
    if by_clock and delay is not None:
        told = start_known_law_in_time(delay, longest, n_arms, gaps)
    else:
        told = start_known_law(delay, 1 if by_clock else int(longest), n_arms, gaps)
    size = ROOM - 1 if by_clock else int(longest)
    if told.is_told:
        longest = last_age(told)
    pairs, one = (n_arms, n_arms), np.zeros(1, dtype=np.int64)
    return EProcess(
        by_clock=by_clock,
        window=longest,
        now=np.full(1, -math.inf),
        event=np.full(1, -math.inf),
        told=told,
        is_vote=False,
        winner_exists=winner_exists,
        shows_one=shows_one,
        error=error,
        first_wait=0.0 if first_wait is None else min(float(first_wait), longest),
        level=level,
        level_over_present=over_present,
        joined=np.zeros(n_arms, dtype=np.int64),
        present=np.ones(n_arms, dtype=np.bool_),
        has_changed=False,
        gaps=gaps,
        log_weight=np.log(weight),
        won=np.log1p(2 * gaps),
        lost=np.log1p(-2 * gaps),
        silent_won=np.zeros_like(gaps),
        silent_lost=np.zeros_like(gaps),
        silent_kappa=np.zeros(1),
        kappa=np.full(1, first_kappa(shows_one=shows_one)),
        refit=one.copy(),
        wealth=np.zeros((*pairs, gaps.size)),
        log_evidence=np.zeros(pairs),
        best=np.zeros(pairs),
        margin=0.0 if margin is None else margin,
        is_two_sided=is_two_sided,
        tie_wealth=np.zeros((*pairs, 2)),
        tie_kappa=np.full(1, -1.0),
        tie_odds=np.zeros((4, 2)),
        log_bar=np.zeros(pairs),
        best_bar=np.zeros(pairs),
        wins=np.zeros(pairs),
        seen=np.zeros(pairs),
        lead=np.zeros(pairs),
        n=np.zeros(pairs),
        doubt=np.zeros(pairs),
        doubts=np.zeros(n_arms),
        n_open=np.zeros(pairs, dtype=np.int64),
        touched=np.zeros(n_arms * n_arms, dtype=np.int64),
        n_touched=one.copy(),
        is_touched=np.zeros(pairs, dtype=np.int8),
        born=np.zeros(size + 1),
        first=np.zeros(size + 1, dtype=np.int32),
        second=np.zeros(size + 1, dtype=np.int32),
        state=np.zeros(size + 1, dtype=np.int8),
        wait=np.zeros(size + 1),
        stake=np.zeros(size + 1),
        first_won=np.zeros(size + 1),
        oldest=one + 1,
        n_booked=one.copy(),
        n_answered=one.copy(),
        n_heard=one.copy(),
        delays=np.zeros(1),
        winner=one + NOBODY,
        verdict=one.copy(),
        declared=one.copy(),
        looked=one.copy(),
        path=np.zeros((PATH, n_arms)),
        path_tick=np.zeros(PATH, dtype=np.int64),
        path_size=one.copy(),
        stride=one + 1,
    )


@kernel
def bet_on_silence(eprocess: Any, slot: int, age: float, sign: float) -> None:
    """Bet, or take back, what the silence of a duel is worth at an age under the law told."""
    told, i, j = eprocess.told, eprocess.first[slot], eprocess.second[slot]
    row = told.law[i, j]
    if eprocess.by_clock:
        kappa = kappa_at(told, row, age)
        fill_silent(eprocess, kappa)
        bet(eprocess, j, i, eprocess.silent_won, eprocess.silent_lost, sign)
    else:
        tick = int(age)
        kappa = told.kappa[row, tick]
        bet(eprocess, j, i, told.won[row, tick], told.lost[row, tick], sign)
    weigh_pair(eprocess, j, i, sign * kappa, sign * kappa * kappa)


@kernel
def refresh(eprocess: Any, t: int) -> None:
    """Bring the silence of every duel open before tick t up to now, under the law told."""
    for number in range(eprocess.oldest[0], t):
        slot = number % eprocess.state.size
        if eprocess.state[slot] == OPEN:
            born = eprocess.born[slot]
            bet_on_silence(eprocess, slot, age_booked(eprocess.told, born), -1.0)
            bet_on_silence(eprocess, slot, eprocess.now[0] - born, 1.0)
    eprocess.told.fresh[0] = eprocess.now[0]


@kernel
def is_waiting(state: int) -> bool:
    """Whether a duel of two arms is not booked."""
    return state in (OPEN, ANSWERED)


@kernel
def is_kept(eprocess: Any, born: int, t: int) -> bool:
    """Whether the rings still have the duel with number `born`; t - 1 have been asked."""
    return bool(t - born <= eprocess.state.size)


@kernel
def delay_of(eprocess: Any, born: int, t: int) -> float:
    """How long a duel's answer took, which is heard at tick t."""
    if eprocess.by_clock:
        return float(eprocess.event[0] - eprocess.born[born % eprocess.state.size])
    return float(t - born)


@kernel
def is_in_time(eprocess: Any, slot: int, delay: float) -> bool:
    """Whether an open duel's answer counts as evidence: it came by age W_s."""
    if eprocess.told.is_told:
        return bool(delay <= last_age(eprocess.told))
    return bool(eprocess.stake[slot] == NO_STAKE or delay <= eprocess.wait[slot])


@kernel
def book_due_by_law(eprocess: Any, t: int) -> None:
    """Book the duels that have reached age W, under the law told: their silence is final."""
    told, last = eprocess.told, eprocess.now[0] - last_age(eprocess.told)
    while eprocess.oldest[0] < t:
        slot = eprocess.oldest[0] % eprocess.state.size
        if eprocess.born[slot] > last:
            break
        if eprocess.state[slot] == OPEN:  # silence speaks for the second
            leave_open(eprocess.n_open, eprocess.first[slot], eprocess.second[slot], -1)
            bet_on_silence(eprocess, slot, age_booked(told, eprocess.born[slot]), -1.0)
            bet_on_silence(eprocess, slot, last_age(told), 1.0)
        if is_waiting(eprocess.state[slot]):
            count_booked(eprocess, eprocess.state[slot] == ANSWERED)
            eprocess.state[slot] = BOOKED
        eprocess.oldest[0] += 1


@kernel
def book_due(eprocess: Any, t: int) -> None:
    """Book the duels that have reached age W_s, in the order in which they were asked."""
    usual = next_wait(eprocess)  # what duels without a stake wait for: they are no bets
    while eprocess.oldest[0] < t:
        slot = eprocess.oldest[0] % eprocess.state.size
        state, stake = eprocess.state[slot], eprocess.stake[slot]
        if is_waiting(state):
            wait = usual if stake == NO_STAKE else eprocess.wait[slot]
            if eprocess.now[0] - eprocess.born[slot] < wait:
                break
            i, j = eprocess.first[slot], eprocess.second[slot]
            if state == OPEN:
                leave_open(eprocess.n_open, i, j, -1)
                count_silence(eprocess, i, j, eprocess.kappa[0])
                book_silence(eprocess, i, j, stake)
            elif stake != NO_STAKE:
                book_answer(eprocess, i, j, eprocess.first_won[slot])
            if eprocess.margin > 0.0 and stake != NO_STAKE:
                bet_on_ties(eprocess, i, j, state == ANSWERED, eprocess.first_won[slot], stake)
            count_booked(eprocess, state == ANSWERED)
            eprocess.state[slot] = BOOKED
        eprocess.oldest[0] += 1


def with_room(eprocess: EProcess, t: int) -> EProcess:
    """Return the same with room for the duel with number t, where time is in seconds."""
    size = eprocess.state.size
    if not eprocess.by_clock or t - int(eprocess.oldest[0]) < size:
        return eprocess
    names = ("born", "first", "second", "state", "wait", "stake", "first_won")
    rings = {name: getattr(eprocess, name) for name in names}
    return eprocess._replace(**widen_rings(rings, int(eprocess.oldest[0]), t))


@set_clock.register(EProcess)
def _set_clock(assumed: EProcess, now: float) -> None:
    if assumed.by_clock:
        assumed.event[0] = now
        assumed.now[0] = max(now, assumed.now[0])


@enter.register(EProcess)
def _enter(assumed: EProcess, i: int, j: int, t: int) -> None:
    slot = t % assumed.state.size
    assumed.born[slot] = assumed.now[0]
    assumed.first[slot] = i
    assumed.second[slot] = j
    assumed.state[slot] = NONE
    if i != j:
        assumed.state[slot] = OPEN
        assumed.wait[slot] = next_wait(assumed)
        assumed.stake[slot] = next_stake(assumed)
        leave_open(assumed.n_open, i, j, 1)


@convert.register(EProcess)
def _convert(assumed: EProcess, born: int, t: int) -> None:
    slot = born % assumed.state.size
    if not is_kept(assumed, born, t) or assumed.state[slot] == NONE:
        return  # long ago, or a self-duel: it stays in the ledger alone
    delay = delay_of(assumed, born, t)
    hear_delay(assumed, delay)
    if assumed.state[slot] != OPEN or not is_in_time(assumed, slot, delay):
        return
    i, j = assumed.first[slot], assumed.second[slot]
    if assumed.told.is_told:
        bet_on_silence(assumed, slot, age_booked(assumed.told, assumed.born[slot]), -1.0)
        book_answer(assumed, i, j, 1.0)
    assumed.state[slot] = ANSWERED
    assumed.first_won[slot] = 1.0
    leave_open(assumed.n_open, i, j, -1)
    count_answer(assumed, i, j, 1.0)


@vote.register(EProcess)
def _vote(assumed: EProcess, i: int, j: int, first_won: float, born: int, t: int) -> None:
    if i == j:
        return
    count_answer(assumed, i, j, first_won)
    if not is_kept(assumed, born, t):
        return
    slot, delay = born % assumed.state.size, delay_of(assumed, born, t)
    hear_delay(assumed, delay)
    if assumed.state[slot] == OPEN and is_in_time(assumed, slot, delay):
        assumed.state[slot] = ANSWERED
        assumed.first_won[slot] = first_won
        leave_open(assumed.n_open, i, j, -1)


@advance.register(EProcess)
def _advance(assumed: EProcess, t: int) -> None:
    if not assumed.by_clock:
        assumed.now[0] = t
    if assumed.told.is_told:
        book_due_by_law(assumed, t)
        if assumed.now[0] < assumed.told.fresh[0] + assumed.told.period:
            return  # nobody looks before all silences are booked up to the same moment
        refresh(assumed, t)
    else:
        book_due(assumed, t)
    look(assumed, t)


@pair_counts.register(EProcess)
def _pair_counts(assumed: EProcess, plays: Integers, conversions: Integers, i: int, j: int) -> Any:
    """N_ij and N~_ij, both the evidence counted in conversions, and S_ij, i's part of it.

    A silence tells kappa of a conversion and counts kappa^2, so that mu^ = S / N is consistent if
    F^ is right: E[lead] = (2 mu - 1) N.
    """
    n = assumed.n[i, j]
    return n, n, 0.5 * (n + assumed.lead[i, j])


@expected.register(EProcess)
def _expected(assumed: EProcess, plays: Integers, i: int, j: int) -> float:
    return 0.5 * float(assumed.n[i, j])


@final_age.register(EProcess)
def _final_age(assumed: EProcess) -> int:
    return FOREVER if assumed.by_clock else int(assumed.window)
