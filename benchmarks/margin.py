"""How soon an experiment ends where nothing differs: ``python -m benchmarks margin``.

Writes the tables of docs/howto/stopping.md and docs/theory.md that are about `Decide(margin=)`.
`equal` has the mean number of duels until a verdict where all arms are equal and answers come at
once, 300 runs each, beside a fixed sample; `false` the share of false verdicts where arms differ by
exactly the margin, 1000 runs each.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

import duelay
import pages
from duelay.problems import Problem
from duelay.simulation import Setting

ERROR, POWER = 0.05, 0.9
MARGINS = (0.1, 0.05, 0.02)


class Row(NamedTuple):
    """A row of the table of equal arms."""

    n_arms: int
    end: str = "good_enough"
    feedback: str = "votes"
    delay: str = "constant:1"

    @property
    def name(self) -> str:
        """What stands in front of it."""
        words = f"{self.n_arms} arms, {self.end.replace('_', ' ')}"
        if self.feedback == "conversions":
            return f"{words}, conversions, {'60 %' if 'never' in self.delay else 'all'} answer"
        return f"{words}, votes"


ROWS = (
    *(Row(k) for k in (2, 3, 5, 10)),
    *(Row(k, "equivalent") for k in (2, 3, 5)),
    Row(2, feedback="conversions"),
    Row(2, feedback="conversions", delay="never:0.4,constant:1"),
)


def fixed_sample(n_arms: int, margin: float, *, two_sided: bool) -> float:
    """Duels of a fixed sample at equal arms: one arm with each of the others, at the same level.

    Two-sided, each of the K - 1 pairs has two one-sided tests (TOST).
    """
    from scipy.special import ndtri

    level = -ndtri(ERROR / (n_arms * (n_arms - 1) if two_sided else n_arms))
    power = -ndtri((1 - POWER) / 2 if two_sided else 1 - POWER)
    return float((n_arms - 1) * (level + power) ** 2 / (4 * margin**2))


def equal(runs: int, margins: tuple[float, ...] = MARGINS) -> pages.Part:
    """Mean duels until a verdict at equal arms, with the share of runs that have none."""
    rows = []
    for row in ROWS:
        cells = []
        problem = Problem(np.full((row.n_arms, row.n_arms), 0.5), name="equal")
        for margin in margins:
            horizon = int(40 * row.n_arms**2 / margin**2)
            policy = duelay.Decide(margin=margin, end=row.end, wait=4, error=ERROR)
            result = duelay.simulate(
                problem, policy, delay=row.delay, horizon=horizon, runs=runs, seed=0, stop=ERROR,
                checkpoints=1, setting=Setting(feedback=row.feedback),
            )  # fmt: skip
            late = result.share("undecided")
            error = result.stopped.std(ddof=1) / math.sqrt(runs)
            late_words = f" ({100 * late:.3g} % undecided)" if late else ""
            cells.append(f"{result.stopped.mean():,.0f} ± {error:,.0f}{late_words}")
            print(row.name, margin, cells[-1], flush=True)
        fixed = "-"
        if row.feedback == "votes":
            two_sided = row.end == "equivalent"
            fixed = " / ".join(
                f"{fixed_sample(row.n_arms, margin, two_sided=two_sided):,.0f}"
                for margin in margins
            )
        rows.append([row.name, *cells, fixed])
    columns = ["", *(f"margin {margin:g}" for margin in margins), "fixed sample, 90 % power"]
    return pages.table(columns, rows)


def beaten_by(n_arms: int, margin: float) -> Problem:
    """A circle in which each arm loses to the next by the margin; of two, the first loses."""
    matrix = np.full((n_arms, n_arms), 0.5)
    for i in range(n_arms if n_arms > 2 else 1):
        j = (i + 1) % n_arms
        matrix[i, j], matrix[j, i] = 0.5 - margin, 0.5 + margin
    return Problem(matrix, name="circle" if n_arms > 2 else "gap")


def false(runs: int) -> pages.Part:
    """Shares of false verdicts at a gap of exactly the margin, and in circles of such losses."""
    rows = []
    for n_arms in (2, 3, 5):
        for margin in (0.1, 0.05) if n_arms < 5 else (0.1,):
            for feedback in ("votes", "conversions"):
                cells = []
                for end in ("good_enough", "equivalent"):
                    policy = duelay.Decide(margin=margin, end=end, error=ERROR, wait=60)
                    result = duelay.simulate(
                        beaten_by(n_arms, margin), policy, delay="geometric:0.1",
                        horizon=int(10 * n_arms**2 / margin**2), runs=runs, seed=1, stop=ERROR,
                        checkpoints=1, setting=Setting(feedback=feedback),
                    )  # fmt: skip
                    cells.append(f"{100 * result.is_wrong.mean():.1f} %")
                kind = "2 arms" if n_arms == 2 else f"circle of {n_arms}"
                rows.append([kind, f"{margin:g}", feedback, *cells])
                print(*rows[-1], flush=True)
    return pages.table(["", "margin = gap", "reported", "good enough", "equivalent"], rows)


def main() -> None:
    """Make the tables that are asked for."""
    makers = {"equal": lambda part: equal(300 // part), "false": lambda part: false(1000 // part)}
    pages.make_tables("margin", makers)


if __name__ == "__main__":
    main()
