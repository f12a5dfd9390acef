"""Compiled kernels on disk, in a folder that is named by a digest of their sources."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import shutil
import stat
import tempfile
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
    """Return the folder for kernels, created if need be, or None and the reason.

    Numba unpickles what is in it, which runs any code. So a folder that others can write to is not
    used: a private one for temporary files replaces it, and one line says so.
    """
    if private_numba.IS_PLAIN:
        return None, "only public parts of Numba are used"
    base = Path("~")
    try:
        home = os.environ.get("XDG_CACHE_HOME", "")  # its specification ignores a relative path
        usual = Path(home) if os.path.isabs(home) else Path.home() / ".cache"
        base = Path(config.CACHE_DIR or usual) / "duelay"
        folder, reason = _open_folder(base, name)
        if reason and folder is not None:
            unsafe, base = reason, Path(tempfile.gettempdir()) / f"duelay-{os.geteuid()}"
            folder, reason = _open_folder(base, name)
            if reason:
                return None, f"{unsafe}, and {reason}"
            _say_once(
                "not safe",
                f"{unsafe}, so compiled kernels are kept in {base} instead; NUMBA_CACHE_DIR may "
                "name a folder of your own",
            )
    except (OSError, RuntimeError) as error:  # RuntimeError: this user has no home
        return None, f"{base} cannot be written ({_reason(error)})"
    return (None, reason) if reason else (folder, "")


def _open_folder(base: Path, name: str) -> tuple[Path | None, str]:
    """Make a folder for kernels in `base`, or return why it cannot be used.

    The folder is None where it cannot be written, and not None where it is not safe.
    """
    folder = base / name
    is_new = not folder.exists()
    for place in (*reversed(folder.parents), folder):
        if not place.exists():
            place.mkdir(mode=0o700, exist_ok=True)
    folder = folder.resolve()  # what is checked is what is used, wherever a link leads later
    reason = _why_unsafe(folder)
    if reason:
        return folder, reason
    if not os.access(folder, os.W_OK):
        return None, f"{folder} cannot be written"
    if is_new:
        _remove_unused(base)
    if not _is_ours(folder):
        (folder / _MARK).write_text(name, encoding="utf-8")
    os.utime(folder)  # counts as used today
    return folder, ""


def _why_unsafe(folder: Path) -> str:
    """Return why somebody else could put code into a folder; an empty text if nobody could.

    Its path has no links. The folder and the one around it, which are made here, must be writable
    by this user alone. The folders further up must belong to this user or to root, and must not be
    writable by everybody, unless they are sticky as /tmp is.
    """
    if not hasattr(os, "geteuid"):
        return ""  # on Windows a user's folders are not open to others
    user = os.geteuid()
    for place in (folder, *folder.parents):
        found = place.stat()
        open_to = stat.S_IWOTH
        if place not in (folder, folder.parent):
            open_to = 0 if found.st_mode & stat.S_ISVTX else stat.S_IWOTH
        elif found.st_gid != user:  # many systems give each user a group of the same number
            open_to = stat.S_IWOTH | stat.S_IWGRP
        if found.st_uid not in (user, 0):
            return f"{place} belongs to another user"
        if found.st_mode & open_to:
            return f"others can write to {place}"
    return ""


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
