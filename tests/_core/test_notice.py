"""Whoever waits for the compiler is told so, once."""

import math
import os
import subprocess
import sys
import threading

import pytest

from duelay._core.jit import decorators
from duelay._core.jit import notice as compiling
from duelay._core.stderr import say

SLOW = """
import threading
from duelay.simulation.loops.recorder import new_recorder, advance_to, regret_so_far
import numpy as np
def work():
    recorder = new_recorder(np.array([0.0, 0.1]), np.array([1]))
    regret_so_far(recorder)
    advance_to(recorder, 5, np.zeros((2, 2), dtype=np.int64))
threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


def stderr(folder, notice, **more):
    """What such a process says, if it is to say after so many seconds that it compiles."""
    env = {"NUMBA_CACHE_DIR": str(folder), "DUELAY_COMPILE_NOTICE": notice, **more}
    done = subprocess.run(
        [sys.executable, "-c", SLOW], stderr=subprocess.PIPE, text=True, check=True,
        env={**os.environ, **env},
    )  # fmt: skip
    return done.stderr


@pytest.mark.kept
@pytest.mark.compiled
def test_a_long_compilation_is_said_once_and_not_again_from_disk(tmp_path):
    said = stderr(tmp_path, "0")
    assert said.count("\n") == 1 and said.startswith("duelay: compiling, once"), said
    assert str(tmp_path) in said
    assert stderr(tmp_path, "0") == ""


@pytest.mark.compiled
@pytest.mark.parametrize("notice", ["100000", "never"])
def test_a_short_compilation_is_silent(tmp_path, notice):
    assert stderr(tmp_path, notice) == ""


@pytest.mark.kept
@pytest.mark.compiled
def test_where_nothing_is_kept_the_reason_is_told(tmp_path):
    (tmp_path / "file").write_text("in the way")
    said = stderr(tmp_path / "file", "0")
    assert "at every start, since" in said and "Not a directory" in said


@pytest.mark.long
def test_interpreted_nothing_is_said(tmp_path):
    assert stderr(tmp_path, "0", NUMBA_DISABLE_JIT="1") == ""


@pytest.mark.parametrize("closed", [False, True])
def test_without_standard_error_nothing_is_said(monkeypatch, closed, tmp_path):
    stream = None
    if closed:
        stream = (tmp_path / "closed").open("w")
        stream.close()
    monkeypatch.setattr(sys, "stderr", stream)
    say("nobody reads this")


class Event:
    """What Numba tells of a function at the start and at the end of its compilation."""

    def __init__(self, module, is_start):
        def function(): ...

        function.__module__ = module
        self.is_start = is_start
        self.data = {"dispatcher": type("Dispatcher", (), {"py_func": staticmethod(function)})}


@pytest.fixture
def heard(monkeypatch):
    lines = []
    monkeypatch.setattr(compiling, "say", lines.append)
    return lines


def test_only_our_own_kernels_are_announced_and_once(heard, monkeypatch):
    monkeypatch.setattr(compiling, "NOTICE_SECONDS", 0.0)
    notice = compiling.Notice(lambda: "compiling")
    for module, said in (
        ("numpy.linalg", 0),
        ("duelay.simulation.loops.ticks", 1),
        ("duelay.rules", 1),
    ):
        notice.notify(Event(module, True))
        assert len(heard) == said
        notice.notify(Event(module, False))


class Timer:
    """A timer whose time comes when the test says so."""

    def __init__(self, seconds, do):
        self.seconds, self.is_on = seconds, False
        self.do = do

    def start(self):
        self.is_on = True

    def cancel(self):
        self.is_on = False


def test_the_end_of_an_inner_kernel_does_not_stop_the_timer(heard, monkeypatch):
    monkeypatch.setattr(compiling, "NOTICE_SECONDS", 7.0)
    monkeypatch.setattr(compiling.threading, "Timer", Timer)
    notice = compiling.Notice(lambda: "compiling")
    start, end = (Event("duelay.rules", is_start) for is_start in (True, False))
    for event in (start, start, end):
        notice.notify(event)
    assert notice._timer.is_on and notice._timer.seconds == 7.0
    notice.notify(end)
    assert not notice._timer.is_on and heard == []
    notice.notify(start)
    notice._timer.do()
    notice.speak()
    assert heard == ["compiling"]


def test_a_compilation_in_the_background_is_not_announced(heard, monkeypatch):
    monkeypatch.setattr(compiling, "NOTICE_SECONDS", 0.0)
    notice = compiling.Notice(lambda: "compiling")
    thread = threading.Thread(
        target=notice.notify, args=[Event("duelay.rules", True)], name=compiling.BACKGROUND_THREAD
    )
    thread.start()
    thread.join()
    assert heard == []


def test_the_environment_says_after_how_many_seconds():
    told = {"": 1.0, "0": 0.0, "2.5": 2.5, "never": math.inf}
    assert {words: compiling._seconds(words) for words in told} == told
    for words in ("soon", "-1", "nan"):
        with pytest.warns(UserWarning, match="DUELAY_COMPILE_NOTICE"):
            assert compiling._seconds(words) == 1.0


@pytest.mark.kept
def test_the_sentence_says_where_kernels_are_kept(monkeypatch, tmp_path):
    monkeypatch.setattr(decorators, "_CACHE", tmp_path / "0123")
    monkeypatch.setattr(decorators, "_NOT_KEPT", "")
    assert decorators._compiling().endswith(f"kept in {tmp_path}")
    monkeypatch.setattr(decorators, "_CACHE", None)
    monkeypatch.setattr(decorators, "_NOT_KEPT", "the disk is full")
    assert "at every start, since the disk is full" in decorators._compiling()
