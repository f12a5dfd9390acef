"""The guarantee of a standing, proved, measured or none, and its reason."""

from __future__ import annotations

from typing import Any, NamedTuple

from duelay.ledger.delay_models.continuous_time import ByClock
from duelay.ledger.delay_models.geometric import AssumedGeometric
from duelay.ledger.delay_models.tabulated import AssumedTable
from duelay.ledger.display_order import weaker
from duelay.ledger.evidence.eprocess import EProcess

# `python -m benchmarks decide` measures it: false declarations in turns, two arms tied.
MEASURED = "no false winner in 3,000 simulated experiments, where 5 % were allowed"

_THEN = " then "  # between the policies that have chosen one after the other


class Past(NamedTuple):
    """The origin of the replayed duels of a player."""

    n: int
    order: str | None
    chosen_by: str  # the text of a policy; empty if it is not known

    def order_until(self, tick: int, order: str | None) -> str | None:
        """Return the order of all duels up to a tick; `order` is that of the player's own duels."""
        return self.order if tick == self.n else weaker(self.order, order)

    def chosen_until(self, tick: int, policy: str) -> str:
        """Return who has chosen the duels up to a tick; `policy` chose the player's own duels."""
        if tick == self.n or not self.chosen_by or self.chosen_by.split(_THEN)[-1] == policy:
            return self.chosen_by
        return self.chosen_by + _THEN + policy


class Guarantee(NamedTuple):
    """The guarantee of a declared winner and of the intervals.

    Attributes
    ----------
    kind : str
        ``"proved"``, ``"measured"`` or ``"none"``.
    words : str
        What the guarantee rests on, or why there is none.
    has_evidence : bool
        Whether the order of the arms, or votes, allow a fair test.
    """

    kind: str  # "proved", "measured" or "none"
    words: str  # what it rests on, or why there is none

    has_evidence: bool = True  # whether bets on the coin or on votes are fair

    @property
    def holds(self) -> bool:
        """Whether there is a guarantee, which then holds at every look."""
        return self.kind != "none"


NONE = Guarantee("none", "nobody says how the duels were chosen", has_evidence=False)
BY_TOLD_LAW = Guarantee("proved", "the delay law being as it was told", has_evidence=False)
_BY_COIN = "the coin; whether an answer counts must not depend on who won"
_OF_ONE = (
    "a fair coin, which decides the arm that a visitor sees; whether a conversion counts must not "
    "depend on the arm that is shown"
)
_IN_TURNS = Guarantee(
    "measured",
    f"measured, not proved ({MEASURED}): with turns instead of a coin, the next order is known",
)


def find_guarantee(
    assumed: Any, feedback: str, order: str | None, past: Past | None = None
) -> Guarantee:
    """Return the guarantee for a ledger, a feedback, and the order in which arms are shown.

    `past` describes the replayed duels of a player.
    """
    found = _of_policy(assumed, feedback, order)
    is_told = isinstance(assumed, EProcess) and assumed.told.is_told
    if past is None or is_told or found.kind == "none" or found == BY_TOLD_LAW:
        return found  # where a law is told, it holds however the pairs were chosen
    if feedback != "votes" and order not in ("coin", "alternate"):
        return Guarantee(
            "none",
            "nobody says that a coin or turns decided the order of the duels that were replayed: "
            "tell the law",
            has_evidence=False,
        )
    if not past.chosen_by:
        return Guarantee(
            "measured",
            f"measured with policies of duelay, not proved ({MEASURED}): `chosen_by` does not say "
            "how the pairs were chosen",
        )
    return _IN_TURNS if feedback != "votes" and order == "alternate" else found


def _of_policy(assumed: Any, feedback: str, order: str | None) -> Guarantee:
    if feedback == "counts":
        return Guarantee(
            "none", "nobody knows to which duel a conversion belongs", has_evidence=False
        )
    if feedback == "votes":
        if order == "coin":
            exists = isinstance(assumed, EProcess) and assumed.winner_exists
            words = "votes that are told or not whoever won"
            return Guarantee("proved", words + (", if one arm beats all others" * exists))
        return Guarantee("proved", "votes that are told or not whoever won, the first place being "
                         "worth nothing")  # fmt: skip
    is_told = isinstance(assumed, ByClock) and not assumed.learns
    if is_told or isinstance(assumed, AssumedGeometric | AssumedTable):
        return BY_TOLD_LAW
    if isinstance(assumed, EProcess) and assumed.told.is_told:
        words = "the delay law being as it was told"
        return Guarantee(
            "proved", words + (", if one arm beats all others" * assumed.winner_exists)
        )
    if isinstance(assumed, EProcess):
        words = _OF_ONE if assumed.shows_one else _BY_COIN
        return Guarantee("proved", words + ", if one arm beats all others" * assumed.winner_exists)
    if order in ("coin", "alternate"):
        return Guarantee("proved", _BY_COIN) if order == "coin" else _IN_TURNS
    if order is None:
        return Guarantee(
            "none",
            "nobody says in which order the two arms were shown: say order='coin' where a coin "
            "decided it, or tell the law",
            has_evidence=False,
        )
    return Guarantee(
        "none",
        "with the champion first and no law told, silence speaks against the champion: show by "
        "coin, or tell the law",
        has_evidence=False,
    )
