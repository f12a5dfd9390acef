"""The arms of a player, which may come and go while it plays.

A cast is made anew at every change, and never written to.

An arm keeps its number for ever. A policy that decides keeps all arms in its ledger, and does not
ask those that are retired (`duelay.ledger.declare`). The ledger and the rule of any other policy
know only the arms that are present. When an arm comes or goes, ledger and rule are made anew, and
all duels of two arms that are present are booked again. All other duels still teach the law.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from duelay.delays import check as check_delay
from duelay.ledger import Ledger, with_room
from duelay.ledger.arms import reopen, with_arm
from duelay.ledger.bets import Bets
from duelay.ledger.order import keep_turns
from duelay.logs.changes import Change, joined_of, present_of
from duelay.logs.history import History
from duelay.players.booking import book
from duelay.problems import check_arms

if TYPE_CHECKING:
    from duelay.players.player import Player
    from duelay.policies.policy import Policy


class Cast:
    """Which arms are present, when they joined, and where the ledger has them."""

    def __init__(
        self, arms: Sequence[str], changes: tuple[Change, ...] = (), *, of_all: bool = True
    ) -> None:
        """Give a place in the ledger to all arms, or to those that are present."""
        self.changes = changes  # arms that have come or gone
        self.joined = joined_of(arms, changes)  # 0 for the first, n for the n-th to join
        self.present = present_of(arms, changes)
        everybody = np.arange(len(self.present))
        self.shown = everybody if of_all else np.flatnonzero(self.present)  # of each place
        self.place = np.full(len(self.present), -1)  # of each arm; -1 where it has none
        self.place[self.shown] = np.arange(len(self.shown))
        # The same as lists: in Python, for one arm, they are quicker.
        self.arm_at: list[int] = self.shown.tolist()
        self.place_of: list[int] = self.place.tolist()

    @property
    def has_changed(self) -> bool:
        """Whether an arm has ever come or gone."""
        return bool(self.changes)

    def spread(self, values: NDArray[Any], fill: Any) -> NDArray[Any]:
        """Return what the ledger has by place, by arm; `fill` where an arm has none."""
        k, axes = len(self.place), values.ndim
        found = np.full((k,) * axes, fill, dtype=np.result_type(values, type(fill)))
        found[np.ix_(*[self.shown] * axes)] = values
        if axes == 2:
            np.fill_diagonal(found, values[0, 0])  # an arm against itself is the same for all
        return found


def add_arm(player: Player, name: str) -> None:
    """Let an arm join, or come back; the caller holds the player's lock."""
    if not isinstance(name, str) or not name:
        raise ValueError(f"name must be a text, the name of an arm, got {name!r}")
    if name not in player.arms:
        check_arms((*player.arms, name))
    elif player._cast.present[player.arms.index(name)]:
        return
    if isinstance(player._ledger.assumed, Bets) and player._clock is None:
        if name not in player.arms:
            raise ValueError(
                "add_arm needs a player that goes by the clock where the policy decides: in ticks "
                "its threshold, K / error, leaves nothing of `error` to an arm that joins; start "
                'it with clock="wall", where it is (K + 1) / error'
            )
    _change(player, name, "joined")


def retire_arm(player: Player, name: str) -> None:
    """Ask an arm no more; the caller holds the player's lock."""
    present = [arm for arm, is_there in zip(player.arms, player._cast.present, strict=True)
               if is_there]  # fmt: skip
    if name not in player.arms:
        raise ValueError(f"name must be that of an arm, {present} are there, got {name!r}")
    if name not in present:
        return
    if len(present) == 2:
        raise ValueError(f"two arms must stay, and {present} are all that is left")
    _change(player, name, "retired")


def _change(player: Player, name: str, kind: str) -> None:
    policy = player.policy
    if not policy.goes_by_clock or policy.delay == "learn-from-self-duels":
        raise ValueError(f"the arms of {policy} cannot change: its rounds or its law rest on them")
    before = {key: getattr(player, key) for key in ("arms", "_cast", "_pairs")}
    arms = player.arms if name in player.arms else (*player.arms, name)
    first, second = np.divmod(np.array(player._pairs, dtype=np.int64), player.n_arms)
    at = None if player._clock is None or player.tick == 0 else player._clock.now
    changes = (*player._cast.changes, Change(player.tick, name, kind, at))
    ledger = player._ledger
    is_deciding = isinstance(ledger.assumed, Bets)
    player.arms = arms
    player._pairs = type(player._pairs)("q", (first * player.n_arms + second).tobytes())
    player._cast = Cast(arms, changes, of_all=is_deciding)
    try:
        if is_deciding:
            player._ledger = changed(ledger, arms.index(name), kind, policy)
        else:
            rebuild(player)
    except ValueError:
        player.__dict__.update(before)
        raise


def changed(ledger: Ledger, arm: int, kind: str, policy: Policy) -> Ledger:
    """Return the ledger of a policy that decides, after an arm, by its number, has come or gone."""
    bets, error = ledger.assumed, float(policy.error)  # type: ignore[attr-defined]
    if arm < len(bets.present):
        bets.present[arm] = kind == "joined"
        return ledger._replace(assumed=reopen(bets, error))
    if bets.told.is_told:
        check_delay(policy.delay, len(bets.present) + 1)  # refuses one law a pair
    return ledger._replace(
        plays=np.pad(ledger.plays, (0, 1)),
        conversions=np.pad(ledger.conversions, (0, 1)),
        news=np.pad(ledger.news, (0, 1)),
        assumed=with_arm(bets, error),
    )


def rebuild(player: Player) -> None:
    """Make ledger and rule anew for the arms that are present, and book their duels."""
    cast = player._cast
    ledger, rule = player._open(len(cast.shown))
    past = player._history()
    history = among(past, cast)
    is_away = ~is_among(past, cast) & (past.first != past.second)
    ledger = with_room(ledger, history.n + 1)
    history = dataclasses.replace(history, delay=past.delay, first_won=past.first_won)
    book(ledger, history, is_away=is_away)  # answers to duels of retired arms teach the law
    keep_turns(ledger.order, history.first, history.second)
    player._ledger, player._rule = ledger, rule


def is_among(history: History, cast: Cast) -> NDArray[np.bool_]:
    """Which duels are of arms that have a place in the ledger."""
    return np.asarray((cast.place[history.first] >= 0) & (cast.place[history.second] >= 0))


def among(history: History, cast: Cast) -> History:
    """Return a history by places of the ledger; a duel of an arm without a place tells nothing."""
    first, second = cast.place[history.first], cast.place[history.second]
    is_away = ~is_among(history, cast)
    return dataclasses.replace(
        history,
        changes=(),
        declared=None,
        n_arms=len(cast.shown),
        arms=tuple(history.arms[arm] for arm in cast.shown),
        first=np.where(is_away, 0, first),
        second=np.where(is_away, 0, second),  # a self-duel, of which nothing is heard
        delay=np.where(is_away, np.nan, history.delay),
        first_won=np.where(is_away, np.nan, history.first_won),
    )
