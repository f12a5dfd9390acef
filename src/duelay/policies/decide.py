"""The policy that decides: it asks where evidence is missing, and says when to stop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from duelay._core import checks
from duelay._core.duration import Duration
from duelay.delays import Delay
from duelay.delays import check as check_delay
from duelay.delays.units import WAYS, in_ticks, in_time
from duelay.ledger import Ledger, open_ledger
from duelay.ledger.bets import start_bets
from duelay.policies.policy import CompiledPolicy
from duelay.rules.decide import DecideRule
from duelay.text import named


@named("policy", "decide")
@dataclass(frozen=True, kw_only=True)
class Decide(CompiledPolicy):
    """Find the winner in few duels, and declare it; nothing need be known about the delays.

    It names a wrong winner, or one where there is none, in a share `error` of experiments at most,
    however often somebody looks. That holds for any delays, never-answering ones included, as long
    as they do not depend on who won, the two arms are shown in the order asked, and different duels
    are answered independently (docs/theory.md). Until then it does not save regret; afterwards the
    winner duels itself.

    Parameters
    ----------
    delay : the law, if it is known; by the clock, in time. It then takes fewer duels the longer the
        delays are, and the guarantee rests on the law being right. None, the default, rests on
        nothing of the kind.
    order : ``"coin"``, and nothing else: the guarantee rests on it, unless a law is told.
    window : ticks after which a conversion is no longer counted; None waits for ever.
    error : the probability that it may err with, 0.05 by default.
    winner_exists : take for granted that one arm beats all others (a Condorcet winner). It then
        takes fewer duels; where there is none, it still names one.
    self_duels : False for always two different arms, see `DoubleThompson`.

    Examples
    --------
    >>> player = Decide(error=0.1).start(["red", "green"], seed=0)
    >>> while player.standing().winner is None:
    ...     duel = player.ask()
    ...     if duel.first == 1:  # green wins whenever it is shown first
    ...         _ = player.tell(duel)
    >>> player.arms[player.standing().winner]
    'green'
    """

    is_shared: ClassVar[bool] = True
    delay: Delay | str | None = None
    order: str = "coin"
    window: int | Duration | None = None
    error: float = 0.05
    winner_exists: bool = False
    self_duels: bool = True

    def __post_init__(self) -> None:
        if self.delay is not None:
            object.__setattr__(self, "delay", self._known_law())
        if self.order != "coin":
            raise ValueError(
                "order must be 'coin' for a policy that decides: its guarantee rests on the coin, "
                f"unless a law is told, and the coin does no harm there, got {self.order!r}"
            )
        object.__setattr__(self, "window", checks.window(self.window))
        object.__setattr__(self, "error", checks.number("error", self.error, above=0, below=1))
        checks.yes_or_no("winner_exists", self.winner_exists)
        checks.yes_or_no("self_duels", self.self_duels)

    def _known_law(self) -> Delay:
        if self.delay in WAYS:
            raise ValueError(
                f"delay must be None or a law for a policy that decides: it need not learn it, got "
                f"{self.delay!r}"
            )
        return check_delay(self.delay)

    def ledger(self, n_arms: int, *, by_clock: bool = False) -> Ledger:
        """Return an empty ledger that bets."""
        law = None if self.delay is None else check_delay(self.delay, n_arms)
        bets = start_bets(
            self.error,
            in_time(self) if by_clock else in_ticks(self.window),
            n_arms,
            winner_exists=self.winner_exists,
            delay=law,
            by_clock=by_clock,
        )
        return open_ledger(bets, n_arms, self.order, self_duels=self.self_duels)

    def rule(self, n_arms: int) -> DecideRule:
        """Return the rule that asks where evidence is missing."""
        return DecideRule(0)
