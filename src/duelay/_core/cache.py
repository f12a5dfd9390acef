"""Compiled kernels on disk, in a folder named by a digest of our sources. It is optional."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import shutil
import time
from pathlib import Path
from typing import Any

from numba import config
from numba.core import sigutils

from duelay._core.say import say

_KEEP_DAYS = 30
_MARK = ".kernels-of-duelay"  # holds the folder's name: a copy under another name is not ours
_NAME = re.compile(r"[0-9a-f]{16}")


def find_folder(name: str) -> tuple[Path | None, str]:
    """Return the folder of the kernels, made if need be; or None, and why none can be kept."""
    base = Path("~")
    try:
        chosen = config.CACHE_DIR or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        base = Path(chosen) / "duelay"
        folder = base / name
        if not folder.exists():
            folder.mkdir(parents=True, exist_ok=True)
            _forget_old(base)
        if not os.access(folder, os.W_OK):
            return None, f"{folder} cannot be written"
        if not _is_ours(folder):
            (folder / _MARK).write_text(name, encoding="utf-8")
        os.utime(folder)  # in use: keep it
    except (OSError, RuntimeError) as error:  # RuntimeError: this user has no home
        return None, f"{base} cannot be written ({_reason(error)})"
    return folder, ""


def _forget_old(base: Path) -> None:
    """Remove the kernels of earlier sources unused for a month, and nothing else."""
    limit = time.time() - _KEEP_DAYS * 86400
    for folder in base.iterdir():
        with contextlib.suppress(OSError):  # another process may be doing the same
            if _is_ours(folder) and folder.stat().st_mtime < limit:
                shutil.rmtree(folder, ignore_errors=True)


def _is_ours(folder: Path) -> bool:
    """Whether a folder has the name and the mark of one that we made."""
    if not _NAME.fullmatch(folder.name) or folder.is_symlink() or not folder.is_dir():
        return False
    mark = folder / _MARK
    return mark.is_file() and mark.read_bytes() == folder.name.encode()


class OptionalCache:
    """Numba's cache of one kernel. If it fails, the kernel is compiled, and one line says so."""

    def __init__(self, cache: Any, folder: Path) -> None:
        self._cache, self._folder = cache, folder

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cache, name)

    def load_overload(self, signature: Any, context: Any) -> Any:
        """Return the code kept for a signature, or None."""
        try:
            found = self._cache.load_overload(signature, context)
            arguments = tuple(sigutils.normalize_signature(signature)[0])
            if found is None or tuple(found.signature.args) == arguments:
                return found
            raise ValueError("it is of other types")  # two processes wrote at the same moment
        except Exception as error:  # a damaged file can raise anything
            _throw_away(self._folder)
            _say_once(
                "damaged",
                f"a compiled kernel in {self._folder} is damaged ({_reason(error)}): all of them "
                f"are compiled again",
            )
        return None

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Keep the code compiled for a signature, if possible."""
        try:
            self._cache.save_overload(signature, compiled)
        except Exception as error:  # a full disk, a folder that was removed
            _say_once(
                "not kept",
                f"compiled kernels cannot be kept in {self._folder} ({_reason(error)}): the next "
                f"start compiles again",
            )


@functools.cache
def _throw_away(folder: Path) -> None:
    """Empty a damaged folder, once: its files refer to each other, and none can be mended alone."""
    with contextlib.suppress(OSError):
        for entry in folder.iterdir():
            shutil.rmtree(entry, ignore_errors=True)  # folders: the mark stays


_said: set[str] = set()


def _say_once(what: str, sentence: str) -> None:
    if what not in _said:
        _said.add(what)
        say(f"duelay: {sentence}")


def _reason(error: Exception) -> str:
    """Return an error in a few words, on one line."""
    words = getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"
    return str(words).splitlines()[0]
