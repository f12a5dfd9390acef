"""Checks of preference matrices and of the names of arms."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from duelay.errors import InvalidValueError

TOLERANCE = 1e-8  # of mu_ij + mu_ji = 1: published matrices have eight decimals
_MAX_ARMS = 10_000


def check_matrix(matrix: ArrayLike) -> NDArray[np.float64]:
    """Return the matrix as a read-only array, or say what is wrong with it."""
    try:
        mu = np.array(matrix, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidValueError(
            "matrix must be a K×K array of numbers, and this one is not"
        ) from None
    if mu.ndim != 2 or mu.shape[0] != mu.shape[1]:
        raise InvalidValueError(f"matrix must be square (K×K), got shape {mu.shape}")
    if len(mu) < 2:
        raise InvalidValueError(f"matrix must have at least 2 arms, got {len(mu)}")
    if np.isnan(mu).any():
        i, j = np.argwhere(np.isnan(mu))[0]
        raise InvalidValueError(f"matrix must hold numbers, but matrix[{i}, {j}] is nan")
    if (mu < 0).any() or (mu > 1).any():
        i, j = np.argwhere((mu < 0) | (mu > 1))[0]
        raise InvalidValueError(f"matrix must lie in [0, 1], but matrix[{i}, {j}] is {mu[i, j]:g}")
    off = np.abs(mu + mu.T - 1)
    if off.max() > TOLERANCE:
        i, j = np.unravel_index(np.argmax(off), off.shape)
        if i == j:
            raise InvalidValueError(
                f"matrix must have 1/2 on its diagonal, but [{i}, {i}] is {mu[i, i]:g}"
            )
        raise InvalidValueError(
            f"matrix must satisfy matrix + matrix.T == 1, but "
            f"matrix[{i}, {j}] + matrix[{j}, {i}] is {mu[i, j] + mu[j, i]:g}"
        )
    np.fill_diagonal(mu, 0.5)
    mu.setflags(write=False)
    return mu


def check_rates(rates: ArrayLike) -> NDArray[np.float64]:
    """Return conversion rates as a read-only array, or say what is wrong with them."""
    try:
        p = np.array(rates, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidValueError(
            f"rates must be numbers, one for each arm, got {rates!r}", argument="rates"
        ) from None
    if p.ndim != 1 or len(p) < 2:
        raise InvalidValueError(
            f"rates must be one number for each of at least 2 arms, got shape {p.shape}",
            argument="rates",
        )
    if not ((p > 0) & (p <= 1)).all():
        wrong = p[~((p > 0) & (p <= 1))][0]
        raise InvalidValueError(
            f"rates must be above 0 and at most 1, got {wrong:g}", argument="rates"
        )
    p.setflags(write=False)
    return p


def check_arms(arms: Any) -> tuple[str, ...]:
    """Return the arms' names, from names or from their number; a matrix has none."""
    if isinstance(arms, str | set | frozenset):
        kind = "text" if isinstance(arms, str) else "set, which has no order,"
        raise InvalidValueError(
            f"arms must be a number or a sequence of names, got the {kind} {arms!r}",
            argument="arms",
        )
    if isinstance(arms, int | np.integer) and not isinstance(arms, bool):
        if arms < 2:
            raise InvalidValueError(f"arms must be at least 2, got {arms}", argument="arms")
        arms = range(int(arms))
    if hasattr(arms, "matrix") and hasattr(arms, "arms"):
        raise InvalidValueError(
            f"arms must be a number or a sequence of names, got a {type(arms).__name__}: take its "
            f".arms",
            argument="arms",
        )
    if hasattr(arms, "__len__") and getattr(arms, "ndim", 1) != 0:
        check_most("arms", len(arms))
    try:
        given = list(arms)
    except TypeError:
        raise InvalidValueError(
            f"arms must be a number or a sequence of names, got {arms!r}", argument="arms"
        ) from None
    if getattr(arms, "ndim", 1) > 1 or any(_is_row(arm) for arm in given):
        raise InvalidValueError(
            "arms must be a number or a sequence of names, got rows, as of a matrix: pass "
            "len(matrix), or names",
            argument="arms",
        )
    names = tuple(str(arm) for arm in given)
    if len(names) < 2:
        raise InvalidValueError(f"arms must be at least 2, got {len(names)}", argument="arms")
    seen: set[str] = set()
    for arm in names:
        if arm in seen:
            raise InvalidValueError(
                f"arms must have different names, got {arm!r} twice", argument="arms"
            )
        seen.add(arm)
    return names


def _is_row(arm: Any) -> bool:
    """Whether a value given as an arm is a row of a matrix, or another collection."""
    return isinstance(arm, list | tuple | dict) or getattr(arm, "ndim", 0) > 0


def check_most(name: str, n: int) -> None:
    """Refuse more arms than a table of K×K numbers has room for."""
    if n > _MAX_ARMS:
        raise InvalidValueError(
            f"{name} must be at most {_MAX_ARMS}, since problems and policies keep tables of K×K "
            f"numbers, got {n}",
            argument=name,
        )
