"""The ledger: the duels and answers so far, and expected answers under an assumed delay law.

`ledger` has the counts. `assumption` has the four lines of algebra, and the questions that each
assumption answers. The assumptions with ages in ticks are `at_once`, `geometric`, `table`,
`learned` and `votes`; `clock` has ages in seconds. `bets` assumes nothing about the delay and keeps
evidence, `told` is a delay law for these bets, and `declare` looks at the evidence. `order` says
which arm is shown first.
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
