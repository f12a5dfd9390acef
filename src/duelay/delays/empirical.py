"""A delay law from data: a table of probabilities, or delays that were seen."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from duelay._core.arrays import Floats
from duelay.delays.base import TableLaw
from duelay.delays.families import _MAX_TABLE
from duelay.errors import InvalidValueError
from duelay.text import named

_MAX_PRINTED = 50  # entries of a table that are printed


@named("law", "empirical")
@dataclass(frozen=True)
class Empirical(TableLaw):
    """A law from a table of probabilities.

    Parameters
    ----------
    pmf : array_like
        Probabilities of the delays 1, 2, ... with a sum of at most 1.

    Examples
    --------
    >>> law = Empirical(pmf=(0.5, 0.0, 0.3))
    >>> law.cdf([1, 2, 3]), round(law.never, 12)
    (array([0.5, 0.5, 0.8]), 0.2)
    >>> Empirical.from_samples([1, 3, 3, float("inf")]).pmf([1, 2, 3])
    array([0.25, 0.  , 0.5 ])
    """

    table: tuple[float, ...] = field(metadata={"argument": "pmf"})

    def __init__(self, pmf: ArrayLike) -> None:
        try:
            masses = np.atleast_1d(np.asarray(pmf, dtype=np.float64))
        except (TypeError, ValueError):
            raise InvalidValueError(
                f"pmf must be a sequence of probabilities, got {pmf!r}"
            ) from None
        if masses.ndim != 1 or not len(masses):
            raise InvalidValueError(
                f"pmf must be a sequence of probabilities, got shape {masses.shape}"
            )
        if not (masses >= 0).all() or not masses.sum() <= 1 + 1e-9:
            raise InvalidValueError(
                f"pmf must hold probabilities that sum to at most 1, got a sum of {masses.sum():g} "
                f"and a least of {masses.min():g}"
            )
        object.__setattr__(self, "table", tuple(masses.tolist()))

    @classmethod
    def from_samples(cls, samples: ArrayLike) -> Empirical:
        """Return the law of observed delays.

        Parameters
        ----------
        samples : array_like
            Delays in ticks; `inf` or `nan` for a conversion that never came.
        """
        needs = "samples must be whole numbers of at least 1, inf or nan, and must not be empty"
        try:
            delays = np.atleast_1d(np.asarray(samples, dtype=np.float64))
        except (TypeError, ValueError):
            raise InvalidValueError(f"{needs}, got {samples!r}") from None
        came = delays[np.isfinite(delays)]
        if delays.ndim != 1 or not len(delays) or (came < 1).any() or (came % 1 != 0).any():
            raise InvalidValueError(needs)
        if len(came) and came.max() > _MAX_TABLE:
            raise InvalidValueError(
                f"samples must be at most {_MAX_TABLE}, got {came.max():g}: count in longer ticks"
            )
        counts = np.bincount(came.astype(np.int64), minlength=2)[1:]
        return cls(counts / len(delays))

    @property
    def never(self) -> float:
        """1 - sum(pmf)."""
        missing = 1.0 - math.fsum(self.table)
        return missing if missing > 1e-9 else 0.0

    @property
    def support(self) -> float:
        """The last delay with a positive probability."""
        present = np.flatnonzero(self.table)
        return float(present[-1] + 1) if len(present) else 1.0

    def masses(self) -> Floats:
        """The table."""
        return np.array(self.table)

    def __repr__(self) -> str:
        if len(self.table) > _MAX_PRINTED:
            return f"Empirical({self._in_brief()})"
        return f"Empirical(pmf={self.table!r})"

    def __str__(self) -> str:
        """Its text form; for a long table a summary with a digest.

        `duelay.text.form` has every number, and `parse` reads it back as an equal law.
        """
        return (
            f"empirical:{self._in_brief()}" if len(self.table) > _MAX_PRINTED else super().__str__()
        )

    def _in_brief(self) -> str:
        share = 1.0 - self.never
        median = f"median {self.quantile(share / 2):.0f}; " if share > 0 else ""
        never = f"{100 * self.never:.3g} % never; " if self.never else ""
        digest = hashlib.sha256(np.array(self.table).tobytes()).hexdigest()[:8]
        return f"<{len(self.table)} ages; {median}{never}{digest}>"
