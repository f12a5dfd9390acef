"""The paper's claims about its experiments, each with a verdict computed from the results.

A verdict is "holds", "holds under this reading" (with the readings under which it does) or "does
not hold". Nothing here is written by hand but the claim and the explanation of its readings.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field

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


def check(results: Results) -> list[Claim]:
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
    return Claim(
        "RUCB-Delay has the least regret everywhere but on tennis",
        "Across all datasets except for Tennis, RUCB-Delay outperforms RR-DB-Delay and "
        "MRR-DB-Delay.",
        "How much more regret than RUCB-Delay each rival has (mean difference with its 95 % "
        "interval). True where every interval lies above 0, and on tennis one lies below.",
        ["dataset", "RUCB-Delay", *(f"{rival} minus it" for rival in rivals)],
        rows,
        "MRR-DB-Delay's constants, the treatment of the car data and the selection of sushi are "
        "not given in the paper, so all are tried: the appendix's n_m or the brief form with "
        "(0.5, 0.1, 0.1), pairs once or in both orders, all 60 people or the 52 consistent ones, "
        "and two selections of sixteen kinds of sushi.",
    ).judge(outcomes)


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
    return Claim(
        "RR-DB-Delay is slightly ahead of MRR-DB-Delay on average",
        "Upon comparing the average performance of RR-DB-Delay and MRR-DB-Delay, we observe a "
        "slight superiority of RR-DB-Delay.",
        "MRR-DB-Delay's regret, averaged over the six datasets, as a multiple of RR-DB-Delay's. "
        "True where the interval lies above 1 and the multiple is below 1.5.",
        ["MRR-DB-Delay", "datasets", "multiple of RR-DB-Delay's regret"],
        rows,
        "The appendix's n_m is long: 893 duels a pair in the first round alone at T = 200,000. The "
        "paper's brief form has constants that it does not give; (0.5, 0.1, 0.1) are ours.",
    ).judge(outcomes)


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
    return Claim(
        "RUCB fails to converge on every dataset",
        "The baseline method, RUCB, becomes futile and fails to converge across all datasets.",
        "The share of the regret that falls into the second half of the horizon: one half for a "
        "straight line, little where regret levels off. True where it is above 1/4 on every "
        "dataset.",
        ["dataset", *COUNTINGS],
        rows,
        '"Update this count as soon as delayed feedback is received" has three readings: the false '
        "loss is withdrawn when the conversion comes (corrected), or it stays and the win is added "
        "(append-only), or silence is never counted at all (conversions).",
    ).judge(outcomes)


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
    return Claim(
        "The window of 1000 has practically no effect",
        "Introducing the windowing parameter in this experiment is expected to have practically no "
        "impact on regret performance.",
        "The regret with a window of 1000 as a multiple of that with 10,000. True where every "
        "interval lies within 10 % of 1.",
        ["dataset", "policy", "multiple"],
        rows,
        "By age 1000 all but 4 in 100,000 of the conversions have come (the paper says 1 in 1000).",
    ).judge({"both policies": good})


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
    return Claim(
        "RUCB-Delay's regret grows more slowly at first",
        "The regret increases more slowly in the early stages compared to RR-DB-Delay and "
        "MRR-DB-Delay.",
        "How much more regret than RUCB-Delay each rival has after a twentieth of the horizon. "
        "True where every interval of both rivals lies above 0.",
        ["dataset", "RUCB-Delay", *(f"{rival} minus it" for rival in rivals)],
        rows,
        "MRR-DB-Delay plays one pair after the other, those of the first arms first. With the "
        "appendix's long rounds its early regret says mostly how the arms are numbered.",
    ).judge(outcomes)


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
    return Claim(
        "The difference grows with the number of arms with small gaps",
        "For datasets with many arms having small gaps, these arms tend to be eliminated later. As "
        "a result, comparably large differences in regret performance may arise.",
        "Spearman's correlation, over the six datasets, between the number of losers with a gap "
        "below 0.1 and the difference in regret to RUCB-Delay. True where it is above 1/2, with an "
        "interval above 0, for both rivals. The interval is over runs; the datasets are what they "
        "are.",
        ["dataset", "small gaps", *(f"{rival} minus RUCB-Delay" for rival in rivals)],
        rows,
        "Six datasets differ in more than their small gaps: in the number of arms, above all, and "
        "the sushi data have sixteen arms and hardly a small gap.",
    ).judge(outcomes)


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
    return Claim(
        "Regret grows with the inverse of the smallest gap, for RUCB-Delay with its square",
        "MRR-DB-Delay is advantageous in terms of the order of Delta_min, as it only depends on "
        "Delta_min^-1, whereas RUCB-Delay relies on Delta_min^-2.",
        "Five arms; one rival comes closer to the winner, the others stay at 0.2. The slope of log "
        "regret over log(1 / gap). True where every part of the claim is.",
        ["policy", *(f"gap {gap:g}" for gap in closest), "exponent"],
        rows,
        "The claim is about upper bounds. What is measured is regret at one horizon: where a bound "
        "is loose, its exponent does not show.",
    ).judge({"all parts": all(parts.values())})


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
    return Claim(
        "Without delay RUCB-Delay is RUCB",
        "In the absence of delay, when tau_1 = 1, our algorithm RUCB-Delay recovers the optimal "
        "regret bound in the standard stochastic dueling bandit problem.",
        "Both policies with the same seeds and a delay of one tick. True where the regret of every "
        "run at every checkpoint, and every count of duels, is the same.",
        ["dataset", "RUCB-Delay", "RUCB", "the same"],
        rows,
        "With tau_1 = 1 the delay-corrected counts are the plain ones.",
    ).judge({"all datasets": all(same)})


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
