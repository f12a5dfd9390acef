"""Linear systems of a symmetric matrix, by one thread: A = L L', and solving with either factor.

LAPACK does this with threads that wait for each other hundreds of times. Where other programs keep
the processors busy, that takes a hundred times as long: a second for 300 rows.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from duelay._core.arrays import Floats

_ROUNDING = 1e-9  # of the largest pivot: a smaller one counts as 0


class Factor(NamedTuple):
    """L of A = L L', for a symmetric A of n rows without negative eigenvalues."""

    rows: Floats  # (rank, n): the columns of L
    pivots: NDArray[np.int64]  # (rank,): the row of A that each of them takes away


def factored(matrix: Floats, *, largest_first: bool = False) -> Factor:
    """Return Cholesky's factor of a matrix.

    The pivots are in the order of the rows, which needs full rank. With `largest_first` the largest
    pivot comes first, and the factor ends where only rounding errors of the matrix are left.
    """
    left = np.diag(matrix).copy()  # what is left of the diagonal
    least = _ROUNDING * max(float(left.max(initial=0.0)), 1e-300)
    rows, pivots = np.zeros_like(matrix), np.zeros(len(left), dtype=np.int64)
    for rank in range(len(left)):
        at = int(np.argmax(left)) if largest_first else rank
        if largest_first and left[at] <= least:
            return Factor(rows[:rank], pivots[:rank])
        done = rows[:rank]
        row = matrix[at] - np.einsum("ki,k->i", done, done[:, at])
        row /= math.sqrt(left[at])
        rows[rank], pivots[rank] = row, at
        left -= row * row
        left[at] = 0.0
    return Factor(rows, pivots)


def forward(factor: Factor, wanted: Floats) -> Floats:
    """Return z, (rank,), with L z = wanted, which is (n,) and in the range of L."""
    rest, z = wanted.copy(), np.zeros(len(factor.pivots))
    for place, (row, at) in enumerate(zip(*factor, strict=True)):
        z[place] = rest[at] / row[at]
        rest -= row * z[place]
    return z


def backward(factor: Factor, wanted: Floats) -> Floats:
    """Return x, (n, d), with L' x = wanted, which is (n, d); L is of full rank."""
    x = np.zeros_like(wanted)
    for place in range(len(wanted) - 1, -1, -1):
        row, at = factor.rows[place], factor.pivots[place]
        done = factor.pivots[place + 1 :]
        x[at] = (wanted[place] - np.einsum("k,kd->d", row[done], x[done])) / row[at]
    return x
