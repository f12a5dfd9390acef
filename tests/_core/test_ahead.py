"""Kernels that come with a wheel: found without a compiler, and done without."""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import pytest

import duelay
from duelay._core import ahead, jit, numba_parts
from duelay._core.ahead import FOLDER, has, load, write
from helpers import CODE, answer

pytestmark = [pytest.mark.kept, pytest.mark.compiled]
COUNTED = """
from pathlib import Path
from duelay._core import ahead
from numba.core import event
ahead.FOLDER = Path({folder!r})
with event.install_recorder("numba:compile") as compiled:
    {code}
print(len(compiled.buffer))
"""
WRITE = (
    CODE + "from pathlib import Path\nfrom duelay._core.ahead import write\nwrite(Path({folder!r}))"
)


def python(code, **env):
    """What a process of its own prints, and says of what went wrong."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **env}
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


@pytest.fixture(scope="module")
def brought(tmp_path_factory):
    """A folder with the kernels of one player, as a wheel brings it."""
    place = tmp_path_factory.mktemp("ahead")
    code = WRITE.format(policy="RUCB", folder=str(place / "_kernels"))
    python(code, NUMBA_CPU_NAME="generic", NUMBA_CACHE_DIR=str(place / "cache"))
    return place / "_kernels"


def told_with(folder, **env):
    """The answer of a process to which these kernels came, and how many it has compiled."""
    code = COUNTED.format(
        folder=str(folder), code=CODE.format(policy="RUCB").replace("\n", "\n    ")
    )
    out, err = python(code, **env)
    told, _, n = out.rstrip().rpartition("\n")
    return told + "\n", int(n), err


def test_what_a_wheel_brings_is_not_compiled_and_gives_the_same_duels(brought, tmp_path):
    cache = tmp_path / "cache"
    told, n, _ = told_with(brought, NUMBA_CACHE_DIR=str(cache))
    assert (told, n) == (answer(), 0)
    assert not list(cache.rglob("*.nb?"))  # nothing is kept twice


def test_it_needs_no_folder_that_can_be_written(brought, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    told, n, said = told_with(brought, NUMBA_CACHE_DIR=str(blocked))
    assert (told, n, said) == (answer(), 0, "")


def test_what_is_damaged_is_compiled(brought, tmp_path):
    folder = tmp_path / "_kernels"
    shutil.copytree(brought, folder)
    files = sorted(folder.rglob("*.kernel"))
    contents = [path.read_bytes() for path in files]
    damaged = [b"", b"garbage", contents[0][:100], *contents]  # what follows is of another kernel
    for path, content in zip(files, damaged, strict=False):
        path.write_bytes(content)
    told, n, said = told_with(folder, NUMBA_CACHE_DIR=str(tmp_path / "cache"))
    assert told == answer() and n > 0 and "Traceback" not in said


def add(a, b):
    return a + b


add.__module__ = "duelay"  # as one of ours
TYPES = (numba.int64, numba.int64)


@pytest.fixture
def of_another(brought, tmp_path, monkeypatch):
    """A kernel in the place of one with other arguments."""
    monkeypatch.setattr(ahead, "FOLDER", tmp_path)
    place = ahead._path(tmp_path, add, TYPES)
    place.parent.mkdir()
    shutil.copy(next(brought.rglob("*.kernel")), place)


@pytest.mark.parametrize("what", ["Numba", "machine", "Python", "sources", "arguments"])
def test_what_was_made_with_something_else_is_not_found(of_another, monkeypatch, what):
    assert has(add, TYPES)
    if what == "Numba":
        monkeypatch.setattr(numba, "__version__", "0.0")
    elif what == "machine":
        monkeypatch.setattr(numba_parts, "machine", lambda: "abacus")
    elif what == "Python":
        monkeypatch.setattr(sys.implementation, "cache_tag", "cpython-30")
    elif what == "sources":
        monkeypatch.setattr(ahead, "own_digest", lambda: "0123456789abcdef")
    assert not has(add, TYPES if what != "arguments" else (*TYPES, numba.float64))


def test_a_kernel_of_other_types_is_not_taken_for_ours(of_another):
    context = jit.kernel(add).targetctx
    assert has(add, TYPES) and load(add, TYPES, context) is None


def test_only_what_python_calls_may_have_come(of_another, tmp_path, monkeypatch):
    """A kernel within others is linked into them, and what came is machine code."""
    monkeypatch.setattr(jit, "_CACHE", tmp_path)
    assert jit.kernel(add)._cache.has_some(TYPES)
    assert not jit._part(add)._cache.has_some(TYPES)


def test_what_is_for_this_processor_alone_is_not_written(tmp_path):
    assert not numba_parts.is_for_any_processor()
    with pytest.raises(ValueError, match="NUMBA_CPU_NAME must be generic"):
        write(tmp_path)


def test_every_policy_that_a_wheel_is_to_bring_exists():
    tree = ast.parse((Path(__file__).parents[2] / "hatch_build.py").read_text(encoding="utf-8"))
    (names,) = [
        ast.literal_eval(step.value)
        for step in tree.body
        if isinstance(step, ast.Assign) and step.targets[0].id == "SIMULATED"
    ]
    assert [str(duelay.policies.parse(name)) for name in names if name != "recommended"]


def test_a_checkout_has_none():
    assert not FOLDER.exists() and not has(add, ()) and load(add, (), None) is None
