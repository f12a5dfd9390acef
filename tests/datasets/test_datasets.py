from pathlib import Path

import numpy as np
import pytest

from duelay import datasets

DATA = Path(__file__).parents[1] / "data"
# Condorcet winner, smallest and largest gap.
EXPECTED = {
    "six-rankers": (6, 0, 0.04, 0.11),
    "mslr": (5, 0, 0.03519466, 0.26547422),
    "tennis": (8, 2, 0.07, 0.30),
    "arithmetic": (10, 0, 0.025, 0.225),
    "car": (10, 5, 0.025423729, 0.283333333),
    "car-consistent": (10, 5, 0.049019608, 0.307692308),
    "sushi": (16, 7, 0.102362205, 0.309210526),
    "sushi-chutoro": (16, 0, 0.012396694, 0.367816092),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_each_dataset_has_its_winner_and_gaps(name):
    problem = datasets.load(name)
    k, winner, least, most = EXPECTED[name]
    gaps = np.delete(problem.gaps, winner)
    assert (problem.n_arms, problem.winner, problem.name) == (k, winner, name)
    assert gaps.min() == pytest.approx(least, abs=1e-6)
    assert gaps.max() == pytest.approx(most, abs=1e-6)
    assert datasets.describe(name).arms == problem.arms
    assert np.abs(problem.matrix + problem.matrix.T - 1).max() < 1e-12


@pytest.mark.parametrize("name", ["car", "car-consistent", "sushi", "sushi-chutoro"])
def test_matrices_are_the_shares_of_the_counted_answers(name):
    wins = np.loadtxt(DATA / f"{name}-wins.csv", delimiter=",")
    with np.errstate(invalid="ignore"):
        share = wins / (wins + wins.T)
    np.fill_diagonal(share, 0.5)
    np.testing.assert_allclose(datasets.load(name).matrix, share, atol=1e-12)


def test_arithmetic_is_its_formula():
    from duelay.problems import arithmetic

    np.testing.assert_allclose(datasets.load("arithmetic").matrix, arithmetic(10, 0.025).matrix)


def test_an_unknown_dataset_names_those_there_are():
    with pytest.raises(ValueError, match="'tenis'.*tennis"):
        datasets.load("tenis")
    assert set(datasets.names()) == {*EXPECTED, "tennis-without-sampras"}
