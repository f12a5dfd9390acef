"""`simulate`: many runs of a policy on a problem, over the cores of this machine."""

from __future__ import annotations

import dataclasses
import inspect
import os
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from duelay._core import checks
from duelay._core.feedback import check_display
from duelay.delays.delay import Delay, check_delay
from duelay.delays.ticks_or_clock import check_clock, refuse_rounds, refuse_time
from duelay.errors import InvalidValueError
from duelay.inference.arm_set import refuse_changes
from duelay.inference.evidence import Evidence
from duelay.policies.policy import CompiledPolicy, Policy
from duelay.problems.problem import Problem, check_problem
from duelay.simulation.result import Result
from duelay.simulation.runs import (
    Job,
    Outcome,
    choose_tick_loop,
    compile_loop,
    execute_runs,
    find_gaps,
)
from duelay.simulation.setting import Setting
from duelay.traffic import Traffic


def simulate(
    problem: Problem,
    policy: Any,
    *,
    delay: Delay | str,
    horizon: int,
    runs: int = 1,
    seed: int = 0,
    workers: int | None = None,
    checkpoints: int | Sequence[int] = 200,
    stop: float | None = None,
    traffic: Traffic | str | None = None,
    setting: Setting = Setting(),  # noqa: B008, it is frozen
) -> Result:
    """Simulate a policy on a problem whose conversions are delayed, and record its regret.

    Parameters
    ----------
    problem : Problem
        The preferences. It needs a Condorcet winner, unless regret has another target.
    policy : Policy or object
        A policy, or any object whose ``start(arms, seed)`` returns a player.
    delay : Law, ByPair or str
        The true delay law. It does not change what the policy assumes: `RUCBDelay()` assumes
        geometric 0.01; write ``RUCBDelay(delay=law)`` for another law.
    horizon : int
        T, the number of duels in a run.
    runs : int
        The number of runs. Run r has generators of its own, made from `seed` and r. Results are
        therefore the same for any number of workers, and run r meets the same world under every
        policy.
    seed : int
        The seed of all runs together, at least 0.
    workers : int, optional
        Threads; None for one a core. The loop is compiled and holds no lock.
    checkpoints : int or sequence of int
        The number of ticks to record, evenly spaced, the last at the horizon; or the ticks
        themselves.
    stop : float, optional
        End a run when its policy declares a winner: the policy's own `error`, such as 0.05 for
        `Decide()`. `Result.stopped` then has the number of duels asked. The problem need not have a
        winner.
    traffic : Traffic or str, optional
        The times of the duels, such as ``"poisson:10s"`` (`duelay.traffic`). Delays are then in
        time, and the policy goes by the clock; horizon and checkpoints still count duels. Without
        it one duel is one tick.
    setting : Setting
        The regret's target, how answers arrive, and how runs are executed: a `Setting`.

    Raises
    ------
    ValueError
        If an argument is invalid, or the policy does not fit the setting.
    NoWinnerError
        If regret needs a Condorcet winner and the problem has none.

    Examples
    --------
    >>> import duelay
    >>> problem = duelay.datasets.load("six-rankers")
    >>> result = duelay.simulate(problem, duelay.RUCBDelay(), delay="geometric:0.01",
    ...                          horizon=1000, runs=3, seed=0, checkpoints=[500, 1000])
    >>> result.t, result.regret.shape
    (array([ 500, 1000]), (3, 2))
    """
    if not isinstance(setting, Setting):
        raise InvalidValueError(f"setting must be a duelay.Setting, got {setting!r}")
    setting = setting.with_arguments(stop=stop, traffic=traffic)
    check_problem(problem)
    if isinstance(policy, type) or not callable(getattr(policy, "start", None)):
        if isinstance(getattr(policy, "policy", None), Policy):  # a Recommendation, or a player
            raise InvalidValueError(
                f"policy must be a duelay policy, got a {type(policy).__name__}: take its .policy"
            )
        raise InvalidValueError(
            "policy must be a duelay policy, such as RUCBDelay() or policies.parse('recommended'), "
            f"got {_as_given(policy)}"
        )
    if isinstance(policy, Policy):
        checks.frozen("policy", policy)
    law = check_delay(delay, problem.n_arms)
    horizon = checks.whole("horizon", horizon)
    runs = checks.whole("runs", runs)
    seed = checks.whole("seed", seed, least=0)
    workers = _cores() if workers is None else checks.whole("workers", workers)
    ticks = _checkpoints(checkpoints, horizon)
    find_gaps(problem, setting)  # refuses a problem without a winner before the policy is checked
    if hasattr(policy, "for_horizon"):
        policy = policy.for_horizon(horizon)
    check_units(law, setting)
    check_fits(policy, setting, problem.n_arms, problem)
    if isinstance(policy, Policy):
        caution = policy.caution(problem.n_arms, horizon) if setting.cautious else None
        if caution is not None:
            warnings.warn(caution, stacklevel=2)
    job = Job(problem, policy, law, horizon, ticks, setting, seed, runs)
    job.run_ticks = choose_tick_loop(job)
    compile_loop(job)
    progress = setting.progress
    name = progress if isinstance(progress, str) else None
    is_offered = name is not None or progress is None
    bar = tqdm(
        desc=name,
        total=runs * horizon,
        unit=" duels",
        unit_scale=True,
        delay=2 if is_offered else 0,
        disable=None if is_offered else not progress,
        leave=False,
    )
    first = setting.first_run
    with bar:
        outcomes = execute_runs(job, range(first, first + runs), min(workers, runs), bar)
    return Result(
        problem=problem,
        policy=policy,
        delay=law,
        horizon=horizon,
        seed=seed,
        t=ticks,
        regret=np.stack([outcome.regret for outcome in outcomes]),
        final=np.array([outcome.final for outcome in outcomes]),
        leader=np.array([outcome.leader for outcome in outcomes]),
        plays=np.stack([outcome.plays for outcome in outcomes]),
        pairs=sum(outcome.pairs for outcome in outcomes) if setting.pairs else None,
        seconds=sum(outcome.seconds for outcome in outcomes),
        setting=setting,
        stopped=np.array([outcome.stopped for outcome in outcomes], dtype=np.int64),
        verdicts=tuple(_verdict(outcome, horizon) for outcome in outcomes),
        beaten=np.stack([_beaten(outcome) for outcome in outcomes]),
        p_value=np.array([_p_value(outcome) for outcome in outcomes]),
        nobody=np.array([_finds_nobody(outcome.evidence) for outcome in outcomes]),
        paths=tuple(outcome.evidence for outcome in outcomes if outcome.evidence is not None),
    )


def _as_given(policy: Any) -> str:
    """Say what was given for a policy, and how that becomes one."""
    if isinstance(policy, type) and issubclass(policy, Policy):
        return f"the class {policy.__name__}: write {policy.__name__}()"
    if isinstance(policy, str):
        return f"{policy!r}: policies.parse makes one of a text"
    return repr(policy)


def compile_ahead(
    problem: Problem, policy: Policy, *, delay: Delay | str, setting: Setting | None = None
) -> None:
    """Compile what `simulate` would wait for, or load it from disk, however few the duels."""
    setting = setting or Setting()
    law = check_delay(delay, problem.n_arms)
    if hasattr(policy, "for_horizon"):
        policy = policy.for_horizon(1)
    ticks = np.ones(1, dtype=np.int64)
    compile_loop(Job(problem, policy, law, 1, ticks, setting))


def check_units(delay: Delay, setting: Setting) -> None:
    """Refuse a law in time without traffic, and one in ticks with it."""
    if setting.joins is not None and (setting.traffic is None or not setting.by_clock):
        raise InvalidValueError(
            f"joins needs traffic and a policy by the clock, got {setting.joins}", argument="joins"
        )
    if setting.traffic is None:
        refuse_time("delay", delay)
        if not setting.by_clock:
            raise InvalidValueError(
                "by_clock=False needs traffic: without it all is in ticks anyway"
            )
    elif not delay.in_time:
        raise InvalidValueError(
            f"delay {delay} is in ticks, and traffic is in time: write a law in time, such as "
            f"'exponential:2h' or 'never:0.2,(log-normal:10m,1)'",
            argument="delay",
        )


def check_fits(
    policy: Any, setting: Setting, n_arms: int = 2, problem: Problem | None = None
) -> None:
    """Refuse what a policy cannot do."""
    if setting.traffic is not None:
        _check_traffic(policy, setting, n_arms)
    elif isinstance(policy, Policy):
        check_clock(policy, has_clock=False)
    _check_display(policy, setting, problem)
    if setting.feedback == "votes" and getattr(policy, "counts_only", False):
        raise InvalidValueError(
            "feedback must be conversions for a policy that hears counts, got 'votes'",
            argument="feedback",
        )
    if setting.stale and not isinstance(policy, CompiledPolicy):
        raise InvalidValueError(
            "stale needs a compiled policy: a player knows of its duels at once", argument="stale"
        )
    error = getattr(policy, "error", None) if isinstance(policy, CompiledPolicy) else None
    if setting.stop is None:
        return
    if setting.target == "borda":
        raise InvalidValueError(
            "stop does not fit target borda: there is no stopping rule for it yet", argument="stop"
        )
    if error is None:
        raise InvalidValueError(
            f"stop needs a policy that declares a winner, such as decide, got {policy}",
            argument="stop",
        )
    if setting.stop != error:
        raise InvalidValueError(
            f"stop must be the policy's own error, {error:g} of {policy}, got {setting.stop:g}"
            + _instead(policy, setting.stop),
            argument="stop",
        )


def _check_display(policy: Any, setting: Setting, problem: Problem | None) -> None:
    """Refuse to show one arm at a time where rates are missing, or votes are told."""
    has_rates = problem is not None and problem.rates is not None
    check_display("one" if has_rates else "pair", setting.feedback)
    if getattr(policy, "display", "pair") == "one" and problem is not None and not has_rates:
        raise InvalidValueError(
            "display='one' needs a problem with conversion rates: Problem.from_rates makes one",
            argument="problem",
        )


def _instead(policy: CompiledPolicy, error: float) -> str:
    """Name the policy with this error, if one field of it, `error` or `delta`, sets it."""
    if not dataclasses.is_dataclass(policy):
        return ""
    knobs = {field.name for field in dataclasses.fields(policy)} & {"error", "delta"}
    other = dataclasses.replace(policy, **dict.fromkeys(knobs, error))
    return f": take {other}" if len(knobs) == 1 else ""


def _verdict(outcome: Outcome, horizon: int) -> str:
    """Return the verdict that ended a run."""
    if outcome.stopped > horizon:
        return "undecided"
    return "winner" if outcome.evidence is None else outcome.evidence.verdict


def _beaten(outcome: Outcome) -> NDArray[np.bool_]:
    """(K,): the arms that the arm of the verdict is said to beat; none that did not join."""
    beaten, evidence = np.zeros(len(outcome.plays), dtype=np.bool_), outcome.evidence
    if evidence is not None and evidence.best is not None:
        beats = evidence.beats[evidence.best]
        beaten[: len(beats)] = beats
    return beaten


def _p_value(outcome: Outcome) -> float:
    """Return the any-time p-value of the leader; nan without evidence, 1 without an answer."""
    if outcome.evidence is None:
        return float("nan")
    return float(outcome.evidence.p_value[outcome.leader]) if outcome.leader >= 0 else 1.0


def _finds_nobody(evidence: Evidence | None) -> bool:
    """Whether every arm has lost to another one for certain."""
    return evidence is not None and bool(evidence.is_out.all())


def _check_traffic(policy: Any, setting: Setting, n_arms: int) -> None:
    """Refuse a policy that cannot be played as traffic brings its duels."""
    if getattr(policy, "counts_only", False):
        raise InvalidValueError(
            f"traffic does not fit {policy}, which hears counts without the duels they belong to",
            argument="traffic",
        )
    if isinstance(policy, Policy):
        refuse_rounds("traffic", policy)
        check_clock(policy, has_clock=setting.by_clock)
        if setting.by_clock:
            policy.ledger(n_arms, by_clock=True)  # refuses what it cannot keep in time
        if setting.joins is not None:
            _check_joining(policy, n_arms)
    elif setting.by_clock and "clock" not in inspect.signature(policy.start).parameters:
        raise InvalidValueError(
            f"traffic needs a policy whose start takes clock='wall', or by_clock=False in the "
            f"setting, got {policy}",
            argument="traffic",
        )


def _check_joining(policy: Policy, n_arms: int) -> None:
    """Refuse a policy that no arm can join."""
    if getattr(policy, "error", None) is None or getattr(policy, "winner_exists", False):
        raise InvalidValueError(
            f"joins needs a policy that decides, without winner_exists, got {policy}",
            argument="joins",
        )
    refuse_changes(policy, by_clock=True)
    if n_arms < 3:
        raise InvalidValueError(
            f"joins needs at least three arms, of which the last one joins, got {n_arms}",
            argument="joins",
        )


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _checkpoints(checkpoints: int | Sequence[int], horizon: int) -> NDArray[np.int64]:
    """Return the ticks to record, rising."""
    if np.ndim(checkpoints) == 0:
        n = min(checks.whole("checkpoints", checkpoints), horizon)
        return np.round(np.linspace(0, horizon, n + 1)[1:]).astype(np.int64)
    ticks = np.array([checks.whole("checkpoints", tick) for tick in checkpoints])  # type: ignore[union-attr]
    if not len(ticks) or (np.diff(ticks) <= 0).any() or ticks[-1] > horizon:
        raise InvalidValueError(
            f"checkpoints must be rising ticks from 1 to the horizon {horizon}, got "
            f"{checkpoints!r}",
            argument="checkpoints",
        )
    return ticks.astype(np.int64)
