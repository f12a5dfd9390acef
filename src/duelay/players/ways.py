"""The shortest ways from a player to its kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from duelay._core.borders import bind
from duelay.policies.user_rule_errors import PAIR_ERRORS, refuse_pair

if TYPE_CHECKING:
    from duelay.players.player import Player


class Ways:
    """Kernels for the very objects that a player has: found once they are compiled, and kept."""

    __slots__ = ("_calls", "_turn", "ledger", "policy", "rng", "rule")

    def __init__(self, player: Player) -> None:
        self.policy, self.rng = player.policy, player._rng
        self.rule, self.ledger = player._rule, player._ledger
        self._turn: Callable[[int], tuple[int, int]] | None = None
        self._calls: dict[Any, Callable[..., Any]] = {}

    def turn(self, t: int) -> tuple[int, int]:
        """Take the turn of tick t: `Policy.turn`."""
        if self._turn is None:
            given = (self.rule, self.ledger, t, self.rng)
            self._turn = self.policy.bound_turn(*given)
            if self._turn is None:
                return self.policy.turn(*given)
        try:
            return self._turn(t)
        except PAIR_ERRORS as error:
            refuse_pair(self.rule, len(self.ledger.plays), error)
            raise

    def call(self, kernel: Callable[..., Any], *numbers: Any) -> None:
        """Call a kernel on the ledger."""
        call = self._calls.get(kernel)
        if call is None:
            call = bind(kernel, (self.ledger,), *numbers)
            if call is None:
                kernel(self.ledger, *numbers)
                return
            self._calls[kernel] = call
        call(*numbers)
