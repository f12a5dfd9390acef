"""A delay is one law for all pairs of arms, or one law for each pair: checks, text form, tables."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np

from duelay import text
from duelay._core.arrays import Floats, Integers
from duelay._core.duration import Duration
from duelay.delays.base import Law
from duelay.delays.by_pair import ByPair
from duelay.delays.ticks_or_clock import refuse_time
from duelay.delays.user_laws import check_own, check_rises
from duelay.errors import InvalidValueError

Delay: TypeAlias = Law | ByPair


def parse(form: str) -> Delay:
    """Return the law of a text form.

    Parameters
    ----------
    form : str
        The text form, such as ``"geometric:0.01"``.

    Raises
    ------
    ValueError
        If no law has this form.

    Examples
    --------
    >>> parse("never:0.3,geometric:0.01")
    Never(share=0.3, law=Geometric(p=0.01))
    """
    law: Delay = text.parse("law", form)
    return law


def check_delay(delay: Any, n_arms: int | None = None) -> Delay:
    """Return a delay law.

    Parameters
    ----------
    delay : Law, ByPair or str
        A law or its text form.
    n_arms : int, optional
        The number of arms for which laws by pair must be given; None for any number.

    Raises
    ------
    ValueError
        If `delay` is no law, or does not fit the number of arms.
    """
    _refuse_number(delay)
    if isinstance(delay, str):
        delay = parse(delay)
    if not isinstance(delay, Law | ByPair):
        raise InvalidValueError(
            f"delay must be a delay law, such as duelay.delays.Geometric(0.01), got {delay!r}",
            argument="delay",
        )
    if isinstance(delay, ByPair) and n_arms is not None and delay.n_arms != n_arms:
        raise InvalidValueError(
            f"delay must have laws for {n_arms} arms, got them for {delay.n_arms}", argument="delay"
        )
    law: Delay = delay
    check_own(law)
    return law


def _refuse_number(delay: Any) -> None:
    """Refuse a number of ticks: it could be a mean or a constant. Say how to write either.

    The same for a duration.
    """
    try:
        time = Duration(delay)
    except ValueError:
        pass
    else:
        raise InvalidValueError(
            f"delay must be a delay law, got the duration {time}: write exponential:{time} for a "
            f"mean of {time}, constant:{time} for {time} every time",
            argument="delay",
        )
    try:
        ticks = float(delay)
    except (TypeError, ValueError):
        return
    if 1 <= ticks < math.inf:
        raise InvalidValueError(
            f"delay must be a delay law, got the number {delay}: write geometric:{1 / ticks:g} for "
            f"a mean of {delay}, constant:{ticks:.0f} for {delay} every time",
            argument="delay",
        )
    if 0 < ticks < 1:
        raise InvalidValueError(
            f"delay must be a delay law, got the number {delay}: write geometric:{delay} if that "
            f"is the chance at each tick that the answer comes",
            argument="delay",
        )


def tables(delay: Delay, n_arms: int, limit: int) -> tuple[Floats, Integers]:
    """Tabulate delay laws in ticks.

    Parameters
    ----------
    delay : Law or ByPair
        A law in ticks.
    n_arms : int
        The number of arms, K.
    limit : int
        The largest age of the table.

    Returns
    -------
    tau : ``tau[law[i, j], age]`` for ages from 0 to the age at which every law has settled.
    law : (K, K), the row of each ordered pair.
    """
    refuse_time("delay", delay)
    distinct, which = laws_of(delay, n_arms)
    n = max(law.settled(limit) for law in distinct)
    tau = np.stack([np.asarray(law.cdf(np.arange(n + 1)), dtype=np.float64) for law in distinct])
    for law, row in zip(distinct, tau, strict=True):
        check_rises(law, np.arange(n + 1), row)
    return tau, which


def laws_of(delay: Delay, n_arms: int) -> tuple[list[Law], Integers]:
    """Return the different laws of all pairs, and which of them a pair has (K×K)."""
    pairs = [delay.at(i, j) for i in range(n_arms) for j in range(n_arms)]
    place = {law: number for number, law in enumerate(dict.fromkeys(pairs))}
    which = np.array([place[law] for law in pairs], dtype=np.int64).reshape(n_arms, n_arms)
    return list(place), which
