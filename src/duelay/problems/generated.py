"""Problems generated from a few numbers."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from duelay._core import checks
from duelay.errors import InvalidValueError
from duelay.problems.problem import Problem
from duelay.problems.validation import check_most


def _count(n_arms: Any) -> int:
    """Return K, from 2 to the most that a problem may have."""
    k = checks.whole("n_arms", n_arms, least=2)
    check_most("n_arms", k)
    return k


def arithmetic(n_arms: int, step: float) -> Problem:
    """Return a problem of evenly spaced arms: mu_ij = 1/2 + step · (j - i).

    Parameters
    ----------
    n_arms : int
        The number of arms, K.
    step : float
        The gap of two neighbouring arms. Arm 0 wins if it is positive.

    Examples
    --------
    >>> arithmetic(3, 0.1).gaps
    array([0. , 0.1, 0.2])
    """
    n_arms = _count(n_arms)
    rank = np.arange(n_arms)
    return Problem(0.5 + step * (rank[None, :] - rank[:, None]), name="arithmetic")


def bradley_terry(strengths: ArrayLike) -> Problem:
    """Return a problem of arms with given strengths: mu_ij = s_i / (s_i + s_j).

    Parameters
    ----------
    strengths : array_like
        K positive numbers. The strongest arm wins.

    Examples
    --------
    >>> bradley_terry([3, 1]).matrix[0, 1]
    np.float64(0.75)
    """
    s = np.asarray(strengths, dtype=np.float64)
    if s.ndim != 1 or not (s > 0).all():
        raise InvalidValueError(f"strengths must be positive numbers, got {strengths!r}")
    check_most("strengths", len(s))
    return Problem(s[:, None] / (s[:, None] + s[None, :]), name="bradley-terry")


def close_rival(n_arms: int, close: float, far: float) -> Problem:
    """Return a problem whose winner has one close rival; all other arms are further behind.

    Parameters
    ----------
    n_arms : int
        The number of arms, K.
    close : float
        The gap of arm 1 to the winner, arm 0.
    far : float
        The gap of the other arms. All arms but the winner are equal among themselves.
    """
    n_arms = _count(n_arms)
    matrix = np.full((n_arms, n_arms), 0.5)
    matrix[0, 1:], matrix[1:, 0] = 0.5 + far, 0.5 - far
    matrix[0, 1], matrix[1, 0] = 0.5 + close, 0.5 - close
    return Problem(matrix, name=f"close-rival-{close:g}")


def cyclic(n_arms: int, gap: float) -> Problem:
    """Return a problem in which each arm beats the next half of the others around a circle.

    All arms are Copeland winners. For an even number of arms, opposite arms tie.

    Parameters
    ----------
    n_arms : int
        The number of arms, K.
    gap : float
        mu_ij - 1/2 of an arm that beats another one.

    Returns
    -------
    The problem, which has no Condorcet winner from three arms on.

    Examples
    --------
    >>> cyclic(5, 0.2).has_winner
    False
    """
    n_arms = _count(n_arms)
    ahead = (np.arange(n_arms)[None, :] - np.arange(n_arms)[:, None]) % n_arms
    sign = np.where(2 * ahead < n_arms, 1.0, -1.0) * (ahead > 0) * (2 * ahead != n_arms)
    return Problem(0.5 + gap * sign, name="cyclic")


def leader(n_arms: int, best: float) -> Problem:
    """Return a Bradley–Terry problem of one strong arm and others of strengths from 1 down to 1/2.

    Parameters
    ----------
    n_arms : int
        The number of arms, K.
    best : float
        The strength of arm 0.
    """
    n_arms = _count(n_arms)
    return bradley_terry([best, *np.linspace(1.0, 0.5, n_arms - 1)])


def mslr_like(n_arms: int, seed: int = 0, *, has_winner: bool = True) -> Problem:
    """Return a problem like those of the MSLR data: close rankers in no total order.

    mu_ij = 1 / (1 + exp(-(q_i - q_j + e_ij))), with normal qualities q of standard deviation 0.5
    and normal noise e of 0.25, which makes cycles. Matrices are drawn until one has a Condorcet
    winner with gaps of at least 0.02; with ``has_winner=False``, until one has no winner.

    Parameters
    ----------
    n_arms : int
        The number of arms, K.
    seed : int
        The seed of the draws.
    has_winner : bool
        Whether the problem has a Condorcet winner.

    Raises
    ------
    ValueError
        If none of 10,000 matrices is such a problem.
    """
    n_arms = _count(n_arms)
    rng = np.random.default_rng(checks.whole("seed", seed, least=0))
    for _ in range(10_000):
        quality = rng.normal(0.0, 0.5, n_arms)
        odd = np.triu(rng.normal(0.0, 0.25, (n_arms, n_arms)), 1)
        logits = quality[:, None] - quality[None, :] + odd - odd.T
        problem = Problem(1.0 / (1.0 + np.exp(-logits)), name="mslr-like")
        if problem.has_winner == has_winner and (
            not has_winner or np.sort(problem.gaps)[1] >= 0.02
        ):
            return problem
    raise InvalidValueError(
        f"no problem of {n_arms} arms {'with' if has_winner else 'without'} a winner"
    )


def no_winner(n_arms: int, seed: int = 0) -> Problem:
    """Return a problem like those of the MSLR data that has no Condorcet winner.

    Parameters
    ----------
    n_arms : int
        The number of arms, K.
    seed : int
        The seed of the draws.
    """
    problem = mslr_like(n_arms, seed, has_winner=False)
    problem.name = "no-winner"
    return problem


GENERATORS: dict[str, Callable[..., Problem]] = {
    "arithmetic": arithmetic,
    "close-rival": close_rival,
    "cyclic": cyclic,
    "leader": leader,
    "mslr-like": mslr_like,
    "no-winner": no_winner,
}


def generate(form: str) -> Problem:
    """Return a generated problem from its text form.

    Parameters
    ----------
    form : ``arithmetic:K,step``, ``close-rival:K,close,far``, ``cyclic:K,gap``, ``leader:K,best``,
        ``mslr-like:K,seed`` or ``no-winner:K,seed``.

    Raises
    ------
    ValueError
        If the form is unknown or has other numbers than it needs.

    Examples
    --------
    >>> generate("arithmetic:3,0.1").n_arms
    3
    """
    name, _, rest = form.partition(":")
    if name not in GENERATORS:
        listed = ", ".join(GENERATORS)
        hint = checks.nearest(name, GENERATORS)
        raise InvalidValueError(f"unknown problem {name!r}{hint}; there are: {listed}")
    try:
        first, *others = (float(value) for value in rest.split(","))
        problem = GENERATORS[name](checks.whole("K", first, least=2), *others)
    except TypeError:
        _, *needs = inspect.signature(GENERATORS[name]).parameters
        raise InvalidValueError(
            f"problem {form!r} must be written {name}:K,{','.join(needs)}"
        ) from None
    except ValueError as error:
        raise InvalidValueError(f"problem {form!r}: {error}") from None
    problem.name = form
    return problem
