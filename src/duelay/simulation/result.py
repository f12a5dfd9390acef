"""The result of a simulation, and its tables."""

from __future__ import annotations

import csv
import dataclasses
import io
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from duelay import text
from duelay._core import checks
from duelay._core.duration import DAY
from duelay._core.escapes import in_cell
from duelay._core.files import write_whole
from duelay.delays.delay import Delay
from duelay.errors import InvalidValueError, NoWinnerError
from duelay.inference.evidence import Evidence
from duelay.problems.problem import Problem
from duelay.simulation.runs import UNKNOWN, streams
from duelay.simulation.setting import Setting
from duelay.traffic import Traffic, draw_times
from duelay.traffic import check as check_traffic

BANDS = ("sd", "mean")  # one standard deviation of the runs; 95 % confidence for their mean

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class Result:
    """The regret of one policy on one problem under one delay law, over many runs.

    Parameters
    ----------
    problem, policy, delay, horizon, seed, setting : object
        The arguments of `simulate`.
    t : ndarray of int
        (checkpoints,), the ticks at which regret was recorded.
    regret : ndarray of float
        (runs, checkpoints), R(t) of Equation 1.
    final : ndarray of float
        (runs,), R(horizon).
    leader : ndarray of int
        (runs,), the arm that leads in the end; -1 if it is unknown, -2 if no answer came.
    plays : ndarray of int
        (runs, K, K), duels by first and second.
    pairs : ndarray of int or None
        (checkpoints, K, K), plays by then, all runs together; with ``Setting(pairs=True)``.
    seconds : float
        Time spent in the loop by all runs together, without compilation.
    stopped : ndarray of int, optional
        (runs,), duels until a verdict, such as a declared winner; horizon + 1 if none was.
    verdicts : tuple of str
        (runs,), the verdict of each run, as in `Standing.verdict`; ``"undecided"`` without one.
    beaten : ndarray of bool, optional
        (runs, K), the arms that the arm of the verdict is said to beat.
    p_value : ndarray of float, optional
        (runs,), with `stop` and `Decide`, the any-time p-value of the leader at the end; else nan.
    nobody : ndarray of bool, optional
        (runs,), with `stop`, whether `Decide` was sure that no arm beats all others.
    paths : tuple of Evidence
        The growth of the evidence in each run, with `stop` and `Decide`.
    """

    problem: Problem
    policy: Any
    delay: Delay
    horizon: int
    seed: int
    t: NDArray[np.int64]
    regret: NDArray[np.float64]
    final: NDArray[np.float64]
    leader: NDArray[np.int64]
    plays: NDArray[np.int64]
    pairs: NDArray[np.int64] | None
    seconds: float
    setting: Setting = Setting()
    stopped: NDArray[np.int64] | None = None
    verdicts: tuple[str, ...] = ()
    beaten: NDArray[np.bool_] | None = None
    p_value: NDArray[np.float64] | None = None
    nobody: NDArray[np.bool_] | None = None
    paths: tuple[Evidence, ...] = ()

    @property
    def traffic(self) -> Traffic | None:
        """When duels came; None if ticks were counted."""
        traffic = self.setting.traffic
        return None if traffic is None else check_traffic(traffic)

    @property
    def runs(self) -> int:
        """The number of runs."""
        return len(self.regret)

    @property
    def mean(self) -> NDArray[np.float64]:
        """The mean regret at each checkpoint."""
        return np.asarray(self.regret.mean(axis=0))

    @property
    def std(self) -> NDArray[np.float64]:
        """The standard deviation over runs at each checkpoint; nan for a single run."""
        return spread(self.regret)

    def band(self, kind: str = "sd") -> NDArray[np.float64]:
        """Return half of a figure's band at each checkpoint; 0, no band, for a single run.

        Parameters
        ----------
        kind : str
            ``"sd"`` for one standard deviation of the runs; ``"mean"`` for half of a 95 % interval
            of their mean.
        """
        checks.one_of("band", kind, BANDS)
        return self.std if kind == "sd" and self.runs > 1 else half_width(self.regret)

    @property
    def led_by_winner(self) -> float:
        """The share of runs in which the true winner leads in the end; nan if unknown."""
        if (self.leader == UNKNOWN).any():
            return float("nan")
        return float(np.mean(np.isin(self.leader, _winners(self.problem, self.setting.target))))

    @property
    def measured(self) -> NDArray[np.float64]:
        """(runs,): the numbers that are compared: duels until declared with `stop`, else regret."""
        if self.setting.stop is None or self.stopped is None:
            return self.final
        return self.stopped.astype(np.float64)

    @property
    def stopped_after(self) -> NDArray[np.float64] | None:
        """(runs,): seconds of traffic until the run ended; None if ticks were counted."""
        if self.traffic is None or self.stopped is None:
            return None
        ends = np.minimum(self.stopped, self.horizon) - 1
        first = self.setting.first_run
        times = [
            draw_times(self.traffic, self.horizon, streams(self.seed, first + run)[0])[end]
            for run, end in enumerate(ends)  # the first that a world draws
        ]
        return np.array(times)

    @property
    def is_declared(self) -> NDArray[np.bool_]:
        """(runs,): whether a run ended with a verdict; with `stop` alone."""
        if self.stopped is None:
            return np.zeros(self.runs, dtype=np.bool_)
        return np.asarray(self.stopped <= self.horizon)

    @property
    def is_wrong(self) -> NDArray[np.bool_]:
        """(runs,): whether the verdict is false: an arm was declared that is not the winner.

        With a margin, also whether an arm is called good enough or equivalent and is not. A verdict
        before the last arm joins is one on the others.
        """
        wrong = self.is_declared.copy()
        for run in np.flatnonzero(wrong):
            best, verdict, problem = (
                int(self.leader[run]),
                self.verdicts[run],
                self._ended_with(int(run)),
            )
            if verdict in ("good_enough", "equivalent"):
                assert self.beaten is not None
                beaten = self.beaten[run, : problem.n_arms]
                wrong[run] = _is_false(verdict, problem.matrix, best, beaten, self.policy.margin)
            else:
                wrong[run] = best not in _winners(problem, self.setting.target)
        return wrong

    def _ended_with(self, run: int) -> Problem:
        """Return the problem of the arms that were there when a run ended."""
        n = self.problem.n_arms if self.setting.joins is None else len(self.paths[run].beats)
        return self.problem if n == self.problem.n_arms else Problem(self.problem.matrix[:n, :n])

    def share(self, verdict: str) -> float:
        """Return the share of runs that ended with a verdict.

        Parameters
        ----------
        verdict : str
            One of `verdicts`.
        """
        return self.verdicts.count(verdict) / self.runs

    @property
    def label(self) -> str:
        """The policy's text without the delay law, mean delay and horizon of the simulation.

        A law stays if the policy also works without one, since it was then given on purpose.
        """
        known = [f"mean_delay={np.max(self.delay.mean):g}", f"horizon={self.horizon}"]
        fields = dataclasses.fields(self.policy) if dataclasses.is_dataclass(self.policy) else ()
        if any(f.name == "delay" and f.metadata.get("of_the_world") for f in fields):
            law = text.form(self.delay)
            known += [f"delay={law}", f"delay=({law})"]
        name, colon, rest = str(self.policy).partition(":")
        for part in known:
            rest = f",{rest},".replace(f",{part},", ",").strip(",")
        return f"{name}{colon}{rest}" if rest else name

    @property
    def microseconds(self) -> float:
        """Microseconds a duel, of one core."""
        return 1e6 * self.seconds / max(1, int(self.plays.sum()))

    def plot(self, ax: Axes | None = None, *, band: str = "sd") -> Axes:
        """Draw mean regret over time with a band around it; needs matplotlib.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            The axes to draw on; None makes a figure.
        band : str
            The kind of band, see `band`.
        """
        from duelay.show import plots

        return plots.draw_result(ax, self, band)

    def _repr_html_(self) -> str:
        from duelay.show import notebook

        return notebook.show_result(self)

    def __repr__(self) -> str:
        how = f", {self.setting}" if str(self.setting) else ""
        if self.setting.stop is not None:
            return (
                f"Result({self.problem.name}, {self.policy}, delay={self.delay}, "
                f"horizon={self.horizon}, runs={self.runs}{how}: {self.is_declared.mean():.0%} "
                f"declared, {self.is_wrong.mean():.1%} wrong, after {until_declared(self)} duels)"
            )
        spread = f" ± {self.final.std(ddof=1):.1f}" if self.runs > 1 else ""  # of one: not known
        return (
            f"Result({self.problem.name}, {self.policy}, delay={self.delay}, "
            f"horizon={self.horizon}, runs={self.runs}{how}: "
            f"regret {self.final.mean():.1f}{spread})"
        )


def _winners(problem: Problem, target: str) -> tuple[int, ...]:
    try:
        return problem.winners(target)
    except NoWinnerError:  # which `stop` allows
        return ()


def _is_false(
    verdict: str,
    matrix: NDArray[np.float64],
    best: int,
    beaten: NDArray[np.bool_],
    margin: float,
) -> bool:
    """Whether an arm that is called good enough or equivalent is not."""
    ahead, beaten = np.delete(matrix[best], best) - 0.5, np.delete(beaten, best)
    margin -= 1e-9  # 0.5 - 0.4 is below 0.1
    is_beaten = bool((ahead <= -margin).any())
    if verdict == "good_enough":
        return is_beaten
    return is_beaten or bool(((ahead >= margin) & ~beaten | (ahead <= 0) & beaten).any())


def spread(values: NDArray[Any]) -> NDArray[np.float64]:
    """Return the standard deviation over runs, the first axis; nan for a single run."""
    if len(values) == 1:
        return np.full(values.shape[1:], np.nan)
    return np.asarray(values.std(axis=0, ddof=1))


def half_width(values: NDArray[Any]) -> NDArray[np.float64]:
    """Return half of Student's 95 % interval for the mean over runs, the first axis.

    It is 0 for a single run.

    >>> print(f"{half_width(np.array([1.0, 2.0, 3.0])):.2f}")
    2.48
    """
    from scipy.special import stdtrit

    n = len(values)
    if n == 1:
        return np.zeros(values.shape[1:])
    return np.asarray(spread(values) * stdtrit(n - 1, 0.975) / math.sqrt(n))


def longest(result: Result) -> str:
    """Return the duels of the longest run; ">" stands before the horizon if that ended it."""
    return f"{result.measured.max():,.0f}" if result.is_declared.all() else f">{result.horizon:,}"


def verdicts_of(results: Iterable[Result]) -> list[str]:
    """Return the verdicts that may end these results, in order; "undecided" is the last."""
    ends = {result.policy.end for result in results if getattr(result.policy, "margin", None)}
    return ["winner", *sorted(ends, reverse=True), "undecided"]


def until_declared(result: Result) -> str:
    """Return the mean duels until a verdict; ">" if some runs had none."""
    more = "" if result.is_declared.all() else ">"
    return f"{more}{result.measured.mean():,.0f}"


def days_until_declared(result: Result) -> str:
    """Return the same in days; empty if ticks were counted."""
    if result.stopped_after is None:
        return ""
    more = "" if result.is_declared.all() else ">"
    return f"{more}{result.stopped_after.mean() / DAY:,.3g}"


COLUMNS = ("problem", "policy", "label", "law", "setting", "run", "t", "regret")


def head(result: Result, label: str) -> tuple[str, ...]:
    """Return the first columns of every row of a result's table, up to its setting."""
    setting = str(result.setting) or "default"
    return result.problem.name, str(result.policy), label, str(result.delay), setting


STOPS = (*COLUMNS[:5], "run", "stopped", "declared", "wrong", "verdict", "p_value")
PATHS = (*COLUMNS[:5], "run", "t", "arm", "evidence")


def write_csv(
    results: Sequence[Result], path: str | Path, labels: Sequence[str] | None = None
) -> None:
    """Write the regret of results as one CSV table, a row for each run and checkpoint (`COLUMNS`).

    Parameters
    ----------
    results : sequence of Result
        The results of one or several simulations.
    path : str or Path
        The path of the file, which is written completely or not at all.
    labels : sequence of str, optional
        The names of the results; None takes each one's own `label`.

    Raises
    ------
    ValueError
        If there are not as many labels as results.
    """
    _write(COLUMNS, _regrets, results, path, labels)


def write_stops(
    results: Sequence[Result], path: str | Path, labels: Sequence[str] | None = None
) -> None:
    """Write when the runs ended as a table, a row for each run (`STOPS`).

    It has the duels until the verdict, its arm (empty if there was none), whether it is wrong, the
    verdict, and the any-time p-value of the leader, empty for a policy that has none. The
    parameters are those of `write_csv`.
    """
    _write(STOPS, _stops, results, path, labels)


def write_paths(
    results: Sequence[Result], path: str | Path, labels: Sequence[str] | None = None
) -> None:
    """Write how the evidence grew as a table, a row for each run, tick and arm (`PATHS`).

    It has some 250 ticks of a run, and the last. An arm is declared once its evidence reaches the
    threshold (docs/theory.md). The parameters are those of `write_csv`.
    """
    _write(PATHS, _paths, results, path, labels)


def _write(
    columns: Sequence[str],
    rows: Callable[[Result], Iterable[tuple[Any, ...]]],
    results: Sequence[Result],
    path: str | Path,
    labels: Sequence[str] | None,
) -> None:
    """Write a table whose rows begin with the columns of `head`, completely or not at all."""
    labels = [result.label for result in results] if labels is None else labels
    if len(labels) != len(results):
        raise InvalidValueError(
            f"labels must be one for each of the {len(results)} results, got {len(labels)}"
        )
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow(columns)
    for result, label in zip(results, labels, strict=True):
        begins = [in_cell(word) for word in head(result, label)]
        writer.writerows([*begins, *row] for row in rows(result))
    write_whole(Path(path), lines.getvalue().encode())


def _regrets(result: Result) -> Iterable[tuple[Any, ...]]:
    for run, regrets in enumerate(result.regret, result.setting.first_run):
        for t, regret in zip(result.t, regrets, strict=True):
            yield run, int(t), repr(float(regret))


def _stops(result: Result) -> Iterable[tuple[Any, ...]]:
    arms = [in_cell(arm) for arm in result.problem.arms]
    unknown = np.full(result.runs, np.nan)
    p_values = unknown if result.p_value is None else result.p_value
    ends = zip(result.measured, result.leader, result.is_declared, result.is_wrong,
               result.verdicts, p_values, strict=True)  # fmt: skip
    for run, (stopped, leader, is_declared, is_wrong, verdict, p_value) in enumerate(
        ends, result.setting.first_run
    ):
        p_words = "" if math.isnan(p_value) else f"{p_value:.4g}"
        yield (
            run, int(stopped), arms[leader] if is_declared else "", bool(is_wrong), verdict, p_words
        )  # fmt: skip


def _paths(result: Result) -> Iterable[tuple[Any, ...]]:
    arms = [in_cell(arm) for arm in result.problem.arms]
    for run, evidence in enumerate(result.paths, result.setting.first_run):
        for t, row in zip(evidence.tick, np.exp(evidence.path), strict=True):
            for arm, value in zip(arms, row, strict=True):
                yield run, int(t), arm, f"{value:.6g}"
