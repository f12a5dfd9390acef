import os
import subprocess
import sys
from pathlib import Path

import pytest

from duelay import _jit

CODE = """
import duelay
r = duelay.simulate(duelay.datasets.load("mslr"), duelay.RUCBDelay(), delay="geometric:0.1",
                    horizon=500, seed=1)
print(repr(r.final[0]))
"""


def answer(**env):
    done = subprocess.run(
        [sys.executable, "-c", CODE],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **env},
    )
    return done.stdout


@pytest.mark.compiled
def test_kernels_are_kept_on_disk_and_found_again(tmp_path):
    env = {"NUMBA_CACHE_DIR": str(tmp_path)}
    first = answer(**env)
    files = sorted(tmp_path.rglob("*.nb?"))
    assert any("loop.play" in path.name for path in files)
    assert all(path.is_relative_to(tmp_path / "duelay" / _jit._source_digest()) for path in files)
    before = {path: path.stat().st_mtime_ns for path in files}
    assert answer(**env) == first
    assert {path: path.stat().st_mtime_ns for path in sorted(tmp_path.rglob("*.nb?"))} == before


@pytest.mark.compiled
def test_compiled_and_interpreted_runs_agree_to_the_last_bit():
    assert answer() == answer(NUMBA_DISABLE_JIT="1")


@pytest.mark.compiled
def test_a_cache_that_cannot_be_written_is_done_without(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    assert answer(NUMBA_CACHE_DIR=str(blocked)) == answer()


def test_old_kernels_are_forgotten(tmp_path, monkeypatch):
    monkeypatch.setattr(_jit.config, "CACHE_DIR", str(tmp_path))
    old, young = tmp_path / "duelay" / "old", tmp_path / "duelay" / "young"
    old.mkdir(parents=True)
    young.mkdir()
    os.utime(old, (0, 0))
    directory = _jit._cache_directory()
    assert directory == tmp_path / "duelay" / _jit._source_digest()
    assert not old.exists() and young.exists()
    assert _jit._cache_directory() == directory
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(_jit.config, "CACHE_DIR", str(tmp_path / "file"))
    assert _jit._cache_directory() is None
    monkeypatch.setattr(_jit.config, "CACHE_DIR", "")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)

    def homeless():
        raise RuntimeError("Could not determine home directory.")

    with monkeypatch.context() as context:
        context.setattr(Path, "home", homeless)
        assert _jit._cache_directory() is None
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert _jit._cache_directory().is_relative_to(Path(tmp_path / "xdg" / "duelay"))


def test_an_unknown_type_is_named():
    from duelay import assumed, order, rules

    for function, arguments in (
        (assumed.advance, (1, 1)),
        (assumed.enter, (1, 0, 1, 1)),
        (assumed.heard, (1, None, 0, 1)),
        (assumed.evidence, (1, None, None, 0, 1)),
        (rules.select, (1, None, 1, None)),
        (order.arrange, (1, 0, 1, None)),
    ):
        with pytest.raises(TypeError, match="no (ledger keeps|rule is called|order is called) int"):
            function(*arguments)


@pytest.mark.compiled
def test_a_rule_from_outside_leaves_nothing_in_the_cache(tmp_path):
    """Its module could not be imported by the next process, nor would a change to it be seen."""
    code = """
import dataclasses, typing
import duelay
from duelay.rules import select

class Rule(typing.NamedTuple):
    inner: typing.Any

@select.register(Rule)
def body(rule, ledger, t, rng):
    return select(rule.inner, ledger, t, rng)

@dataclasses.dataclass(frozen=True)
class Outside(duelay.RUCBDelay):
    def rule(self, n_arms):
        return Rule(super().rule(n_arms))

r = duelay.simulate(duelay.datasets.load("mslr"), Outside(), delay="geometric:0.1", horizon=500,
                    seed=1)
print(repr(r.final[0]))
"""
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env
    )
    assert done.stdout == answer(NUMBA_CACHE_DIR=str(tmp_path / "other"))
    assert not list((tmp_path / "duelay").rglob("*.nb?"))
