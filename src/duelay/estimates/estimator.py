"""Estimate preferences and delays from a log, by the method that its order allows."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

from duelay._core import checks
from duelay.assumptions import TESTS, independence, order_balance, share_by_pair
from duelay.assumptions.finding import Finding
from duelay.assumptions.order import is_even
from duelay.delays.delay import Delay, check_delay
from duelay.delays.fitted_laws import DelayEstimate
from duelay.delays.joint_estimation import Joint
from duelay.delays.ticks_or_clock import is_in_time
from duelay.errors import InvalidValueError
from duelay.estimates.conversion_rates import rates_of, share_by_evidence
from duelay.estimates.delays import find_delays
from duelay.estimates.preferences import (
    Counts,
    Floats,
    Position,
    Preferences,
    count,
    find_naive,
    find_position,
    of_coin,
    of_joint,
    of_told_law,
    of_votes,
)
from duelay.estimates.repeated_answers import (
    count_repeated,
    draw_one_duel_per_unit,
    first_share,
    pool_answers_of_units,
)
from duelay.estimates.result import Estimate
from duelay.inference.evidence import evidence_of, replay_bets
from duelay.inference.guarantee import BY_TOLD_LAW, Guarantee, Past, find_guarantee
from duelay.logs.history import History

_LEVEL = 0.05  # of all tests of assumptions together
_JOINT = (
    "measured, not proved: it rests on one delay law for all pairs, no advantage of the first "
    "place, and an order that was chosen before the outcome was known; for one look, if there are "
    "many answers"
)
_BONUS = (
    "measured, not proved: it rests on an advantage of the first place that is the same for every "
    "arm, estimated from the pairs that were shown in both orders; for one look"
)
_ONE_ORDER = (
    "the log does not say that the order of the arms was random, and no pair was shown in both "
    "orders, so the advantage of an arm cannot be told from that of the first place"
)
_ONE_ARM = (
    "one arm was shown at a time: the share of answers mixes the delays with the conversion rates, "
    "and the delay law is known up to a factor alone"
)
_SEEMS = ", if the order of the arms was random: the log does not say so, but agrees with it"


class _Log(NamedTuple):
    """A log, and what all methods of estimation need of it."""

    history: History  # as it was read
    pooled: History  # all answers of a unit to a pair as one
    counts: Counts  # of `pooled`
    order: str | None  # None where it is not even, or does not look so
    naive: Floats  # (K, K): the preferences of a naive reader
    position: Position | None  # what the first place is worth
    error: float


class _Estimated(NamedTuple):
    """What a method returns."""

    preferences: Preferences
    guarantee: Guarantee


def estimate(log: Any, *, error: float = 0.05, delay: Any = None, **reading: Any) -> Estimate:
    """Estimate the delay law, the preferences and the winner from a log.

    Parameters
    ----------
    log : History, path or table
        A `History`, or what `History.read` reads: the path of a CSV or Parquet file, or a table of
        pandas, polars or pyarrow.
    error : float
        The largest share of experiments in which some interval, or the winner, is wrong.
    delay : Law, ByPair or str, optional
        The delay law, or its text, if it is known.
    reading : object
        Arguments of `History.read`, such as `columns`, `zone` or `order`.

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
    told_law = None if delay is None else _check_law(delay, history)
    prepared = _prepare(history, error)
    if history.display == "one" and (told_law is not None or prepared.order is None):
        need = "delay must be left out" if told_law is not None else "order must be a coin's"
        raise InvalidValueError(f"{need} where one arm was shown at a time")
    is_vote = history.feedback == "votes"
    one_per_unit = draw_one_duel_per_unit(history) if is_vote else prepared.pooled
    delays, why_no_law = None, _ONE_ARM
    if history.display == "pair":
        ordered = dataclasses.replace(one_per_unit, order=prepared.order)
        delays, why_no_law = find_delays(ordered, error)
    preferences, guarantee = _apply_method(prepared, told_law, delays, why_no_law)
    evidence = None
    if guarantee.has_evidence:
        pooled, joined, present = prepared.pooled, history.joined, history.present
        evidence = evidence_of(replay_bets(pooled, error, joined, present, is_whole=True))
    rates = None
    if history.display == "one":
        if evidence is not None:
            preferences = share_by_evidence(preferences, evidence)
        rates = rates_of(history, prepared.pooled, preferences, error)
    looks_even = history.order is None and prepared.order is not None
    return Estimate(
        history=history,
        error=error,
        order=history.order or ("coin?" if looks_even else "unknown"),
        counts=count(history),
        delays=delays,
        told=told_law,
        preferences=preferences,
        position=prepared.position,
        guarantee=guarantee,
        evidence=evidence,
        repeated=count_repeated(history),
        findings=_test_assumptions(prepared, one_per_unit),
        why_no_law=why_no_law,
        rates=rates,
    )


def _check_law(delay: Any, history: History) -> Delay:
    law = check_delay(delay, history.n_arms)
    if is_in_time(law) != (history.at is not None):
        ways = ("in ticks", "in time")
        raise InvalidValueError(
            f"delay must be {ways[history.at is not None]} as the log is, got {law}",
            argument="delay",
        )
    return law


def _prepare(history: History, error: float) -> _Log:
    """Pool the answers of units, find the order, and count."""
    pooled = pool_answers_of_units(history)
    order = None if history.order == "champion" else history.order
    if history.order is None and is_even(history):
        order = "coin"
    is_told_even = history.order in ("coin", "alternate")
    return _Log(
        history=history,
        pooled=pooled,
        counts=count(pooled),
        order=order,
        naive=find_naive(history),
        position=find_position(history, is_coin=is_told_even),
        error=error,
    )


def _apply_method(
    log: _Log, told_law: Delay | None, delays: DelayEstimate | None, why_no_law: str
) -> _Estimated:
    """Estimate by the method that the feedback and the order allow."""
    is_vote = log.history.feedback == "votes"
    if told_law is not None and not is_vote:
        return _by_told_law(log, told_law)
    if is_vote and log.history.order not in ("coin", "alternate"):
        return _by_votes_less_bonus(log)
    if log.order is not None or not log.history.is_heard.any():
        return _by_answers(log)
    if delays is not None and delays.joint is not None:
        return _by_joint_estimation(log, delays.joint)
    raise InvalidValueError(why_no_law)


def _by_told_law(log: _Log, law: Delay) -> _Estimated:
    """Estimate from conversions in any order, given the delay law."""
    return _Estimated(of_told_law(log.pooled, law, log.error, log.naive), BY_TOLD_LAW)


def _by_votes_less_bonus(log: _Log) -> _Estimated:
    """Estimate from votes in an order that no coin decided; take out what the first place adds.

    Where that cannot be told, nothing is taken out, and nothing is guaranteed.
    """
    if log.position is None:
        guarantee = Guarantee("none", _ONE_ORDER, has_evidence=False)
        return _Estimated(of_coin(log.counts, log.error, log.naive), guarantee)
    share = first_share(log.history)
    preferences = of_votes(log.counts, log.position, share, log.error, log.naive)
    return _Estimated(preferences, Guarantee("measured", _BONUS, has_evidence=False))


def _by_answers(log: _Log) -> _Estimated:
    """Estimate from the answers alone, in an order that is even, or looks so; or without any."""
    history = log.history
    past = Past(history.n, log.order, history.chosen_by)
    guarantee = find_guarantee(None, history.feedback, log.order, past)
    if history.order is None and log.order is not None:
        # Bets are made duel by duel: an order that is even only at the end is not fair on the way.
        rests_on = "measured, not proved: it rests on " * (guarantee.kind == "proved")
        words = rests_on + guarantee.words + _SEEMS
        guarantee = Guarantee("measured", words, has_evidence=False)
    return _Estimated(of_coin(log.counts, log.error, log.naive), guarantee)


def _by_joint_estimation(log: _Log, joint: Joint) -> _Estimated:
    """Take preferences that were estimated together with the delay law."""
    return _Estimated(of_joint(joint, log.naive), Guarantee("measured", _JOINT, has_evidence=False))


def _test_assumptions(log: _Log, one_per_unit: History) -> tuple[Finding, ...]:
    """Run the tests; with units, independence is tested between units, not between votes.

    Where no coin decides the order, one delay law is taken for all pairs: that is tested, too. If
    nobody says how the order was decided and it is not even, nothing rests on its balance.
    """
    history, level = log.history, _LEVEL / len(TESTS)
    is_vote, is_uneven = history.feedback == "votes", log.order is None
    tests = [
        test for test in TESTS
        if not (test is order_balance and is_uneven and history.order is None)
    ]  # fmt: skip
    found = []
    for test in tests:
        pools = is_vote and test is independence
        found.append(test(log.pooled if pools else one_per_unit, level=level))
    if is_uneven and not is_vote:
        found.append(share_by_pair(one_per_unit, level=level))
    return tuple(each.about(history.display) for each in found)
