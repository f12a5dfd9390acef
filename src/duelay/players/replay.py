"""Replaying a history: a player that has just started is brought to where it ends."""

from __future__ import annotations

import dataclasses
from array import array
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from duelay.delays.units import in_ticks, in_time
from duelay.ledger import Ledger, with_room
from duelay.ledger.arms import reopen
from duelay.ledger.bets import Bets
from duelay.ledger.order import keep_turns, weaker
from duelay.logs.changes import late_comers
from duelay.logs.history import History
from duelay.logs.merging import places
from duelay.players.booking import book
from duelay.players.cast import Cast, changed, rebuild

if TYPE_CHECKING:
    from duelay.players.player import Player

DESIGN = "design"  # `chosen_by` of pairs that nobody chose by looking at answers
_THEN = " then "  # between the policies that have chosen one after the other


class Past(NamedTuple):
    """How the replayed duels of a player came about."""

    n: int
    order: str | None
    chosen_by: str  # the text of a policy; empty where nobody says
    has_window: bool  # whether the history's window is the player's own

    @property
    def is_blind(self) -> bool:
        """Whether no pair was chosen by looking at the order of a duel that was not settled.

        This is true of `Decide`, unless it is told a law: then it looks at every silence. It is
        also true of "design": pairs that were fixed or drawn by lot before anything was heard.
        """
        policies = self.chosen_by.split(_THEN)
        is_decide = all(f"{p}:".startswith("decide:") and "delay=" not in p or p == DESIGN
                        for p in policies)  # fmt: skip
        return is_decide and self.has_window

    def order_until(self, tick: int, order: str | None) -> str | None:
        """Return the order of all duels up to a tick; `order` is that of the player's own duels."""
        return self.order if tick == self.n else weaker(self.order, order)

    def chosen_until(self, tick: int, policy: str) -> str:
        """Return who has chosen the duels up to a tick; `policy` chose the player's own duels."""
        if tick == self.n or not self.chosen_by or self.chosen_by.split(_THEN)[-1] == policy:
            return self.chosen_by
        return self.chosen_by + _THEN + policy


def replay_into(player: Player, history: History) -> None:
    """Book a history into a player; the caller holds its lock."""
    by_clock = player._clock is not None
    _check(player, history, by_clock=by_clock)
    history = _for(player, history)
    window = in_time(player.policy) if by_clock else in_ticks(player.policy.window)
    is_late = history.answered - history.asked > (np.inf if window is None else window)
    past = Past(history.n, history.order, history.chosen_by, history.window == window)
    history = dataclasses.replace(
        history,
        delay=np.where(is_late, np.nan, history.delay),
        first_won=np.where(is_late, np.nan, history.first_won),
        window=window,
    )
    is_deciding = isinstance(player._ledger.assumed, Bets)
    cast = Cast(history.arms, history.changes, of_all=is_deciding)
    n_places = int((cast.joined == 0).sum()) if is_deciding else len(cast.shown)
    ledger, _ = player._open(n_places)  # refuses what cannot be
    if player._clock is not None and history.now is not None:
        player._clock.read(history.now)  # refuses one in the future
    player.arms, player._cast = history.arms, cast
    _remember(player, history)
    if is_deciding:
        player._ledger = _decided(player, ledger, history)
    else:
        rebuild(player)
    player._late = int(is_late.sum())
    player._past = past if history.n else None


def _decided(player: Player, ledger: Ledger, history: History) -> Ledger:
    """Return the ledger of a policy that decides, in which arms come and go as in the history."""
    policy, arms = player.policy, history.arms
    if player._clock is None and late_comers(history.changes):
        # In ticks no room is kept for arms that join. Nobody has been declared yet: keep it now.
        bets = reopen(ledger.assumed, float(policy.error))  # type: ignore[attr-defined]
        ledger = ledger._replace(assumed=bets)
    ledger = book(
        with_room(ledger, history.n + 1),
        history,
        changed=lambda ledger, c: changed(ledger, arms.index(c.arm), c.kind, policy),
    )
    keep_turns(ledger.order, history.first, history.second)
    if history.declared is not None and history.declared.policy == str(policy):
        ledger.assumed.winner[0] = arms.index(history.declared.arm)
        ledger.assumed.declared[0] = history.declared.tick
    return ledger


def _check(player: Player, history: History, *, by_clock: bool) -> None:
    if not isinstance(history, History):
        raise ValueError(f"history must be a duelay.History, got {history!r}")
    if player.tick:
        raise ValueError(
            f"replay needs a player that has just started, and {player.tick} duels have been "
            "asked of this one: start another"
        )
    if player._cast.changes:
        raise ValueError(
            "replay needs a player whose arms have not changed: replay first, then let arms join "
            "or retire them; a history has its own changes"
        )
    if player.feedback != history.feedback:
        raise ValueError(
            f"history must have feedback={player.feedback!r} as the player has, got "
            f"{history.feedback!r}"
        )
    if not np.isin(history.first_won[history.is_heard], (0.0, 0.5, 1.0)).all():
        raise ValueError("history must hold single votes, and not means of several, to be replayed")
    if by_clock != (history.at is not None):
        ways = ("in ticks", "by the clock")
        raise ValueError(
            f"history must go {ways[by_clock]} as the player does, got one that goes "
            f"{ways[not by_clock]}: start the player {'without' if by_clock else 'with'} "
            'clock="wall"'
        )


def _for(player: Player, history: History) -> History:
    """Return the history by the numbers of the player's arms, found by name.

    Arms that joined later come after the first ones, in their order.
    """
    late = late_comers(history.changes)
    arms = (*(arm for arm in player.arms if arm not in late), *late)
    number = places(history.arms, arms)
    return dataclasses.replace(
        history,
        n_arms=len(arms),
        arms=arms,
        first=number[history.first],
        second=number[history.second],
    )


def _remember(player: Player, history: History) -> None:
    """Give the player every duel, and when it was heard, as `ask` and `tell` write them down."""
    heard = history.is_heard
    player._pairs = array("q", (history.first * player.n_arms + history.second).tobytes())
    player._told = bytearray(np.where(heard, 1 + 2 * history.first_won, 0).astype(np.uint8))
    if player._clock is None:
        ticks = np.where(heard, np.ceil(history.answered), 0)
        player._heard = array("q", ticks.astype(np.int64).tobytes())
    else:
        player._heard = array("d", history.answered.tobytes())
        player._asked = array("d", history.asked.tobytes())
    if player._keeps_leaders:
        led = np.zeros(history.n) if history.first_led is None else 2 - history.first_led
        player._led = bytearray(np.nan_to_num(led).astype(np.uint8))
