"""The ledger: the duels and answers so far, and expected answers under an assumed delay law.

`ledger` has the counts, and `display_order` decides which arm is shown first. `delay_models` has
one module for each assumption about the delay, and `base` lists the functions that each must
define.
`evidence` has the e-process, which assumes nothing about the delay, and the stopping rule.
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
