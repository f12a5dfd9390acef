"""The times at which duels come: steadily, at random, by the hour of the day, or in bursts.

Use it in `duelay.simulate` with delays in time: ``simulate(..., delay="exponential:2h",
traffic="poisson:10s")``.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from duelay import text
from duelay._core import checks
from duelay._core.arrays import Floats
from duelay._core.duration import DAY, Duration, read
from duelay.errors import InvalidValueError

if TYPE_CHECKING:
    from matplotlib.axes import Axes


__all__ = ["Bursts", "Daily", "Poisson", "Steady", "Traffic", "check", "parse"]

_MINUTES = 1440  # of a day


class Traffic(ABC):
    """The times at which duels come; a frozen dataclass with one method, `times`."""

    text_name: str = ""

    @abstractmethod
    def times(self, n: int, rng: np.random.Generator) -> Floats:
        """Return the times of the first n duels.

        Parameters
        ----------
        n : int
            The number of duels.
        rng : numpy.random.Generator
            The generator of random times.

        Returns
        -------
        numpy.ndarray
            (n,): seconds from 0 on, which never decrease.
        """

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the number of duels over time in one sample; needs matplotlib.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            The axes to draw on; new ones if None.
        """
        from duelay.show import plots

        return plots.draw_traffic(ax, self)

    def __str__(self) -> str:
        return text.form(self)


@text.named("traffic", "steady")
@dataclass(frozen=True)
class Steady(Traffic):
    """Duels at regular intervals, the first one at time 0.

    Parameters
    ----------
    every : Duration or str
        The interval, such as ``"10s"``.

    Examples
    --------
    >>> Steady("10s").times(3, np.random.default_rng(0))
    array([ 0., 10., 20.])
    """

    every: Duration

    def __post_init__(self) -> None:
        object.__setattr__(self, "every", read("every", self.every))

    def times(self, n: int, rng: np.random.Generator) -> Floats:
        """The first duel comes at 0."""
        return np.asarray(float(self.every) * np.arange(n))


@text.named("traffic", "poisson")
@dataclass(frozen=True)
class Poisson(Traffic):
    """Duels at random: a Poisson process.

    Parameters
    ----------
    every : Duration or str
        The mean interval, such as ``"10s"``.

    Examples
    --------
    >>> str(Poisson("90s"))
    'poisson:1m30s'
    """

    every: Duration

    def __post_init__(self) -> None:
        object.__setattr__(self, "every", read("every", self.every))

    def times(self, n: int, rng: np.random.Generator) -> Floats:
        """A Poisson process of rate 1 / every."""
        return float(self.every) * np.cumsum(rng.standard_exponential(n))


@text.named("traffic", "daily")
@dataclass(frozen=True)
class Daily(Traffic):
    """Duels at random, with a rate that varies over the day.

    The rate is (1 + swing sin(2 pi time / 24h)) / every. It is highest after 6 hours and lowest
    after 18 hours, and changes every minute.

    Parameters
    ----------
    every : Duration or str
        The mean interval over a whole day, such as ``"10s"``.
    swing : float
        How much the rate varies, from 0 to 1.

    Examples
    --------
    >>> Daily("10s")
    Daily(every=Duration('10s'), swing=0.9)
    """

    every: Duration
    swing: float = 0.9

    def __post_init__(self) -> None:
        object.__setattr__(self, "every", read("every", self.every))
        object.__setattr__(self, "swing", checks.number("swing", self.swing, least=0, most=1))

    def times(self, n: int, rng: np.random.Generator) -> Floats:
        """A Poisson process of rate 1, its time bent by the duels to be expected by each minute."""
        angle = np.linspace(0.0, 2.0 * math.pi, _MINUTES + 1)
        expected = DAY / (2.0 * math.pi) * (angle + self.swing * (1.0 - np.cos(angle)))
        expected[-1] = DAY  # not a rounding error less: days follow each other
        days, rest = np.divmod(float(self.every) * np.cumsum(rng.standard_exponential(n)), DAY)
        return np.asarray(days * DAY + np.interp(rest, expected, angle * DAY / (2.0 * math.pi)))


@text.named("traffic", "bursts")
@dataclass(frozen=True)
class Bursts(Traffic):
    """Bursts of duels, with nothing between them.

    Each stretch of `every` has one burst, which starts anywhere in it with equal probability.

    Parameters
    ----------
    size : int
        Duels in a burst.
    every : Duration or str
        The length of a stretch, such as ``"1h"``.
    apart : Duration or str
        The interval between two duels of a burst.

    Examples
    --------
    >>> Bursts(100, "1h").times(200, np.random.default_rng(0))[[0, 99, 100]].round()
    array([2292., 2293., 4571.])
    """

    size: int
    every: Duration
    apart: Duration = Duration("10ms")

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", checks.whole("size", self.size))
        for name in ("every", "apart"):
            object.__setattr__(self, name, read(name, getattr(self, name)))
        if self.size * float(self.apart) > self.every:
            raise InvalidValueError(
                f"every must be long enough for a burst of {self.size} duels {self.apart} apart, "
                f"got {self.every}"
            )

    def times(self, n: int, rng: np.random.Generator) -> Floats:
        """The beginning of each burst is drawn by itself."""
        bursts = np.arange(-(-n // self.size), dtype=np.float64)
        room = float(self.every) - self.size * float(self.apart)
        begins = bursts * float(self.every) + room * rng.random(bursts.size)
        within = float(self.apart) * np.arange(self.size)
        return np.asarray((begins[:, None] + within).reshape(-1)[:n])


def parse(form: str) -> Traffic:
    """Return the traffic of a text form.

    Parameters
    ----------
    form : str
        The text form, such as ``"poisson:10s"``.

    Raises
    ------
    ValueError
        If no traffic has this form.

    Examples
    --------
    >>> parse("bursts:100,1h")
    Bursts(size=100, every=Duration('1h'), apart=Duration('10ms'))
    """
    traffic: Traffic = text.parse("traffic", form)
    return traffic


def check(traffic: Any) -> Traffic:
    """Return traffic, given as such or as its text form.

    Parameters
    ----------
    traffic : Traffic or str
        The traffic, such as ``"poisson:10s"``.

    Returns
    -------
    Traffic
        The traffic.

    Raises
    ------
    InvalidValueError
        If it is neither traffic nor its text form.
    """
    if isinstance(traffic, str):
        traffic = parse(traffic)
    if not isinstance(traffic, Traffic):
        raise InvalidValueError(
            f"traffic must be duelay.traffic, such as 'poisson:10s' for a duel each 10 seconds on "
            f"average, got {traffic!r}",
            argument="traffic",
        )
    return traffic


def draw_times(traffic: Traffic, n: int, rng: np.random.Generator) -> Floats:
    """Return the times of n duels; raise ValueError if a user's traffic gives invalid ones."""
    times = np.ascontiguousarray(traffic.times(n, rng), dtype=np.float64)
    if times.shape != (n,) or not np.isfinite(times).all() or (np.diff(times) < 0).any():
        raise InvalidValueError(
            f"traffic must have times(n, rng) with n finite seconds that never fall, got "
            f"{times.shape} of them from {traffic}",
            argument="traffic",
        )
    return times
