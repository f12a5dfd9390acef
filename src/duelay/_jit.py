"""How our kernels are compiled: `@kernel` for one function, `@generic` for one with many bodies.

Set ``NUMBA_DISABLE_JIT=1`` and the same code runs interpreted: for debugging, for coverage, and as
the oracle that the compiled code is tested against.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

import numba
from numba import config
from numba.core.caching import NullCache
from numba.core.options import DefaultOptions
from numba.extending import overload

from duelay._sources import own_digest as _source_digest

F = TypeVar("F", bound=Callable[..., Any])

# Kernels work in arrays that their caller holds, and make none. Without Numba's runtime (_nrt) they
# do not count references to them, which took more than half of the time; a kernel that makes an
# array is refused when it is compiled.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "forceinline": True}
if hasattr(DefaultOptions, "_nrt"):  # not a promise of Numba's: without it we are slower, not wrong
    _OPTIONS["_nrt"] = False
_KEEP_DAYS = 30


def _cache_directory() -> Path | None:
    """Return where compiled kernels are kept, or None where nothing can be written.

    Numba's cache looks at a function's own file only, and would go on using a kernel after another
    file that it calls has changed. A directory for each state of all our files can be trusted.
    """
    try:
        chosen = config.CACHE_DIR or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        base = Path(chosen) / "duelay"
        directory = base / _source_digest()
        if not directory.exists():
            directory.mkdir(parents=True, exist_ok=True)
            _forget_old(base)
        elif not os.access(directory, os.W_OK):
            return None
        os.utime(directory)  # in use: keep it
    except (OSError, RuntimeError):  # RuntimeError: this user has no home
        return None
    return directory


def _forget_old(base: Path) -> None:
    """Remove the kernels of earlier sources that nobody has used for a month."""
    limit = time.time() - _KEEP_DAYS * 86400
    for directory in base.iterdir():
        with contextlib.suppress(OSError):  # another process may be doing the same
            if directory.is_dir() and directory.stat().st_mtime < limit:
                shutil.rmtree(directory, ignore_errors=True)


_CACHE = _cache_directory()
_KERNELS: list[Any] = []


def _keep_nothing() -> None:
    """Neither read nor write the disk from now on.

    A rule from outside is not among the sources that name the directory, and a kernel kept for it
    could be read by nobody who lacks its module.
    """
    global _CACHE
    _CACHE = None
    for compiled in _KERNELS:
        compiled._cache = NullCache()


def kernel(function: F) -> F:
    """Compile a function with Numba, without the GIL, and keep it on disk."""
    kept = config.CACHE_DIR
    config.CACHE_DIR = str(_CACHE) if _CACHE else ""
    try:
        compiled: F = numba.njit(function, cache=_CACHE is not None, **_OPTIONS)
    finally:
        config.CACHE_DIR = kept
    if not config.DISABLE_JIT:
        _KERNELS.append(compiled)
    return compiled


class Generic(Protocol):
    """A function with a body for each type of its first argument."""

    def __call__(self, first: Any, *rest: Any) -> Any:
        """Run the body for this type."""

    def register(self, cls: type) -> Callable[[F], F]:
        """Add the body for a type."""


def generic(function: Callable[..., Any]) -> Generic:
    """Declare a function whose body depends on the type of its first argument, a NamedTuple.

    Bodies are added with ``@name.register(Type)``, as for `functools.singledispatch`, which is what
    runs interpreted. Compiled, the choice is made once, when a caller is compiled, and costs
    nothing; unlike kernels handed over as arguments, it leaves the caller cacheable on disk.
    """
    dispatcher = functools.singledispatch(function)

    # Called by Numba with *types*; the class behind a NamedTuple type picks the body.
    def body(first: Any, *rest: Any) -> Any:
        return dispatcher.dispatch(first.instance_class)

    overload(dispatcher, strict=False, jit_options=_OPTIONS)(body)
    add = dispatcher.register

    def register(cls: type) -> Any:
        if not cls.__module__.startswith("duelay."):
            _keep_nothing()
        return add(cls)

    dispatcher.register = register  # type: ignore[method-assign,assignment]
    return cast(Generic, dispatcher)
