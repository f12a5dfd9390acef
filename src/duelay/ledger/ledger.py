"""The ledger: what has been played and heard (Section 3.1 of the paper).

For every ordered pair, `plays` counts the duels with i first and j second, `conversions` those of
them heard within the window, and *expected* adds up tau(min(age, window)) over them: the share of
conversions that should have come by now under the law that the policy **assumes**. From these

    N_ij   = plays[i,j] + plays[j,i]                                (Equation 2)
    N~_ij  = expected[i,j] + expected[j,i]                          (Equation 3)
    S_ij   = conversions[i,j] + expected[j,i] - conversions[j,i]    (after Equation 3)
    mu^_ij = S_ij / N~_ij                                           (Equation 4)

Self-duels enter `plays` and `conversions` only: they say nothing about preferences.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from duelay._core.arrays import Floats, Integers
from duelay._core.jit.background import border, border_of
from duelay._core.jit.decorators import kernel
from duelay.delays.delay import Delay, check_delay
from duelay.delays.families import Geometric
from duelay.delays.never import Never
from duelay.delays.ticks_or_clock import WAYS
from duelay.errors import InvalidValueError
from duelay.ledger.delay_models.base import advance, convert, enter, pair_counts, set_clock, vote
from duelay.ledger.delay_models.continuous_time import (
    ByClock,
    count_passes,
    start_learned_by_clock,
    start_told_by_clock,
    with_room_by_clock,
)
from duelay.ledger.delay_models.geometric import AssumedGeometric, start_geometric
from duelay.ledger.delay_models.kaplan_meier import LearnedLaw, check_learning, start_learned
from duelay.ledger.delay_models.no_delay import AppendOnly, AtOnce, ConversionsOnly
from duelay.ledger.delay_models.tabulated import AssumedTable, start_table
from duelay.ledger.display_order import start_order
from duelay.ledger.evidence.eprocess import EProcess
from duelay.ledger.evidence.eprocess import with_room as with_room_for_bets
from duelay.ledger.votes import Votes, start_votes


class Estimates(NamedTuple):
    """The estimates of a ledger for every pair, each (K, K).

    Attributes
    ----------
    n : ndarray of float
        N_ij, the duels of the pair.
    expected : ndarray of float
        N~_ij, the number of these duels whose conversions should have come by now.
    wins : ndarray of float
        S_ij, the bias-corrected wins of i over j.
    mean : ndarray of float
        mu^_ij = S_ij / N~_ij; NaN where nothing is expected, 1/2 on the diagonal.
    """

    n: Floats
    expected: Floats
    wins: Floats
    mean: Floats


class Ledger(NamedTuple):
    """Counts by ordered pair, what a policy assumes about the delay, and the order of the arms.

    Attributes
    ----------
    plays : ndarray of int
        (K, K), the duels by first and second arm.
    conversions : ndarray of int
        (K, K), the conversions by first and second arm.
    news : ndarray of int
        (K,), how often duels of an arm with other arms were asked or answered.
    assumed : NamedTuple
        A delay model (`duelay.ledger.delay_models`), `Votes`, or the `EProcess` of a policy that
        decides.
    order : NamedTuple
        One of the types of `duelay.ledger.display_order`, which decides the arm that is shown
        first.
    self_duels : bool
        Whether an arm may duel itself.
    """

    plays: Integers
    conversions: Integers
    news: Integers
    assumed: Any
    order: Any
    self_duels: bool

    def estimates(self) -> Estimates:
        """Return N, N~, S and mu^ of every pair."""
        k = len(self.plays)
        n, expected, wins = np.zeros((k, k)), np.zeros((k, k)), np.zeros((k, k))
        _tabulate(self, n, expected, wins)
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = np.where(expected > 0, wins / expected, np.nan)
        np.fill_diagonal(mean, 0.5)
        return Estimates(n, expected, wins, mean)


def assume_by_clock(delay: Delay | str | None, window: float | None, n_arms: int) -> Any:
    """Return the state that keeps *expected* in time, as `assume` does in ticks.

    Parameters
    ----------
    delay : Law, ByPair, str or None
        The law or its text; see `assume`.
    window : float or None
        The seconds after which a conversion is no longer counted.
    n_arms : int
        The number of arms, K.

    Returns
    -------
    NamedTuple
        The state, for `open_ledger`.

    Raises
    ------
    InvalidValueError
        If the law cannot be used with these arguments.
    """
    if delay is None or delay in ("append-only", "conversions"):
        return assume(delay, None, n_arms)
    if delay == "learn":
        return start_learned_by_clock(window, n_arms)
    if delay == "learn-from-self-duels":
        raise InvalidValueError(
            "delay='learn-from-self-duels' does not go by the clock: write delay='learn' and let a "
            "coin decide who is shown first, or tell the law"
        )
    return start_told_by_clock(check_delay(delay, n_arms), window, n_arms)


def with_room(ledger: Ledger, t: int) -> Ledger:
    """Return a ledger with room for the duel with number t, if it goes by the clock.

    Parameters
    ----------
    ledger : Ledger
        The ledger.
    t : int
        The number of the duel, from 1.

    Returns
    -------
    Ledger
        The same ledger, or a larger one with its contents.
    """
    assumed = ledger.assumed
    if isinstance(assumed, ByClock):
        room: Any = with_room_by_clock(assumed, t)
    elif isinstance(assumed, EProcess):
        room = with_room_for_bets(assumed, t)
    else:
        return ledger
    return ledger if room is assumed else ledger._replace(assumed=room)


def assume(
    delay: Delay | str | None, window: int | None, n_arms: int, order: str = "champion"
) -> Any:
    """Return the state that keeps *expected* for a law, or for one of the baselines.

    Parameters
    ----------
    delay : Law, ByPair, str or None
        The law or its text. ``"learn"`` learns it, up to the window, from duels whose `order` is a
        coin's or alternates; ``"learn-from-self-duels"`` learns it from self-duels. None,
        ``"append-only"`` and ``"conversions"`` are the baselines without a law.
    window : int or None
        The ticks after which a conversion is no longer counted.
    n_arms : int
        The number of arms, K.
    order : str
        ``"champion"``, ``"coin"`` or ``"alternate"``.

    Returns
    -------
    NamedTuple
        The state, for `open_ledger`.

    Raises
    ------
    InvalidValueError
        If the law cannot be used with these arguments.
    """
    if delay is None:
        return AtOnce(1.0)
    if delay == "append-only":
        return AppendOnly(1.0)
    if delay == "conversions":
        return ConversionsOnly(1.0)
    if delay in WAYS:
        ages = check_learning(str(delay), order, window)
        return start_learned(ages, n_arms, from_self_duels=delay != "learn")
    delay = check_delay(delay, n_arms)
    if isinstance(delay, Never) and isinstance(delay.law, Geometric) and delay.law.p < 1:
        return start_geometric(delay.law.p, 1.0 - delay.share, window, n_arms)
    if isinstance(delay, Geometric) and delay.p < 1:
        return start_geometric(delay.p, 1.0, window, n_arms)
    return start_table(delay, window, n_arms)


_PASSES_OF_A_STEP = 5  # of duels to the next bucket of age: as much work as one duel
_ALLOWS_FOR_DELAY = (AssumedGeometric, AssumedTable, LearnedLaw, ByClock, Votes, EProcess)


def assumes_delay(ledger: Ledger) -> bool:
    """Whether the ledger allows for conversions that are late.

    Parameters
    ----------
    ledger : Ledger
        The ledger.

    Returns
    -------
    bool
        False for a ledger that counts a silent duel as lost, or not at all.
    """
    return isinstance(ledger.assumed, _ALLOWS_FOR_DELAY)


def for_votes(ledger: Ledger, *, corrects_position: bool = False) -> Ledger:
    """Return a ledger for votes with the same order; it assumes nothing about the delays.

    Parameters
    ----------
    ledger : Ledger
        A ledger without duels.
    corrects_position : bool
        Whether to remove the advantage of being shown first.

    Returns
    -------
    Ledger
        The ledger for votes.

    Raises
    ------
    InvalidValueError
        If `corrects_position` is True for a policy that decides.
    """
    if isinstance(ledger.assumed, EProcess):
        if corrects_position:
            raise InvalidValueError(
                "corrects_position must be False for a policy that decides: the coin gives the "
                "first place to both arms alike",
                argument="corrects_position",
            )
        eprocess, told = ledger.assumed, ledger.assumed.told
        if told.is_told:  # of no use: W is not the one of the law
            longest = math.inf if eprocess.by_clock else eprocess.state.size - 1.0
            eprocess = eprocess._replace(told=told._replace(is_told=False), window=longest)
        return ledger._replace(assumed=eprocess._replace(is_vote=True))
    return ledger._replace(assumed=start_votes(corrects_position, len(ledger.plays)))


def open_ledger(
    assumed: Any, n_arms: int, order: str = "champion", *, self_duels: bool = True
) -> Ledger:
    """Return an empty ledger.

    Parameters
    ----------
    assumed : NamedTuple
        What the ledger assumes about the delay, from `assume` or `assume_by_clock`.
    n_arms : int
        The number of arms, K.
    order : str
        ``"champion"``, ``"coin"`` or ``"alternate"``.
    self_duels : bool
        Whether an arm may duel itself.

    Returns
    -------
    Ledger
        A ledger without duels.
    """
    shape = (n_arms, n_arms)
    return Ledger(
        np.zeros(shape, dtype=np.int64),
        np.zeros(shape, dtype=np.int64),
        np.zeros(n_arms, dtype=np.int64),
        assumed,
        start_order(order, n_arms),
        self_duels,
    )


@kernel
def note_news(ledger: Ledger, i: int, j: int) -> None:
    """Count news of two arms; a self-duel is no news."""
    if i != j:
        ledger.news[i] += 1
        ledger.news[j] += 1


@border
@kernel
def record(ledger: Ledger, i: int, j: int, t: int) -> None:
    """Record that i (first) and j (second) duel at tick t.

    Parameters
    ----------
    ledger : Ledger
        The ledger, which is changed.
    i, j : int
        The first arm and the second.
    t : int
        The tick, from 1.
    """
    ledger.plays[i, j] += 1
    note_news(ledger, i, j)
    enter(ledger.assumed, i, j, t)


@border
@kernel
def hear(ledger: Ledger, i: int, j: int, born: int, t: int) -> None:
    """Record the conversion of a duel.

    Parameters
    ----------
    ledger : Ledger
        The ledger, which is changed.
    i, j : int
        The first arm and the second.
    born : int
        The tick of the duel.
    t : int
        The tick at which the conversion came.
    """
    ledger.conversions[i, j] += 1
    note_news(ledger, i, j)
    convert(ledger.assumed, born, t)


@border
@kernel
def hear_away(ledger: Ledger, born: int, t: int) -> None:
    """Record a conversion of an arm that the ledger lacks, from which only the law is learned.

    Parameters
    ----------
    ledger : Ledger
        The ledger, which is changed.
    born : int
        The tick of the duel.
    t : int
        The tick at which the conversion came.
    """
    convert(ledger.assumed, born, t)


@border
@kernel
def hear_vote(ledger: Ledger, i: int, j: int, first_won: float, born: int, t: int) -> None:
    """Record the vote on a duel.

    Parameters
    ----------
    ledger : Ledger
        The ledger, which is changed.
    i, j : int
        The first arm and the second.
    first_won : float
        1 if the first arm won, 0 if the second did, 1/2 for a tie.
    born : int
        The tick of the duel.
    t : int
        The tick at which the vote came.
    """
    if first_won == 1.0:
        ledger.conversions[i, j] += 1
    note_news(ledger, i, j)
    vote(ledger.assumed, i, j, first_won, born, t)


@border_of(lambda ledger, t: _count_steps_to(ledger.assumed, t))
@kernel
def age_to(ledger: Ledger, t: int) -> None:
    """Advance the ledger from tick t - 1 to tick t.

    Parameters
    ----------
    ledger : Ledger
        The ledger, which is changed.
    t : int
        The tick, from 1.
    """
    advance(ledger.assumed, t)


def _count_steps_to(assumed: Any, t: int) -> int:
    """Return how many steps `age_to` takes: many where a replay is to catch up with the clock."""
    if not isinstance(assumed, ByClock):
        return 0
    return count_passes(assumed, t) // _PASSES_OF_A_STEP


@border
@kernel
def clock_to(ledger: Ledger, now: float) -> None:
    """Set the time of a ledger that goes by the clock.

    Parameters
    ----------
    ledger : Ledger
        The ledger, which is changed.
    now : float
        The time in seconds.
    """
    set_clock(ledger.assumed, now)


@border_of(lambda ledger, n, n_tilde, s: n.size // 50)
@kernel
def _tabulate(ledger: Ledger, n: Floats, n_tilde: Floats, s: Floats) -> None:
    k = ledger.plays.shape[0]
    for i in range(k):
        for j in range(k):
            if i != j:
                n[i, j], n_tilde[i, j], s[i, j] = pair_counts(
                    ledger.assumed, ledger.plays, ledger.conversions, i, j
                )
