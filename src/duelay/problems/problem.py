"""Problems: who beats whom, and how often (Section 2 of the paper)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from duelay._core import checks
from duelay.errors import InvalidValueError, NoWinnerError
from duelay.problems.validation import TOLERANCE, check_arms, check_matrix, check_rates

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TARGETS = ("condorcet", "copeland", "borda")


class Problem:
    """A dueling-bandit problem: K arms and the probability that each beats each other one.

    Parameters
    ----------
    matrix : array_like
        K×K array, ``matrix[i, j]`` = mu_ij = P(arm i beats arm j); mu_ij + mu_ji = 1 and mu_ii =
        1/2.
    arms : sequence of str, optional
        The arms' names; ``"0"``, ``"1"``, ... where none are given.
    name : str
        The name in tables and figures.
    first_bonus : float
        The position effect: the arm shown first wins with a probability larger by this. It is part
        of the world, not of the preferences, and does not enter regret.

    Examples
    --------
    >>> problem = Problem([[0.5, 0.6], [0.4, 0.5]], arms=["new", "old"])
    >>> problem.winner, problem.gaps
    (0, array([0. , 0.1]))
    """

    def __init__(
        self,
        matrix: ArrayLike,
        arms: Sequence[str] | None = None,
        *,
        name: str = "problem",
        first_bonus: float = 0.0,
    ) -> None:
        self._matrix = check_matrix(matrix)
        self._arms = check_arms(range(len(self._matrix)) if arms is None else arms)
        if len(self._arms) != len(self._matrix):
            raise InvalidValueError(
                f"arms must have one name for each of the {len(self._matrix)} rows of matrix, "
                f"got {len(self._arms)}",
                argument="arms",
            )
        self.name = name
        self._rates: NDArray[np.float64] | None = None
        self.first_bonus = checks.number("first_bonus", first_bonus, least=-0.5, most=0.5)

    @property
    def matrix(self) -> NDArray[np.float64]:
        """The preferences mu, K×K, read-only."""
        return self._matrix

    @property
    def rates(self) -> NDArray[np.float64] | None:
        """(K,): the conversion rates, where one arm is shown at a time; None for pairs."""
        return self._rates

    @property
    def arms(self) -> tuple[str, ...]:
        """The names of the arms."""
        return self._arms

    @property
    def n_arms(self) -> int:
        """K."""
        return len(self._arms)

    @property
    def has_winner(self) -> bool:
        """Whether one arm beats every other arm: a Condorcet winner."""
        return bool(self._beats_all().any())

    @property
    def winner(self) -> int:
        """The index of the Condorcet winner, the paper's arm 1; it may be any index.

        Raises
        ------
        NoWinnerError
            If no arm beats every other one.
        """
        beats_all = self._beats_all()
        if not beats_all.any():
            raise NoWinnerError(
                f"{self.name} has no Condorcet winner: no arm beats every other one with a "
                f"probability above 1/2, and regret (Equation 1) is measured against that arm; "
                f"the targets copeland and borda measure it against another",
                argument="target",
            )
        return int(np.argmax(beats_all))

    @property
    def gaps(self) -> NDArray[np.float64]:
        """Delta_i = mu_(winner, i) - 1/2 for each arm; 0 for the winner."""
        return np.asarray(self._matrix[self.winner] - 0.5)

    @property
    def chances(self) -> NDArray[np.float64]:
        """P(the first arm wins) by first and second: mu plus the bonus, within [0, 1].

        Where one arm is shown at a time, it is the rate of the first arm.
        """
        if self._rates is not None:
            return np.repeat(self._rates[:, None], self.n_arms, axis=1)
        return np.asarray(np.clip(self._matrix + self.first_bonus, 0.0, 1.0))

    @property
    def copeland_scores(self) -> NDArray[np.float64]:
        """The share of the other arms that each arm beats; a tie counts one half."""
        wins = (self._matrix > 0.5) + 0.5 * (self._matrix == 0.5)
        return np.asarray((wins.sum(axis=1) - 0.5) / (self.n_arms - 1))

    @property
    def borda_scores(self) -> NDArray[np.float64]:
        """The probability that each arm beats another arm drawn at random."""
        return np.asarray((self._matrix.sum(axis=1) - 0.5) / (self.n_arms - 1))

    def winners(self, target: str = "condorcet") -> tuple[int, ...]:
        """Return the indices of the winners by a target; several if they tie.

        Parameters
        ----------
        target : str
            ``"condorcet"``, ``"copeland"`` or ``"borda"``.

        Returns
        -------
        The indices, rising.

        Examples
        --------
        >>> from duelay.problems import cyclic
        >>> cyclic(3, 0.1).winners("copeland")
        (0, 1, 2)
        """
        return tuple(int(arm) for arm in np.flatnonzero(self.gaps_for(target) == 0.0))

    def gaps_for(self, target: str) -> NDArray[np.float64]:
        """Return each arm's gap to the winner by a target: Delta_i, or a difference of scores.

        The regret of a duel is the mean gap of its two arms, whatever the target.

        Parameters
        ----------
        target : str
            ``"condorcet"``, ``"copeland"`` or ``"borda"``.

        Returns
        -------
        The gaps, (K,); 0 for winners.

        Raises
        ------
        NoWinnerError
            If the target is ``"condorcet"`` and there is no such winner.
        """
        checks.one_of("target", target, TARGETS)
        if target == "condorcet":
            return self.gaps
        scores = self.copeland_scores if target == "copeland" else self.borda_scores
        gaps = scores.max() - scores
        return np.asarray(np.where(gaps < TOLERANCE, 0.0, gaps))

    def von_neumann(self) -> NDArray[np.float64]:
        """Return the von Neumann winner: a lottery over arms that no arm beats on average.

        It is the optimal strategy of the game with payoff mu - 1/2, from a linear program. A
        Condorcet winner has all the weight.

        Returns
        -------
        The weights of the arms, (K,), which add up to 1.

        Examples
        --------
        >>> from duelay.problems import cyclic
        >>> cyclic(3, 0.1).von_neumann().round(3)
        array([0.333, 0.333, 0.333])
        """
        from scipy.optimize import linprog

        k = self.n_arms
        payoff = self._matrix - 0.5
        # max v such that p' payoff >= v for each opponent, p a distribution; the value is 0
        answer = linprog(
            np.append(np.zeros(k), -1.0),
            A_ub=np.hstack([-payoff.T, np.ones((k, 1))]),
            b_ub=np.zeros(k),
            A_eq=np.append(np.ones(k), 0.0)[None, :],
            b_eq=[1.0],
            bounds=[(0.0, None)] * k + [(None, None)],
            method="highs",
        )
        weights = np.where(answer.x[:k] < 1e-9, 0.0, answer.x[:k])
        return np.asarray(weights / weights.sum())

    @classmethod
    def from_rates(
        cls, rates: ArrayLike, arms: Sequence[str] | None = None, *, name: str = "rates"
    ) -> Problem:
        """Make an A/B test: the first arm of a duel is shown alone, and converts with its own rate.

        A conversion heard on a pair that is shown by coin is then the first arm's with probability
        ``matrix[i, j] = p_i / (p_i + p_j)``. Regret is that of the pair, from this matrix.

        Parameters
        ----------
        rates : array_like
            (K,), the probability that a visitor who sees the arm converts, however late.
        arms : sequence of str, optional
            The arms' names; ``"0"``, ``"1"``, ... where none are given.
        name : str
            The name in tables and figures.

        Returns
        -------
        Problem
            A problem for `simulate`, and for policies such as ``Decide(display="one")``.

        Raises
        ------
        InvalidValueError
            If `rates` are not at least two numbers above 0 and at most 1.

        Examples
        --------
        >>> problem = Problem.from_rates([0.05, 0.08], arms=["green", "blue"])
        >>> problem.winner, problem.matrix.round(3)
        (1, array([[0.5  , 0.385],
               [0.615, 0.5  ]]))
        """
        p = check_rates(rates)
        problem = cls(p[:, None] / (p[:, None] + p[None, :]), arms, name=name)
        problem._rates = p
        return problem

    @classmethod
    def from_csv(cls, path: str | Path, *, name: str | None = None) -> Problem:
        """Read a problem from a CSV file of K rows with K numbers each.

        A first row may have the names of the arms. Cells are separated by commas, semicolons or
        tabs; with the latter two, decimals may have a comma.

        Parameters
        ----------
        path : str or Path
            The path of the file.
        name : str, optional
            The name of the problem; None takes the name of the file.

        Raises
        ------
        ValueError
            If the file has no such matrix. The message names the file.
        """
        from duelay.problems.csv_reader import read_matrix

        path = Path(path)
        matrix, arms = read_matrix(path)
        try:
            return cls(matrix, arms, name=name or path.stem)
        except ValueError as error:
            raise InvalidValueError(f"{path}: {error}") from None

    def _beats_all(self) -> NDArray[np.bool_]:
        wins = (self._matrix > 0.5) & (self._matrix.T < 0.5)  # check both: a matrix may be rounded
        np.fill_diagonal(wins, True)
        return np.asarray(wins.all(axis=1))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Problem):
            return NotImplemented
        return (
            self._arms == other._arms
            and np.array_equal(self._matrix, other._matrix)
            and self.first_bonus == other.first_bonus
            and np.array_equal(self.chances, other.chances)
        )

    def __hash__(self) -> int:
        return hash((self._arms, self._matrix.tobytes(), self.first_bonus))

    def __reduce__(self) -> Any:
        if self._rates is not None:
            return type(self)._restore_rates, (np.array(self._rates), self._arms, self.name)
        return _restore, (np.array(self._matrix), self._arms, self.name, self.first_bonus)

    @classmethod
    def _restore_rates(
        cls, rates: NDArray[np.float64], arms: tuple[str, ...], name: str
    ) -> Problem:
        return cls.from_rates(rates, arms, name=name)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the preferences as a heat map; needs matplotlib.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            The axes to draw on; None makes a figure.
        """
        from duelay.show import plots

        return plots.draw_problem(ax, self)

    def _repr_html_(self) -> str:
        from duelay.show import notebook

        return notebook.show_problem(self)

    def __repr__(self) -> str:
        winner = self._arms[self.winner] if self.has_winner else None
        return f"Problem(name={self.name!r}, n_arms={self.n_arms}, winner={winner!r})"


def _restore(
    matrix: NDArray[np.float64], arms: tuple[str, ...], name: str, first_bonus: float = 0.0
) -> Problem:
    return Problem(matrix, arms, name=name, first_bonus=first_bonus)


def check_problem(problem: Any) -> Problem:
    """Return the problem; raise ValueError for anything else, such as its matrix."""
    if isinstance(problem, Problem):
        return problem
    if isinstance(problem, str):
        raise InvalidValueError(
            f"problem must be a duelay.Problem, got the text {problem!r}: datasets.load gives one"
        )
    raise InvalidValueError(
        f"problem must be a duelay.Problem, got a {type(problem).__name__}: Problem(matrix) is one"
    )
