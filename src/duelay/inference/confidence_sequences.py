"""Confidence sequences: intervals for every mu_ij that hold at all times together.

The times of looks need not be fixed in advance. Each interval comes from a likelihood ratio: it
keeps a value of mu unless a mixture of other values explains the answers 1 / error times better.
For the true mu that ratio is a non-negative supermartingale, so that it ever reaches 1 / error with
probability at most `error` (Ville's inequality). docs/theory.md has the proofs.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from duelay.delays import ByPair, Law
from duelay.inference.evidence import replay_bets
from duelay.ledger import Ledger
from duelay.ledger.delay_models.continuous_time import ByClock
from duelay.ledger.delay_models.geometric import AssumedGeometric
from duelay.ledger.delay_models.tabulated import AssumedTable
from duelay.ledger.evidence.eprocess import EProcess
from duelay.ledger.evidence.margin import RUNNING, WINNER
from duelay.logs.history import History

Floats = NDArray[np.float64]
_STEPS, _ROUGH = 60, 30  # of a bisection, and of one whose result is only about right
_NODES = np.polynomial.legendre.leggauss(80)  # of an integral around the mode, and their weights
_ROOM = 0.1  # of the error, by the clock and with a margin: for arms that join
_ABOVE_HALF = math.nextafter(0.5, 1.0)
_BELOW = 40.0  # the mode, in log likelihood: the rest is left out, which widens the interval


def shares(joined: NDArray[np.int64], *, has_room: bool) -> Floats:
    """(K, K): the part of the error that each pair may use, while arms come and go.

    `joined` is 0 for the K0 first arms, n for the n-th that joined later. The part 1 / (K0 + 1) is
    for arms that join. The n-th gets 1 / (n (n + 1)) of it, which its pairs with the arms before it
    share. The pairs of first arms share what is left; without `has_room` they share all of it.
    """
    first = int((joined == 0).sum())
    n = np.maximum(joined[:, None], joined[None, :]).astype(np.float64)
    room = 1.0 / (first + 1)
    own = (1.0 - room if has_room else 1.0) / (first * (first - 1) / 2)
    late = np.maximum(n, 1.0)
    return np.where(n == 0, own, room / (late * (late + 1.0) * (first + late - 1.0)))


def rests_on_law(assumed: Any) -> bool:
    """Whether a ledger is told the delay law, so that silence counts at every age."""
    if isinstance(assumed, EProcess):
        return assumed.told.is_told
    if isinstance(assumed, ByClock):
        return not assumed.learns
    return isinstance(assumed, AssumedGeometric | AssumedTable)


def at_all_times(
    ledger: Ledger,
    history: History,
    error: float,
    delay: Any = None,
    share: Floats | None = None,
    booked: Floats | None = None,
) -> tuple[Floats, Floats]:
    """Return the ends of the intervals that fit what a ledger is told and assumes.

    Where a law is told, they are from conversions and silence; else from the conversions, or votes,
    that are booked: from `booked`, the wins of i over j, (K, K), or those of a replay. `delay` is
    the law that is told, which by the clock the ledger does not keep. `share` is the part of the
    error that each pair may use, (K, K); all pairs have the same where it is left out.
    """
    assumed = ledger.assumed
    if not rests_on_law(assumed):
        wins = replay_bets(history, error).seen if booked is None else booked
        return of_shares(wins, error, share)
    is_in_time = isinstance(assumed, EProcess | ByClock) and history.at is not None
    return of_censored(history, delay if is_in_time else assumed, error, share)


def _ages_seen(history: History) -> NDArray[Any]:
    """The age of each duel when the last one was asked."""
    if history.at is not None:
        return np.asarray(history.at.max(initial=0.0) - history.at)
    return history.ages - 1


def _is_seen(history: History) -> NDArray[np.bool_]:
    """Which duels had been heard when the last one was asked."""
    return np.asarray(history.answered <= history.asked.max(initial=-np.inf))


def _least(k: int, error: float, share: Floats | None) -> Floats:
    """(K, K): the log of the ratio at which a value is left out."""
    equal = np.full((k, k), 2.0 / (k * (k - 1)))
    return np.asarray(-np.log(error * (equal if share is None else share)))


def of_shares(wins: Floats, error: float, share: Floats | None = None) -> tuple[Floats, Floats]:
    """Return the ends of the intervals from wins of i over j, each (K, K), a tie as half a win.

    The mixture is Jeffreys's, Beta(1/2, 1/2). A tied vote is less extreme than a win or a loss, so
    that the ratio is a supermartingale with it, too.
    """
    k = len(wins)
    least, lower = _least(k, error, share), np.zeros((k, k))
    known = (wins > 0) & ~np.eye(k, dtype=bool)
    # With many arms most pairs are alike: each kind is computed once.
    kinds, place = np.unique(_code(wins[known], wins.T[known], least[known]), return_inverse=True)
    shown = np.zeros(kinds.size, dtype=np.int64)
    shown[place] = np.arange(place.size)
    mine, theirs, level = wins[known][shown], wins.T[known][shown], least[known][shown]
    lower[known] = _lower_shares(mine, theirs, level)[place]
    return _both_sides(lower, wins + wins.T > 0)


def of_margin(eprocess: Any, error: float) -> tuple[Floats, Floats]:
    """Return the ends of intervals that agree with the verdict of a policy with a margin.

    They are those of `of_shares` at the ratio 2 L, cut by what the evidence has proved: E_ij >= L
    shows mu_ij > 1/2, and Ebar_ij >= L shows mu_ij > 1/2 - epsilon, with the L of `_pair_levels`.
    The conversions alone never exclude 1/2. All intervals hold with probability 1 - error.

    A one-sided end needs less evidence. What it says of its arm is added, and all of it holds with
    probability 1 - error - the error of the policy.
    """
    level = _pair_levels(eprocess, eprocess.error if math.isclose(error, eprocess.error) else error)
    is_alike, is_better = eprocess.best_bar >= level, eprocess.best >= level
    if not eprocess.is_two_sided and eprocess.verdict[0] != RUNNING:
        is_alike[eprocess.winner[0], eprocess.present] = True
        is_better[eprocess.winner[0], eprocess.present] |= eprocess.verdict[0] == WINNER
    proved = np.where(is_alike, 0.5 - eprocess.margin, -np.inf)
    proved[is_better] = _ABOVE_HALF
    np.fill_diagonal(proved, -np.inf)
    lower, _ = of_shares(eprocess.seen, 1.0, 0.5 * np.exp(-level))
    lower = np.maximum(np.where(is_better, lower, np.minimum(lower, 0.5)), proved)
    most = 1.0 - proved.T
    lower = np.where(lower > most, np.maximum(proved, most), lower)
    known = (eprocess.seen + eprocess.seen.T > 0) | np.isfinite(proved) | np.isfinite(most)
    return _both_sides(np.maximum(lower, 0.0), known)


def _pair_levels(eprocess: Any, error: float) -> Floats:
    """(K, K): log L of each pair, as in a two-sided end at this error.

    The pairs of first arms have K (K - 1) / error, by the clock K (K - 1) / (0.9 error). There the
    n-th arm that joins has 0.1 error / (n (n + 1)), which its pairs with the arms before it share.
    """
    k = len(eprocess.best)
    if eprocess.is_two_sided:
        first = eprocess.level + math.log(eprocess.error / error)
    else:
        n_first = int((eprocess.joined == 0).sum())
        room = _ROOM if eprocess.by_clock else 0.0
        first = math.log(n_first * (n_first - 1) / ((1.0 - room) * error))
    n = np.maximum(eprocess.joined[:, None], eprocess.joined[None, :]).astype(np.float64)
    before = np.maximum(np.arange(k)[:, None], np.arange(k))
    late = np.log(2.0 * np.maximum(before, 1) * np.maximum(n * (n + 1.0), 1.0) / (_ROOM * error))
    return np.asarray(np.where(n > 0, late, first))


def _code(*columns: Floats) -> NDArray[np.int64]:
    """Return the same number for rows that are the same."""
    code = np.zeros(columns[0].size, dtype=np.int64)
    for column in columns:
        values, place = np.unique(column, return_inverse=True)
        code = code * values.size + place
    return code


def _lower_shares(wins: Floats, losses: Floats, least: Floats) -> Floats:
    """The least mu at which the mixture is not yet exp(least) times likelier, by bisection."""
    mixed = _log_gamma(wins + 0.5) + _log_gamma(losses + 0.5) - _log_gamma(wins + losses + 1.0)
    mixed -= 2.0 * math.lgamma(0.5)
    low, high = np.zeros_like(wins), wins / (wins + losses)
    for _ in range(_STEPS):
        mu = (low + high) / 2.0
        lost = np.where(losses > 0, losses * np.log1p(-np.minimum(mu, 1.0 - 1e-16)), 0.0)
        is_out = mixed - wins * np.log(mu) - lost >= least
        low, high = np.where(is_out, mu, low), np.where(is_out, high, mu)
    return low


def lower_ends(wins: Floats, losses: Floats, least: Floats) -> Floats:
    """Return the lower ends for counts of any shape; 0 where nothing was won."""
    ends, known = np.zeros(wins.shape), wins > 0
    ends[known] = _lower_shares(wins[known], losses[known], least[known])
    return ends


def of_censored(
    history: History, assumed: Any, error: float, share: Floats | None = None
) -> tuple[Floats, Floats]:
    """Return the ends of the intervals where the law is told, from all duels so far.

    A conversion with i first is worth mu, a silence at age a 1 - mu tau(a). That is the likelihood
    for any order, and however the pairs were chosen: it holds for every policy. The mixture is
    uniform.
    """
    n_arms, first, second = history.n_arms, history.first, history.second
    is_heard, ages = _is_seen(history), _ages_seen(history)
    if history.at is not None and history.window is not None:
        ages = np.minimum(ages, history.window)  # nothing is heard after it
    if isinstance(assumed, EProcess):
        # A bet on silence is final at the window: a later conversion does not undo it.
        is_heard &= np.nan_to_num(history.delay) <= assumed.window
    least = _least(n_arms, error, share)
    lower, known = np.zeros((n_arms, n_arms)), np.zeros((n_arms, n_arms), dtype=bool)
    for i in range(n_arms):
        for j in range(i):
            sides = []
            for one, other in ((i, j), (j, i)):
                mine = (first == one) & (second == other)
                tau = _heard_by(assumed, one, other, ages[mine & ~is_heard])
                sides.append(
                    _Side(
                        int((mine & is_heard).sum()),
                        *np.unique(tau[tau > 0], return_counts=True),
                    )
                )
            i_first, j_first = sides
            if any(side.won or side.tau.size for side in sides):
                known[i, j] = known[j, i] = True
                lower[i, j] = _lower_censored(i_first, j_first, float(least[i, j]))
                lower[j, i] = _lower_censored(j_first, i_first, float(least[i, j]))
    return _both_sides(lower, known)


def _heard_by(assumed: Any, i: int, j: int, ages: NDArray[np.int64]) -> Floats:
    """Tau at each age, up to the window, of the law that a ledger assumes for a pair."""
    if isinstance(assumed, AssumedGeometric):
        missing = np.maximum(assumed.stay ** ages.astype(np.float64), assumed.last)
        return np.asarray(assumed.answered * (1.0 - missing))
    if isinstance(assumed, Law | ByPair):
        return np.asarray(assumed.at(i, j).cdf(ages))
    if isinstance(assumed, EProcess):
        told = assumed.told
        return np.asarray(told.tau[told.law[i, j], np.minimum(ages, told.tau.shape[1] - 1)])
    return np.asarray(assumed.tau[assumed.law[i, j], np.minimum(ages, assumed.tau.shape[1] - 1)])


class _Side(NamedTuple):
    """The duels of a pair in one order, and their conversions."""

    won: int  # conversions
    tau: Floats  # the shares of conversions that should have come by the ages of silent duels
    silent: NDArray[np.int64]  # how many silent duels each of them has


def _lower_censored(mine: _Side, theirs: _Side, least: float) -> float:
    def log_likelihood(mu: float) -> float:
        """Concave in mu: each of its terms is."""
        with np.errstate(divide="ignore"):
            total = mine.won * np.log(mu) if mine.won else 0.0
            total += theirs.won * np.log1p(-mu) if theirs.won else 0.0
            total += (mine.silent * np.log1p(-mu * mine.tau)).sum()
            return float(total + (theirs.silent * np.log1p(-(1.0 - mu) * theirs.tau)).sum())

    def slope(mu: float) -> float:
        total = mine.won / mu - theirs.won / (1.0 - mu)
        total -= (mine.silent * mine.tau / (1.0 - mu * mine.tau)).sum()
        rest = theirs.silent * theirs.tau / (1.0 - (1.0 - mu) * theirs.tau)
        return float(total + rest.sum())

    mode = _edge(lambda mu: slope(mu) > 0, 0.0, 1.0)
    top = log_likelihood(mode)
    low = _edge(lambda mu: log_likelihood(mu) < top - _BELOW, 0.0, mode, _ROUGH)
    high = _edge(lambda mu: log_likelihood(mu) >= top - _BELOW, mode, 1.0, _ROUGH)
    nodes = low + (high - low) * (_NODES[0] + 1.0) / 2.0
    values = np.exp(np.array([log_likelihood(node) for node in nodes]) - top)
    mixed = top + math.log(float((_NODES[1] * values).sum()) * (high - low) / 2.0)
    return _edge(lambda mu: mixed - log_likelihood(mu) >= least, 0.0, mode)


def _edge(is_before: Any, low: float, high: float, steps: int = _STEPS) -> float:
    """Bisect for where a condition stops to hold; return the last point at which it did."""
    for _ in range(steps):
        middle = (low + high) / 2.0
        if middle in (low, high):
            break
        low, high = (middle, high) if is_before(middle) else (low, middle)
    return low


def _log_gamma(x: Floats) -> Floats:
    values, place = np.unique(x, return_inverse=True)
    return np.asarray(np.array([math.lgamma(value) for value in values])[place])


def _both_sides(lower: Floats, known: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Make upper ends of lower ones, by mu_ji = 1 - mu_ij; infinite where nothing is known."""
    lower = np.where(known, lower, -np.inf)
    upper = np.where(known, 1.0 - lower.T, np.inf)
    np.fill_diagonal(lower, 0.5)
    np.fill_diagonal(upper, 0.5)
    return lower, upper
