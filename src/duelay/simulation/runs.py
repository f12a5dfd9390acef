"""Execute the runs of a simulation, in slices and in several threads."""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from duelay._core.arrays import Floats, Integers
from duelay._core.jit.background import is_worth_compiling, without_compiling
from duelay.delays.delay import Delay
from duelay.errors import DuelayError, NoWinnerError
from duelay.inference.arm_set import apply_change
from duelay.inference.evidence import Evidence, evidence_of
from duelay.inference.leader import active_of, leader_of
from duelay.inference.player_clock import OLD
from duelay.ledger.evidence.eprocess import EProcess
from duelay.ledger.ledger import Ledger, age_to, for_votes, with_room
from duelay.players.player import Player
from duelay.policies.policy import CompiledPolicy
from duelay.policies.turn import declared
from duelay.policies.user_rule_errors import ERRORS, PAIR_ERRORS, refuse, refuse_pair
from duelay.problems.problem import Problem
from duelay.simulation.loops.batched import hold, play_batches_entry
from duelay.simulation.loops.continuous_time import (
    TimedWorld,
    draw_timed_world,
    play_by_clock_entry,
)
from duelay.simulation.loops.plain_python import play_player, play_player_by_clock
from duelay.simulation.loops.recorder import (
    Recorder,
    fill_checkpoints,
    new_recorder,
    regret_so_far,
)
from duelay.simulation.loops.ticks import play_ticks_entry, run_ticks
from duelay.simulation.setting import Setting
from duelay.simulation.world import World, make_world, with_empty_queue
from duelay.traffic import check as check_traffic

UNKNOWN, NOT_HEARD = -1, -2  # for a leader: the player has no standing; no answer has come
_INTERRUPT_SECONDS = 0.2  # between two checks for Ctrl-C while other threads play
_SLICE_SECONDS = 0.05  # of a compiled loop between two updates of the progress bar
_FIRST_SLICE_TICKS = 256


class RunStoppedError(DuelayError):
    """Another run failed, or Ctrl-C was pressed."""


class Outcome(NamedTuple):
    """The result of one run."""

    regret: Floats
    final: float
    leader: int
    plays: Integers
    pairs: Any
    seconds: float
    stopped: int
    evidence: Evidence | None


def streams(seed: int, run: int) -> tuple[np.random.Generator, np.random.Generator]:
    """Return the two generators of a run: one for the world, one for the policy.

    Parameters
    ----------
    seed : int
        The seed of the simulation.
    run : int
        The number of the run, from 0.
    """
    world, policy = np.random.SeedSequence(seed, spawn_key=(run,)).spawn(2)
    return np.random.default_rng(world), np.random.default_rng(policy)


@dataclass
class Job:
    """The part of a simulation that all its runs share."""

    problem: Problem
    policy: Any
    delay: Delay
    horizon: int
    checkpoints: Integers
    setting: Setting
    seed: int = 0
    runs: float = math.inf

    def __post_init__(self) -> None:
        self.gaps = find_gaps(self.problem, self.setting)
        self.run_ticks: Callable[..., None] = run_ticks  # or what `choose_tick_loop` returns
        self._world: World | None = None  # without pending answers
        if self.setting.traffic is None:
            held = self.setting.stale + self.setting.batch if self.setting.is_held else 0
            self._world = make_world(
                self.problem, self.delay, getattr(self.policy, "window", None), self.horizon,
                is_vote=self.is_vote, hold=held,
            )  # fmt: skip

    @property
    def is_vote(self) -> bool:
        """Whether both outcomes are reported."""
        return self.setting.feedback == "votes"

    @property
    def by_clock(self) -> bool:
        """Whether the policy goes by the clock."""
        return self.setting.traffic is not None and self.setting.by_clock

    @property
    def counts_only(self) -> bool:
        """Whether the policy is told only how many conversions arrive."""
        return bool(getattr(self.policy, "counts_only", False))

    def new_recorder(self) -> Recorder:
        """Return the recorder of a run."""
        stops = self.setting.stop is not None
        return new_recorder(self.gaps, self.checkpoints, self.setting.pairs, stops)

    def new_world(self) -> World:
        """Return the world of a run in ticks, before its first duel."""
        assert self._world is not None
        return with_empty_queue(self._world)

    def draw_world(self, rng: np.random.Generator) -> TimedWorld:
        """Draw the world of a run in continuous time."""
        return draw_timed_world(
            self.problem, self.delay, check_traffic(self.setting.traffic), self.horizon, rng,
            policy=self.policy, by_clock=self.by_clock, is_vote=self.is_vote,
        )  # fmt: skip


def find_gaps(problem: Problem, setting: Setting) -> Floats:
    """Return what each arm lacks to the winner; nan where there is none, which `stop` allows."""
    try:
        return problem.gaps_for(setting.target)
    except NoWinnerError:
        if setting.stop is None:
            raise
        return np.full(problem.n_arms, np.nan)


class CompiledRun:
    """A run of a compiled policy. `proceed` plays until a tick, in the loop that fits the setting.

    The loop is that of ticks, of stale or batched evidence, or of continuous time.
    """

    def __init__(self, job: Job, number: int) -> None:
        k = job.problem.n_arms
        self.job, self.recorder = job, job.new_recorder()
        self.world_rng, self.rng = streams(job.seed, number)
        self.rule = job.policy.rule(k)
        active_of(job.policy, self.rule, k)  # refuses a wrong one before the first duel
        self.joins = None if job.setting.joins is None else float(job.setting.joins)
        self.is_complete = self.joins is None  # whether all arms are there
        k -= not self.is_complete
        ledger = job.policy.ledger(k, **({"by_clock": True} if job.by_clock else {}))
        if job.is_vote:
            ledger = for_votes(ledger, corrects_position=job.setting.corrects_position)
        self.ledger: Ledger = ledger
        self.plays: Integers = ledger.plays
        if job.setting.traffic is not None:
            self.proceed = self._in_continuous_time()
        elif job.setting.is_held:
            self.proceed = self._in_batches()
        else:
            self.proceed = self._in_ticks()

    def _in_ticks(self) -> Callable[[int], None]:
        args = self.tick_arguments()
        return lambda until: self.job.run_ticks(*args, until, self.world_rng, self.rng)

    def tick_arguments(self) -> tuple[Any, ...]:
        """Return the arguments of the loop in ticks that come before `until`."""
        job = self.job
        return self.rule, self.ledger, job.counts_only, job.new_world(), self.recorder

    def _in_batches(self) -> Callable[[int], None]:
        setting, policy = self.job.setting, self.job.policy
        held = hold(setting.stale, setting.batch, policy.window, len(self.plays))
        self.plays = held.plays
        args = (self.rule, self.ledger, self.job.counts_only, self.job.new_world(), held)
        return lambda until: play_batches_entry(
            *args, self.recorder, until, self.world_rng, self.rng
        )

    def _in_continuous_time(self) -> Callable[[int], None]:
        self.ledger = with_room(self.ledger, self.job.horizon + 1)
        world = self.job.draw_world(self.world_rng)
        before = 0  # duels before the last arm joins
        if self.joins is not None:
            before = int(np.searchsorted(world.at, self.joins))

        def play(until: int) -> None:
            play_by_clock_entry(self.rule, self.ledger, world, self.recorder, until, self.rng)

        def proceed(until: int) -> None:
            if not self.is_complete and until > before:
                play(before)
                if self.recorder.stopped[0] > 0:
                    return
                self._complete()
            play(until)

        return proceed

    def _complete(self) -> None:
        """Let the last arm join."""
        policy, k = self.job.policy, self.job.problem.n_arms
        self.ledger = apply_change(self.ledger, k - 1, "joined", policy)
        self.plays, self.is_complete = self.ledger.plays, True

    def finish(self) -> tuple[int, Evidence | None]:
        """Return the leader after the last duel, and the evidence where a winner is declared."""
        job, ledger, recorder = self.job, self.ledger, self.recorder
        if not job.setting.is_held and recorder.stopped[0] == 0:
            age_to(ledger, job.horizon + 1)
            if recorder.stops and declared(self.rule, ledger) >= 0:
                recorder.stopped[0] = job.horizon
        if not self.is_complete:  # the run ended before the last arm joined
            self.plays = np.pad(self.plays, (0, 1))
        of_two = ledger.conversions.sum() > ledger.conversions.trace()
        is_active = active_of(job.policy, self.rule, job.problem.n_arms)
        leader = leader_of(ledger, is_active[: len(ledger.plays)], job.policy)
        has_evidence = recorder.stops and isinstance(ledger.assumed, EProcess)
        evidence = evidence_of(ledger.assumed) if has_evidence else None
        return (leader if job.is_vote or of_two else NOT_HEARD), evidence


class PlayerRun:
    """A run of a policy in plain Python, or of any object whose `start` returns a player."""

    def __init__(self, job: Job, number: int) -> None:
        k = job.problem.n_arms
        self.job, self.recorder = job, job.new_recorder()
        self.plays: Integers = np.zeros((k, k), dtype=np.int64)
        self.world_rng, rng = streams(job.seed, number)
        told: dict[str, Any] = {"feedback": "votes"} if job.is_vote else {}
        if job.setting.corrects_position:
            told["corrects_position"] = True
        if job.by_clock:
            told["clock"] = "wall"
        self.player = job.policy.start(job.problem.arms, rng, **told)  # not all accept these
        if isinstance(self.player, Player) and self.player.clock is not None:
            self.player.clock.warned = (OLD,)  # the times of a simulation begin at 0
        in_time = job.setting.traffic is not None
        self.proceed = self._in_continuous_time() if in_time else self._in_ticks()

    def _in_ticks(self) -> Callable[[int], None]:
        job, asked = self.job, list[Any]()
        args = (self.player, job.counts_only, job.new_world(), self.recorder, self.plays)
        batch = job.setting.batch
        return lambda until: play_player(*args, until, self.world_rng, asked, batch)

    def _in_continuous_time(self) -> Callable[[int], None]:
        job, asked = self.job, list[Any]()
        world = job.draw_world(self.world_rng)
        args = (self.player, job.by_clock, world, self.recorder, self.plays)
        return lambda until: play_player_by_clock(*args, until, asked)

    def finish(self) -> tuple[int, None]:
        """Return the leader after the last duel."""
        if not hasattr(self.player, "standing"):
            return UNKNOWN, None
        standing = self.player.standing()
        is_heard = getattr(standing, "is_heard", True)  # not every player's says so
        return (standing.leader if is_heard else NOT_HEARD), None


def start_run(job: Job, number: int) -> CompiledRun | PlayerRun:
    """Return a run before its first duel."""
    is_compiled = isinstance(job.policy, CompiledPolicy)
    return CompiledRun(job, number) if is_compiled else PlayerRun(job, number)


def choose_tick_loop(job: Job) -> Callable[..., None]:
    """Return the loop in ticks for all runs, interpreted where it is not worth to compile it.

    A simulation of few duels is interpreted. Settings with another loop do not use the result.
    """
    is_in_ticks = job.setting.traffic is None and not job.setting.is_held
    if not isinstance(job.policy, CompiledPolicy) or not is_in_ticks:
        return run_ticks
    with _explained_pairs(job):
        run = CompiledRun(job, 0)
        args = (*run.tick_arguments(), 0, run.world_rng, run.rng)
        is_worth = is_worth_compiling(play_ticks_entry, args, job.runs * job.horizon)
    return run_ticks if is_worth else without_compiling(run_ticks)


def compile_loop(job: Job) -> None:
    """Compile the loop, or load it from disk, before threads start and time is measured."""
    if isinstance(job.policy, CompiledPolicy):
        with _explained_pairs(job):
            run = CompiledRun(job, 0)
        try:
            run.proceed(0)
        except ERRORS as error:
            refuse(run.rule, error)


@contextlib.contextmanager
def _explained_pairs(job: Job) -> Iterator[None]:
    """Explain errors of a rule that has chosen no pair, or has a field that cannot be compiled."""
    try:
        yield
    except PAIR_ERRORS as error:
        k = job.problem.n_arms
        refuse_pair(job.policy.rule(k), k, error)
        raise


def play_run(job: Job, number: int, slices: Slices) -> Outcome:
    """Execute one run, in slices."""
    run = start_run(job, number)
    recorder = run.recorder
    is_compiled = isinstance(run, CompiledRun)
    with _explained_pairs(job) if is_compiled else contextlib.nullcontext():
        seconds = slices.play(run.proceed, recorder, job.horizon)
    if recorder.stopped[0] > 0:
        fill_checkpoints(recorder, run.plays)
    leader, evidence = run.finish()
    return Outcome(
        regret=recorder.regret,
        final=regret_so_far(recorder),
        leader=leader,
        plays=run.plays,
        pairs=recorder.pairs,
        seconds=seconds,
        stopped=int(recorder.stopped[0]) or job.horizon + 1,
        evidence=evidence,
    )


class Slices:
    """Play runs in slices; check for a stop and advance a bar after each slice."""

    def __init__(self, bar: Any) -> None:
        self.stop = threading.Event()  # set after a failure of another run, or Ctrl-C
        self._bar, self._lock = bar, threading.Lock()

    def play(self, proceed: Callable[[int], None], recorder: Recorder, horizon: int) -> float:
        """Play a run to its end, and return the processor seconds that its loop took."""
        done, step, seconds = 0, _FIRST_SLICE_TICKS, 0.0
        while done < horizon:
            if self.stop.is_set():
                raise RunStoppedError
            until = min(done + step, horizon)
            start, busy = time.perf_counter(), time.thread_time()
            proceed(until)
            took = time.perf_counter() - start
            seconds += time.thread_time() - busy  # of this thread, waits left out
            until = until if recorder.stopped[0] == 0 else horizon
            with self._lock:
                self._bar.update(until - done)
            done = until
            step = max(1, min(4 * step, int(step * _SLICE_SECONDS / max(took, 1e-6))))
        return seconds


def execute_runs(job: Job, runs: range, workers: int, bar: Any) -> list[Outcome]:
    """Execute all runs, in this thread or in several; a failure or Ctrl-C stops all of them."""
    slices = Slices(bar)
    if workers == 1:
        return [play_run(job, number, slices) for number in runs]
    with ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(play_run, job, number, slices) for number in runs]
        try:
            # With a timeout, since Ctrl-C may wake another thread, as it does with polars.
            is_done = False
            while not is_done:
                done, left = wait(futures, timeout=_INTERRUPT_SECONDS, return_when=FIRST_EXCEPTION)
                is_done = not left or any(future.exception() is not None for future in done)
        finally:
            slices.stop.set()  # too late to matter, unless something went wrong
            for future in futures:
                future.cancel()
        for future in futures:  # the first real failure, not those that were told to stop
            if future.done() and not future.cancelled():
                error = future.exception()
                if error is not None and not isinstance(error, RunStoppedError):
                    raise error
        return [future.result() for future in futures]
