"""The arms of a player, which may come and go while it plays.

An arm keeps its number for ever. A policy that decides keeps all arms in its ledger, and does not
ask those that are retired (`duelay.ledger.declare`). The ledger and the rule of any other policy
know the arms that are present and no other: when one comes or goes they are made anew, and all
duels of arms that are present are booked again; the others still teach the law.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from duelay.assumptions.history import History
from duelay.delays import check as check_delay
from duelay.ledger import with_room
from duelay.ledger.arms import reopen, with_arm
from duelay.ledger.bets import Bets
from duelay.ledger.order import keep_turns
from duelay.players.booking import book
from duelay.problems import check_arms

if TYPE_CHECKING:
    from duelay.players.player import Player


class Cast:
    """Which arms are present, when they joined, and where the ledger has them."""

    def __init__(self, n_arms: int) -> None:
        self.joined = np.zeros(n_arms, dtype=np.int64)  # 0 for the first, n for the n-th to join
        self.present = np.ones(n_arms, dtype=np.bool_)
        self.shown = np.arange(n_arms)  # the arm of each place of the ledger
        self.place = np.arange(n_arms)  # the place of each arm; -1 where it has none

    @property
    def has_changed(self) -> bool:
        """Whether an arm has ever come or gone."""
        return bool(self.joined.any() or not self.present.all())

    def with_places(self, *, of_all: bool) -> None:
        """Give a place in the ledger to all arms, or to those that are present."""
        self.shown = np.arange(len(self.present)) if of_all else np.flatnonzero(self.present)
        self.place = np.full(len(self.present), -1)
        self.place[self.shown] = np.arange(len(self.shown))

    def spread(self, values: NDArray[Any], fill: Any) -> NDArray[Any]:
        """Return what the ledger has by place, by arm; `fill` where an arm has none."""
        k, axes = len(self.place), values.ndim
        found = np.full((k,) * axes, fill, dtype=np.result_type(values, type(fill)))
        found[np.ix_(*[self.shown] * axes)] = values
        if axes == 2:
            np.fill_diagonal(found, values[0, 0])  # an arm against itself is the same for all
        return found


def add_arm(player: Player, name: str) -> None:
    """Let an arm join, or come back; for who holds the player's lock."""
    _check_changeable(player)
    cast, ledger = player._cast, player._ledger
    if not isinstance(name, str) or not name:
        raise ValueError(f"name must be a text, the name of an arm, got {name!r}")
    if name in player.arms and cast.present[player.arms.index(name)]:
        raise ValueError(f"name must be that of an arm that is not there yet, got {name!r}")
    if name in player.arms:
        _change(player, player.arms.index(name), is_present=True)
        return
    arms = check_arms((*player.arms, name))
    if isinstance(ledger.assumed, Bets) and player._clock is None:
        raise ValueError(
            "add_arm needs a player that goes by the clock where the policy decides: in ticks its "
            'threshold has no room for more arms; start it with clock="wall"'
        )
    before = copy_of(cast)
    cast.joined = np.append(cast.joined, cast.joined.max() + 1)
    cast.present = np.append(cast.present, True)
    try:
        if isinstance(ledger.assumed, Bets):
            cast.with_places(of_all=True)
            if ledger.assumed.told.is_told:
                check_delay(player.policy.delay, len(cast.present))  # refuses one law a pair
            player._ledger = ledger._replace(
                plays=np.pad(ledger.plays, (0, 1)),
                conversions=np.pad(ledger.conversions, (0, 1)),
                news=np.pad(ledger.news, (0, 1)),
                assumed=with_arm(ledger.assumed, _error(player)),
            )
        else:
            cast.with_places(of_all=False)
            player._open(len(cast.shown))  # refuses what cannot be
    except ValueError:
        player._cast = before
        raise
    first, second = np.divmod(np.array(player._pairs, dtype=np.int64), player.n_arms)
    player.arms = arms
    player._pairs = type(player._pairs)("q", (first * player.n_arms + second).tobytes())
    if not isinstance(ledger.assumed, Bets):
        _rebuild(player)


def retire_arm(player: Player, name: str) -> None:
    """Ask an arm no more; for who holds the player's lock."""
    _check_changeable(player)
    cast = player._cast
    present = [arm for arm, is_there in zip(player.arms, cast.present, strict=True) if is_there]
    if name not in present:
        raise ValueError(f"name must be that of an arm that is there, {present}, got {name!r}")
    if len(present) == 2:
        raise ValueError(f"two arms must stay, and {present} are all that is left")
    _change(player, player.arms.index(name), is_present=False)


def copy_of(cast: Cast) -> Cast:
    """Return a cast of its own."""
    copy = Cast(0)
    copy.__dict__.update(cast.__dict__)
    return copy


def _change(player: Player, arm: int, *, is_present: bool) -> None:
    cast, ledger = player._cast, player._ledger
    cast.present = cast.present.copy()
    cast.present[arm] = is_present
    if isinstance(ledger.assumed, Bets):
        ledger.assumed.present[arm] = is_present
        player._ledger = ledger._replace(assumed=reopen(ledger.assumed, _error(player)))
    else:
        cast.with_places(of_all=False)
        _rebuild(player)


def _check_changeable(player: Player) -> None:
    policy = player.policy
    if not policy.goes_by_clock or policy.delay == "learn-from-self-duels":
        raise ValueError(f"the arms of {policy} cannot change: its rounds or its law rest on them")


def _rebuild(player: Player) -> None:
    """Make ledger and rule anew for the arms that are present, and book their duels."""
    cast = player._cast
    ledger, rule = player._open(len(cast.shown))
    past = player._history()
    history = among(past, cast)
    is_away = ~is_among(past, cast) & (past.first != past.second)
    ledger = with_room(ledger, history.n + 1)
    history = dataclasses.replace(history, delay=past.delay, first_won=past.first_won)
    book(ledger, history, is_away=is_away)  # what those away have told teaches the law
    keep_turns(ledger.order, history.first, history.second)
    player._ledger, player._rule = ledger, rule


def is_among(history: History, cast: Cast) -> NDArray[np.bool_]:
    """Which duels are of arms that have a place in the ledger."""
    return np.asarray((cast.place[history.first] >= 0) & (cast.place[history.second] >= 0))


def among(history: History, cast: Cast) -> History:
    """Return a history by places of the ledger; a duel of an arm without one tells nothing."""
    first, second = cast.place[history.first], cast.place[history.second]
    is_away = ~is_among(history, cast)
    return dataclasses.replace(
        history,
        n_arms=len(cast.shown),
        arms=tuple(history.arms[arm] for arm in cast.shown),
        first=np.where(is_away, 0, first),
        second=np.where(is_away, 0, second),  # a self-duel, of which nothing is heard
        delay=np.where(is_away, np.nan, history.delay),
        first_won=np.where(is_away, np.nan, history.first_won),
    )


def _error(player: Player) -> float:
    policy: Any = player.policy
    return float(policy.error)
