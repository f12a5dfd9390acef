"""Triangles solve what LAPACK solves, of any rank."""

import numpy as np
import pytest

from duelay._core.linear_systems import backward, factored, forward


def laplacian(k, n, seed):
    """Of n duels between k arms: each part of the arms that have met takes one from the rank."""
    rng = np.random.default_rng(seed)
    first = rng.integers(k, size=n)
    second = (first + 1 + rng.integers(k - 1, size=n)) % k
    lead = np.eye(k)[first] - np.eye(k)[second]
    return lead.T @ lead, lead.T @ rng.choice([-1.0, 1.0], size=n)


@pytest.mark.parametrize(("k", "n"), [(2, 5), (6, 3), (6, 100), (40, 30), (40, 2000)])
def test_a_factor_of_any_rank_gives_the_matrix_and_the_pseudo_inverse(k, n):
    matrix, score = laplacian(k, n, seed=k + n)
    factor = factored(matrix, largest_first=True)
    assert len(factor.pivots) == np.linalg.matrix_rank(matrix)
    assert np.allclose(factor.rows.T @ factor.rows, matrix, atol=1e-9)
    z = forward(factor, score)
    assert np.allclose(factor.rows.T @ z, score, atol=1e-9)
    inverse = np.linalg.pinv(matrix, rcond=1e-9, hermitian=True)  # rounding is no rank
    assert (z**2).sum() == pytest.approx(score @ inverse @ score, rel=1e-9)


def test_in_the_order_of_the_rows_it_is_choleskys():
    rng = np.random.default_rng(0)
    half = rng.standard_normal((30, 20))
    matrix, wanted = half.T @ half, rng.standard_normal((20, 7))
    factor = factored(matrix)
    assert np.allclose(factor.rows.T, np.linalg.cholesky(matrix), atol=1e-9)
    assert np.allclose(factor.rows @ backward(factor, wanted), wanted, atol=1e-9)
    largest = factored(matrix, largest_first=True)
    assert sorted(largest.pivots) == list(range(20))
    assert np.allclose(largest.rows @ backward(largest, wanted), wanted, atol=1e-9)


def test_of_nothing_there_is_no_pivot():
    for size in (0, 3):
        factor = factored(np.zeros((size, size)), largest_first=True)
        assert len(factor.pivots) == 0
        assert forward(factor, np.zeros(size)).shape == (0,)
