"""The decorators that compile kernels: `@kernel`, `@entry` where Python calls, `@generic` by type.

With ``NUMBA_DISABLE_JIT=1`` in the environment the same code runs interpreted: for debugging, for
coverage, and as the oracle of the tests of the compiled code.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

import numba
from numba import config
from numba.extending import overload

from duelay._core.jit import private_numba, user_kernels
from duelay._core.jit.cache import KernelCache, find_folder
from duelay._core.jit.notice import announce
from duelay._core.sources import digest_of_kernels, is_outside, sources_of_class
from duelay.errors import InvalidValueError

F = TypeVar("F", bound=Callable[..., Any])

# Kernels use their caller's arrays and allocate none, so Numba's runtime, which counts references
# to arrays, is off. A kernel that allocates an array does not compile.
_OPTIONS = {**private_numba.OPTIONS, **private_numba.WITHOUT_RUNTIME}
# Numba's cache checks only the file of the function itself, and would reuse a kernel after a change
# of another file that it calls. So each state of the sources of all kernels has its own folder, and
# so has each state of the sources of a user's rule.
_DIGEST = digest_of_kernels(__name__)
_CACHE, _NOT_KEPT = find_folder(_DIGEST)


def _folder(arguments: tuple[Any, ...]) -> Path | None:
    """Return the folder of a kernel of ours for these types of arguments; None if it has none."""
    global _NOT_KEPT
    if _CACHE is None:
        return None
    try:
        name = user_kernels.name_of(arguments)
        if name is None:
            return _CACHE
        folder, reason = _folder_beside(f"{_DIGEST} {name}")
    except Exception as error:  # the user's code may be anything: compile it, and keep nothing
        folder, reason = None, str(error)
    _NOT_KEPT = _NOT_KEPT or reason
    return folder


def _folder_of_parts(arguments: tuple[Any, ...]) -> Path | None:
    folder = _folder(arguments)
    return None if folder is None else folder / "parts"


@functools.cache
def _folder_beside(parts: str) -> tuple[Path | None, str]:
    return find_folder(hashlib.sha256(parts.encode()).hexdigest()[:16])


def kernel(function: F) -> F:
    """Compile a function with Numba, without the GIL, and keep it on disk.

    It is compiled in two ways, for Python and for the kernels that call it. Only the first needs
    machine code of its own: this halves the time of compilation. A kernel of ours must not call
    itself.

    Parameters
    ----------
    function
        A function of numbers, arrays and NamedTuples of these, that makes no new array.
    """
    compiled = _compile(function, {**_OPTIONS, **private_numba.FOR_PYTHON})
    if private_numba.COMPILES_PARTS and not is_outside(function):
        private_numba.use_within(compiled, _part(function))
    return compiled


def _part(function: Callable[..., Any]) -> Any:
    """Compile a function for kernels alone: Python must not call it."""
    options = {**_OPTIONS, **private_numba.FOR_KERNELS}
    if is_outside(function):
        del options["pipeline_class"]  # it may do anything, and then needs machine code
    return _compile(function, options, _folder_of_parts)


def entry(function: F) -> F:
    """Compile a function that Python calls with a Generator, and that only calls a kernel.

    Python passes a reference to the Generator, which only Numba's runtime releases. So the runtime
    is on here, and off in the kernel.
    """
    return _compile(function, {**private_numba.OPTIONS, **private_numba.FOR_PYTHON})


def _compile(function: F, options: dict[str, Any], find: Any = _folder) -> F:
    compiled: Any = numba.njit(function, **options)
    if is_outside(function):  # it is kept within the kernels of ours that call it
        sources_of_class(cast(Any, function))  # read now: the file may change later
    elif private_numba.COMPILES_PARTS:
        compiled._cache = KernelCache(function, find)
    return cast(F, compiled)


def where_kept() -> str:
    """Say where kernels are kept, or why they are not."""
    if _CACHE is None or _NOT_KEPT:
        return f"and not kept, since {_NOT_KEPT}"
    return f"kept in {_CACHE.parent}"


def _compiling() -> str:
    """Return the line to show while kernels are compiled."""
    if _CACHE is None or _NOT_KEPT:
        return f"duelay: compiling, at every start, since {_NOT_KEPT}: some 10 seconds"
    return f"duelay: compiling, once: some 10 seconds, and kept in {_CACHE.parent}"


announce(_compiling)


class Generic(Protocol):
    """A function with a body for each type of its first argument."""

    def __call__(self, first: Any, *rest: Any) -> Any:
        """Run the body for this type."""

    def register(self, cls: type) -> Callable[[F], F]:
        """Add the body for a type."""

    def dispatch(self, cls: type) -> Callable[..., Any]:
        """Return the body for a type."""


_NAMED: dict[str, type] = {}  # the NamedTuples that something is registered for, by their names


def _name_apart(cls: type) -> None:
    """Give a class another `__name__` if an earlier one has it.

    Numba's dispatcher tells NamedTuples apart by that name alone. A rule that is defined again, at
    a prompt or by a reload, would run the code that was compiled for the one before.
    """
    name, n = cls.__name__, 1
    while _NAMED.setdefault(cls.__name__, cls) is not cls:
        n += 1
        cls.__name__ = f"{name} ({n})"


class _Bodies:
    """The bodies of a generic function as kernels: `overload` would not keep them on disk."""

    is_compiling = False  # Numba asks: none calls itself

    def __init__(self, body: Callable[..., Any]) -> None:
        self._body = body
        self._kernels: dict[Any, Any] = {}

    def _kernel(self, types: Any) -> Any:
        body = self._body(*types)
        if body not in self._kernels:
            self._kernels[body] = _part(body)
        return self._kernels[body]

    def get_call_template(self, types: Any, named: Any) -> Any:
        return self._kernel(types).get_call_template(types, named)

    def get_overload(self, types: Any) -> Any:
        return self._kernel(types).get_overload(types)


def generic(function: Callable[..., Any]) -> Generic:
    """Declare a function whose body depends on the type of its first argument, a NamedTuple.

    Bodies are added with ``@name.register(Type)``, as for `functools.singledispatch`, which chooses
    when interpreted. Compiled, the choice is made once, when the caller is compiled, and costs
    nothing. Unlike kernels passed as arguments, it keeps the caller cacheable on disk.
    """
    dispatcher = functools.singledispatch(function)

    # Called by Numba with *types*; the class behind a NamedTuple type picks the body.
    def body(first: Any, *rest: Any) -> Any:
        return dispatcher.dispatch(getattr(first, "instance_class", object))

    if private_numba.COMPILES_PARTS:
        private_numba.as_callee(dispatcher, _Bodies(body))
    elif not config.DISABLE_JIT:
        overload(dispatcher, strict=False, jit_options=_OPTIONS)(body)
    user_kernels.GENERICS.append(dispatcher)
    add = dispatcher.register

    def register(cls: type) -> Callable[[F], F]:
        def register_body(body: F) -> F:
            if is_outside(body) and not is_outside(cls):
                raise InvalidValueError(
                    f"{function.__name__} must not be registered for {cls.__name__}, which is not "
                    f"yours: derive a class from it"
                )
            if cls in dispatcher.registry:
                raise InvalidValueError(
                    f"{function.__name__} is registered for {cls.__name__} already, and may have "
                    f"been compiled: define the class anew, too"
                )
            _name_apart(cls)
            for part in (cls, body):
                sources_of_class(cast(Any, part))  # as they are now: the file may change later
            return cast(F, add(cls)(body))

        return register_body

    dispatcher.register = register  # type: ignore[method-assign,assignment]
    return cast(Generic, dispatcher)
