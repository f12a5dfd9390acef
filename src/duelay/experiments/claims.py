"""The paper's claims about its experiments, each with a verdict computed from the results.

A verdict is "holds", "holds under this reading" (with the readings under which it does) or "does
not hold". Only the texts in claims.toml are written by hand.
"""

from __future__ import annotations

import functools
import itertools
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

import numpy as np

from duelay.experiments import statistics
from duelay.experiments.results import Results
from duelay.experiments.spec import Grid
from duelay.policies.rucb import COUNTINGS
from duelay.problems import Problem
from duelay.simulation import Result

RUCB_DELAY, RR_DB = "RUCB-Delay", "RR-DB-Delay"
MRR = ("appendix", "appendix, ordered", "brief", "brief, ordered")
SIX = ("six-rankers", "mslr", "tennis", "arithmetic", "car", "sushi")


@dataclass
class Claim:
    """A claim, its verdict, and the numbers behind it.

    Attributes
    ----------
    title : str
        The claim in a few words.
    quote : str
        What the paper says.
    test : str
        What is computed, and when the claim holds.
    columns, rows : list
        The numbers behind the verdict, as a table.
    explanation : str
        The verdict in words.
    verdict : str
        Whether the claim holds.
    readings : list of str
        The readings of the paper under which it holds.
    """

    title: str
    quote: str  # what the paper says
    test: str  # what is computed, and what counts as true
    columns: list[str]
    rows: list[list[str]]
    explanation: str
    verdict: str = ""
    readings: list[str] = field(default_factory=list)  # those under which it holds

    def judge(self, outcomes: dict[str, bool]) -> Claim:
        """Set the verdict from the outcome under each reading.

        Parameters
        ----------
        outcomes : dict
            Whether the claim holds, by reading.
        """
        self.readings = [reading for reading, true in outcomes.items() if true]
        if len(self.readings) == len(outcomes):
            self.verdict = "holds"
        elif self.readings:
            self.verdict = "holds under this reading"
        else:
            self.verdict = "does not hold"
        return self


def check_claims(results: Results) -> list[Claim]:
    """Check every claim."""
    return [claim(results) for claim in CLAIMS]


def caveat(grid: Grid) -> str:
    """Say why the verdicts of a grid are not the last word; nothing where they are."""
    sentences = []
    if grid.runs < 20:
        sentences.append(
            f"With {grid.runs} runs, fewer than 20, intervals are too narrow: these verdicts are a "
            "first look."
        )
    if grid.horizon != 200_000:
        sentences.append(
            f"The horizon of {grid.horizon:,} is not the paper's 200,000: a policy that converges "
            "later has not converged yet."
        )
    return " ".join(sentences)


@functools.cache
def _texts() -> dict[str, dict[str, Any]]:
    table = resources.files(__package__) / "claims.toml"
    return tomllib.loads(table.read_text(encoding="utf-8"))


def _claim(
    name: str, columns: list[str], rows: list[list[str]], outcomes: dict[str, bool]
) -> Claim:
    """Return the claim of this name in claims.toml, with its verdict."""
    return Claim(**_texts()[name], columns=columns, rows=rows).judge(outcomes)


def _datasets(results: Results) -> dict[str, Callable[[str], Result]]:
    """Every dataset, both variants of car and sushi among them: label of a policy -> result."""
    return {
        problem.name: functools.partial(results.get, grid, problem.name)
        for grid in ("paper", "variants")
        for problem in results.grid(grid).problems
    }


def _selections() -> dict[str, tuple[str, ...]]:
    """The four ways to choose the six datasets."""
    return {
        f"{car}, {sushi}": (*SIX[:4], car, sushi)
        for car, sushi in itertools.product(("car", "car-consistent"), ("sushi", "sushi-chutoro"))
    }


def _mrr_label(reading: str) -> str:
    return f"MRR-DB-Delay, {reading}"


def _rivals() -> list[str]:
    """The policies that RUCB-Delay is compared with, MRR-DB-Delay in all its readings."""
    return [RR_DB, *map(_mrr_label, MRR)]


def _by_reading(holds: Callable[[str, str], bool]) -> dict[str, bool]:
    """Ask under every reading: which MRR-DB-Delay, and which six datasets."""
    return {
        f"MRR-DB-Delay {mrr}; {selection}": holds(_mrr_label(mrr), selection)
        for mrr in MRR
        for selection in _selections()
    }


def rucb_delay_is_best(results: Results) -> Claim:
    """Across all datasets except for Tennis."""
    get = _datasets(results)
    rivals = _rivals()
    gains = {
        (name, rival): statistics.difference(of(rival), of(RUCB_DELAY))
        for name, of in get.items()
        for rival in rivals
    }
    rows = [
        [
            name,
            f"{of(RUCB_DELAY).final.mean():,.0f}",
            *(str(gains[name, rival]) for rival in rivals),
        ]
        for name, of in get.items()
    ]

    def holds(mrr: str, selection: str) -> bool:
        both, names = (RR_DB, mrr), _selections()[selection]
        elsewhere = all(gains[n, r].low > 0 for n in names if n != "tennis" for r in both)
        return elsewhere and any(gains["tennis", r].high < 0 for r in both)

    outcomes = _by_reading(holds)
    return _claim(
        "rucb_delay_is_best",
        ["dataset", "RUCB-Delay", *(f"{rival} minus it" for rival in rivals)],
        rows,
        outcomes,
    )


def rr_db_is_slightly_ahead(results: Results) -> Claim:
    """A slight superiority of RR-DB-Delay over MRR-DB-Delay, on average."""
    get = _datasets(results)
    rows = []

    def holds(mrr: str, selection: str) -> bool:
        several = [get[name] for name in _selections()[selection]]
        samples = [np.stack([of(label).final for of in several], axis=1) for label in (mrr, RR_DB)]
        times = statistics.bootstrap(lambda m, r: m.mean(axis=1) / r.mean(axis=1), *samples)
        rows.append([mrr.removeprefix("MRR-DB-Delay, "), selection, str(times)])
        return times.low > 1 and times.value < 1.5

    outcomes = _by_reading(holds)
    return _claim(
        "rr_db_is_slightly_ahead",
        ["MRR-DB-Delay", "datasets", "multiple of RR-DB-Delay's regret"],
        rows,
        outcomes,
    )


def rucb_fails(results: Results) -> Claim:
    """The baseline fails to converge across all datasets."""
    get = _datasets(results)
    shares = {
        (name, counting): statistics.late_share(of(f"RUCB, {counting}"))
        for name, of in get.items()
        for counting in COUNTINGS
    }
    rows = [[name, *(str(shares[name, counting]) for counting in COUNTINGS)] for name in get]
    outcomes = {
        f"RUCB {counting}": all(shares[name, counting].low > 0.25 for name in get)
        for counting in COUNTINGS
    }
    return _claim("rucb_fails", ["dataset", *COUNTINGS], rows, outcomes)


def window_has_no_effect(results: Results) -> Claim:
    """A window of 1000 against one of 10,000."""
    rows, good = [], True
    for label in (RUCB_DELAY, RR_DB):
        for problem in results.grid("window").problems:
            short = results.get("paper", problem.name, label)
            long = results.get("window", problem.name, label)
            times = statistics.ratio(short, long)
            good = good and times.low > 0.9 and times.high < 1.1
            rows.append([problem.name, label, str(times)])
    return _claim(
        "window_has_no_effect", ["dataset", "policy", "multiple"], rows, {"both policies": good}
    )


def slower_at_first(results: Results) -> Claim:
    """RUCB-Delay's regret increases more slowly in the early stages."""
    get = _datasets(results)
    rivals = _rivals()
    rows, ahead = [], {}
    for name, of in get.items():
        base = of(RUCB_DELAY)
        early = int(np.searchsorted(base.t, base.horizon / 20))
        row = [name, f"{base.mean[early]:,.0f}"]
        for rival in rivals:
            gap = statistics.bootstrap(
                lambda x, y: x - y, of(rival).regret[:, early], base.regret[:, early]
            )
            ahead[name, rival] = gap.low > 0
            row.append(str(gap))
        rows.append(row)
    outcomes = _by_reading(
        lambda mrr, selection: all(
            ahead[name, rival] for name in _selections()[selection] for rival in (RR_DB, mrr)
        )
    )
    return _claim(
        "slower_at_first",
        ["dataset", "RUCB-Delay", *(f"{rival} minus it" for rival in rivals)],
        rows,
        outcomes,
    )


def _small_gaps(problem: Problem) -> int:
    """Count the losers with a gap below 0.1; 0.6 - 0.5, rounded down by floats, is not."""
    return int((problem.gaps < 0.1 - 1e-9).sum()) - 1  # the winner's own is 0


def more_with_small_gaps(results: Results) -> Claim:
    """Larger differences for datasets with many arms of small gap."""
    get = _datasets(results)
    small = {name: _small_gaps(of(RUCB_DELAY).problem) for name, of in get.items()}
    rivals = _rivals()
    rows = [
        [
            name,
            str(small[name]),
            *(str(statistics.difference(get[name](r), get[name](RUCB_DELAY))) for r in rivals),
        ]
        for name in sorted(get, key=lambda name: small[name])
    ]
    grows = {}
    for selection, names in _selections().items():
        counts = np.array([[small[name] for name in names]], dtype=np.float64)
        row = [f"rank correlation; {selection}", ""]
        for rival in rivals:
            samples = [
                np.stack([get[name](label).final for name in names], axis=1)
                for label in (rival, RUCB_DELAY)
            ]
            found = statistics.bootstrap(
                lambda x, y, c=counts: statistics.rank_correlation(x - y, c), *samples
            )
            grows[selection, rival] = found.value > 0.5 and found.low > 0
            row.append(str(found))
        rows.append(row)
    outcomes = _by_reading(lambda mrr, selection: grows[selection, RR_DB] and grows[selection, mrr])
    return _claim(
        "more_with_small_gaps",
        ["dataset", "small gaps", *(f"{rival} minus RUCB-Delay" for rival in rivals)],
        rows,
        outcomes,
    )


def exponents(results: Results) -> Claim:
    """Delta_min^-1 for MRR-DB-Delay and RR-DB-Delay against Delta_min^-2 for RUCB-Delay."""
    grid = results.grid("gap")
    closest = [float(np.sort(problem.gaps)[1]) for problem in grid.problems]
    rows, fits = [], {}
    for choice in grid.policies:
        several = [results.get("gap", problem.name, choice.label) for problem in grid.problems]
        fits[choice.label] = statistics.slope(several, [1 / gap for gap in closest])
        means = [f"{result.final.mean():,.0f}" for result in several]
        rows.append([choice.label, *means, str(fits[choice.label])])
    eliminating = [label for label in fits if label != RUCB_DELAY]
    parts = {
        "RUCB-Delay's exponent is nearer to 2 than to 1": fits[RUCB_DELAY].low > 1.5,
        **{f"{label}'s is nearer to 1 than to 2": fits[label].high < 1.5 for label in eliminating},
        "RUCB-Delay's is the largest": all(
            fits[RUCB_DELAY].low > fits[label].high for label in eliminating
        ),
    }
    blank = [""] * (len(closest) + 1)
    rows += [[part, *blank[:-1], "yes" if true else "no"] for part, true in parts.items()]
    return _claim(
        "exponents",
        ["policy", *(f"gap {gap:g}" for gap in closest), "exponent"],
        rows,
        {"all parts": all(parts.values())},
    )


def without_delay(results: Results) -> Claim:
    """Without delay RUCB-Delay does what RUCB does."""
    grid = results.grid("no-delay")
    rows, same = [], []
    for problem in grid.problems:
        a = results.get("no-delay", problem.name, RUCB_DELAY)
        b = results.get("no-delay", problem.name, "RUCB, corrected")
        same.append(np.array_equal(a.regret, b.regret) and np.array_equal(a.plays, b.plays))
        rows.append(
            [
                problem.name,
                f"{a.final.mean():,.1f}",
                f"{b.final.mean():,.1f}",
                "every run, to the last bit" if same[-1] else "no",
            ]
        )
    return _claim(
        "without_delay",
        ["dataset", "RUCB-Delay", "RUCB", "the same"],
        rows,
        {"all datasets": all(same)},
    )


CLAIMS = (
    rucb_delay_is_best,
    rr_db_is_slightly_ahead,
    rucb_fails,
    window_has_no_effect,
    slower_at_first,
    more_with_small_gaps,
    exponents,
    without_delay,
)
