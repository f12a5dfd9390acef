"""Python calls kernels before they are compiled: nobody waits, and nothing else changes."""

import os
import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.kept  # plain Numba has no thread that compiles

PLAY = """
import hashlib, os, sys, time
import duelay
from duelay._core.jit import background
from duelay._core.jit.background import COMPILER
from duelay.policies.turn import turn_entry

def play(n, policy=None, **started):
    player = (policy or duelay.recommend().policy).start(5, seed=1, **started)
    duels, digest = [], hashlib.sha256()
    for t in range(n):
        at = {"at": 1e9 + 60.0 * t} if started else {}
        duels.append(player.ask(**at))
        digest.update(repr(duels[-1]).encode())
        if t % 3 == 0:
            player.tell(duels[t // 2], **at)
        yield digest.hexdigest(), player

def is_compiled():
    return len(turn_entry.compiled.overloads)
"""


def run(folder, program, waits=False, may_say="", **more):
    """What it prints; who waits for the compiler is told so at once, and not after a second."""
    done = subprocess.run(
        [sys.executable, "-c", PLAY + textwrap.dedent(program)],
        capture_output=True, text=True,  # pytest finds what hangs
        env={**os.environ, "NUMBA_CACHE_DIR": str(folder), "DUELAY_COMPILE_NOTICE": "0", **more},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert ("compiling, once" in done.stderr) == waits
    assert waits or done.stderr == "" or (may_say and may_say in done.stderr)
    return done.stdout.split()


WHOLE = """
    for digest, _ in play(400, {policy}, {started}):
        pass
    print(digest)
"""
CHANGED_OVER = """
    start, COMPILER._start = COMPILER._start, lambda: None  # not yet
    for t, (digest, _) in enumerate(play(400, {policy}, {started})):
        if t == 150:
            assert is_compiled() == 0
            COMPILER._start = start
            COMPILER.resume()
            COMPILER.wait()
            assert is_compiled() == 1
    print(digest)
"""


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("policy", "started"),
    [("duelay.RUCB(order='coin')", ""), ("duelay.Decide(window='7d')", "clock='wall'")],
    ids=["regret", "decide"],
)
def test_duels_are_the_same_interpreted_and_changed_over(tmp_path, policy, started):
    words = {"policy": policy, "started": started}
    changed = run(tmp_path, CHANGED_OVER.format(**words))
    from_disk = run(tmp_path, CHANGED_OVER.format(**words))
    plain = run(tmp_path, WHOLE.format(**words), NUMBA_DISABLE_JIT="1")
    assert changed == from_disk == plain


@pytest.mark.compiled
def test_no_call_waits_while_a_thread_compiles(tmp_path):
    program = """
        import threading
        begin, threads, compile = threading.Event(), set(), background._Border.compile

        def compiling(*given):
            threads.add(threading.current_thread().name)
            begin.wait()
            compile(*given)

        background._Border.compile = compiling
        playing = play(400, duelay.RUCBDelay())
        for t in range(200):
            next(playing)
        assert not is_compiled()  # and no call has waited for it
        begin.set()
        COMPILER.wait()
        assert is_compiled() and threads == {"duelay-compiler"}
        print([digest for digest, _ in playing][-1])
    """
    changed = run(tmp_path, program)
    assert changed == run(tmp_path, WHOLE.format(policy="duelay.RUCBDelay()", started=""))


@pytest.mark.compiled
def test_at_the_end_of_a_program_the_caller_compiles(tmp_path):
    program = """
        COMPILER.stop()
        next(play(1, duelay.RUCB()))
        assert is_compiled() == 1
    """
    run(tmp_path, program, waits=True)


@pytest.mark.compiled
def test_a_program_that_ends_does_not_wait_for_all_of_it(tmp_path):
    program = """
        import threading
        from numba.core import event

        class Compiled(event.Listener):
            n, is_under_way = 0, threading.Event()

            def on_start(self, happening):
                self.n += 1
                if self.n == 3:
                    COMPILER.is_stopped = True  # as the end of the program does
                    self.is_under_way.set()

            def on_end(self, happening): ...

        event.register("numba:compile", compiled := Compiled())
        for _ in play(20, duelay.Decide(error=0.05)):
            if compiled.is_under_way.is_set():
                break
        compiled.is_under_way.wait()
        COMPILER.stop()
        print(compiled.n, is_compiled())
    """
    n, is_compiled = map(int, run(tmp_path, program))
    assert n <= 4 and not is_compiled  # all of it are many more


@pytest.mark.compiled
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_parent_and_child_of_a_fork_both_go_on_compiling(tmp_path):
    program = """
        import threading
        begun, compile = threading.Event(), background._Border.compile
        def compiling(*given):
            begun.set()
            compile(*given)
        background._Border.compile = compiling
        playing = play(100, duelay.RUCBDelay())
        for t in range(50):
            next(playing)
        begun.wait()
        child = os.fork()
        COMPILER.wait()
        found = [digest for digest, _ in playing][-1]
        assert is_compiled() == 1
        if child == 0:
            print(found, flush=True)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        print(found)
    """
    one, two = run(tmp_path, program)
    assert one == two


@pytest.mark.compiled
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_while_a_simulation_compiles_can_compile_in_the_child(tmp_path):
    program = """
        import signal, threading
        from numba.core.compiler_lock import global_compiler_lock
        from tqdm import tqdm
        tqdm.get_lock()  # is made at its first use, which a fork must not interrupt
        def simulate():
            duelay.simulate(duelay.datasets.load("mslr"), duelay.RUCBDelay(), delay="constant:1",
                            horizon=9000)
        thread = threading.Thread(target=simulate)
        thread.start()
        while global_compiler_lock._lock.acquire(blocking=False):  # nobody compiles yet
            global_compiler_lock._lock.release()
            time.sleep(0.01)
        if (child := os.fork()) == 0:
            signal.alarm(1200)
            simulate()
            os._exit(0)
        thread.join()
        assert os.waitpid(child, 0)[1] == 0
    """
    run(tmp_path, program, waits=True)


@pytest.mark.compiled
def test_a_long_history_is_not_interpreted(tmp_path):
    program = """
        from duelay.inference.event_replay import replay_events
        from duelay.inference.evidence import replay_bets
        for n in {few}, {many}:
            told = [1.0] * n
            history = duelay.History(5, [t % 5 for t in range(n)], [(t + 1) % 5 for t in range(n)],
                                     told, told)
            replay_bets(history, 0.05)
            assert len(replay_events.compiled.overloads) == (n == {many})
    """
    run(tmp_path, program.format(few=20, many=3500), waits=True)
    run(tmp_path, program.format(few=20, many=500))  # what is on disk is used sooner


@pytest.mark.compiled
def test_who_must_not_wait_for_the_compiler_is_told_so_and_waits_later(tmp_path):
    program = """
        from duelay.inference.event_replay import replay_events
        from duelay.inference.evidence import replay_bets
        n = 3500
        history = duelay.History(5, [t % 5 for t in range(n)], [(t + 1) % 5 for t in range(n)],
                                 [1.0] * n, [1.0] * n)
        with background.refuse_to_wait():
            try:
                replay_bets(history, 0.05)
            except background.CompilationError as error:
                assert not replay_events.compiled.overloads
                error.compile()
            assert len(replay_events.compiled.overloads) == 1
            replay_bets(history, 0.05)
        print("done")
    """
    assert run(tmp_path, program, waits=True) == ["done"]


OWN = """
    from dataclasses import dataclass
    from typing import NamedTuple
    import numpy as np

    class OwnRule(NamedTuple):
        n_arms: int

    @duelay.rules.select.register(OwnRule)
    def choose(rule, ledger, t, rng):
        return np.zeros(3).tolist(), 1

    @dataclass(frozen=True)
    class Own(duelay.CompiledPolicy):
        def rule(self, n_arms):
            return OwnRule(n_arms)

    try:
        next(play(1, Own()))
    except TypeError as error:
        print("refused" if "cannot be compiled" in str(error) else error)
"""


@pytest.mark.compiled
def test_a_rule_of_ones_own_that_cannot_be_compiled_is_refused_at_once(tmp_path):
    said = "compiling, at every start, since OwnRule"  # where it takes over a second
    assert run(tmp_path, OWN, may_say=said) == ["refused"]


@pytest.mark.compiled
def test_a_short_simulation_is_interpreted_and_finds_the_same(tmp_path):
    program = """
        from duelay.simulation.loops.ticks import play_ticks_entry
        def final():
            return duelay.simulate(duelay.datasets.load("tennis"), duelay.RUCBDelay(), runs=2,
                                   delay="geometric:0.1", horizon=600).regret.tolist()
        brief = final()
        assert not play_ticks_entry.overloads
        assert final() == brief  # of many short simulations, most are compiled
        assert len(play_ticks_entry.overloads) == 1
    """
    run(tmp_path, program, waits=True)
    found = """
        from duelay.simulation.loops.ticks import play_ticks_entry
        duelay.simulate(duelay.datasets.load("tennis"), duelay.RUCBDelay(), delay="geometric:0.1",
                        horizon=300)
        assert len(play_ticks_entry.overloads) == 1
    """
    run(tmp_path, found)  # what is on disk is used, too


@pytest.mark.compiled
def test_a_ledger_that_is_far_behind_the_clock_is_not_brought_up_to_date_interpreted(tmp_path):
    program = """
        from duelay.ledger import age_to, assume_by_clock, clock_to, open_ledger, record, with_room

        COMPILER._start = lambda: None
        ledger = with_room(open_ledger(assume_by_clock("learn", None, 3), 3, "coin"), 1001)
        for number in range(1, 1001):
            clock_to(ledger, 1e9 + number)
            record(ledger, 0, 1, number)
        with background.refuse_to_wait():
            try:
                age_to(ledger, 1001)
            except background.CompilationError:
                print("far")
            age_to(with_room(open_ledger(assume_by_clock("learn", None, 3), 3, "coin"), 1), 1)
            print("near")
    """
    assert run(tmp_path, program) == ["far", "near"]
