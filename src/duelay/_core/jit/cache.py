"""Compiled kernels on disk, in a folder that is named by a digest of their sources."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import config

from duelay._core.duration import DAY
from duelay._core.jit import private_numba
from duelay._core.stderr import say
from duelay.errors import InvalidValueError

MAX_UNUSED_DAYS = 30
_MARK = ".kernels-of-duelay"  # a file with the folder's name, so that no other folder is removed
_FOLDER_NAME = re.compile(r"[0-9a-f]{16}")


def find_folder(name: str) -> tuple[Path | None, str]:
    """Return the folder for kernels, created if need be, or None and the reason."""
    if private_numba.IS_PLAIN:
        return None, "only public parts of Numba are used"
    base = Path("~")
    try:
        home = os.environ.get("XDG_CACHE_HOME", "")  # its specification ignores a relative path
        usual = Path(home) if os.path.isabs(home) else Path.home() / ".cache"
        base = Path(config.CACHE_DIR or usual) / "duelay"
        folder = base / name
        if not folder.exists():
            folder.mkdir(parents=True, exist_ok=True)
            _remove_unused(base)
        if not os.access(folder, os.W_OK):
            return None, f"{folder} cannot be written"
        if not _is_ours(folder):
            (folder / _MARK).write_text(name, encoding="utf-8")
        os.utime(folder)  # counts as used today
    except (OSError, RuntimeError) as error:  # RuntimeError: this user has no home
        return None, f"{base} cannot be written ({_reason(error)})"
    return folder, ""


def _remove_unused(base: Path) -> None:
    """Remove the folders of earlier sources that have not been used for a month."""
    limit = time.time() - MAX_UNUSED_DAYS * DAY
    for folder in base.iterdir():
        with contextlib.suppress(OSError):  # another process may be doing the same
            if _is_ours(folder) and folder.stat().st_mtime < limit:
                shutil.rmtree(folder, ignore_errors=True)


def _is_ours(folder: Path) -> bool:
    """Return whether a folder has the name and the mark of one that we made."""
    if not _FOLDER_NAME.fullmatch(folder.name) or folder.is_symlink() or not folder.is_dir():
        return False
    mark = folder / _MARK
    return mark.is_file() and mark.read_bytes() == folder.name.encode()


class KernelCache(private_numba.NullCache):  # type: ignore[misc]
    """Numba's caches of one kernel. If a cache fails, the kernel is compiled and one line says so.

    `find` returns the folder for some types of arguments, or None to keep nothing. A folder stands
    for one state of the sources of its kernels.
    """

    def __init__(self, function: Any, find: Callable[[tuple[Any, ...]], Path | None]) -> None:
        self._function, self._find = function, find
        self._caches: dict[Path, Any] = {}

    @property
    def cache_path(self) -> str | None:
        """The folder last used, for Numba's statistics."""
        return next((str(cache.cache_path) for cache in reversed(self._caches.values())), None)

    def has_some(self, arguments: tuple[Any, ...]) -> bool:
        """Return whether the folder for such arguments has code of this kernel."""
        folder = self._find(arguments)
        name = f"*.{self._function.__qualname__}-*.nbi"
        return folder is not None and any(folder.rglob(name))

    def load_overload(self, signature: Any, *context: Any) -> Any:
        """Return the code for a signature, or None."""
        folder, cache = self._open(signature)
        if cache is None:
            return None
        try:
            found = cache.load_overload(signature, *context)
            if found is None or tuple(found.signature.args) == _arguments(signature):
                return found
            raise InvalidValueError(
                "it is of other types"
            )  # two processes wrote at the same moment
        except Exception as error:  # a damaged file can raise anything
            _empty(folder)
            _say_once(
                "damaged",
                f"a compiled kernel in {folder} is damaged ({_reason(error)}): all of them are "
                f"compiled again",
            )
        return None

    def save_overload(self, signature: Any, *compiled: Any) -> None:
        """Write the code for a signature, if possible."""
        folder, cache = self._open(signature)
        if cache is None:
            return
        try:
            cache.save_overload(signature, *compiled)
        except Exception as error:  # a full disk, a folder that was removed
            if private_numba.was_interrupted(error):
                raise KeyboardInterrupt from None
            _say_not_kept(folder, error)

    def _open(self, signature: Any) -> tuple[Path, Any]:
        """Return the folder for a signature, and Numba's cache in it or None."""
        folder = self._find(_arguments(signature))
        if folder is None:
            return Path(), None
        if folder not in self._caches:
            try:
                self._caches[folder] = private_numba.cache_in(folder, self._function)
            except Exception as error:  # there is no place to write to
                _say_not_kept(folder, error)
                return folder, None
        return folder, self._caches[folder]


def _arguments(signature: Any) -> tuple[Any, ...]:
    """Return the types of the arguments: Numba gives them alone, or with that of the result."""
    return tuple(getattr(signature, "args", signature))


def _say_not_kept(folder: Path, error: Exception) -> None:
    _say_once(
        "not kept",
        f"compiled kernels cannot be kept in {folder} ({_reason(error)}): the next start compiles "
        f"again",
    )


@functools.cache
def _empty(folder: Path) -> None:
    """Empty a damaged folder, once: its files refer to each other, so none is of use alone."""
    with contextlib.suppress(OSError):
        for entry in folder.iterdir():
            shutil.rmtree(entry, ignore_errors=True)  # only folders: the mark stays


_said: dict[str, object] = {}


def _say_once(what: str, sentence: str) -> None:
    mine = object()
    if _said.setdefault(what, mine) is mine:  # only one of several threads says it
        say(f"duelay: {sentence}")


def _reason(error: Exception) -> str:
    """Return an error in a few words, on one line."""
    words = getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"
    return str(words).splitlines()[0]
