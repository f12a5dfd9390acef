"""Problems: who beats whom, and how often (Section 2 of the paper)."""

from __future__ import annotations

import csv
import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from duelay import _checks, notebook

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_TOLERANCE = 1e-8  # of mu_ij + mu_ji = 1: published matrices have eight decimals
_MOST_ARMS = 10_000


class NoWinnerError(ValueError):
    """The problem has no Condorcet winner, and what was asked for needs one."""


class Problem:
    """A dueling-bandit problem: K arms and the probability that each beats each other one.

    Parameters
    ----------
    matrix : K×K array, ``matrix[i, j]`` = mu_ij = P(arm i beats arm j); mu_ij + mu_ji = 1 and
        mu_ii = 1/2.
    arms : the arms' names; ``"0"``, ``"1"``, ... where none are given.
    name : what the problem is called in tables and figures.
    first_bonus : what being shown first adds to the probability of winning, whoever it is: a
        position effect. It is part of the world, not of the preferences, and no regret.

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
            raise ValueError(
                f"arms must have one name for each of the {len(self._matrix)} rows of matrix, "
                f"got {len(self._arms)}"
            )
        self.name = name
        self.first_bonus = _checks.number("first_bonus", first_bonus, least=-0.5, most=0.5)

    @property
    def matrix(self) -> NDArray[np.float64]:
        """The preferences mu, K×K, read-only."""
        return self._matrix

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
        """Whether there is a Condorcet winner: one arm that beats every other one."""
        return bool(self._beats_all().any())

    @property
    def winner(self) -> int:
        """The Condorcet winner's index (the paper's arm 1, which here may stand anywhere)."""
        beats_all = self._beats_all()
        if not beats_all.any():
            raise NoWinnerError(
                f"{self.name} has no Condorcet winner: no arm beats every other one with a "
                f"probability above 1/2, and regret (Equation 1) is measured against that arm; "
                f"target='copeland' or target='borda' measures it against another"
            )
        return int(np.argmax(beats_all))

    @property
    def gaps(self) -> NDArray[np.float64]:
        """Delta_i = mu_(winner, i) - 1/2 for each arm; 0 for the winner."""
        return np.asarray(self._matrix[self.winner] - 0.5)

    @property
    def chances(self) -> NDArray[np.float64]:
        """P(the first wins) by first and second: mu and the bonus, within [0, 1]."""
        return np.asarray(np.clip(self._matrix + self.first_bonus, 0.0, 1.0))

    @property
    def copeland_scores(self) -> NDArray[np.float64]:
        """The share of the others that each arm beats, a tie as one half."""
        wins = (self._matrix > 0.5) + 0.5 * (self._matrix == 0.5)
        return np.asarray((wins.sum(axis=1) - 0.5) / (self.n_arms - 1))

    @property
    def borda_scores(self) -> NDArray[np.float64]:
        """The probability that each arm beats another one drawn at random."""
        return np.asarray((self._matrix.sum(axis=1) - 0.5) / (self.n_arms - 1))

    def winners(self, target: str = "condorcet") -> tuple[int, ...]:
        """Return the winners in a sense: "condorcet", "copeland" or "borda"; ties are all there.

        >>> cyclic(3, 0.1).winners("copeland")
        (0, 1, 2)
        """
        return tuple(int(arm) for arm in np.flatnonzero(self.gaps_for(target) == 0.0))

    def gaps_for(self, target: str) -> NDArray[np.float64]:
        """Return what each arm lacks to a winner: Delta_i, or the difference of the scores.

        Regret is the mean of the two arms' gaps, whatever the target.
        """
        _checks.one_of("target", target, TARGETS)
        if target == "condorcet":
            return self.gaps
        scores = self.copeland_scores if target == "copeland" else self.borda_scores
        gaps = scores.max() - scores
        return np.asarray(np.where(gaps < _TOLERANCE, 0.0, gaps))

    def von_neumann(self) -> NDArray[np.float64]:
        """Return the von Neumann winner: weights of the arms that no arm beats on average.

        The optimal strategy of the game with payoff mu - 1/2. Where there is a Condorcet winner it
        has all the weight. Needs scipy (the extra ``winners``).

        >>> cyclic(3, 0.1).von_neumann().round(3)
        array([0.333, 0.333, 0.333])
        """
        try:
            from scipy.optimize import linprog
        except ImportError:
            raise ValueError(
                "von_neumann needs scipy: install it with pip install 'duelay[winners]'"
            ) from None
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
    def from_csv(cls, path: str | Path, *, name: str | None = None) -> Problem:
        """Read a problem from a CSV: K rows of K numbers, the arms' names in a first row if any."""
        path = Path(path)
        try:
            with path.open(newline="", encoding="utf-8-sig") as lines:
                rows = [row for row in csv.reader(lines) if any(cell.strip() for cell in row)]
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            reason = getattr(error, "strerror", None) or error
            raise ValueError(f"cannot read a matrix from {path}: {reason}") from None
        arms = None
        if rows and len(rows) == len(rows[0]) + 1:
            arms = [cell.strip() for cell in rows.pop(0)]
        if len({len(row) for row in rows}) > 1:
            raise ValueError(f"{path}: matrix must be square, but its rows differ in length")
        for number, row in enumerate(rows, start=1):
            for cell in row:
                if not _checks.is_number(cell):
                    raise ValueError(
                        f"{path}: matrix must be K rows of K numbers, separated by commas, below a "
                        f"row of names or without one, but row {number} has {cell!r}"
                    )
        matrix = np.array([[float(cell) for cell in row] for row in rows])
        try:
            return cls(matrix, arms, name=name or path.stem)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None

    def _beats_all(self) -> NDArray[np.bool_]:
        wins = (self._matrix > 0.5) & (self._matrix.T < 0.5)  # both, where they are rounded
        np.fill_diagonal(wins, True)
        return np.asarray(wins.all(axis=1))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Problem):
            return NotImplemented
        return (
            self._arms == other._arms
            and np.array_equal(self._matrix, other._matrix)
            and self.first_bonus == other.first_bonus
        )

    def __hash__(self) -> int:
        return hash((self._arms, self._matrix.tobytes(), self.first_bonus))

    def __reduce__(self) -> Any:
        return _restore, (np.array(self._matrix), self._arms, self.name, self.first_bonus)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the preferences as a heat map; needs matplotlib."""
        from duelay import plots

        return plots.draw_problem(ax, self)

    def _repr_html_(self) -> str:
        return notebook.show_problem(self)

    def __repr__(self) -> str:
        winner = self._arms[self.winner] if self.has_winner else None
        return f"Problem(name={self.name!r}, n_arms={self.n_arms}, winner={winner!r})"


def _restore(
    matrix: NDArray[np.float64], arms: tuple[str, ...], name: str, first_bonus: float = 0.0
) -> Problem:
    return Problem(matrix, arms, name=name, first_bonus=first_bonus)


def check_matrix(matrix: ArrayLike) -> NDArray[np.float64]:
    """Return the matrix as a read-only array, or say what is wrong with it."""
    try:
        mu = np.array(matrix, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError("matrix must be a K×K array of numbers, and this one is not") from None
    if mu.ndim != 2 or mu.shape[0] != mu.shape[1]:
        raise ValueError(f"matrix must be square (K×K), got shape {mu.shape}")
    if len(mu) < 2:
        raise ValueError(f"matrix must have at least 2 arms, got {len(mu)}")
    if np.isnan(mu).any():
        i, j = np.argwhere(np.isnan(mu))[0]
        raise ValueError(f"matrix must hold numbers, but matrix[{i}, {j}] is nan")
    if (mu < 0).any() or (mu > 1).any():
        i, j = np.argwhere((mu < 0) | (mu > 1))[0]
        raise ValueError(f"matrix must lie in [0, 1], but matrix[{i}, {j}] is {mu[i, j]:g}")
    off = np.abs(mu + mu.T - 1)
    if off.max() > _TOLERANCE:
        i, j = np.unravel_index(np.argmax(off), off.shape)
        if i == j:
            raise ValueError(
                f"matrix must have 1/2 on its diagonal, but [{i}, {i}] is {mu[i, i]:g}"
            )
        raise ValueError(
            f"matrix must satisfy matrix + matrix.T == 1, but "
            f"matrix[{i}, {j}] + matrix[{j}, {i}] is {mu[i, j] + mu[j, i]:g}"
        )
    np.fill_diagonal(mu, 0.5)
    mu.setflags(write=False)
    return mu


def check_arms(arms: Any) -> tuple[str, ...]:
    """Return the arms' names, from names or from their number."""
    if isinstance(arms, str | set | frozenset):
        kind = "text" if isinstance(arms, str) else "set, which has no order,"
        raise ValueError(f"arms must be a number or a sequence of names, got the {kind} {arms!r}")
    if isinstance(arms, int | np.integer) and not isinstance(arms, bool):
        if arms < 2:
            raise ValueError(f"arms must be at least 2, got {arms}")
        arms = range(int(arms))
    if hasattr(arms, "__len__"):
        _check_most("arms", len(arms))
    try:
        names = tuple(str(arm) for arm in arms)
    except TypeError:
        raise ValueError(f"arms must be a number or a sequence of names, got {arms!r}") from None
    if len(names) < 2:
        raise ValueError(f"arms must be at least 2, got {len(names)}")
    seen: set[str] = set()
    for arm in names:
        if arm in seen:
            raise ValueError(f"arms must have different names, got {arm!r} twice")
        seen.add(arm)
    return names


def _check_most(name: str, n: int) -> None:
    if n > _MOST_ARMS:
        raise ValueError(
            f"{name} must be at most {_MOST_ARMS}, since problems and policies keep tables of K×K "
            f"numbers, got {n}"
        )


def _count(n_arms: Any) -> int:
    """Return K for a problem that is made up."""
    k = _checks.whole("n_arms", n_arms, least=2)
    _check_most("n_arms", k)
    return k


def arithmetic(n_arms: int, step: float) -> Problem:
    """Evenly spaced arms: mu_ij = 1/2 + step · (j - i); arm 0 wins."""
    n_arms = _count(n_arms)
    rank = np.arange(n_arms)
    return Problem(0.5 + step * (rank[None, :] - rank[:, None]), name="arithmetic")


def bradley_terry(strengths: ArrayLike) -> Problem:
    """Arms of given strengths: mu_ij = s_i / (s_i + s_j); the strongest wins."""
    s = np.asarray(strengths, dtype=np.float64)
    if s.ndim != 1 or not (s > 0).all():
        raise ValueError(f"strengths must be positive numbers, got {strengths!r}")
    _check_most("strengths", len(s))
    return Problem(s[:, None] / (s[:, None] + s[None, :]), name="bradley-terry")


def close_rival(n_arms: int, close: float, far: float) -> Problem:
    """One arm behind the winner by `close`, the others by `far`; all losers are equal."""
    n_arms = _count(n_arms)
    matrix = np.full((n_arms, n_arms), 0.5)
    matrix[0, 1:], matrix[1:, 0] = 0.5 + far, 0.5 - far
    matrix[0, 1], matrix[1, 0] = 0.5 + close, 0.5 - close
    return Problem(matrix, name=f"close-rival-{close:g}")


def cyclic(n_arms: int, gap: float) -> Problem:
    """Each arm beats the next half of the others around a circle: all are Copeland winners.

    For an even number of arms those opposite each other tie.

    >>> cyclic(5, 0.2).has_winner
    False
    """
    n_arms = _count(n_arms)
    ahead = (np.arange(n_arms)[None, :] - np.arange(n_arms)[:, None]) % n_arms
    sign = np.where(2 * ahead < n_arms, 1.0, -1.0) * (ahead > 0) * (2 * ahead != n_arms)
    return Problem(0.5 + gap * sign, name="cyclic")


def leader(n_arms: int, best: float) -> Problem:
    """One arm of strength `best` ahead of a field from 1 down to 1/2, as Bradley and Terry do."""
    n_arms = _count(n_arms)
    return bradley_terry([best, *np.linspace(1.0, 0.5, n_arms - 1)])


def mslr_like(n_arms: int, seed: int = 0, *, has_winner: bool = True) -> Problem:
    """Rankers like those of the MSLR data: alike, not in a total order, with a winner or without.

    mu_ij = 1 / (1 + exp(-(q_i - q_j + e_ij))), qualities q of standard deviation 0.5 and e, of 0.25
    for each pair, which makes the circles; drawn until there is a Condorcet winner, ahead of all
    others by 0.02 at the least, or none.
    """
    n_arms = _count(n_arms)
    rng = np.random.default_rng(_checks.whole("seed", seed, least=0))
    for _ in range(10_000):
        quality = rng.normal(0.0, 0.5, n_arms)
        odd = np.triu(rng.normal(0.0, 0.25, (n_arms, n_arms)), 1)
        logits = quality[:, None] - quality[None, :] + odd - odd.T
        problem = Problem(1.0 / (1.0 + np.exp(-logits)), name="mslr-like")
        if problem.has_winner == has_winner and (
            not has_winner or np.sort(problem.gaps)[1] >= 0.02
        ):
            return problem
    raise ValueError(f"no problem of {n_arms} arms {'with' if has_winner else 'without'} a winner")


def no_winner(n_arms: int, seed: int = 0) -> Problem:
    """Rankers like those of the MSLR data, none of which beats all others."""
    problem = mslr_like(n_arms, seed, has_winner=False)
    problem.name = "no-winner"
    return problem


TARGETS = ("condorcet", "copeland", "borda")
GENERATORS: dict[str, Callable[..., Problem]] = {
    "arithmetic": arithmetic,
    "close-rival": close_rival,
    "cyclic": cyclic,
    "leader": leader,
    "mslr-like": mslr_like,
    "no-winner": no_winner,
}


def generate(form: str) -> Problem:
    """Make a problem from its text form.

    ``arithmetic:K,step``, ``close-rival:K,close,far``, ``cyclic:K,gap``, ``leader:K,best``,
    ``mslr-like:K,seed``, ``no-winner:K,seed``.

    >>> generate("arithmetic:3,0.1").n_arms
    3
    """
    name, _, rest = form.partition(":")
    if name not in GENERATORS:
        listed = ", ".join(GENERATORS)
        hint = _checks.nearest(name, GENERATORS)
        raise ValueError(f"unknown problem {name!r}{hint}; there are: {listed}")
    try:
        first, *others = (float(value) for value in rest.split(","))
        problem = GENERATORS[name](_checks.whole("K", first, least=2), *others)
    except TypeError:
        _, *needs = inspect.signature(GENERATORS[name]).parameters
        raise ValueError(f"problem {form!r} must be written {name}:K,{','.join(needs)}") from None
    except ValueError as error:
        raise ValueError(f"problem {form!r}: {error}") from None
    problem.name = form
    return problem
