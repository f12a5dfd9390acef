"""Laws that depend on the pair of arms (the paper's footnote 1)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from duelay import text
from duelay._core.arrays import Floats
from duelay.delays.base import Law, generator
from duelay.errors import InvalidValueError

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@text.named("law", "by-pair")
@dataclass(frozen=True)
class ByPair:
    """One law for each ordered pair of arms; self-duels are on the diagonal.

    The ledger counts by ordered pair, so that the estimator stays unbiased. `cdf`, `pmf`,
    `quantile`, `sample` and `mean` answer for all pairs at once: K×K first, then the shape of the
    argument.

    Parameters
    ----------
    laws : tuple of Law
        K rows of K laws, or the K² laws in one row.

    Examples
    --------
    >>> from duelay.delays import Geometric
    >>> law = ByPair.of(2, lambda i, j: Geometric(0.1 if i == j else 0.5))
    >>> law.mean
    array([[10.,  2.],
           [ 2., 10.]])
    >>> law.at(0, 1)
    Geometric(p=0.5)
    """

    laws: tuple[Law, ...]

    def __post_init__(self) -> None:
        rows = self.laws if isinstance(self.laws, tuple | list) else [self.laws]
        flat: list[Any] = []
        for row in rows:
            if isinstance(row, tuple | list) and len(row) != len(rows):
                raise InvalidValueError(
                    f"laws must be K×K, got {len(rows)} rows and one of {len(row)}"
                )
            flat.extend(row if isinstance(row, tuple | list) else [row])
        if not all(isinstance(law, Law) for law in flat):
            wrong = next(law for law in flat if not isinstance(law, Law))
            raise InvalidValueError(f"laws must be K×K delay laws, got {wrong!r} among them")
        if len(flat) < 4 or math.isqrt(len(flat)) ** 2 != len(flat):
            raise InvalidValueError(
                f"laws must be K×K delay laws for K of at least 2, got {len(flat)}"
            )
        if len({law.in_time for law in flat}) > 1:
            timed = next(law for law in flat if law.in_time)
            other = next(law for law in flat if not law.in_time)
            raise InvalidValueError(
                f"laws must be all in time or all in ticks, got {timed} in time and {other} in "
                f"ticks"
            )
        object.__setattr__(self, "laws", tuple(flat))

    @classmethod
    def of(cls, n_arms: int, law: Callable[[int, int], Law]) -> ByPair:
        """Return the laws of all pairs from a function.

        Parameters
        ----------
        n_arms : int
            The number of arms, K.
        law : callable
            Returns the law of an ordered pair, given `first` and `second`.
        """
        return cls(tuple(law(i, j) for i in range(n_arms) for j in range(n_arms)))

    @property
    def n_arms(self) -> int:
        """K."""
        return math.isqrt(len(self.laws))

    @property
    def in_time(self) -> bool:
        """Whether the laws are in time; all are, or none."""
        return self.laws[0].in_time

    def at(self, first: int, second: int) -> Law:
        """Return the law of an ordered pair.

        Parameters
        ----------
        first, second : int
            The arms, in the order in which they are shown.
        """
        return self.laws[first * self.n_arms + second]

    @property
    def mean(self) -> Floats:
        """E[D] for each pair, K×K."""
        return self._each(lambda law: law.mean)

    @property
    def never(self) -> Floats:
        """The share that never answers for each pair, K×K."""
        return self._each(lambda law: law.never)

    def cdf(self, t: ArrayLike) -> Floats:
        """Return tau_t of each pair: the share of conversions that have come by age t.

        Parameters
        ----------
        t : array_like
            Ages: ticks, or for a law in time seconds or durations.
        """
        return self._each(lambda law: law.cdf(t))

    def pmf(self, t: ArrayLike) -> Floats:
        """Return P(D = t) of each pair.

        Parameters
        ----------
        t : array_like
            Ages: ticks, or for a law in time seconds or durations.
        """
        return self._each(lambda law: law.pmf(t))

    def quantile(self, q: ArrayLike) -> Floats:
        """Return the smallest t with tau_t >= q, for each pair.

        Parameters
        ----------
        q : array_like
            Probabilities.
        """
        return self._each(lambda law: law.quantile(q))

    def sample(self, size: int | tuple[int, ...] | None = None, seed: Any = None) -> Floats:
        """Draw delays for each pair.

        Parameters
        ----------
        size : int or tuple of int, optional
            The shape of the result; one number if None.
        seed : int or numpy.random.Generator, optional
            The source of randomness.
        """
        rng = generator(seed)
        return self._each(lambda law: law.sample(size, rng))

    def _each(self, question: Callable[[Law], Any]) -> Floats:
        answers = np.array([question(law) for law in self.laws], dtype=np.float64)
        return answers.reshape(self.n_arms, self.n_arms, *answers.shape[1:])

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw tau by age, one line for each law. Needs matplotlib.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; new axes if None.
        """
        from duelay.show import plots

        return plots.draw_delay(ax, self.laws)

    def _repr_html_(self) -> str:
        from duelay.show import notebook

        return notebook.show_by_pair(self)

    def __str__(self) -> str:
        return text.form(self)
