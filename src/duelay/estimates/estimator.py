"""Estimate preferences and delays from a log, by the method that its order allows."""

from __future__ import annotations

import dataclasses
from typing import Any

from duelay import delays as laws
from duelay._core import checks
from duelay.assumptions import check_assumptions, independence, share_by_pair
from duelay.assumptions.finding import Finding
from duelay.assumptions.order import is_even
from duelay.delays import Delay
from duelay.delays.time_units import is_in_time
from duelay.errors import InvalidValueError
from duelay.estimates.estimate import Estimate
from duelay.estimates.preferences import (
    count,
    find_naive,
    find_position,
    of_coin,
    of_joint,
    of_told_law,
    of_votes,
)
from duelay.estimates.remarks import find_delays
from duelay.estimates.repeated_answers import count_repeated, first_share, once, together
from duelay.inference.evidence import replay
from duelay.inference.guarantee import Guarantee, Past, find_guarantee
from duelay.ledger.evidence.eprocess import start_eprocess
from duelay.logs.history import History

_JOINT = (
    "one delay law for all pairs, the place helping no arm, and an order that was chosen without "
    "knowing how the duel ends; for one look, where there are many answers"
)
_BONUS = (
    "the first place being worth the same to every arm, as is estimated from what was shown in "
    "both orders; for one look"
)
_ONE_ORDER = (
    "nobody says that a coin decided who was first, and nothing was shown in both orders: who is "
    "better, and what the first place is worth, cannot be told apart"
)
_SEEMS = ", if a coin decided who was first: nobody says so, and the log does not contradict it"


def estimate(log: Any, *, error: float = 0.05, delay: Any = None, **reading: Any) -> Estimate:
    """Estimate the delay law, the preferences and the winner from a log.

    Parameters
    ----------
    log : a `History`, or what `History.read` reads: the path of a CSV or Parquet file, or a table
        of pandas, polars or pyarrow.
    error : the largest share of experiments in which some interval, or the winner, is wrong.
    delay : the delay law, or its text, if it is known.
    reading : arguments of `History.read`, such as `columns`, `zone` or `order`.

    Returns
    -------
    Estimate

    Raises
    ------
    ValueError
        If the log cannot be read, or has too little data for an estimate.

    Notes
    -----
    If a coin decided which arm is first, or for votes, the preferences follow from the answers
    alone, without assumptions about the delays. In another order they depend on the delay law: on
    `delay`, or on one that is estimated together with them. The answers of a unit to a pair count
    once.
    """
    error = checks.number("error", error, above=0, below=1)
    if isinstance(log, History) and reading:
        raise InvalidValueError(
            f"log is a History already: {', '.join(reading)} is for reading a table, give it to "
            "History.read"
        )
    history = log if isinstance(log, History) else History.read(log, **reading)
    told = None if delay is None else _check_law(delay, history)
    order, seems = _find_order(history)
    counted = together(history)
    single = once(history) if history.feedback == "votes" else counted
    found, why = find_delays(dataclasses.replace(single, order=order), error)
    is_vote, is_coin = history.feedback == "votes", history.order in ("coin", "alternate")
    naive, position = find_naive(history), find_position(history, is_coin=is_coin)
    counts = count(counted)
    if told is not None and not is_vote:
        preferences = of_told_law(counted, told, error, naive)
        guarantee = Guarantee("proved", "the delay law being as it was told", has_evidence=False)
    elif is_vote and not is_coin and position is None:
        preferences = of_coin(counts, error, naive)
        guarantee = Guarantee("none", _ONE_ORDER, has_evidence=False)
    elif is_vote and not is_coin and position is not None:
        preferences = of_votes(counts, position, first_share(history), error, naive)
        guarantee = Guarantee("measured", _BONUS, has_evidence=False)
    elif order is not None:
        preferences = of_coin(counts, error, naive)
        guarantee = _guarantee(history, order, seems)
    elif found is not None and found.joint is not None:
        preferences = of_joint(found.joint, naive)
        guarantee = Guarantee("measured", _JOINT, has_evidence=False)
    else:
        raise InvalidValueError(why)
    return Estimate(
        history=history,
        error=error,
        order=history.order or ("coin?" if seems else "unknown"),
        counts=count(history),
        delays=found,
        told=told,
        preferences=preferences,
        position=position,
        guarantee=guarantee,
        evidence=replay(counted, error, is_whole=True) if guarantee.has_evidence else None,
        repeated=count_repeated(history),
        findings=_test(_as_shown(single, order), counted if is_vote else None),
        why_no_law=why,
    )


def _check_law(delay: Any, history: History) -> Delay:
    law = laws.check(delay, history.n_arms)
    if is_in_time(law) != (history.at is not None):
        ways = ("in ticks", "in time")
        raise InvalidValueError(
            f"delay must be {ways[history.at is not None]} as the log is, got {law}"
        )
    return law


def _find_order(history: History) -> tuple[str | None, bool]:
    """Return the order if it is even, else None; and whether it only seems so."""
    if history.order is not None:
        return (None if history.order == "champion" else history.order), False
    seems = is_even(history)
    return ("coin" if seems else None), seems


def _test(history: History, together: History | None) -> tuple[Finding, ...]:
    """Run the tests; with units, independence is tested between units, not between votes.

    Where no coin decides the order, one delay law is taken for all pairs: that is tested, too.
    """
    found = check_assumptions(history)
    if together is None and history.order == "champion":
        found.append(share_by_pair(history, level=0.05 / len(found)))
    if together is not None and together is not history:
        level = 0.05 / len(found)
        found = [independence(together, level=level) if one.name == "independence" else one
                 for one in found]  # fmt: skip
    return tuple(found)


def _as_shown(history: History, order: str | None) -> History:
    """The history for tests: an uneven order is no alarm, since nothing rests on it."""
    uneven = history.order is None and order is None
    return dataclasses.replace(history, order="champion") if uneven else history


def _guarantee(history: History, order: str | None, seems: bool) -> Guarantee:
    by_clock = history.at is not None
    eprocess = start_eprocess(0.05, None, history.n_arms, by_clock=by_clock)
    past = Past(history.n, order, history.chosen_by)
    found = find_guarantee(eprocess, history.feedback, order, past)
    if not seems:
        return found
    # Bets are made duel by duel: an order that is even only at the end is not fair on the way.
    return Guarantee("measured", found.words + _SEEMS, has_evidence=False)
