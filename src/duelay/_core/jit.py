"""How our kernels are compiled: `@kernel`, `@entry` where Python calls, `@generic` by type.

Set ``NUMBA_DISABLE_JIT=1`` and the same code runs interpreted: for debugging, for coverage, and as
the oracle that the compiled code is tested against.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

import numba
from numba import config
from numba.core.caching import NullCache
from numba.core.options import DefaultOptions
from numba.extending import overload

from duelay._core.cache import OptionalCache, find_folder
from duelay._core.compiling import announce
from duelay._core.sources import own_digest

F = TypeVar("F", bound=Callable[..., Any])

# Kernels use their caller's arrays and allocate none. So Numba's runtime (_nrt) is off: counting
# references to arrays took more than half of the time. A kernel that allocates one does not
# compile.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "forceinline": True}
if hasattr(DefaultOptions, "_nrt"):  # private to Numba: without it we are slower, not wrong
    _OPTIONS["_nrt"] = False
# Numba's cache checks a function's own file only: it would reuse a kernel after a change of another
# file that it calls. So each state of all our files has a folder of its own.
_CACHE, _NOT_KEPT = find_folder(own_digest())
_KERNELS: list[Any] = []


def _keep_nothing() -> None:
    """Neither read nor write the disk from now on.

    A rule from outside is not among the sources that name the folder, and a kernel kept for it
    could not be loaded without its module.
    """
    global _CACHE, _NOT_KEPT
    _CACHE, _NOT_KEPT = None, "there is a rule from outside"
    for compiled in _KERNELS:
        compiled._cache = NullCache()


def kernel(function: F) -> F:
    """Compile a function with Numba, without the GIL, and keep it on disk."""
    return _compile(function, _OPTIONS)


def entry(function: F) -> F:
    """Compile a function that Python calls with a Generator; it only calls a kernel.

    Passing a Generator takes a reference to it, which only Numba's runtime releases. So the runtime
    is on here, and counts once a call; in the kernels it is off.
    """
    return _compile(function, {key: _OPTIONS[key] for key in _OPTIONS if key != "_nrt"})


def _compile(function: F, options: dict[str, Any]) -> F:
    compiled: Any = numba.njit(function, **options)
    if config.DISABLE_JIT:
        return cast(F, compiled)
    _KERNELS.append(compiled)
    if _CACHE is not None:
        given = config.CACHE_DIR
        config.CACHE_DIR = str(_CACHE)
        try:
            compiled.enable_caching()
            if Path(compiled._cache.cache_path).is_relative_to(_CACHE):
                compiled._cache = OptionalCache(compiled._cache, _CACHE)
            else:  # beside the source: Numba would miss a change of another file
                compiled._cache = NullCache()
        except (OSError, RuntimeError):  # there is no place to write to
            compiled._cache = NullCache()
        finally:
            config.CACHE_DIR = given
    return cast(F, compiled)


def _compiling() -> str:
    """Return the line to show while kernels are compiled."""
    if _CACHE is None:
        return f"duelay: compiling, at every start, since {_NOT_KEPT}: some 20 seconds"
    return f"duelay: compiling, once: some 20 seconds, and kept in {_CACHE.parent}"


announce(_compiling)


class Generic(Protocol):
    """A function with a body for each type of its first argument."""

    def __call__(self, first: Any, *rest: Any) -> Any:
        """Run the body for this type."""

    def register(self, cls: type) -> Callable[[F], F]:
        """Add the body for a type."""


def generic(function: Callable[..., Any]) -> Generic:
    """Declare a function whose body depends on the type of its first argument, a NamedTuple.

    Bodies are added with ``@name.register(Type)``, as for `functools.singledispatch`, which chooses
    when interpreted. Compiled, the choice is made once, when the caller is compiled, and costs
    nothing. Unlike kernels passed as arguments, it keeps the caller cacheable on disk.
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
