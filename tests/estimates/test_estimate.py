"""What is estimated from a log whose truth is known."""

from __future__ import annotations

import numpy as np
import pytest

import duelay
import made_logs

AGES = [120.0, 600.0, 1800.0, 7200.0, 36_000.0]


@pytest.mark.parametrize("kind", made_logs.LAWS)
def test_law_and_matrix_are_within_four_standard_errors(kind):
    made = made_logs.make(kind, seed=1, n=12_000)
    found = duelay.estimate(made.history)
    off = np.abs(found.mean - made.matrix)
    pairs = ~np.eye(4, dtype=bool)
    assert (off[pairs] <= 4.0 * found.preferences.error[pairs]).all()
    tau, error = found.delays.learned.at(AGES)
    assert (np.abs(tau - made.law.cdf(AGES)) <= 4.0 * error).all()
    assert found.leader == int(np.argmax(made.matrix.sum(axis=1)))
