"""Compiled kernels on disk, in a folder named by a digest of our sources. It is optional.

Kernels that came compiled with the package are looked for first: see `ahead`.
"""

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

from duelay._core import ahead, numba_parts
from duelay._core.say import say

_KEEP_DAYS = 30
_MARK = ".kernels-of-duelay"  # holds the folder's name: a copy under another name is not ours
_NAME = re.compile(r"[0-9a-f]{16}")


def find_folder(name: str) -> tuple[Path | None, str]:
    """Return the folder of the kernels, made if need be; or None, and why none can be kept."""
    if not numba_parts.can_keep():
        return None, numba_parts.WHY_NOT_KEPT
    base = Path("~")
    try:
        home = os.environ.get("XDG_CACHE_HOME", "")  # one that is not absolute is to be ignored
        usual = Path(home) if os.path.isabs(home) else Path.home() / ".cache"
        base = Path(numba_parts.cache_folder() or usual) / "duelay"
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


class KernelCache(numba_parts.NoCache):  # type: ignore[misc]
    """Numba's caches of one kernel. If one fails, the kernel is compiled, and one line says so.

    `find` returns the folder for some types of arguments, or None to keep nothing. A folder stands
    for one state of the sources of its kernels. With `may_come`, the kernel may have come compiled
    with the package; only kernels that Python calls do.
    """

    def __init__(
        self, function: Any, find: Callable[[tuple[Any, ...]], Path | None], may_come: bool
    ) -> None:
        self._function, self._find, self._may_come = function, find, may_come
        self._caches: dict[Path, Any] = {}

    @property
    def cache_path(self) -> str | None:
        """The folder last used, for Numba's statistics."""
        return next((str(cache.cache_path) for cache in reversed(self._caches.values())), None)

    def has_some(self, arguments: tuple[Any, ...]) -> bool:
        """Whether code of this kernel is kept in the folder for such arguments, or for others.

        Code that came with the package must be for such arguments.
        """
        if self._may_come and ahead.has(self._function, arguments):
            return True
        folder = self._find(arguments)
        name = f"*.{self._function.__qualname__}-*.nbi"
        return folder is not None and any(folder.rglob(name))

    def load_overload(self, signature: Any, *context: Any) -> Any:
        """Return the code kept for a signature, or None."""
        arguments = _arguments(signature)
        came = ahead.load(self._function, arguments, *context) if self._may_come else None
        if came is not None:
            return came
        folder, cache = self._open(arguments)
        if cache is None:
            return None
        try:
            found = cache.load_overload(signature, *context)
            if found is None or tuple(found.signature.args) == arguments:
                return found
            raise ValueError("it is of other types")  # two processes wrote at the same moment
        except Exception as error:  # a damaged file can raise anything
            _throw_away(folder)
            _say_once(
                "damaged",
                f"a compiled kernel in {folder} is damaged ({_reason(error)}): all of them are "
                f"compiled again",
            )
        return None

    def save_overload(self, signature: Any, *compiled: Any) -> None:
        """Keep the code compiled for a signature, if possible."""
        folder, cache = self._open(_arguments(signature))
        if cache is None:
            return
        try:
            cache.save_overload(signature, *compiled)
        except Exception as error:  # a full disk, a folder that was removed
            if numba_parts.was_interrupted(error):
                raise KeyboardInterrupt from None
            _say_not_kept(folder, error)

    def _open(self, arguments: tuple[Any, ...]) -> tuple[Path, Any]:
        """Return the folder for a signature, and Numba's cache in it: None for neither."""
        folder = self._find(arguments)
        if folder is None:
            return Path(), None
        if folder not in self._caches:
            try:
                self._caches[folder] = numba_parts.cache_in(folder, self._function)
            except Exception as error:  # there is no place to write to, or Numba has changed
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
def _throw_away(folder: Path) -> None:
    """Empty a damaged folder, once: its files refer to each other, and none can be mended alone."""
    with contextlib.suppress(OSError):
        for entry in folder.iterdir():
            shutil.rmtree(entry, ignore_errors=True)  # folders: the mark stays


_said: dict[str, object] = {}


def _say_once(what: str, sentence: str) -> None:
    mine = object()
    if _said.setdefault(what, mine) is mine:  # of several threads one says it
        say(f"duelay: {sentence}")


def _reason(error: Exception) -> str:
    """Return an error in a few words, on one line."""
    words = getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"
    return str(words).splitlines()[0]
