"""The base class of delay laws, the distributions of the time from a duel to its conversion."""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from duelay import text
from duelay._core.arrays import Floats
from duelay._core.duration import seconds
from duelay.errors import InvalidValueError

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_SETTLED = 1e-15  # a tail below this is never seen: 10^7 duels miss it with probability 1 - 1e-8
_MAX_DELAY = 2**62
_EXACT_TERMS = 2**16
_SALT = 7102839  # "law": `sample(seed=s)` must not repeat the draws of `default_rng(s)`


class Law(ABC):
    """A delay law on {1, 2, ...}, with a share that may never answer.

    If `in_time` is True, it is a law on all ages above 0, in seconds.

    To write your own law, define `cdf` in a frozen dataclass. Everything else is computed from it
    unless you override it.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class NextDay(Law):
    ...     '''Half of the answers at once, half at tick 24.'''
    ...     def cdf(self, t):
    ...         return np.where(np.asarray(t) >= 24, 1.0, np.where(np.asarray(t) >= 1, 0.5, 0.0))
    >>> NextDay().mean, NextDay().pmf([1, 2, 24])
    (12.5, array([0.5, 0. , 0.5]))
    """

    text_name: str = ""

    @abstractmethod
    def cdf(self, t: ArrayLike) -> Any:
        """Return tau_t = P(D <= t), the share of conversions that have come by age t.

        Parameters
        ----------
        t : array_like
            Ages, a number or an array. Of a law in time: seconds, durations or texts such as "2h".

        Returns
        -------
        float or numpy.ndarray
            A number for a number, otherwise an array of the shape of `t`.
        """

    @property
    def in_time(self) -> bool:
        """Whether ages are in seconds of a clock, and not in ticks."""
        return False

    @property
    def never(self) -> float:
        """The share of conversions that never come."""
        return 0.0

    @property
    def support(self) -> float:
        """The largest possible delay; infinite if delays are unbounded."""
        return math.inf

    @property
    def mean(self) -> float:
        """E[D]; infinite where some conversions never come, or the tail is too heavy."""
        if self.never > 0:
            return math.inf
        # 1 - tau has no digits left beyond 2^50: a tail that matters there is taken for infinite.
        if self.in_time:
            return integrate_survival(lambda x: 1.0 - self.cdf(x), self.quantile(0.5), 2.0**50)
        return sum_survival(lambda x: 1.0 - self.cdf(x), 2.0**50)

    @property
    def _top(self) -> float:
        """What tau rises to."""
        return 1.0 - self.never

    def pmf(self, t: ArrayLike) -> Any:
        """Return P(D = t), for a law in ticks.

        Parameters
        ----------
        t : array_like
            Ages in ticks, a number or an array.

        Raises
        ------
        ValueError
            If the law is in time.
        """
        if self.in_time:
            raise InvalidValueError(
                f"pmf needs a law in ticks: {self} is in time, where cdf says it all"
            )
        t = np.asarray(t)
        whole = t == np.floor(t)
        mass = np.where(whole & (t >= 1), self.cdf(t) - self.cdf(t - 1), 0.0)
        return _like(t, mass)

    def quantile(self, q: ArrayLike) -> Any:
        """Return the smallest t >= 1 with tau_t >= q; in time, the smallest age in seconds.

        Parameters
        ----------
        q : array_like
            Shares from 0 to 1, a number or an array.

        Returns
        -------
        float or numpy.ndarray
            Infinite where tau never reaches q.
        """
        q = np.asarray(q, dtype=np.float64)
        if not ((q >= 0) & (q <= 1)).all():  # also refuses nan
            raise InvalidValueError(f"q must be at least 0 and at most 1, got {q}")
        top = self._top
        reached = (q < top) | ((q <= top) & (self.support < math.inf))
        if self.in_time:
            return _like(q, np.where(reached, self.invert(np.where(reached, q, 0.0)), np.inf))
        # Double until tau_high >= q, then halve: needs nothing of the law but its cdf. A guess
        # shortens the way, and changes nothing.
        high = np.clip(self.guess(np.where(reached, q, 0.0)), 1, _MAX_DELAY // 2).astype(np.int64)
        low = np.where(self.cdf(np.maximum(high - 2, 0)) < q, np.maximum(high - 2, 0), 0)
        while (short := reached & (self.cdf(high) < q) & (high < _MAX_DELAY)).any():
            low = np.where(short, high, low)
            high = np.where(short, high * 2, high)
        reached = reached & (self.cdf(high) >= q)  # a delay beyond 2^62 is as good as never
        while (wide := high - low > 1).any():
            middle = low + (high - low) // 2
            up = self.cdf(middle) < q
            low = np.where(wide & up, middle, low)
            high = np.where(wide & ~up, middle, high)
        return _like(q, np.where(reached, high.astype(np.float64), np.inf))

    def guess(self, q: Floats) -> Floats:
        """Return an approximation of the smallest tick with tau >= q.

        Parameters
        ----------
        q : array_like
            Probabilities.
        """
        return np.ones(q.shape)

    def invert(self, q: Floats) -> Floats:
        """Return the smallest age in seconds with tau >= q, for each q that a law in time reaches.

        The relative error is at most 1e-12.

        Parameters
        ----------
        q : array_like
            Probabilities.
        """
        low, high = np.zeros(q.shape), np.ones(q.shape)
        while (short := (high < 2.0**1000) & self.is_short(high, q)).any():
            high = np.where(short, high * 2, high)
        low = high / 2
        while (over := (q > 0) & (low > 2.0**-1000) & ~self.is_short(low, q)).any():
            low, high = np.where(over, low / 2, low), np.where(over, low, high)
        for _ in range(40):
            middle = low + (high - low) / 2
            short = self.is_short(middle, q)
            low, high = np.where(short, middle, low), np.where(short, high, middle)
        return np.where(q > 0, high, 0.0)

    def is_short(self, age: Floats, q: Floats) -> Any:
        """Return whether fewer than a share q have come by each age.

        Parameters
        ----------
        age : array_like
            Ages.
        q : array_like
            Shares.
        """
        return self.cdf(age) < q

    def sample(self, size: int | tuple[int, ...] | None = None, seed: Any = None) -> Any:
        """Draw delays; `inf` means that the conversion never comes.

        Parameters
        ----------
        size : int or tuple of int, optional
            The shape of the result; None for one number.
        seed : int or numpy.random.Generator, optional
            A number or a NumPy Generator. A number gives other draws than
            `numpy.random.default_rng` with that number, so that outcomes drawn from the latter are
            independent of the delays.
        """
        return self.quantile(generator(seed).random(size))

    def at(self, first: int, second: int) -> Law:
        """Return the law for this ordered pair of arms, which only `ByPair` distinguishes.

        Parameters
        ----------
        first, second : int
            The indices of the two arms.
        """
        return self

    def settled(self, limit: int) -> int:
        """Return the age, at most `limit`, by which tau has reached 1 - never (up to 1e-15).

        Parameters
        ----------
        limit : int
            The largest age that is returned.

        Returns
        -------
        int
            The age in ticks, at least 1.
        """
        top = (1.0 - self.never) * (1.0 - _SETTLED)
        if top <= 0 or limit <= 1:
            return 1
        if self.cdf(limit) < top:
            return int(limit)
        return int(min(limit, self.quantile(top)))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw tau by age, with bars that show when conversions come; needs matplotlib.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            The axes to draw on; new ones if None.
        """
        from duelay.show import plots

        return plots.draw_delay(ax, [self])

    def _repr_html_(self) -> str:
        from duelay.show import notebook

        return notebook.show_law(self)

    def __str__(self) -> str:
        return text.form(self)


class TableLaw(Law):
    """A law given by a finite table of probabilities."""

    @abstractmethod
    def masses(self) -> Floats:
        """P(D = 1), P(D = 2), ... up to the last that matters."""

    @property
    def mean(self) -> float:
        """E[D]."""
        if self.never > 0:
            return math.inf
        masses = self.masses()
        return float(np.dot(masses, np.arange(1, len(masses) + 1)))

    def cdf(self, t: ArrayLike) -> Any:
        """tau_t = P(D <= t)."""
        table = _cumulated(self)
        t = np.asarray(t)
        return _like(t, table[np.clip(np.floor(t), 0, len(table) - 1).astype(np.int64)])


@functools.lru_cache(maxsize=16)
def _cumulated(law: TableLaw) -> Floats:
    """tau_0, tau_1, ... of a table, ending at 1 - never to the last bit."""
    table = np.concatenate(([0.0], np.cumsum(law.masses())))
    top = 1.0 - law.never
    if table[-1] > 0:
        table = np.minimum(table * (top / table[-1]), top)
    last = len(table) - 1 if math.isinf(law.support) else int(law.support)
    table[last:] = top
    return table


def sum_survival(survival: Callable[[Floats], Floats], limit: float = 1e300) -> float:
    """E[D] = sum over t >= 0 of P(D > t): term by term up to 2^16, then by integrals over blocks.

    The sum over a block is its integral moved by one half, with a relative error of at most
    1 / (24 · 2^32). Infinite where the blocks have not died out at `limit`.
    """
    total = 1.0 + float(np.sum(survival(np.arange(1.0, _EXACT_TERMS))))
    return _add_blocks(total, survival, float(_EXACT_TERMS), limit, -0.5)


def integrate_survival(
    survival: Callable[[Floats], Floats], middle: float, reach: float = 1e300
) -> float:
    """E[D] = the integral of P(D > x): over halves and halves of halves below `middle`, then above.

    Infinite where the blocks above have not died out at `reach` times the middle.
    """
    nodes, weights = np.polynomial.legendre.leggauss(64)
    starts = middle * 0.5 ** np.arange(1, 65)  # blocks from start to 2 start
    ages = starts[:, None] * (1.0 + (nodes + 1) / 2)
    total = float(np.sum(starts / 2 * (survival(ages) @ weights))) + float(starts[-1])
    return _add_blocks(total, survival, middle, reach * middle, 0.0)


def _add_blocks(
    total: float, survival: Callable[[Floats], Floats], start: float, limit: float, moved: float
) -> float:
    """Add integrals over blocks from `start` to twice it, and so on, until they have died out."""
    nodes, weights = np.polynomial.legendre.leggauss(64)
    while start < limit:
        half = start / 2
        block = half * float(np.dot(weights, survival(start + moved + half * (nodes + 1))))
        total += block
        if block <= 1e-16 * total:
            return total
        start *= 2
    return math.inf


def ages_of(law: Law, t: ArrayLike) -> NDArray[Any]:
    """Ages as an array; for a law in time also from texts such as "2h" and from timedeltas."""
    return seconds("age", t) if law.in_time else np.asarray(t)


def generator(seed: Any) -> np.random.Generator:
    """Return the generator that delays are drawn from."""
    if isinstance(seed, int | np.integer):
        seed = np.random.SeedSequence(int(seed), spawn_key=(_SALT,))
    return np.random.default_rng(seed)


def _like(argument: NDArray[Any], answer: NDArray[Any]) -> Any:
    """A number for a number, an array for an array."""
    return float(answer) if argument.ndim == 0 else answer
