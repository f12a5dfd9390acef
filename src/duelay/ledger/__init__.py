"""The ledger: what has been played and heard, under what a policy assumes about the delay.

`ledger` has the counts, `assumption` the four lines of algebra and what is asked of an assumption;
`at_once`, `geometric`, `table`, `learned` and `votes` are the assumptions, `clock` those in time;
`bets` assumes nothing and keeps evidence, `told` a law for it, and `declare` looks at it.
`order` says which arm is shown first.
"""

from __future__ import annotations

from duelay.ledger.ledger import (
    Estimates,
    Ledger,
    age_to,
    assume,
    assume_by_clock,
    assumes_delay,
    clock_to,
    for_votes,
    hear,
    hear_away,
    hear_vote,
    open_ledger,
    record,
    with_room,
)

__all__ = [
    "Estimates",
    "Ledger",
    "age_to",
    "assume",
    "assume_by_clock",
    "assumes_delay",
    "clock_to",
    "for_votes",
    "hear",
    "hear_away",
    "hear_vote",
    "open_ledger",
    "record",
    "with_room",
]
