"""Optional uses of private Numba APIs.

Only the Numba releases up to `NEWEST_TESTED` get these APIs. A newer release, or any release with
``DUELAY_PLAIN_NUMBA=1`` in the environment, uses public APIs only. The numbers stay the same, but
kernels run slower and are compiled again in every process.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba import config

from duelay._core.stderr import say

NEWEST_TESTED = (0, 68)
_PLAIN = "DUELAY_PLAIN_NUMBA"


def is_newer(version: str) -> bool:
    """Return whether a Numba version is newer than the newest one that was tested."""
    return tuple(map(int, version.split(".")[:2])) > NEWEST_TESTED


def warn_about_newer_numba() -> None:
    """Take the public path and say so once; worker processes inherit the setting and are silent."""
    os.environ[_PLAIN] = "1"
    newest = ".".join(map(str, NEWEST_TESTED))
    say(
        f"duelay: Numba {numba.__version__} is newer than the tested {newest}, so kernels use only "
        f"its public API: they run slower and are compiled in every process"
    )


if os.environ.get(_PLAIN, "") in ("", "0") and is_newer(numba.__version__):
    warn_about_newer_numba()
IS_PLAIN = os.environ.get(_PLAIN, "") not in ("", "0")
COMPILES_PARTS = not IS_PLAIN and not config.DISABLE_JIT
"""Whether kernels that Python calls and kernels that kernels call are compiled differently."""

# Options of every kernel; of a kernel that Python calls; of a kernel that other kernels call.
OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "forceinline": True}
WITHOUT_RUNTIME: dict[str, Any] = {}
FOR_PYTHON: dict[str, Any] = {}
FOR_KERNELS: dict[str, Any] = {}
NullCache: Any = object
COMPILER_ERRORS: tuple[Any, ...] = ()
"""What the compiler raises. On the public path its messages are not explained."""

if not IS_PLAIN:
    from llvmlite.binding import ffi  # type: ignore[import-untyped]
    from numba.core import errors, event
    from numba.core.caching import FunctionCache
    from numba.core.caching import NullCache as _NullCache
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler import Compiler
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.datamodel import default_manager
    from numba.core.datamodel.models import TupleModel
    from numba.core.environment import lookup_environment
    from numba.core.errors import NumbaError

    _LLVM_LOCK = getattr(ffi.lib, "_lock", None)  # around each call of LLVM

    class _NoEnvironment:
        """Sets no environment: the code of the caller does it."""

        @staticmethod
        def set_env(name: str, environment: Any) -> None: ...

    class _LinkedLibrary(JITCodeLibrary):  # type: ignore[misc]
        """The code of a kernel for its callers, which optimise it as part of their own code."""

        codegen = _NoEnvironment

        def _optimize_final_module(self) -> None: ...

        def _finalize_final_module(self) -> None:
            self._finalize_dynamic_globals()
            self._finalized = True

        def get_pointer_to_function(self, name: str) -> int:
            self._ensure_finalized()
            return 0  # it has no machine code

        def serialize_using_object_code(self) -> Any:
            return self.serialize_using_bitcode()

    class _WholeLibrary(JITCodeLibrary):  # type: ignore[misc]
        """The code of a kernel that Python calls, with the code of all kernels that it calls."""

        def _finalize_specific(self) -> None:
            super()._finalize_specific()
            for variable in self._final_module.global_variables:
                environment = lookup_environment(variable.name)
                if environment is not None:
                    self._codegen.set_env(variable.name, environment)

    class _WholeCompiler(Compiler):  # type: ignore[misc]
        library: type = _WholeLibrary

        def define_pipelines(self) -> Any:
            state = self.state
            state.library = self.library(state.targetctx.codegen(), state.func_id.func_qualname)
            state.library.enable_object_caching()
            return super().define_pipelines()

    class _LinkedCompiler(_WholeCompiler):
        library = _LinkedLibrary

    class _PassedWhole(TupleModel):  # type: ignore[misc]
        """A NamedTuple that is passed as one value, instead of one argument for each number in it.

        Otherwise most of the code of a kernel unpacks and packs such arguments.
        """

        def get_argument_type(self) -> Any:
            return self.get_value_type()

        def as_argument(self, builder: Any, value: Any) -> Any:
            return value

        def from_argument(self, builder: Any, value: Any) -> Any:
            return value

    def _model(manager: Any, kind: Any) -> Any:
        """Pass the NamedTuples of this package as one value, and all others as Numba does."""
        is_ours = kind.instance_class.__module__.startswith(f"{__name__.partition('.')[0]}.")
        return (_PassedWhole if is_ours else TupleModel)(manager, kind)

    default_manager.register(numba.types.NamedTuple, _model)
    NullCache = _NullCache
    # Reference counts of arrays took more than half of the time. Kernels allocate no arrays.
    WITHOUT_RUNTIME = {"_nrt": False}
    OPTIONS["no_cfunc_wrapper"] = True
    FOR_PYTHON = {"pipeline_class": _WholeCompiler}
    FOR_KERNELS = {"pipeline_class": _LinkedCompiler, "no_cpython_wrapper": True}
    if not config.DISABLE_JIT:
        COMPILER_ERRORS = (NumbaError, NotImplementedError)
    _scheme = getattr(errors, "HighlightColorScheme", None)  # there with colorama
    if _scheme is not None and config.COLOR_SCHEME == "no_color":
        # With colorama, Numba replaces sys.stdout while it formats an error, even one that it drops
        # in a background thread. Another thread may write to sys.stdout at that moment.
        _scheme._markup = lambda self, message, *look, **more: message


def use_within(compiled: Any, part: Any) -> None:
    """Make kernels that call `compiled` call `part` instead."""
    compiled.get_call_template = part.get_call_template
    compiled.get_overload = part.get_overload


def as_callee(function: Any, bodies: Any) -> None:
    """Let kernels that call a function ask `bodies` which kernel to call."""
    function.bodies = bodies  # Numba's type has only a weak reference
    function._numba_type_ = numba.types.Dispatcher(bodies)


def cache_in(folder: Path, function: Any) -> Any:
    """Return Numba's cache of a function in a folder; raise OSError if it would be elsewhere."""
    given = config.CACHE_DIR
    config.CACHE_DIR = str(folder)
    try:
        cache = FunctionCache(function)
    finally:
        config.CACHE_DIR = given
    if not Path(cache.cache_path).is_relative_to(folder):
        raise OSError(f"Numba would keep it in {cache.cache_path}")
    return cache


def was_interrupted(error: Exception) -> bool:
    """Return whether LLVM swallowed a Ctrl-C in a callback, which left the kernel without code."""
    return isinstance(error, RuntimeError) and "no compiled object yet" in str(error)


def hold_compiler() -> None:
    """Wait until no other thread compiles, and let none compile until `release_compiler`."""
    if not IS_PLAIN:
        global_compiler_lock.acquire()
        # Who has compiled frees modules of LLVM without the lock above.
        if _LLVM_LOCK is not None:
            _LLVM_LOCK.__enter__()


def release_compiler() -> None:
    """Let other threads compile again."""
    if not IS_PLAIN:
        if _LLVM_LOCK is not None:
            _LLVM_LOCK.__exit__(None, None, None)
        global_compiler_lock.release()


def listen(notify: Callable[[Any], None]) -> None:
    """Call a function with Numba's event at the start and at the end of each compilation."""
    if IS_PLAIN:
        return

    class Listener(event.Listener):  # type: ignore[misc]
        def on_start(self, happening: Any) -> None:
            notify(happening)

        on_end = on_start

    event.register("numba:compile", Listener())
