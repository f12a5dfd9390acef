"""Compiled kernels on disk: found again, forgotten when old, and done without."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from numba import config

from duelay._core.jit import cache, decorators, private_numba
from helpers import CODE, answer

pytestmark = pytest.mark.kept
NAME = "0123456789abcdef"


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A folder with the kernels of one player."""
    folder = tmp_path_factory.mktemp("cache")
    answer(NUMBA_CACHE_DIR=str(folder))
    return folder


@pytest.mark.compiled
def test_kernels_are_kept_on_disk_and_found_again(kept):
    files = sorted(kept.rglob("*.nb?"))
    assert any("turn.turn_entry" in path.name for path in files)
    assert all(path.is_relative_to(kept / "duelay" / decorators._DIGEST) for path in files)
    before = {path: path.stat().st_mtime_ns for path in files}
    assert answer(NUMBA_CACHE_DIR=str(kept)) == answer()
    assert {path: path.stat().st_mtime_ns for path in sorted(kept.rglob("*.nb?"))} == before


@pytest.mark.compiled
def test_a_cache_that_cannot_be_written_is_done_without(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    assert answer(NUMBA_CACHE_DIR=str(blocked)) == answer()


@pytest.mark.compiled
def test_a_damaged_cache_is_compiled_again_and_then_sound(kept, tmp_path):
    folder = tmp_path / "damaged"
    shutil.copytree(kept, folder)
    for path in folder.rglob("*.nbi"):
        path.write_bytes(b"")  # as a full disk or a power failure leaves them
    command = [sys.executable, "-c", CODE.format(policy="RUCB")]
    env = {**os.environ, "NUMBA_CACHE_DIR": str(folder)}
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("is damaged") == 1 and done.stdout == answer()
    assert "Traceback" not in done.stderr
    again = subprocess.run(command, capture_output=True, text=True, env=env)
    assert (again.returncode, again.stderr) == (0, "")


def add(a, b):
    return a + b


add.__module__ = "duelay"  # as one of ours: a kernel from outside is not kept by itself


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of its own for kernels that tests make."""
    monkeypatch.setattr(cache, "_said", {})
    cache._empty.cache_clear()
    monkeypatch.setattr(decorators, "_CACHE", tmp_path)
    (tmp_path / cache._MARK).write_text(tmp_path.name)
    return tmp_path


@pytest.mark.compiled
@pytest.mark.parametrize(
    "kind, damage",
    [("nbi", b""), ("nbi", b"garbage"), ("nbi", "a folder"), ("nbi", "cut"),
     ("nbc", b""), ("nbc", b"garbage"), ("nbc", "cut")],
)  # fmt: skip
def test_a_damaged_file_is_one_sentence(folder, capsys, kind, damage):
    assert decorators.kernel(add)(1, 2) == 3
    (path,) = folder.rglob(f"*.{kind}")
    if damage == "a folder":
        path.unlink()
        path.mkdir()
    else:
        path.write_bytes(path.read_bytes()[:100] if damage == "cut" else damage)
    one, two = decorators.kernel(add), decorators.kernel(add)
    assert (one(1, 2), two(1.5, 2), one(1, 3)) == (3, 3.5, 4)
    assert capsys.readouterr().err.count("is damaged") == 1
    cache._said.clear()
    found = decorators.kernel(add)
    assert found(1, 2) == 3
    assert capsys.readouterr().err == ""
    assert sum(found.stats.cache_hits.values()) == 1
    assert (folder / cache._MARK).exists()


@pytest.mark.compiled
def test_a_kernel_of_other_types_is_not_taken_for_ours(folder, capsys):
    """Two processes that keep kernels at the same moment may write to the same file."""
    decorators.kernel(add)(1, 2)
    (whole,) = folder.rglob("*.nbc")
    of_whole = whole.read_bytes()
    decorators.kernel(add)(1.5, 2.5)
    for path in folder.rglob("*.nbc"):
        path.write_bytes(of_whole)
    assert decorators.kernel(add)(1.5, 2.5) == 4.0
    assert "is damaged (InvalidValueError: it is of other types)" in capsys.readouterr().err


@pytest.mark.compiled
def test_a_ctrl_c_that_llvm_has_swallowed_is_raised(folder, capsys, monkeypatch):
    """Python ignores what is raised in a callback of LLVM's: so the kernel has no code."""
    kernel = decorators.kernel(add)

    def interrupted(*_):
        raise RuntimeError("no compiled object yet for <Library 'add' at 0x7f00>")

    monkeypatch.setattr(private_numba.FunctionCache, "save_overload", interrupted)
    with pytest.raises(KeyboardInterrupt):
        kernel(1, 2)
    assert capsys.readouterr().err == ""


@pytest.mark.compiled
def test_a_folder_that_is_gone_is_made_again(folder):
    one = decorators.kernel(add)
    shutil.rmtree(folder)
    assert one(1, 2) == 3
    assert list(folder.rglob("*.nbc"))


FULL = """
import resource, sys
def fill():
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))  # no file can grow
if sys.argv[1] == "before":
    fill()
from duelay._core.jit.decorators import kernel
from duelay.simulation.loops.recorder import new_recorder, regret_so_far
import numpy as np
fill()
for ticks in (np.array([1]), np.array([2])):
    print(regret_so_far(new_recorder(np.array([0.0, 0.1]), ticks)))
print(len(regret_so_far.overloads))
"""


@pytest.mark.compiled
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_full_disk_stops_nothing_and_is_said_once(tmp_path, when):
    done = subprocess.run(
        [sys.executable, "-c", FULL, when], capture_output=True, text=True,
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["0.0", "0.0", "1"]
    said = [line for line in done.stderr.splitlines() if "cannot be kept" in line]
    assert len(said) == (when == "after"), done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.rglob("*.nbc"))


def test_old_kernels_are_forgotten_and_nothing_else(tmp_path, monkeypatch):
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))
    base = tmp_path / "duelay"
    old, young, unmarked, renamed = (base / (digit * 16) for digit in "abcd")
    mine, notes = base / "my experiments", base / "notes.txt"
    for folder in (old, young, unmarked, renamed, mine):
        (folder / "within").mkdir(parents=True)
        if folder not in (unmarked, mine):
            (folder / cache._MARK).write_text(old.name if folder == renamed else folder.name)
    (mine / cache._MARK).write_text(mine.name)
    notes.write_text("")
    (base / ("e" * 16)).symlink_to(mine)
    for path in (old, unmarked, renamed, mine, notes):
        os.utime(path, (0, 0))
    folder, reason = cache.find_folder(NAME)
    assert (folder, reason) == (base / NAME, "")
    assert not old.exists()
    assert all((path / "within").exists() for path in (young, unmarked, renamed, mine))
    assert notes.exists() and cache._is_ours(folder)
    assert cache.find_folder(NAME) == (folder, "")


def test_where_nothing_can_be_kept_the_reason_is_known(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "file"))
    folder, reason = cache.find_folder(NAME)
    assert folder is None and "file" in reason and "Not a directory" in reason
    monkeypatch.setattr(config, "CACHE_DIR", "")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)

    def homeless():
        raise RuntimeError("Could not determine home directory.")

    with monkeypatch.context() as context:
        context.setattr(Path, "home", homeless)
        assert cache.find_folder(NAME)[0] is None
    with monkeypatch.context() as context:
        context.setattr(os, "access", lambda *_: False)
        context.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
        folder, reason = cache.find_folder(NAME)
        assert folder is None and reason.endswith("cannot be written")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache.find_folder(NAME)[0] == tmp_path / "xdg" / "duelay" / NAME
    monkeypatch.setenv("XDG_CACHE_HOME", "here")  # the specification of XDG ignores such a one
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert cache.find_folder(NAME)[0] == tmp_path / ".cache" / "duelay" / NAME


@pytest.fixture
def caches(tmp_path, monkeypatch):
    """Folders for kernels, and for temporary files instead."""
    monkeypatch.setattr(cache, "_said", {})
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "kernels"))
    (tmp_path / "temporary").mkdir(mode=0o700)
    monkeypatch.setattr(cache.tempfile, "gettempdir", lambda: str(tmp_path / "temporary"))
    return tmp_path / "kernels" / "duelay", tmp_path / "temporary" / f"duelay-{os.geteuid()}"


def test_folders_for_kernels_are_open_to_nobody_else(caches):
    base, _ = caches
    umask = os.umask(0)
    try:
        folder, _ = cache.find_folder(NAME)
    finally:
        os.umask(umask)
    assert folder == base / NAME
    assert [path.stat().st_mode & 0o777 for path in (folder, base, base.parent)] == [0o700] * 3


@pytest.mark.parametrize(
    "which, mode",
    [("folder", 0o777), ("folder", 0o1777), ("base", 0o777), ("above", 0o777)],
)
def test_a_folder_that_others_can_write_to_is_not_used(caches, capsys, which, mode):
    base, instead = caches
    cache.find_folder(NAME)
    {"folder": base / NAME, "base": base, "above": base.parent}[which].chmod(mode)
    assert cache.find_folder(NAME) == (instead / NAME, "")
    assert cache.find_folder(NAME[::-1])[0].parent == (base if which == "folder" else instead)
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "others can write to" in said and str(instead) in said
    assert instead.stat().st_mode & 0o777 == 0o700


def test_a_sticky_folder_above_is_fine(caches):
    base, _ = caches
    cache.find_folder(NAME)
    base.parent.chmod(0o1777)
    assert cache.find_folder(NAME) == (base / NAME, "")


def test_a_link_that_leads_elsewhere_later_changes_nothing(caches):
    """Who can write to the folder of the link could exchange it after it was checked."""
    base, _ = caches
    home, theirs = base.parents[1] / "home", base.parents[1] / "theirs"
    home.mkdir(mode=0o700)
    theirs.mkdir()
    base.parent.symlink_to(home)
    folder, _ = cache.find_folder(NAME)
    base.parent.unlink()
    base.parent.symlink_to(theirs)
    assert folder == home / "duelay" / NAME and folder.resolve() == folder


@pytest.mark.parametrize("which", ["folder", "base", "above"])
def test_a_folder_of_another_user_is_not_used(caches, capsys, monkeypatch, which):
    base, instead = caches
    cache.find_folder(NAME)
    theirs = {"folder": base / NAME, "base": base, "above": base.parent}[which]
    usual = Path.stat

    def of_another(path, **given):
        found = usual(path, **given)
        return os.stat_result((*found[:4], 12345, *found[5:])) if path == theirs else found

    monkeypatch.setattr(Path, "stat", of_another)
    assert cache.find_folder(NAME) == (instead / NAME, "")
    assert f"{theirs} belongs to another user" in capsys.readouterr().err


def test_where_no_folder_is_private_nothing_is_kept(caches, capsys):
    base, instead = caches
    cache.find_folder(NAME)
    base.chmod(0o777)
    instead.mkdir()
    instead.chmod(0o777)
    folder, reason = cache.find_folder(NAME)
    assert folder is None and str(base) in reason and str(instead) in reason
    assert capsys.readouterr().err == ""


def test_a_group_of_the_user_alone_may_write(caches, monkeypatch):
    base, instead = caches
    cache.find_folder(NAME)
    base.chmod(0o770)
    if base.stat().st_gid == os.geteuid():
        assert cache.find_folder(NAME)[0] == base / NAME
    usual = Path.stat

    def of_a_group(path, **given):
        found = usual(path, **given)
        return os.stat_result((*found[:5], 54321, *found[6:])) if path == base else found

    monkeypatch.setattr(Path, "stat", of_a_group)
    assert cache.find_folder(NAME)[0] == instead / NAME
