"""Any law, with a share that never answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from duelay._core import checks
from duelay._core.arrays import Floats
from duelay.delays.base import Law
from duelay.errors import InvalidValueError
from duelay.text import MAX_NESTED_LAWS, named, parse


@named("law", "never")
@dataclass(frozen=True)
class Never(Law):
    """A share of the conversions never comes; the others follow a law.

    Parameters
    ----------
    share : float
        The share of conversions that never come, from 0 to 1.
    law : Law, ByPair or str
        The law of the other conversions, or its text.

    Examples
    --------
    >>> from duelay.delays import Geometric
    >>> law = Never(0.3, Geometric(0.01))
    >>> law.mean, round(law.cdf(100_000), 12), str(law)
    (inf, 0.7, 'never:0.3,geometric:0.01')
    """

    share: float
    law: Law

    def __post_init__(self) -> None:
        object.__setattr__(self, "share", checks.number("share", self.share, least=0, most=1))
        if isinstance(self.law, str):  # its text will do, as everywhere
            object.__setattr__(self, "law", parse("law", self.law))
        if not isinstance(self.law, Law):
            raise InvalidValueError(
                f"law must be a delay law (for laws by pair, put Never inside ByPair), got "
                f"{self.law!r}"
            )
        depth, inner = 1, self.law
        while isinstance(inner, Never):
            depth, inner = depth + 1, inner.law
        if depth > MAX_NESTED_LAWS:
            raise InvalidValueError(
                f"laws must be nested at most {MAX_NESTED_LAWS} deep: one Never says the same as "
                f"many, with share = 1 - the product of (1 - share) of each"
            )

    @property
    def in_time(self) -> bool:
        """Whether the inner law is."""
        return self.law.in_time

    @property
    def never(self) -> float:
        """share + (1 - share) · never of the inner law."""
        return self.share + (1.0 - self.share) * self.law.never

    @property
    def support(self) -> float:
        """That of the inner law."""
        return self.law.support if self.share < 1 else 1.0

    @property
    def mean(self) -> float:
        """E[D]: infinite, unless the share is 0."""
        return self.law.mean if self.share == 0 else float("inf")

    def cdf(self, t: ArrayLike) -> Any:
        """tau_t = (1 - share) · tau_t of the inner law."""
        return (1.0 - self.share) * self.law.cdf(t)

    def guess(self, q: Floats) -> Floats:
        """About the smallest tick with tau >= q."""
        return self.law.guess(self._of_law(q))

    def invert(self, q: Floats) -> Floats:
        """The inner law's, for q / (1 - share)."""
        return self.law.invert(self._of_law(q))

    def _of_law(self, q: Floats) -> Floats:
        """The share of those that come."""
        return np.minimum(q / (1.0 - self.share or 1.0), 1.0 - self.law.never)
