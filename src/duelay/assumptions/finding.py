"""The result of a test of an assumption."""

from __future__ import annotations

import math
import re
from typing import Any, NamedTuple

from duelay._core import checks

MIN_SAMPLE = 20  # answers, or duels, below which a test says nothing


class Finding(NamedTuple):
    """The result of one test; `print` shows it in words.

    Attributes
    ----------
    name : str
        The name of the test.
    statistic : float
        Chi-squared, or a normal score; NaN if the history has too little data.
    p_value : float
        The p-value; NaN if the history has too little data.
    n : int
        The number of duels or answers that were used.
    is_alarm : bool
        Whether `p_value` is below the level.
    sentence : str
        What was found, and what to do.
    """

    name: str
    statistic: float
    p_value: float
    n: int
    is_alarm: bool
    sentence: str

    def about(self, display: str) -> Finding:
        """Return the finding in the words of a display.

        Parameters
        ----------
        display : str
            How arms are shown: ``"pair"``, or ``"one"`` to write of visitors instead of duels.

        Returns
        -------
        Finding
            The finding, with another sentence.
        """
        if display != "one":
            return self
        words = self.sentence.replace("is shown first in", "is shown to")
        return self._replace(sentence=re.sub(r"\bduel(s?)\b", r"visitor\1", words))

    def as_data(self) -> dict[str, Any]:
        """Return the finding for JSON, with None in place of nan and infinity."""
        return {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in self._asdict().items()
        }

    def __str__(self) -> str:
        if math.isnan(self.p_value):
            return f"{self.name}: {self.sentence}"
        p = f"p = {self.p_value:.2g}" if self.p_value > 0 else "p < 1e-300"
        return f"{self.name} ({p}, n = {self.n}): {self.sentence}"


def silent(name: str, n: int, sentence: str) -> Finding:
    """Return a finding without a p-value; the sentence says what is missing."""
    return Finding(name, math.nan, math.nan, n, False, sentence[0].upper() + sentence[1:])


def check_level(level: float) -> float:
    """Return the level, if it is between 0 and 1."""
    return checks.number("level", level, above=0, below=1)
