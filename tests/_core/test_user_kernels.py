"""Rules from outside: kept on disk with what they are made of, and never confused."""

import os
import subprocess
import sys
from typing import NamedTuple

import numba
import numpy as np
import pytest

import duelay
from duelay._core.jit import decorators, user_kernels
from duelay.rules import RUCBRule, calm_until, select

MINE = """
import os
from dataclasses import dataclass
from typing import NamedTuple

import duelay
import side
from duelay.rules import kernel, select

SHIFT = int(os.environ.get("SHIFT", "0"))


class MineRule(NamedTuple):
    n_arms: int


@kernel
def second(rule):
    return ({second} + side.OFFSET + SHIFT) % rule.n_arms


@select.register(MineRule)
def choose(rule, ledger, t, rng):
    return 0, second(rule)


@dataclass(frozen=True)
class Mine(duelay.CompiledPolicy):
    def rule(self, n_arms):
        return MineRule(n_arms)
"""
# Says what the policy chose, and how many kernels of the border were found on disk.
ASK = """
import duelay
from duelay._core.jit.background import COMPILER
from duelay.policies.turn import turn_entry
{0}
duel = {1}.start(5, seed=0).ask()
COMPILER.wait()
print(duel.first, duel.second, sum(turn_entry.compiled.stats.cache_hits.values()))
"""
WITH_MINE = ASK.format("import mine", "mine.Mine()")
WITHOUT = ASK.format("", "duelay.RUCB()")


def write(folder, second=1, offset=0):
    folder.mkdir(exist_ok=True)
    (folder / "mine.py").write_text(MINE.format(second=second))
    (folder / "side.py").write_text(f"OFFSET = {offset}")
    return folder


def ask(code, folder, cache, **env):
    """What a new process answers; it says nothing on standard error."""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True,
        env={**os.environ, "NUMBA_CACHE_DIR": str(cache), **env},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A folder with a module, and one with kernels: some compiled with it, some ours alone."""
    mine, cache = write(tmp_path_factory.mktemp("mine")), tmp_path_factory.mktemp("cache")
    assert ask(WITH_MINE, mine, cache) == ["0", "1", "0"]
    assert ask(WITHOUT, mine, cache)[2] == "0"
    return mine, cache


@pytest.mark.compiled
@pytest.mark.kept
def test_kernels_with_a_rule_from_outside_are_found_again(kept):
    mine, cache = kept
    before = {path: path.stat().st_mtime_ns for path in sorted(cache.rglob("*.nb?"))}
    folders = {path.relative_to(cache).parts[:2] for path in before}
    assert len(folders) == 2  # ours, and with the rule
    assert ask(WITH_MINE, mine, cache) == ["0", "1", "1"]
    assert {path: path.stat().st_mtime_ns for path in sorted(cache.rglob("*.nb?"))} == before


@pytest.mark.compiled
@pytest.mark.kept
def test_our_own_kernels_are_found_beside_a_rule_from_outside_and_without_it(kept, tmp_path):
    mine, cache = kept
    assert ask(f"import mine\n{WITHOUT}", mine, cache)[2] == "1"
    assert ask(WITHOUT, tmp_path, cache)[2] == "1"  # here is no such module


@pytest.mark.compiled
@pytest.mark.kept
def test_an_edit_is_seen_and_taken_back(kept, tmp_path):
    _, cache = kept
    assert ask(WITH_MINE, write(tmp_path, second=2), cache) == ["0", "2", "0"]
    assert ask(WITH_MINE, write(tmp_path, offset=2), cache) == ["0", "3", "0"]
    assert ask(WITH_MINE, write(tmp_path), cache) == ["0", "1", "1"]


@pytest.mark.compiled
@pytest.mark.kept
def test_a_global_that_comes_from_elsewhere_is_seen(kept):
    mine, cache = kept
    assert ask(WITH_MINE, mine, cache, SHIFT="3") == ["0", "4", "0"]
    assert ask(WITH_MINE, mine, cache, SHIFT="3") == ["0", "4", "1"]
    assert ask(WITH_MINE, mine, cache) == ["0", "1", "1"]


@pytest.mark.compiled
@pytest.mark.kept
def test_a_rule_written_at_a_prompt_works_and_is_not_kept_but_ours_are(kept):
    mine, cache = kept
    before = sorted(cache.rglob("*.nb?"))
    at_a_prompt = MINE.format(second=4) + ASK.format("", "Mine()")
    assert ask(at_a_prompt, mine, cache) == ["0", "4", "0"]
    assert ask(at_a_prompt + WITHOUT, mine, cache)[5] == "1"
    assert sorted(cache.rglob("*.nb?")) == before


# What a kernel is made of.


class Inner(NamedTuple):
    a: int


class Outer(NamedTuple):
    inner: Inner
    b: np.ndarray


class Derived(RUCBRule):
    pass


FACTOR = 2
TABLE = np.arange(3)
SETTINGS = (1, 0.5, Inner(3))
THINGS = {"a": 1}


@numba.njit
def helper(x):
    return x * FACTOR


@select.register(Inner)
def choose_inner(rule, ledger, t, rng):
    return [helper(i) for i in range(2)][0] + TABLE[0] + SETTINGS[0], int(np.log(1.0))


def name(value):
    return user_kernels.name_of([numba.typeof(value)])


def test_what_is_ours_has_no_name_of_its_own():
    ledger = duelay.RUCB().ledger(3)
    assert name(ledger) is name(duelay.RUCB().rule(3)) is name(1) is name((1, 2.0)) is None
    rng = numba.typeof(np.random.default_rng(0))
    assert user_kernels.name_of([rng, numba.typeof(np.zeros((2, 2), dtype=np.bool_))]) is None


@pytest.mark.parametrize(
    "changed, value",
    [("FACTOR", 3), ("FACTOR", 2.0), ("TABLE", np.arange(4)), ("TABLE", np.arange(3.0)),
     ("SETTINGS", (1, 0.5, Inner(4))), ("SETTINGS", (1,))],
)  # fmt: skip
def test_a_name_tells_the_values_that_are_compiled_in(monkeypatch, changed, value):
    before = name(Inner(1))
    assert before is not None and name(Inner(2)) == before
    outer = name(Outer(Inner(1), TABLE))
    assert outer != before
    monkeypatch.setitem(globals(), changed, value)
    assert name(Inner(1)) != before
    assert name(Outer(Inner(1), np.arange(3))) != outer


def test_what_may_differ_another_time_has_no_name(monkeypatch):
    monkeypatch.setitem(globals(), "FACTOR", THINGS)
    with pytest.raises(user_kernels.NotKeptError, match="helper FACTOR is of dict"):
        name(Inner(1))

    class Local(NamedTuple):
        a: int

    with pytest.raises(user_kernels.NotKeptError, match="^.*Local "):
        name(Local(1))
    with pytest.raises(user_kernels.NotKeptError, match="not a type"):
        user_kernels.name_of([numba.types.pyobject])


def test_the_reason_is_told_to_who_waits(monkeypatch, tmp_path):
    class Local(NamedTuple):
        a: int

    monkeypatch.setattr(decorators, "_CACHE", tmp_path / "0123")
    monkeypatch.setattr(decorators, "_NOT_KEPT", "")
    assert decorators._folder((numba.typeof(1),)) == tmp_path / "0123"
    assert decorators._folder((numba.typeof(Local(1)),)) is None
    assert (
        "at every start, since" in decorators._compiling()
        and "Local is not what" in decorators._compiling()
    )


def test_a_class_derived_from_a_rule_of_ours_is_from_outside():
    assert name(Derived(*duelay.RUCB().rule(3))) is not None


def test_a_rule_of_ours_keeps_its_body_and_no_body_is_replaced():
    with pytest.raises(ValueError, match="select .*RUCBRule"):
        select.register(RUCBRule)(choose_inner)
    with pytest.raises(ValueError, match="calm_until .*object"):
        calm_until.register(object)(choose_inner)
    with pytest.raises(ValueError, match="select .*Inner"):
        select.register(Inner)(choose_inner)
