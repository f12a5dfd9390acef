"""`plan`: how long an experiment takes until its verdict, by simulation before it starts."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from duelay import datasets
from duelay._core import checks
from duelay._core.duration import DAY, Duration
from duelay._core.feedback import check_display, check_feedback
from duelay.delays import Law
from duelay.delays import check as check_delay
from duelay.errors import InvalidValueError
from duelay.inference.rates import margin_of_lift
from duelay.planning.result import Plan, PlannedWorld
from duelay.policies import Decide
from duelay.problems import Problem
from duelay.simulation import Result, Setting, simulate
from duelay.traffic import Poisson

BY = ("1w", "2w", "4w", "8w")
_RUNS = (40, 200)  # of each world, if not given: few where the horizon has many visitors
_VISITORS = 4e7  # in the runs of a world, if their number is not given
_MAX_VISITORS = 20_000_000  # in one run
_FIRST_STAGE, _LONGER = 50_000, 6  # visitors of the shortest simulation; how much longer the next
_GRID = 2**16  # quantiles from which delays are drawn


class RatesProblem(Problem):
    """A problem as `Problem.from_rates` makes it, whose regret is the conversions that are lost."""

    def gaps_for(self, target: str) -> NDArray[np.float64]:
        """Return the conversions that a visitor of each arm loses to the best one.

        Parameters
        ----------
        target : str
            Has no effect: one order of the rates is meant by all targets.
        """
        assert self.rates is not None
        return np.asarray(self.rates.max() - self.rates)

    def winners(self, target: str = "condorcet") -> tuple[int, ...]:
        """Return the arm with the highest rate; nothing if several have it.

        Parameters
        ----------
        target : str
            Has no effect.
        """
        return (self.winner,) if self.has_winner else ()


@dataclass(frozen=True)
class _Tabulated(Law):
    """A law from whose quantiles delays are drawn, which takes less time than its own method."""

    law: Law
    grid: NDArray[np.float64] = dataclasses.field(compare=False)

    @classmethod
    def of(cls, law: Law) -> _Tabulated:
        return cls(law, np.asarray(law.quantile((np.arange(_GRID) + 0.5) / _GRID)))

    @property
    def in_time(self) -> bool:
        return self.law.in_time

    @property
    def never(self) -> float:
        return self.law.never

    def cdf(self, t: ArrayLike) -> Any:
        return self.law.cdf(t)

    def sample(self, size: Any = None, seed: Any = None) -> Any:
        return self.grid[seed.integers(_GRID, size=size)]


def plan(
    rates: Sequence[float | str] | None = None,
    *,
    preferences: Any = None,
    visitors_per_day: float,
    delay: Law | str = "exponential:1h",
    margin: float | str | None = None,
    error: float = 0.05,
    end: str = "equivalent",
    horizon: Any = "8w",
    by: Sequence[Any] = BY,
    window: Any = "14d",
    wait: Any = None,
    add_arm_at: Any = None,
    feedback: str = "conversions",
    runs: int | None = None,
    seed: int = 0,
    progress: bool | None = None,
) -> Plan:
    """Simulate an experiment before it starts: how long until a verdict, and which one.

    Two worlds are simulated: the arms as stated, and all arms equal. In both, `Decide` chooses the
    pairs of visitors that come at random over the day, and declares a verdict by its evidence.

    Parameters
    ----------
    rates : sequence of float, optional
        The conversion rate of each arm, such as ``[0.05, 0.06]``, where one arm is shown to each
        visitor. In the world of equal arms, all have the first rate.
    preferences : float, array_like, Problem or str, optional
        In place of rates, where each visitor compares two arms: a gap, such as 0.05 for one arm
        that is preferred to the other by 55 % of visitors; a K×K matrix; or a dataset, a CSV file
        or a form, such as ``"six-rankers"``.
    visitors_per_day : float
        The visitors of a day, each of them a duel.
    delay : Law or str
        The time from the visit to the conversion, in time, such as ``"log-normal:6h,1"``. The rates
        count all conversions that come, so a law for rates must not have a share that never comes.
    margin : float or str, optional
        The smallest difference that matters; the experiment then also ends when the arms differ by
        less. With rates, a relative lift such as 0.05 or ``"5%"``; with preferences, the
        difference from 1/2, such as 0.02.
    error : float
        The probability of a false verdict.
    end : str
        The end with a margin: ``"equivalent"`` or ``"good_enough"`` (see `Decide`).
    horizon : Duration or str
        The length of a simulated experiment.
    by : sequence of Duration or str
        The times for which the shares of verdicts are shown; those after the horizon are left out.
    window : Duration or str, optional
        The time after which a conversion is no longer counted; None for no limit.
    wait : Duration or str, optional
        How long an answer may take to be evidence (see `Decide`).
    add_arm_at : Duration or str, optional
        The time at which the last arm joins. The plan then says what it costs.
    feedback : str
        With preferences, what is told: ``"conversions"`` or ``"votes"``.
    runs : int, optional
        The simulated experiments of each world; None for 200, or fewer if the horizon has very many
        visitors.
    seed : int
        The same seed gives the same numbers.
    progress : bool, optional
        Whether to draw a bar; None draws it on a terminal, after two seconds.

    Returns
    -------
    Plan
        The plan, which is a table when printed and has `plot`.

    Raises
    ------
    InvalidValueError
        If an argument is invalid.

    Examples
    --------
    >>> import duelay
    >>> planned = duelay.plan([0.05, 0.10], visitors_per_day=2000, horizon="2w", runs=20)
    >>> planned.stated.share("winner")
    1.0
    """
    return prepare(
        rates, preferences=preferences, visitors_per_day=visitors_per_day, delay=delay,
        margin=margin, error=error, end=end, horizon=horizon, by=by, window=window, wait=wait,
        add_arm_at=add_arm_at, feedback=feedback, runs=runs, seed=seed,
    ).run(progress)  # fmt: skip


def prepare(
    rates: Sequence[float | str] | None = None,
    *,
    preferences: Any = None,
    visitors_per_day: float,
    delay: Law | str = "exponential:1h",
    margin: float | str | None = None,
    error: float = 0.05,
    end: str = "equivalent",
    horizon: Any = "8w",
    by: Sequence[Any] = BY,
    window: Any = "14d",
    wait: Any = None,
    add_arm_at: Any = None,
    feedback: str = "conversions",
    runs: int | None = None,
    seed: int = 0,
) -> PreparedPlan:
    """Check the arguments of `plan`, and return what it simulates; this takes no time.

    Raises
    ------
    InvalidValueError
        If an argument is invalid.
    """
    problem, problem_equal, relative = _problems(rates, preferences)
    law = _law(delay, relative)
    visitors = checks.number("visitors_per_day", visitors_per_day, above=0)
    length = checks.duration("horizon", horizon)
    expected = visitors * float(length) / DAY
    if not 1 <= expected <= _MAX_VISITORS:
        way = "shorter, or plan with a share of the visitors" if expected > 1 else "longer"
        raise InvalidValueError(
            f"horizon must have at least one visitor and at most {_MAX_VISITORS:,}, got "
            f"{expected:,.10g}: make it {way}",
            argument="horizon",
        )
    n = math.ceil(expected)
    lift = None if margin is None else checks.share("margin", margin)
    check_feedback(feedback, counts="each visitor is a duel of its own")
    check_display("one" if relative else "pair", feedback)
    policy = Decide(
        error=checks.number("error", error, above=0, below=1),
        window=None if window is None else checks.duration("window", window),
        wait=None if wait is None else checks.duration("wait", wait),
        margin=None if lift is None else margin_of_lift(lift) if relative else lift,
        end=end,
        self_duels=False,
        display="one" if relative else "pair",
    )
    shown = sorted({float(checks.duration("by", time)) for time in by if _is_by(time, length)})
    few, many = _RUNS
    runs = max(few, min(many, int(_VISITORS / n))) if runs is None else checks.whole("runs", runs)
    joins = None if add_arm_at is None else checks.duration("add_arm_at", add_arm_at)
    if joins is not None:
        _check_joining(problem, joins, length)
    return PreparedPlan(
        simulation=_Simulation(policy, law, visitors, n, runs, feedback, seed),
        problem=problem,
        problem_equal=problem_equal,
        about=_about(problem, relative, visitors, law, lift, error),
        horizon=length,
        by=tuple(Duration.of(time) for time in shown) or (length,),
        losses="lost conversions" if relative else "regret",
        add_arm_at=joins,
    )


@dataclass(frozen=True)
class PreparedPlan:
    """A plan whose arguments are checked, ready to be simulated."""

    simulation: _Simulation
    problem: Problem
    problem_equal: Problem
    about: str
    horizon: Duration
    by: tuple[Duration, ...]
    losses: str
    add_arm_at: Duration | None

    @property
    def n_visitors(self) -> int:
        """The visitors of one simulated experiment that has no verdict."""
        return self.simulation.n

    def run(self, progress: bool | None = None) -> Plan:
        """Simulate it.

        Parameters
        ----------
        progress : bool, optional
            As for `plan`.
        """
        simulated, joins = dataclasses.replace(self.simulation, progress=progress), self.add_arm_at
        stated, without = simulated.world("as stated", self.problem, joins)
        worlds = [dataclasses.replace(stated, name="all equal")]
        if _differs(self.problem):
            worlds = [stated, simulated.world("all equal", self.problem_equal, joins)[0]]
        return Plan(
            about=self.about,
            horizon=self.horizon,
            by=self.by,
            worlds=tuple(worlds),
            losses=self.losses,
            without=without,
            add_arm_at=joins,
        )


@dataclass(frozen=True)
class _Simulation:
    """What the worlds of a plan share."""

    policy: Decide
    delay: Law
    visitors: float
    n: int
    runs: int
    feedback: str
    seed: int
    progress: bool | None = None

    def world(
        self, name: str, problem: Problem, joins: Duration | None = None
    ) -> tuple[PlannedWorld, PlannedWorld | None]:
        """Simulate a world; if an arm joins, also without it, with the same draws until then.

        The runs are made longer until all have a verdict. Longer runs have other draws, so the runs
        that are decided cannot be kept.
        """
        few = None if joins is None else _without_last(problem)
        n, is_decided = min(self.n, _FIRST_STAGE), False
        while True:
            result = self._simulate(name, problem, n, joins)
            is_decided = bool(result.is_declared.all())
            other = None if few is None else self._simulate(name, few, n, None)
            is_decided &= other is None or bool(other.is_declared.all())
            if is_decided or n == self.n:
                break
            n = min(self.n, n * _LONGER)
        without = None if other is None else _observe(name, other)
        return _observe(name, result, without, joins), without

    def _simulate(self, name: str, problem: Problem, n: int, joins: Duration | None) -> Result:
        label = f"{name}, {n:,} visitors"
        return simulate(
            problem,
            self.policy,
            delay=self.delay,
            horizon=n,
            runs=self.runs,
            seed=self.seed,
            checkpoints=1,
            stop=self.policy.error,
            traffic=Poisson(Duration.of(DAY / self.visitors)),
            setting=Setting(
                progress=label if self.progress is None else self.progress,
                joins=joins,
                feedback=self.feedback,
                cautious=False,
            ),
        )


def _observe(
    name: str,
    result: Result,
    without: PlannedWorld | None = None,
    joins: Duration | None = None,
) -> PlannedWorld:
    """Return what the runs of a result ended with.

    Runs that end before an arm joins are those without it: their duels are the same.
    """
    after = result.stopped_after
    assert after is not None and result.stopped is not None
    days = np.where(result.is_declared, after / DAY, np.inf)
    verdict = list(result.verdicts)
    bests = [path.best for path in result.paths]
    arm = ["" if best is None else result.problem.arms[best] for best in bests]
    is_false = result.is_wrong.copy()
    lost = result.final.copy() if _differs(result.problem) else np.zeros(result.runs)
    if without is not None and joins is not None:
        for run in np.flatnonzero(without.days <= float(joins) / DAY):
            days[run], lost[run] = without.days[run], without.lost[run]
            verdict[run], arm[run] = without.verdict[run], without.arm[run]
            is_false[run] = without.is_false[run]
    return PlannedWorld(name, days, tuple(verdict), tuple(arm), is_false, lost)


def _problems(
    rates: Sequence[float | str] | None, preferences: Any
) -> tuple[Problem, Problem, bool]:
    """Return the problem as stated, the one of equal arms, and whether it has rates."""
    if (rates is None) == (preferences is None):
        both = "both" if rates is not None else "neither"
        raise InvalidValueError(
            f"rates or preferences must be given, one of them, got {both}", argument="rates"
        )
    if rates is not None:
        given = [
            checks.share("rates", rate) for rate in np.atleast_1d(np.asarray(rates, dtype=object))
        ]
        if len(given) < 2:
            raise InvalidValueError(
                f"rates must be those of at least two arms, got {rates!r}", argument="rates"
            )
        return _with_rates(given)
    if isinstance(preferences, str) and not checks.is_number(preferences):
        problem = datasets.find(preferences)
    elif isinstance(preferences, Problem):
        problem = preferences
        if problem.rates is not None:
            return _with_rates(problem.rates.tolist(), problem.arms)
    elif np.ndim(preferences) == 0:
        gap = float(preferences) if isinstance(preferences, str) else preferences
        gap = checks.number("preferences", gap, least=0, below=0.5, why="a gap to 1/2")
        problem = Problem([[0.5, 0.5 - gap], [0.5 + gap, 0.5]])
    else:
        problem = Problem(preferences)
    equal = Problem(np.full((problem.n_arms,) * 2, 0.5), problem.arms)
    return problem, equal, False


def _with_rates(
    rates: Sequence[float], arms: Sequence[str] | None = None
) -> tuple[Problem, Problem, bool]:
    equal = [rates[0]] * len(rates)
    return RatesProblem.from_rates(rates, arms), RatesProblem.from_rates(equal, arms), True


def _law(delay: Law | str, relative: bool) -> Law:
    """Return a law in time, which for rates loses no conversion."""
    law = check_delay(delay)
    if not isinstance(law, Law) or not law.in_time:
        raise InvalidValueError(
            f"delay must be one law in time, such as 'log-normal:6h,1', got {law}",
            argument="delay",
        )
    if relative and law.never > 0:
        raise InvalidValueError(
            f"delay must have no share that never comes, since the rates say how many convert, got "
            f"{law}",
            argument="delay",
        )
    return _Tabulated.of(law)


def _is_by(time: Any, horizon: Duration) -> bool:
    return float(checks.duration("by", time)) <= float(horizon)


def _without_last(problem: Problem) -> Problem:
    if problem.rates is not None:
        return RatesProblem.from_rates(problem.rates[:-1], problem.arms[:-1])
    return Problem(problem.matrix[:-1, :-1], problem.arms[:-1])


def _check_joining(problem: Problem, joins: Duration, horizon: Duration) -> None:
    if problem.n_arms < 3:
        raise InvalidValueError(
            "add_arm_at needs at least three arms, of which the last one joins",
            argument="add_arm_at",
        )
    if float(joins) >= float(horizon):
        raise InvalidValueError(
            f"add_arm_at must be before the horizon, {horizon}, got {joins}", argument="add_arm_at"
        )


def _differs(problem: Problem) -> bool:
    return bool((np.abs(problem.matrix - 0.5) > 1e-12).any())


def _about(
    problem: Problem, relative: bool, visitors: float, law: Law, margin: Any, error: float
) -> str:
    """Say what was planned."""
    assert isinstance(law, _Tabulated)
    if problem.rates is not None:
        what = "rates " + ", ".join(f"{100 * rate:.4g} %" for rate in problem.rates)
    else:
        what = f"preferences of {problem.n_arms} arms"
        if problem.has_winner:
            gap = np.sort(problem.gaps)[1]
            what += f", the best ahead by at least {gap:.4g}"
    said = [what, f"{visitors:,.10g} visitors a day", f"delay {law.law}", f"error {error:g}"]
    if margin is not None:
        said.append(
            f"margin {100 * margin:.4g} % of the rate" if relative else f"margin {margin:g}"
        )
    return "; ".join(said)
