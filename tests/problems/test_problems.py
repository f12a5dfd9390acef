import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import duelay
from duelay import NoWinnerError, Problem
from duelay.problems import arithmetic, bradley_terry

GOOD = [[0.5, 0.6, 0.7], [0.4, 0.5, 0.2], [0.3, 0.8, 0.5]]


@pytest.mark.parametrize(
    "matrix, message",
    [
        ([[0.5, 0.6]], "matrix"),
        ([0.5, 0.5], "matrix"),
        ([[0.5]], "matrix"),
        ([[0.5, 0.6], [0.5, 0.5]], r"matrix\[0, 1\] \+ matrix\[1, 0\] is 1.1"),
        ([[0.5, 1.5], [-0.5, 0.5]], "matrix"),
        ([[0.5, np.nan], [0.5, 0.5]], r"matrix\[0, 1\] is nan"),
        ([[0.4, 0.6], [0.4, 0.5]], "matrix"),
        ([["a", "b"], ["c", "d"]], "matrix"),
        ([[0.5, 0.6], [0.4]], "matrix"),
    ],
)
def test_a_wrong_matrix_is_refused_in_one_sentence(matrix, message):
    with pytest.raises(ValueError, match=message) as error:
        Problem(matrix)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "arms, message",
    [
        (["a", "b"], "arms must"),
        (["a", "b", "a"], "arms must"),
        ("abc", "arms must"),
    ],
)
def test_wrong_names_are_refused(arms, message):
    with pytest.raises(ValueError, match=message):
        Problem(GOOD, arms)


def test_winner_gaps_and_names():
    problem = Problem(np.array(GOOD)[::-1, ::-1], ["x", "y", "z"], name="mine")
    assert problem.winner == 2 and problem.has_winner and problem.n_arms == 3
    np.testing.assert_allclose(problem.gaps, [0.2, 0.1, 0.0])
    assert repr(problem) == "Problem(name='mine', n_arms=3, winner='z')"
    assert Problem(GOOD).arms == ("0", "1", "2")


def test_a_problem_without_a_winner_says_so_where_one_is_needed():
    for matrix in (
        [[0.5, 0.9, 0.1], [0.1, 0.5, 0.9], [0.9, 0.1, 0.5]],
        [[0.5, 0.5], [0.5, 0.5]],  # a tie is no win
    ):
        problem = Problem(matrix, name="circle")
        assert not problem.has_winner
        assert "winner=None" in repr(problem)
        with pytest.raises(NoWinnerError, match="circle"):
            _ = problem.winner
        with pytest.raises(ValueError, match="circle"):
            duelay.simulate(problem, duelay.RUCB(), delay="constant", horizon=5)


def test_rounding_makes_no_second_winner():
    rounded = Problem([[0.5, 0.500000004], [0.500000004, 0.5]])
    assert not rounded.has_winner
    assert Problem([[0.500000001, 0.6], [0.4, 0.5]]).gaps[0] == 0


def test_a_copy_is_as_read_only_as_the_original():
    import copy
    import pickle

    problem = Problem(GOOD, name="mine")
    for again in (pickle.loads(pickle.dumps(problem)), copy.deepcopy(problem)):
        assert again == problem and again.name == "mine"
        assert not again.matrix.flags.writeable


def test_problems_are_values():
    assert Problem(GOOD) == Problem(GOOD) and hash(Problem(GOOD)) == hash(Problem(GOOD))
    assert Problem(GOOD) != Problem(GOOD, ["a", "b", "c"])
    assert Problem(GOOD) != "a problem"
    with pytest.raises(ValueError, match="read-only"):
        Problem(GOOD).matrix[0, 1] = 0.9


@given(st.integers(2, 12), st.integers(0, 10**6))
def test_any_complementary_matrix_is_a_problem(k, seed):
    upper = np.triu(np.random.default_rng(seed).random((k, k)), 1)
    matrix = upper + np.tril(1 - upper.T, -1) + np.eye(k) / 2
    problem = Problem(matrix)
    beats_all = [i for i in range(k) if all(matrix[i, j] > 0.5 for j in range(k) if j != i)]
    assert problem.has_winner == bool(beats_all)
    if beats_all:
        assert [problem.winner] == beats_all
        assert (np.delete(problem.gaps, problem.winner) > 0).all()


@given(st.lists(st.lists(st.floats(), min_size=1, max_size=4), min_size=1, max_size=4))
def test_anything_else_is_refused_with_the_argument_named(rows):
    try:
        matrix = np.array(rows)
        good = (
            matrix.ndim == 2
            and matrix.shape[0] == matrix.shape[1] > 1
            and bool(((matrix >= 0) & (matrix <= 1)).all())
            and bool((np.abs(matrix + matrix.T - 1) <= 1e-8).all())
        )
    except ValueError:
        good = False
    if good:
        Problem(rows)
    else:
        with pytest.raises(ValueError, match="^matrix must"):
            Problem(rows)


def test_a_csv_with_or_without_names(tmp_path):
    plain, named, numbered = tmp_path / "p.csv", tmp_path / "n.csv", tmp_path / "k.csv"
    plain.write_text("0.5,0.7\n0.3,0.5\n\n")
    named.write_text("old , new\n0.5,0.7\n0.3,0.5\n")
    numbered.write_text("1,2\n0.5,0.7\n0.3,0.5\n")
    assert Problem.from_csv(plain).arms == ("0", "1")
    assert Problem.from_csv(plain).name == "p"
    assert Problem.from_csv(named, name="x").arms == ("old", "new")
    assert Problem.from_csv(numbered).arms == ("1", "2")


@pytest.mark.parametrize(
    "content, message",
    [
        ("0.5,0.7\n0.3\n", "its rows differ in length: row 1 has 2 and row 2 has 1$"),
        ("a;b\n0,5;0,7\n0,3\n", "its rows differ in length: row 1 has 2 and row 2 has 1$"),
        ("a,b\n0.5,0.7\n0.3,0.5\n0.2,0.1\n", "K rows of K .* but 3 rows are below 2 names$"),
        ("a,b,c\n0.5,0.7,0.5\n", "K rows of K numbers, .* but 1 row is below 3 names$"),
        ("a;b\n0,5;0,7x\n0,3;0,5\n", "but row 1 has '0,7x'"),
        ("0.5,0.7\n0.3,much\n", "but row 2 has 'much'"),
        ("0.5,0.7x\n0.3,0.5\n", "but row 1 has '0.7x'"),
        (",a,b\na,0.5,0.7\nb,0.3,0.5\n", "K rows of K numbers, .* but row 1 has ''"),
        ("x" * 200_000, "cannot read a matrix from"),
        ("0.5,0.7\n0.4,0.5\n", r"matrix\[0, 1\] \+ matrix\[1, 0\] is 1.1"),
        ("", "matrix"),
    ],
)
def test_a_wrong_csv_is_named(tmp_path, content, message):
    path = tmp_path / "wrong.csv"
    path.write_text(content)
    with pytest.raises(ValueError, match=message) as error:
        Problem.from_csv(path)
    assert "wrong.csv" in str(error.value)


@pytest.mark.parametrize(
    "content",
    [
        "old;new\n0,5;0,7\n0,3;0,5\n",
        "old;new\r\n0.5;0.7\r\n0.3;0.5\r\n",
        "old\tnew\n0,5\t0.7\n.3\t5e-1\n",
        '\ufeff"old";"new"\n\n"0,5";"0,7"\n0,3;0,5\n',
    ],
)
def test_a_csv_may_have_semicolons_or_tabs_and_decimal_commas(tmp_path, content):
    path = tmp_path / "p.csv"
    path.write_bytes(content.encode())
    problem = Problem.from_csv(path)
    assert problem.arms == ("old", "new")
    assert problem.matrix.tolist() == [[0.5, 0.7], [0.3, 0.5]]
    path.write_bytes(content.partition("\n")[2].encode())
    assert Problem.from_csv(path).matrix.tolist() == [[0.5, 0.7], [0.3, 0.5]]


def test_names_between_commas_may_have_semicolons(tmp_path):
    path = tmp_path / "p.csv"
    path.write_text("a;b,c;d\n0.5,0.7\n0.3,0.5\n")
    assert Problem.from_csv(path).arms == ("a;b", "c;d")


def test_a_missing_csv_is_named(tmp_path):
    with pytest.raises(ValueError, match="none.csv"):
        Problem.from_csv(tmp_path / "none.csv")


def test_problems_from_text():
    from duelay.problems import generate

    close = generate("close-rival:4,0.05,0.2")
    assert close.winner == 0 and close.name == "close-rival:4,0.05,0.2"
    np.testing.assert_allclose(close.gaps, [0, 0.05, 0.2, 0.2])
    assert generate("arithmetic:3,0.1").matrix[0, 2] == 0.7
    for form, message in (
        ("arithmetik:3,0.1", r"unknown problem 'arithmetik' \(did you mean arithmetic\?\)"),
        ("arithmetic:3", "problem 'arithmetic:3' must be written arithmetic:K,step"),
        ("arithmetic:3,x", "could not convert string to float"),
        ("arithmetic:1,0.1", "K must be a whole number of at least 2"),
        ("arithmetic:9,0.2", r"matrix must lie in \[0, 1\]"),
        ("arithmetic:1e6,0.1", "'arithmetic:1e6,0.1': n_arms must be at most 10000, .* 1000000"),
        ("close-rival:1e6,0.1,0.2", "n_arms must be at most 10000"),
        ("cyclic:1e6,0.1", "n_arms must be at most 10000"),
        ("leader:1e6,2", "n_arms must be at most 10000"),
        ("mslr-like:1e6,1", "n_arms must be at most 10000"),
        ("no-winner:1e6,1", "n_arms must be at most 10000"),
        ("cyclic:1e300,0.1", "K must be at most 2"),
    ):
        with pytest.raises(ValueError, match=message):
            generate(form)


def test_generated_problems():
    assert arithmetic(3, 0.1).matrix[0, 2] == 0.7
    assert bradley_terry([1, 3]).winner == 1
    assert bradley_terry([1, 3]).matrix[1, 0] == 0.75
    with pytest.raises(ValueError, match="strengths"):
        bradley_terry([1, 0])


def test_arms_whose_tables_no_memory_holds_are_refused():
    for make in (
        lambda: duelay.RUCB().start(10**6),
        lambda: duelay.RUCB().start(range(10**12)),
        lambda: arithmetic(10**6, 0.1),
    ):
        with pytest.raises(ValueError, match="arms must"):
            make()
    with pytest.raises(ValueError, match="strengths"):
        bradley_terry(np.ones(10**6))


def test_a_bonus_for_the_first_is_given_once():
    with pytest.raises(ValueError, match="first-bonus"):
        duelay.datasets.find("first-bonus:0.1," * 900 + "mslr")
