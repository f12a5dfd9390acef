"""The evidence for each arm, its growth over time, and the declared winner."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from duelay.inference.event_replay import enter_history
from duelay.ledger import age_to, clock_to, open_ledger, with_room
from duelay.ledger.arms import reopen
from duelay.ledger.evidence.eprocess import ANSWERED, OPEN, EProcess, start_eprocess
from duelay.ledger.evidence.margin import VERDICTS
from duelay.ledger.evidence.silence import FIRST_SHARE_OF_ONE
from duelay.ledger.evidence.winner_threshold import NOBODY, all_evidence, error_at, need_all
from duelay.logs.history import History

Floats = NDArray[np.float64]


class Evidence(NamedTuple):
    """The evidence of all pairs (`duelay.ledger.evidence.eprocess`); logarithms are natural.

    Attributes
    ----------
    winner : int or None
        The arm that is declared the winner.
    verdict : str
        ``"running"``, ``"winner"``, or with a margin ``"good_enough"`` or ``"equivalent"``.
    best : int or None
        The arm of the verdict; None while it is running.
    declared : int or None
        The number of duels that had been asked at the end.
    level : float
        The logarithm of the evidence at which an arm is declared.
    log_evidence : ndarray of float
        (K, K), log E_ij now.
    arm : ndarray of float
        (K,), the log evidence of each arm: the least, over opponents, of its largest value so far.
    p_value : ndarray of float
        (K,), the error at which each arm would be declared; valid at any time.
    tick : ndarray of int
        (n,), past moments, as numbers of duels asked by then.
    path : ndarray of float
        (n, K), the log evidence of each arm at these moments.
    beats : ndarray of bool
        (K, K), whether i has had enough evidence over j.
    is_out : ndarray of bool
        (K,), whether there is enough evidence that another arm is better.
    lacks : ndarray of float
        (K, K), the log evidence that i still needs over j; 0 if none, or if j is retired.
    lead : ndarray of float
        (K, K), the conversions of i less those of j, where a silence counts kappa.
    n : ndarray of float
        (K, K), the settled duels in conversions, where a silence counts kappa^2.
    n_open : ndarray of int
        (K, K), the duels of the pair that are neither heard nor booked.
    n_waiting : ndarray of int
        (K, K), the same, and those that are heard and not yet booked.
    in_flight : int
        The duels that are asked while one waits to be booked; by the clock, those that wait now.
    worth : float
        The information of a duel in conversions, if most duels are answered.
    winner_exists : bool
        Whether the policy takes the existence of a Condorcet winner for granted.
    margin : float or None
        Epsilon, the smallest difference from 1/2 that matters.
    """

    winner: int | None
    verdict: str
    best: int | None
    declared: int | None
    level: float
    log_evidence: Floats
    arm: Floats
    p_value: Floats
    tick: NDArray[np.int64]
    path: Floats
    beats: NDArray[np.bool_]
    is_out: NDArray[np.bool_]
    lacks: Floats
    lead: Floats
    n: Floats
    n_open: NDArray[np.int64]
    n_waiting: NDArray[np.int64]
    in_flight: int
    worth: float
    winner_exists: bool
    margin: float | None

    def __repr__(self) -> str:
        arms = ", ".join(f"{value:.3g}" for value in np.exp(self.arm))
        return (
            f"Evidence(winner={self.winner}, declared={self.declared}, of {arms}, "
            f"declared at {math.exp(self.level):.4g}, fields: {', '.join(self._fields)})"
        )


def evidence_of(eprocess: EProcess) -> Evidence:
    """Return the evidence of bets, as it is now."""
    n, best = int(eprocess.path_size[0]), int(eprocess.winner[0])
    verdict = VERDICTS[int(eprocess.verdict[0])]
    wanted = _needed(eprocess)
    arm = np.zeros(len(eprocess.doubts))
    all_evidence(eprocess, arm)
    return Evidence(
        winner=best if verdict == "winner" else None,
        verdict=verdict,
        best=None if best == NOBODY else best,
        declared=None if best == NOBODY else int(eprocess.declared[0]),
        level=eprocess.level,
        log_evidence=eprocess.log_evidence.copy(),
        arm=arm,
        p_value=np.array([_p_value(eprocess, value) for value in arm]),
        tick=np.append(eprocess.path_tick[:n], eprocess.looked),
        path=np.concatenate([eprocess.path[:n], arm[None]]),
        beats=np.asarray(eprocess.best >= wanted),
        is_out=_is_out(eprocess, wanted),
        lacks=_lacks(eprocess, wanted),
        lead=eprocess.lead.copy(),
        n=eprocess.n.copy(),
        n_open=eprocess.n_open.copy(),
        n_waiting=(waiting := eprocess.n_open + _answered_early(eprocess)),
        in_flight=_in_flight(eprocess, int(waiting.sum()) // 2),
        worth=_hoped_worth(eprocess),
        winner_exists=eprocess.winner_exists,
        margin=eprocess.margin or None,
    )


def _p_value(eprocess: EProcess, log_evidence: float) -> float:
    """The error at which an arm with this evidence would be declared: with a margin, K / E."""
    if eprocess.margin:
        share = math.exp(eprocess.level) * eprocess.error  # what the level is divided by
        return min(1.0, share * math.exp(-log_evidence))
    return error_at(
        log_evidence,
        int((eprocess.joined == 0).sum()),
        winner_exists=eprocess.winner_exists,
        may_join=eprocess.has_changed or (eprocess.by_clock and not eprocess.winner_exists),
        is_ordered=eprocess.shows_one,
    )


def _is_out(eprocess: EProcess, wanted: Floats) -> NDArray[np.bool_]:
    """(K,): arms that are not the winner; each of the others may say so wrongly for its share.

    With K arms the winner is passed at (K - 1) / error with probability `error` at most. Where arms
    may join, the shares are those of `late`.
    """
    first = int((eprocess.joined == 0).sum())
    others = first + 1 if eprocess.by_clock or eprocess.has_changed else first - 1
    own = eprocess.joined.astype(np.float64)
    enough = math.log(others / eprocess.error) + np.log(np.where(own > 0, own * (own + 1.0), 1.0))
    is_passed = eprocess.best >= np.maximum(wanted, enough[:, None])
    return np.asarray(is_passed[eprocess.present].any(axis=0) | ~eprocess.present)


def _needed(eprocess: EProcess) -> Floats:
    """(K, K): the log evidence that i needs over j; infinite over itself."""
    wanted = np.zeros(eprocess.best.shape)
    need_all(eprocess, wanted)
    return wanted


def _lacks(eprocess: EProcess, wanted: Floats) -> Floats:
    """(K, K): what is missing to `_needed`, for opponents that are present and not passed."""
    best, now = eprocess.best, eprocess.log_evidence
    if eprocess.margin:
        best, now = eprocess.best_bar, eprocess.log_bar
    lacks = np.where(best < wanted, np.maximum(wanted - now, 0.0), 0.0)
    lacks[:, ~eprocess.present] = 0.0
    np.fill_diagonal(lacks, 0.0)
    return lacks


def _answered_early(eprocess: EProcess) -> NDArray[np.int64]:
    """(K, K): duels of each pair that are answered and not yet booked."""
    found = np.zeros(eprocess.n_open.shape, dtype=np.int64)
    if not eprocess.told.is_told:
        slots = np.arange(eprocess.oldest[0], eprocess.looked[0] + 1) % eprocess.state.size
        slots = slots[eprocess.state[slots] == ANSWERED]
        np.add.at(found, (eprocess.first[slots], eprocess.second[slots]), 1)
    return np.asarray(found + found.T)


def _in_flight(eprocess: EProcess, n_waiting: int) -> int:
    """How many duels are asked while one waits: in ticks, twice the mean delay.

    That is less than W, since early duels wait less than later ones. Long delays have not been
    heard at the start: half of the silent duels count as answers that are on their way.
    """
    if eprocess.by_clock or eprocess.told.is_told:
        return n_waiting
    slots = np.arange(eprocess.oldest[0], eprocess.looked[0] + 1) % eprocess.state.size
    slots = slots[eprocess.state[slots] == OPEN]
    so_far = float((eprocess.now[0] - eprocess.born[slots]).sum())
    delays = float(eprocess.delays[0]) + (so_far if eprocess.is_vote else 0.5 * so_far)
    wait = 2.0 * delays / (int(eprocess.n_heard[0]) + 1)
    return max(n_waiting, int(min(wait, eprocess.window)))


def _hoped_worth(eprocess: EProcess) -> float:
    """What a duel tells, in conversions; before anything is known, as if all were answered."""
    answered, booked = int(eprocess.n_answered[0]), int(eprocess.n_booked[0])
    if eprocess.is_vote:
        return (answered + 10.0) / (booked + 10.0)
    if eprocess.told.is_told:
        return eprocess.told.worth
    hoped = 10.0 * FIRST_SHARE_OF_ONE if eprocess.shows_one else 10.0
    share = min(1.0, (2.0 * answered + hoped) / (booked + 10.0))
    return 0.5 * share + (1.0 - 0.5 * share) * (share / (2.0 - share)) ** 2


def replay_bets(
    history: History,
    error: float,
    joined: NDArray[np.int64] | None = None,
    present: NDArray[np.bool_] | None = None,
    *,
    is_whole: bool = False,
) -> EProcess:
    """Bet on a history, with a look at every tick, as a policy that decides does.

    Parameters
    ----------
    history : the duels and their answers.
    error : the error of a declaration.
    joined, present : (K,), the arms that joined later, and those that are not retired.
    is_whole : whether the history has all answers up to its time, which is then the last look.
        Otherwise answers after the last duel do not count.
    """
    eprocess = start_eprocess(
        error,
        history.window,
        history.n_arms,
        by_clock=history.at is not None,
        shows_one=history.display == "one",
    )
    eprocess = eprocess._replace(is_vote=history.feedback == "votes")
    if joined is not None and present is not None and (joined.any() or not present.all()):
        eprocess = reopen(eprocess._replace(joined=joined, present=present), error)
    ledger = with_room(open_ledger(eprocess, history.n_arms), history.n + 1)
    is_whole &= history.at is not None
    enter_history(ledger, history, all_of_it=is_whole)
    if is_whole and history.now is not None:
        clock_to(ledger, history.now)
        age_to(ledger, history.n + 1)
    bets: EProcess = ledger.assumed
    return bets
