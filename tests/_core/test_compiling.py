"""Whoever waits for the compiler is told so, once."""

import math
import os
import subprocess
import sys

import pytest

from duelay._core import compiling, jit
from duelay._core.say import say

SLOW = """
import threading
from duelay.engine.tick import new_recorder, pass_to, regret_so_far
import numpy as np
def work():
    recorder = new_recorder(np.array([0.0, 0.1]), np.array([1]))
    regret_so_far(recorder)
    pass_to(recorder, 5, np.zeros((2, 2), dtype=np.int64))
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


class Happening:
    """What Numba tells of a function that it compiles."""

    def __init__(self, module):
        def function(): ...

        function.__module__ = module
        self.data = {"dispatcher": type("Dispatcher", (), {"py_func": staticmethod(function)})}


@pytest.fixture
def heard(monkeypatch):
    lines = []
    monkeypatch.setattr(compiling, "say", lines.append)
    return lines


def test_only_our_own_kernels_are_spoken_of(heard, monkeypatch):
    monkeypatch.setattr(compiling, "PATIENCE", 0.0)
    announcer = compiling.Announcer(lambda: "compiling")
    announcer.on_start(Happening("numpy.linalg"))
    announcer.on_end(Happening("numpy.linalg"))
    assert heard == []
    announcer.on_start(Happening("duelay.engine.loop"))
    assert heard == ["compiling"]
    announcer.on_end(Happening("duelay.engine.loop"))
    announcer.on_start(Happening("duelay.engine.loop"))
    assert heard == ["compiling"]


class Timer:
    """A timer whose time comes when the test says so."""

    def __init__(self, seconds, do):
        self.seconds, self.is_on = seconds, False
        self.do = do

    def start(self):
        self.is_on = True

    def cancel(self):
        self.is_on = False


def test_a_kernel_within_a_kernel_does_not_stop_the_clock(heard, monkeypatch):
    monkeypatch.setattr(compiling, "PATIENCE", 7.0)
    monkeypatch.setattr(compiling.threading, "Timer", Timer)
    announcer, ours = compiling.Announcer(lambda: "compiling"), Happening("duelay.rules")
    announcer.on_start(ours)
    announcer.on_start(ours)
    announcer.on_end(ours)
    assert announcer._timer.is_on and announcer._timer.seconds == 7.0
    announcer.on_end(ours)
    assert not announcer._timer.is_on and heard == []
    announcer.on_start(ours)
    announcer._timer.do()
    announcer.speak()
    assert heard == ["compiling"]


def test_who_wants_no_notice_gets_none_though_somebody_waits(heard, monkeypatch):
    monkeypatch.setattr(compiling, "_announcer", compiling.Announcer(lambda: "compiling"))
    monkeypatch.setattr(compiling, "PATIENCE", math.inf)
    compiling._announcer.on_start(Happening("duelay.rules"))
    compiling.say_so()
    assert heard == [] and compiling._announcer._timer is None
    monkeypatch.setattr(compiling, "PATIENCE", 1.0)
    compiling.say_so()
    assert heard == ["compiling"]


def test_the_environment_says_after_how_many_seconds():
    told = {"": 1.0, "0": 0.0, "2.5": 2.5, "never": math.inf}
    assert {words: compiling._patience(words) for words in told} == told
    for words in ("soon", "-1", "nan"):
        with pytest.warns(UserWarning, match=f"must be seconds or never, got '{words}': taken"):
            assert compiling._patience(words) == 1.0


def test_what_numba_tells_in_another_form_does_no_harm(heard):
    announcer = compiling.Announcer(lambda: "compiling")
    announcer.on_start(None)
    announcer.on_end(object())
    assert heard == []


@pytest.mark.kept
def test_the_sentence_says_where_kernels_are_kept(monkeypatch, tmp_path):
    monkeypatch.setattr(jit, "_CACHE", tmp_path / "0123")
    monkeypatch.setattr(jit, "_NOT_KEPT", "")
    assert jit._compiling().endswith(f"kept in {tmp_path}")
    monkeypatch.setattr(jit, "_CACHE", None)
    monkeypatch.setattr(jit, "_NOT_KEPT", "the disk is full")
    assert "at every start, since the disk is full" in jit._compiling()
