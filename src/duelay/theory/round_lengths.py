"""The lengths of the rounds of MRR-DB-Delay: n_m of the appendix, or of Equation 6."""

from __future__ import annotations

import math

import numpy as np

from duelay._core import checks
from duelay._core.arrays import Integers
from duelay._core.feedback import check_feedback
from duelay.errors import InvalidValueError

NO_VOTES = "the paper has no formula for both outcomes"


def mrr_schedule(
    horizon: int,
    mean_delay: float,
    *,
    feedback: str = "conversions",
    constants: tuple[float, float, float] | None = None,
) -> Integers:
    """Return n_1, n_2, ...: the plays of each pair by the end of each round of MRR-DB-Delay.

    Without `constants` these are the appendix's formulas: the end of B.1 for conversions, Appendix
    C for counts. With them it is Equation 6, the brief form, rounded up:
    C_1 log(T gamma^2) / gamma^2 + C_2 sqrt(E[D] log(T gamma^2)) / gamma + C_3 E[D] / gamma.
    The schedule ends where T gamma_m^2 <= e, or n_m exceeds the horizon; that round lasts to the
    horizon.

    Parameters
    ----------
    horizon : int
        The horizon T.
    mean_delay : float
        The mean delay E[D], which must be finite.
    feedback : str
        ``"conversions"`` or ``"counts"``.
    constants : tuple of float, optional
        C_1, C_2 and C_3 of Equation 6, for conversions.

    Returns
    -------
    The schedule. It ends where T gamma_m^2 <= e, or n_m exceeds the horizon: the round after the
    last one continues to the horizon.

    Examples
    --------
    >>> mrr_schedule(200_000, 100.0)[:3]
    array([ 893, 1969, 4475])
    """
    horizon = checks.whole("horizon", horizon)
    mean_delay = checks.mean_delay(mean_delay)
    check_feedback(feedback, votes=NO_VOTES)
    if constants is not None:
        constants = check_constants(constants)
    if constants is not None and feedback == "counts":
        raise InvalidValueError(
            "constants belong to Equation 6, which is for feedback='conversions'"
        )
    schedule: list[int] = []
    most = max(horizon, 2**36)  # more would change nothing, and K² times this fits an int64
    m, gamma = 1, 0.5
    while horizon * gamma**2 > math.e and (not schedule or schedule[-1] < horizon):
        log = math.log(horizon * gamma**2)
        if constants is not None:
            c1, c2, c3 = constants
            n = c1 * log / gamma**2 + c2 * math.sqrt(mean_delay * log) / gamma
            n += c3 * mean_delay / gamma
        elif feedback == "counts":
            rest = 2 * log + 8 / 3 * gamma * log + 6 * gamma * m * mean_delay
            n = (math.sqrt(2 * log) + math.sqrt(rest)) ** 2 / gamma**2
        else:
            late = math.sqrt(2 * mean_delay * log)
            rest = log / 2 + 4 / 3 * gamma * log + 2 * gamma * late + 2 * gamma * mean_delay
            n = (math.sqrt(log / 2) + math.sqrt(rest)) ** 2 / gamma**2
        least = schedule[-1] + 1 if schedule else 1
        schedule.append(max(math.ceil(min(n, most)), least))
        m, gamma = m + 1, gamma / 2
    return np.array(schedule, dtype=np.int64)


def check_constants(constants: object) -> tuple[float, float, float]:
    """Return C_1, C_2 and C_3 of Equation 6; raise ValueError unless they are valid."""
    needs = "constants must be three numbers C_1 > 0, C_2 >= 0 and C_3 >= 0"
    if isinstance(constants, np.ndarray):
        constants = constants.tolist()
    if not isinstance(constants, tuple | list) or len(constants) != 3:
        raise InvalidValueError(f"{needs}, got {constants!r}")
    try:
        c1 = checks.number("C_1", constants[0], above=0)
        c2, c3 = (checks.number("C", c, least=0) for c in constants[1:])
    except ValueError:
        raise InvalidValueError(f"{needs}, got {constants!r}") from None
    return c1, c2, c3
