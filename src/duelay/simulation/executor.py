"""Execute the runs of a simulation, in slices and in several threads."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from duelay._core.jit.background import is_worth_compiling, without_compiling
from duelay.delays import Delay
from duelay.errors import DuelayError
from duelay.inference.clock import OLD, Clock
from duelay.inference.evidence import Evidence, evidence_of
from duelay.inference.leader import active_of, leader_of
from duelay.ledger import Ledger, age_to, for_votes, with_room
from duelay.ledger.evidence.eprocess import EProcess
from duelay.policies.dispatch import declared
from duelay.policies.policy import CompiledPolicy
from duelay.policies.user_rule_errors import ERRORS, PAIR_ERRORS, refuse, refuse_pair
from duelay.problems import Problem
from duelay.simulation.loops import plain_python
from duelay.simulation.loops.batched import hold, run_held
from duelay.simulation.loops.continuous_time import TimedWorld, draw_timed_world, run_by_clock
from duelay.simulation.loops.recorder import Recorder, new_recorder, regret_so_far, stand_still
from duelay.simulation.loops.ticks import play, run
from duelay.simulation.setting import Setting
from duelay.simulation.world import make_world, with_empty_queue
from duelay.traffic import check as check_traffic

UNKNOWN, NOT_HEARD = -1, -2  # for a leader: the player has no standing; no answer has come
_INTERRUPT_SECONDS = 0.2  # between two checks for Ctrl-C while other threads play
_SLICE_SECONDS = 0.05  # of a compiled loop between two updates of the progress bar
_FIRST_SLICE_TICKS = 256


class RunStoppedError(DuelayError):
    """Another run failed, or Ctrl-C was pressed."""


class Outcome(NamedTuple):
    """The result of one run."""

    regret: NDArray[np.float64]
    final: float
    leader: int
    plays: NDArray[np.int64]
    pairs: Any
    seconds: float
    stopped: int
    path: Evidence | None


def streams(seed: int, run: int) -> tuple[np.random.Generator, np.random.Generator]:
    """Return the two generators of a run: one for the world, one for the policy.

    Parameters
    ----------
    seed : int
        The seed of the simulation.
    run : int
        The number of the run, from 0.

    Returns
    -------
    The generators, made from seed and run alone.
    """
    world, policy = np.random.SeedSequence(seed, spawn_key=(run,)).spawn(2)
    return np.random.default_rng(world), np.random.default_rng(policy)


class Job:
    """The part of a simulation that all its runs share; `play` executes one of them."""

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
        runs: int | None = None,
    ) -> None:
        self.problem, self.policy, self.delay = problem, policy, delay
        self.horizon, self.seed, self.ticks, self.gaps = horizon, seed, ticks, gaps
        self.setting, self.stops = setting, setting.stop is not None
        self.n_duels = math.inf if runs is None else runs * horizon  # in all runs together
        self.is_compiled = isinstance(policy, CompiledPolicy)
        self.is_vote = setting.feedback == "votes"
        self.by_clock = setting.traffic is not None and setting.by_clock
        self.world = None if setting.traffic is not None else make_world(
            problem, delay, getattr(policy, "window", None), horizon,
            is_vote=self.is_vote,
            hold=setting.stale + setting.batch if setting.is_held else 0,
        )  # fmt: skip
        self.counts_only = bool(getattr(policy, "counts_only", False))
        self.play_until: Any = None  # the loop in ticks, compiled or not: chosen once for all runs
        if self.is_compiled:
            rule = policy.rule(problem.n_arms)
            active_of(policy, rule, problem.n_arms)  # refuses a wrong one before the runs
        self.stop = threading.Event()
        self.lock = threading.Lock()

    def compile(self) -> None:
        """Compile the loop, or load it from disk, before threads start and time is measured.

        A simulation of few duels is interpreted instead, which is faster than compiling.
        """
        if self.is_compiled:
            recorder, k = new_recorder(self.gaps, self.ticks, stops=self.stops), self.problem.n_arms
            try:
                rule, _, proceed, _ = self.compiled_run(recorder, 0)
            except PAIR_ERRORS as error:  # of a rule with a field that cannot be compiled
                refuse_pair(self.policy.rule(k), k, error)
                raise
            try:
                proceed(0)
            except ERRORS as error:
                refuse(rule, error)

    def compiled_run(
        self, recorder: Recorder, number: int
    ) -> tuple[Any, Ledger, Callable[[int], None], NDArray[np.int64]]:
        """Return a run's rule and ledger, a function that plays until a tick, and its plays."""
        k = self.problem.n_arms
        rule = self.policy.rule(k)
        ledger = self.policy.ledger(k, **({"by_clock": True} if self.by_clock else {}))
        if self.is_vote:
            ledger = for_votes(ledger, corrects_position=self.setting.corrects_position)
        rngs = streams(self.seed, number)
        counts_only, plays = self.counts_only, ledger.plays
        if self.world is None:
            ledger = with_room(ledger, self.horizon + 1)
            timed_world = self._timed_world(rngs[0])

            def proceed(until: int) -> None:
                run_by_clock(rule, ledger, timed_world, recorder, until, rngs[1])

            return rule, ledger, proceed, plays
        world = with_empty_queue(self.world)
        if self.setting.is_held:
            held = hold(self.setting.stale, self.setting.batch, self.policy.window, k)
            plays = held.plays

            def proceed(until: int) -> None:
                run_held(rule, ledger, counts_only, world, held, recorder, until, *rngs)

        else:
            args = (rule, ledger, counts_only, world, recorder)
            if self.play_until is None:
                is_worth = is_worth_compiling(play, (*args, 0, *rngs), self.n_duels)
                self.play_until = run if is_worth else without_compiling(run)
            play_until = self.play_until

            def proceed(until: int) -> None:
                play_until(*args, until, *rngs)

        return rule, ledger, proceed, plays

    def play(self, number: int, bar: Any) -> Outcome:
        """Execute one run, in slices."""
        k = self.problem.n_arms
        recorder = new_recorder(self.gaps, self.ticks, self.setting.pairs, self.stops)
        if self.is_compiled:
            rule, ledger, proceed, plays = self.compiled_run(recorder, number)
        else:
            plays = np.zeros((k, k), dtype=np.int64)
            player, proceed = self.player_run(recorder, plays, number)
        try:
            seconds = self._in_slices(proceed, recorder, bar)
        except PAIR_ERRORS as error:
            if self.is_compiled:
                refuse_pair(rule, k, error)
            raise
        if recorder.stopped[0] > 0:
            stand_still(recorder, plays)
        if self.is_compiled:
            if not self.setting.is_held and recorder.stopped[0] == 0:
                age_to(ledger, self.horizon + 1)
                if self.stops and declared(rule, ledger) >= 0:
                    recorder.stopped[0] = self.horizon
            of_two = ledger.conversions.sum() > ledger.conversions.trace()
            is_heard = self.is_vote or bool(of_two)
            leader = leader_of(ledger, active_of(self.policy, rule, k), self.policy)
        else:
            standing = player.standing() if hasattr(player, "standing") else None
            is_heard = getattr(standing, "is_heard", True)  # not every player's says so
            leader = UNKNOWN if standing is None else standing.leader
        leader = leader if is_heard else NOT_HEARD
        stopped = int(recorder.stopped[0]) or self.horizon + 1
        final = regret_so_far(recorder)
        eprocess = self.stops and isinstance(ledger.assumed, EProcess)
        path = evidence_of(ledger.assumed) if eprocess else None
        return Outcome(
            recorder.regret, final, leader, plays, recorder.pairs, seconds, stopped, path
        )

    def player_run(
        self, recorder: Recorder, plays: NDArray[np.int64], number: int
    ) -> tuple[Any, Callable[[int], None]]:
        """Return a run's player, of a policy in plain Python, and a function that plays it."""
        world_rng, policy_rng = streams(self.seed, number)
        player = self._player(policy_rng)
        asked: list[Any] = []
        if self.world is None:
            timed_world = self._timed_world(world_rng)

            def proceed(until: int) -> None:
                plain_python.play_by_clock(
                    player, self.by_clock, timed_world, recorder, plays, until, asked
                )

            return player, proceed
        world = with_empty_queue(self.world)

        def proceed_in_ticks(until: int) -> None:
            plain_python.play(
                player, self.counts_only, world, recorder, plays, until, world_rng, asked,
                self.setting.batch,
            )  # fmt: skip

        return player, proceed_in_ticks

    def _timed_world(self, rng: np.random.Generator) -> TimedWorld:
        """Draw the world of a run in continuous time."""
        return draw_timed_world(
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
        player = self.policy.start(self.problem.arms, rng, **told)  # not every start accepts these
        if isinstance(clock := getattr(player, "_clock", None), Clock):
            clock.warned = (OLD,)  # the times of a simulation begin at 0
        return player

    def _in_slices(self, proceed: Any, recorder: Recorder, bar: Any) -> float:
        """Play to the horizon in slices; check for Ctrl-C and update the bar after each.

        Return the processor seconds of the loop.
        """
        done, step, seconds = 0, _FIRST_SLICE_TICKS, 0.0
        while done < self.horizon:
            if self.stop.is_set():
                raise RunStoppedError
            until = min(done + step, self.horizon)
            start, busy = time.perf_counter(), time.thread_time()
            proceed(until)
            took = time.perf_counter() - start
            seconds += time.thread_time() - busy  # of this thread, waits left out
            with self.lock:
                bar.update((until if recorder.stopped[0] == 0 else self.horizon) - done)
            done = until if recorder.stopped[0] == 0 else self.horizon
            step = max(1, min(4 * step, int(step * _SLICE_SECONDS / max(took, 1e-6))))
        return seconds


def execute_runs(job: Job, runs: range, workers: int, bar: Any) -> list[Outcome]:
    """Execute all runs, in this thread or in several; a failure or Ctrl-C stops all of them."""
    if workers == 1:
        return [job.play(number, bar) for number in runs]
    with ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(job.play, number, bar) for number in runs]
        try:
            # With a timeout, since Ctrl-C may wake another thread, as it does with polars.
            is_done = False
            while not is_done:
                done, left = wait(futures, timeout=_INTERRUPT_SECONDS, return_when=FIRST_EXCEPTION)
                is_done = not left or any(future.exception() is not None for future in done)
        finally:
            job.stop.set()  # too late to matter, unless something went wrong
            for future in futures:
                future.cancel()
        for future in futures:  # the first real failure, not those that were told to stop
            if future.done() and not future.cancelled():
                error = future.exception()
                if error is not None and not isinstance(error, RunStoppedError):
                    raise error
        return [future.result() for future in futures]
