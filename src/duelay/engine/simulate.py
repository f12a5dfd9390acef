"""`simulate`: many runs of a policy on a problem, over the cores of this machine."""

from __future__ import annotations

import dataclasses
import inspect
import os
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from duelay._core import checks
from duelay._core.numba_parts import NumbaError
from duelay.delays import Delay
from duelay.delays import check as check_delay
from duelay.delays.units import check_clock, refuse_time
from duelay.engine import by_player
from duelay.engine.bulk import nothing_late, run_rounds
from duelay.engine.by_clock import Hours, draw_hours, run_by_clock
from duelay.engine.held import hold, run_held
from duelay.engine.loop import run
from duelay.engine.result import Result
from duelay.engine.setting import Setting, takes_setting
from duelay.engine.tick import Tally, is_over, new_tally, regret_so_far, stand_still
from duelay.engine.world import make_world, with_empty_queue
from duelay.ledger import Ledger, age_to, for_votes, with_room
from duelay.ledger.bets import Bets
from duelay.players.evidence import Evidence, evidence_of
from duelay.players.standing import active_of, leader_of
from duelay.policies.policy import CompiledPolicy, Policy
from duelay.problems import NoWinnerError, Problem
from duelay.rules.mrr_db import MRRDBRule
from duelay.rules.turn import explain
from duelay.traffic import Traffic
from duelay.traffic import check as check_traffic

_SLICE_SECONDS = 0.05  # how long Ctrl-C and the progress bar wait for a compiled loop
_FIRST_SLICE = 256


class StoppedError(Exception):
    """Another run failed, or somebody pressed Ctrl-C."""


class Outcome(NamedTuple):
    """What is left of one run."""

    regret: NDArray[np.float64]
    final: float
    leader: int
    plays: NDArray[np.int64]
    pairs: Any
    seconds: float
    stopped: int
    path: Evidence | None


@takes_setting
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
    """Run a policy on a problem whose conversions are delayed, and record its regret.

    Parameters
    ----------
    problem : the preferences; it needs a Condorcet winner, unless regret has another target.
    policy : a recipe, or any object whose ``start(arms, seed)`` returns a player.
    delay : the law that delays really follow. What a policy assumes stays its own: `RUCBDelay()`
        assumes geometric 0.01, whatever the truth; write ``RUCBDelay(delay=law)`` to tell it.
    horizon : T, the number of duels in a run.
    runs : the number of runs. Run r draws from generators of its own, made from `seed` and r: the
        numbers are the same for any number of workers, and run r meets the same world under every
        policy.
    workers : threads; None for one a core. The loop is compiled and holds no lock.
    checkpoints : how many ticks to record, evenly spaced, the last at the horizon; or which ones.
    stop : end a run when its policy declares a winner: the policy's own `error`, such as 0.05 for
        `Decide()`. `Result.stopped` then has the number of duels asked. The problem need not have a
        winner.
    traffic : when duels come, such as ``"poisson:10s"`` (`duelay.traffic`). Delays are then in
        time, and the policy goes by the clock; horizon and checkpoints still count duels. Without
        it one duel is one tick.
    setting : whose regret, how answers come, and how the runs are done: a `Setting`.

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
        raise ValueError(f"setting must be a duelay.Setting, got {setting!r}")
    if stop is not None:
        if setting.stop not in (None, stop):
            raise ValueError(f"stop must be given once, got {stop!r} and {setting.stop!r}")
        setting = dataclasses.replace(setting, stop=stop)
    if traffic is not None:
        if setting.traffic not in (None, check_traffic(traffic)):
            raise ValueError(f"traffic must be given once, got {traffic} and {setting.traffic}")
        setting = dataclasses.replace(setting, traffic=traffic)
    if not isinstance(problem, Problem):
        raise ValueError(f"problem must be a duelay.Problem, got {problem!r}")
    if isinstance(policy, type) or not callable(getattr(policy, "start", None)):
        if isinstance(getattr(policy, "policy", None), Policy):  # a Recommendation, or a player
            raise ValueError(
                f"policy must be a duelay policy, got a {type(policy).__name__}: take its .policy"
            )
        raise ValueError(
            "policy must be a duelay policy, such as RUCBDelay() or policies.parse('recommended'), "
            f"got {policy!r}"
        )
    law = check_delay(delay, problem.n_arms)
    horizon = checks.whole("horizon", horizon)
    runs = checks.whole("runs", runs)
    seed = checks.whole("seed", seed, least=0)
    workers = _cores() if workers is None else checks.whole("workers", workers)
    ticks = _checkpoints(checkpoints, horizon)
    gaps = _gaps(problem, setting)
    if hasattr(policy, "for_horizon"):
        policy = policy.for_horizon(horizon)
    check_units(law, setting)
    check_fits(policy, setting, problem.n_arms)
    if isinstance(policy, Policy):
        caution = policy.caution(problem.n_arms, horizon) if setting.is_cautious else None
        if caution is not None:
            warnings.warn(caution, stacklevel=3)  # past `takes_setting`
    job = Job(problem, policy, law, horizon, seed, ticks, gaps, setting)
    job.compile()
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
        outcomes = _spread(job, range(first, first + runs), min(workers, runs), bar)
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
        paths=tuple(outcome.path for outcome in outcomes if outcome.path is not None),
    )


def _gaps(problem: Problem, setting: Setting) -> NDArray[np.float64]:
    """Return what each arm lacks to the winner; nan where there is none, which `stop` allows."""
    try:
        return problem.gaps_for(setting.target)
    except NoWinnerError:
        if setting.stop is None:
            raise
        return np.full(problem.n_arms, np.nan)


def check_units(delay: Delay, setting: Setting) -> None:
    """Refuse a law in time without traffic, and one in ticks with it."""
    if setting.traffic is None:
        refuse_time("delay", delay)
        if not setting.by_clock:
            raise ValueError("by_clock=False needs traffic: without it all is in ticks anyway")
    elif not delay.in_time:
        raise ValueError(
            f"delay {delay} is in ticks, and traffic is in time: write a law in time, such as "
            f"'exponential:2h' or 'never:0.2,(log-normal:10m,1)'"
        )


def check_fits(policy: Any, setting: Setting, n_arms: int = 2) -> None:
    """Refuse what a policy cannot do."""
    if setting.traffic is not None:
        _check_traffic(policy, setting, n_arms)
    elif isinstance(policy, Policy):
        check_clock(policy, has_clock=False)
    if setting.feedback == "votes" and getattr(policy, "counts_only", False):
        raise ValueError("feedback must be conversions for a policy that hears counts, got 'votes'")
    if setting.stale and not isinstance(policy, CompiledPolicy):
        raise ValueError("stale needs a compiled policy: a player knows of its duels at once")
    error = getattr(policy, "error", None) if isinstance(policy, CompiledPolicy) else None
    if setting.stop is None:
        return
    if setting.target == "borda":
        raise ValueError("stop does not fit target borda: there is no stopping rule for it yet")
    if error is None:
        raise ValueError(
            f"stop needs a policy that declares a winner, such as decide, got {policy}"
        )
    if setting.stop != error:
        raise ValueError(
            f"stop must be the policy's own error, {error:g} of {policy}, got {setting.stop:g}"
        )


def _check_traffic(policy: Any, setting: Setting, n_arms: int) -> None:
    """Refuse a policy that cannot be played as traffic brings its duels."""
    if getattr(policy, "counts_only", False):
        raise ValueError(
            f"traffic does not fit {policy}, which hears counts: whose answers they are is not said"
        )
    if isinstance(policy, Policy):
        if not policy.goes_by_clock:
            raise ValueError(
                f"traffic does not fit {policy}, whose rounds are counted in ticks: recommend() "
                f"gives a policy that goes by the clock"
            )
        check_clock(policy, has_clock=setting.by_clock)
        if setting.by_clock:
            policy.ledger(n_arms, by_clock=True)  # refuses what it cannot keep in time
    elif setting.by_clock and "clock" not in inspect.signature(policy.start).parameters:
        raise ValueError(
            f"traffic needs a policy whose start takes clock='wall', or by_clock=False in the "
            f"setting, got {policy}"
        )


def streams(seed: int, run: int) -> tuple[np.random.Generator, np.random.Generator]:
    """Return run r's two generators: one for the world, one for the policy."""
    world, policy = np.random.SeedSequence(seed, spawn_key=(run,)).spawn(2)
    return np.random.default_rng(world), np.random.default_rng(policy)


class Job:
    """What all runs share, and how one of them is done."""

    def __init__(
        self,
        problem: Problem,
        policy: Any,
        delay: Delay,
        horizon: int,
        seed: int,
        ticks: NDArray[np.int64],
        gaps: NDArray[np.float64],
        setting: Setting,
    ) -> None:
        self.problem, self.policy, self.delay = problem, policy, delay
        self.horizon, self.seed, self.ticks, self.gaps = horizon, seed, ticks, gaps
        self.setting, self.stops = setting, setting.stop is not None
        self.is_compiled = isinstance(policy, CompiledPolicy)
        self.is_vote = setting.feedback == "votes"
        self.by_clock = setting.traffic is not None and setting.by_clock
        self.world = None if setting.traffic is not None else make_world(
            problem, delay, getattr(policy, "window", None), horizon,
            is_vote=self.is_vote,
            hold=setting.stale + setting.batch if setting.is_held else 0,
        )  # fmt: skip
        self.counts_only = bool(getattr(policy, "counts_only", False))
        rule = policy.rule(problem.n_arms) if self.is_compiled else None
        if self.is_compiled:
            active_of(policy, rule, problem.n_arms)  # refuses a wrong one before the runs
        is_plain = not self.counts_only and not setting.is_held and not self.is_vote
        is_plain = is_plain and getattr(policy, "self_duels", True)
        self.in_bulk = setting.bulk and isinstance(rule, MRRDBRule) and is_plain
        self.stop = threading.Event()
        self.lock = threading.Lock()

    def compile(self) -> None:
        """Compile, or load from disk, before the clock starts and the threads do."""
        if self.is_compiled:
            rule, _, proceed, _ = self.compiled_run(
                new_tally(self.gaps, self.ticks, stops=self.stops), 0
            )
            try:
                proceed(0)
            except NumbaError as error:
                raise explain(rule, error) from error

    def compiled_run(
        self, tally: Tally, number: int
    ) -> tuple[Any, Ledger, Callable[[int], None], NDArray[np.int64]]:
        """Return run r's rule and ledger, a function that plays until a tick, and its plays."""
        k = self.problem.n_arms
        rule = self.policy.rule(k)
        ledger = self.policy.ledger(k, **({"by_clock": True} if self.by_clock else {}))
        if self.is_vote:
            ledger = for_votes(ledger, corrects_position=self.setting.corrects_position)
        rngs = streams(self.seed, number)
        counts_only, plays = self.counts_only, ledger.plays
        if self.world is None:
            ledger, hours = with_room(ledger, self.horizon + 1), self._hours(rngs[0])

            def proceed(until: int) -> None:
                run_by_clock(rule, ledger, hours, tally, until, rngs[1])

            return rule, ledger, proceed, plays
        world = with_empty_queue(self.world)
        if self.in_bulk:
            late = nothing_late(world)

            def proceed(until: int) -> None:
                run_rounds(rule, ledger, world, late, tally, until, *rngs)

        elif self.setting.is_held:
            held = hold(self.setting.stale, self.setting.batch, self.policy.window, k)
            plays = held.plays

            def proceed(until: int) -> None:
                run_held(rule, ledger, counts_only, world, held, tally, until, *rngs)

        else:

            def proceed(until: int) -> None:
                run(rule, ledger, counts_only, world, tally, until, *rngs)

        return rule, ledger, proceed, plays

    def play(self, number: int, bar: Any) -> Outcome:
        """Do one run, in slices."""
        k = self.problem.n_arms
        tally = new_tally(self.gaps, self.ticks, self.setting.pairs, self.stops)
        if self.is_compiled:
            rule, ledger, proceed, plays = self.compiled_run(tally, number)
        else:
            plays = np.zeros((k, k), dtype=np.int64)
            player, proceed = self.player_run(tally, plays, number)
        seconds = self._in_slices(proceed, tally, bar)
        if tally.stopped[0] > 0:
            stand_still(tally, plays)
        if self.is_compiled:
            if not self.setting.is_held and tally.stopped[0] == 0:
                age_to(ledger, self.horizon + 1)
                is_over(tally, rule, ledger, self.horizon + 1)
            leader = leader_of(ledger, active_of(self.policy, rule, k), self.policy.target)
        else:
            leader = player.standing().leader if hasattr(player, "standing") else -1
        stopped = int(tally.stopped[0]) or self.horizon + 1
        final = regret_so_far(tally)
        bets = self.stops and isinstance(ledger.assumed, Bets)
        path = evidence_of(ledger.assumed) if bets else None
        return Outcome(tally.regret, final, leader, plays, tally.pairs, seconds, stopped, path)

    def player_run(
        self, tally: Tally, plays: NDArray[np.int64], number: int
    ) -> tuple[Any, Callable[[int], None]]:
        """Return run r's player, of a policy in plain Python, and a function that plays it."""
        world_rng, policy_rng = streams(self.seed, number)
        player = self._player(policy_rng)
        asked: list[Any] = []
        if self.world is None:
            hours = self._hours(world_rng)

            def proceed(until: int) -> None:
                by_player.play_by_clock(player, self.by_clock, hours, tally, plays, until, asked)

            return player, proceed
        world = with_empty_queue(self.world)

        def proceed_in_ticks(until: int) -> None:
            by_player.play(
                player, self.counts_only, world, tally, plays, until, world_rng, asked,
                self.setting.batch,
            )  # fmt: skip

        return player, proceed_in_ticks

    def _hours(self, rng: np.random.Generator) -> Hours:
        """Draw the world of a run in time."""
        return draw_hours(
            self.problem, self.delay, check_traffic(self.setting.traffic), self.horizon, rng,
            policy=self.policy, by_clock=self.by_clock, is_vote=self.is_vote,
        )  # fmt: skip

    def _player(self, rng: np.random.Generator) -> Any:
        """Start a policy in plain Python."""
        told: dict[str, Any] = {"feedback": "votes"} if self.is_vote else {}
        if self.setting.corrects_position:
            told["corrects_position"] = True
        if self.by_clock:
            told["clock"] = "wall"
        return self.policy.start(self.problem.arms, rng, **told)  # not every `start` takes these

    def _in_slices(self, proceed: Any, tally: Tally, bar: Any) -> float:
        """Play to the horizon in slices, with a look at Ctrl-C and the bar after each.

        Return the seconds it took.
        """
        done, step, seconds = 0, _FIRST_SLICE, 0.0
        if self.in_bulk:
            step = self.horizon  # a round takes no longer than a slice, however many its duels
        while done < self.horizon:
            if self.stop.is_set():
                raise StoppedError
            until = min(done + step, self.horizon)
            start, busy = time.perf_counter(), time.thread_time()
            proceed(until)
            took = time.perf_counter() - start
            seconds += time.thread_time() - busy  # of this thread alone, without waiting
            with self.lock:
                bar.update((until if tally.stopped[0] == 0 else self.horizon) - done)
            done = until if tally.stopped[0] == 0 else self.horizon
            step = max(1, min(4 * step, int(step * _SLICE_SECONDS / max(took, 1e-6))))
        return seconds


def _spread(job: Job, runs: range, workers: int, bar: Any) -> list[Outcome]:
    """Do all runs, in this thread or in several; stop them all when one fails, or at Ctrl-C."""
    if workers == 1:
        return [job.play(number, bar) for number in runs]
    with ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(job.play, number, bar) for number in runs]
        try:
            wait(futures, return_when=FIRST_EXCEPTION)
        finally:
            job.stop.set()  # too late to matter, unless something went wrong
            for future in futures:
                future.cancel()
        for future in futures:  # the first real failure, not those that were told to stop
            if future.done() and not future.cancelled():
                error = future.exception()
                if error is not None and not isinstance(error, StoppedError):
                    raise error
        return [future.result() for future in futures]


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
        raise ValueError(
            f"checkpoints must be rising ticks from 1 to the horizon {horizon}, got {checkpoints!r}"
        )
    return ticks.astype(np.int64)
