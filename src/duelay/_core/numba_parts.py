"""Parts of Numba that we use and that it does not promise: all are here, and we can do without.

- The option ``_nrt``: kernels count no references. Without it they take twice the time.
- `FunctionCache`, `NullCache`, a dispatcher's ``_cache`` and ``config.CACHE_DIR``: kernels on disk,
  in folders of our own. Without them all is compiled at every start.
- `global_compiler_lock`: a fork waits for a thread that compiles. Without it the child may never
  compile.
- ``numba.core.event``: somebody who waits for the compiler is told. Without it we are silent.
- `JITCodeLibrary`, a pipeline and a dispatcher's ``get_call_template``: a kernel is optimised
  within its callers alone. Without them compiling takes twice the time.
- The model of a NamedTuple: one of ours is passed whole, and not field by field. Without that
  compiling takes a quarter more.
- `CompileResult._reduce` and `_rebuild`, ``serialize.dumps``: kernels that a wheel brings. Without
  them these are compiled anew.
- `HighlightColorScheme` of errors: where colorama is installed it replaces ``sys.stdout`` for a
  moment, at every error that the compiler makes and drops. A thread of ours compiles; another
  thread may set ``sys.stdout`` at that moment. Without this part, what it has set may be lost.
- A dispatcher's ``overloads`` and their ``entry_point``: a player that has looked at the types in
  its ledger does not look again. Without them `ask` takes five times as long.
- The fields of a Generator's type: a player passes its addresses. Without them `ask` takes more
  than twice as long.
- `NumbaError`: a rule that cannot be compiled is explained. Without it Numba's own words stand.

One more, ``instance_class`` of a NamedTuple's type, tells which rule a kernel is compiled for, and
cannot be done without. A release of Numba that we have not seen is therefore not installed: see
``numba`` in pyproject.toml.

``DUELAY_PLAIN_NUMBA=1`` does without all of them now, as a release without them would.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import pickle
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numba
from numba import config
from numba.extending import intrinsic

IS_PLAIN = os.environ.get("DUELAY_PLAIN_NUMBA", "") not in ("", "0")


def _part(module: str, name: str, otherwise: Any) -> Any:
    """Return a part of Numba, or what there is in its place."""
    if IS_PLAIN:
        return otherwise
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError):
        return otherwise


register_listener = _part("numba.core.event", "register", None)
unregister_listener = _part("numba.core.event", "unregister", None)
Listener = _part("numba.core.event", "Listener", object)
NumbaError = _part("numba.core.errors", "NumbaError", None)
# What the compiler raises. Without the first, Numba's own words stand.
COMPILER_ERRORS = (
    ()
    if NumbaError is None or config.DISABLE_JIT
    else (
        NumbaError,
        NotImplementedError,
    )
)
NoCache = _part("numba.core.caching", "NullCache", object)  # answers what a cache of ours does not
_FunctionCache = _part("numba.core.caching", "FunctionCache", None)
_options = _part("numba.core.options", "DefaultOptions", None)
# No second wrapper, for C, around every kernel: a tenth of the time that compiling takes.
WITHOUT_C: dict[str, Any] = (
    {"no_cfunc_wrapper": True} if hasattr(_options, "no_cfunc_wrapper") else {}
)
# The options of a kernel that makes no arrays.
WITHOUT_RUNTIME: dict[str, Any] = {"_nrt": False} if hasattr(_options, "_nrt") else {}
_Library = _part("numba.core.codegen", "JITCodeLibrary", object)
_Compiler = _part("numba.core.compiler", "Compiler", object)
_environment_of = _part("numba.core.environment", "lookup_environment", None)


class _Codegen:
    """Numba's, except that an environment is left to the code of the caller."""

    def __init__(self, codegen: Any) -> None:
        self._codegen = codegen

    def set_env(self, name: str, environment: Any) -> None: ...

    def __getattr__(self, name: str) -> Any:
        return getattr(self._codegen, name)


class _Part(_Library):  # type: ignore[misc,valid-type]
    """The code of a kernel, to be linked into that of its callers: neither optimised nor run."""

    @property
    def codegen(self) -> Any:
        return _Codegen(self._codegen)

    def _optimize_final_module(self) -> None: ...

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        return 0  # there is none

    def serialize_using_object_code(self) -> Any:
        return self.serialize_using_bitcode()


class _Whole(_Library):  # type: ignore[misc,valid-type]
    """The code of a function that Python calls, and of all kernels within it."""

    def _finalize_specific(self) -> None:
        super()._finalize_specific()
        for variable in self._final_module.global_variables:
            environment = _environment_of(variable.name)
            if environment is not None:
                self._codegen.set_env(variable.name, environment)


class _CompilesParts(_Compiler):  # type: ignore[misc,valid-type]
    library: type = _Part

    def define_pipelines(self) -> Any:
        state = self.state
        state.library = self.library(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return super().define_pipelines()


class _CompilesWholes(_CompilesParts):
    library = _Whole


_USED = (
    "_optimize_final_module",
    "_finalize_final_module",
    "_finalize_specific",
    "_finalize_dynamic_globals",
    "_verify_declare_only_symbols",
    "serialize_using_bitcode",
)
# Whether a kernel is compiled apart for Python and for the kernels that call it. A kernel that
# Python calls contains the code of all kernels that it calls. So these need no wrapper for Python,
# no optimisation and no machine code of their own: more than half of the time that compiling takes.
APART = (
    all(hasattr(_Library, name) for name in _USED)
    and hasattr(_Compiler, "define_pipelines")
    and _environment_of is not None
    and hasattr(_options, "no_cpython_wrapper")
)
WHOLE: dict[str, Any] = {"pipeline_class": _CompilesWholes} if APART else {}
PART: dict[str, Any] = {"pipeline_class": _CompilesParts, "no_cpython_wrapper": True}


_TupleModel = _part("numba.core.datamodel.models", "TupleModel", object)
_models = _part("numba.core.datamodel", "default_manager", None)


class _PassedWhole(_TupleModel):  # type: ignore[misc,valid-type]
    """A NamedTuple of ours as an argument: one value, and not some hundred numbers and addresses.

    Else most of a kernel's code would take it apart and put it together again at every call.
    """

    def get_argument_type(self) -> Any:
        return self.get_value_type()

    def as_argument(self, builder: Any, value: Any) -> Any:
        return value

    def from_argument(self, builder: Any, value: Any) -> Any:
        return value


def _pass_ours_whole() -> None:
    """Pass NamedTuples of this package whole; those of others stay as Numba has them."""
    named = numba.types.NamedTuple
    given = getattr(_models, "_handlers", {}).get(named)
    if given is not _TupleModel or not hasattr(_TupleModel, "from_argument"):
        return
    ours = f"{__name__.partition('.')[0]}."

    def model(manager: Any, kind: Any) -> Any:
        is_ours = kind.instance_class.__module__.startswith(ours)
        return (_PassedWhole if is_ours else given)(manager, kind)

    _models.register(named, model)


_pass_ours_whole()


def _leave_stdout_alone() -> None:
    """Let Numba make errors without touching ``sys.stdout``, where it shows no colours anyway."""
    scheme = _part("numba.core.errors", "HighlightColorScheme", None)
    if hasattr(scheme, "_markup") and getattr(config, "COLOR_SCHEME", "") == "no_color":
        scheme._markup = lambda self, message, *look, **more: message


_leave_stdout_alone()


def entry_point(compiled: Any, types: tuple[Any, ...]) -> Any:
    """Return the machine code of a kernel for such arguments; None where there is none.

    It does not look at the types of its arguments. So its caller must have looked.
    """
    found = None if IS_PLAIN else getattr(compiled, "overloads", {}).get(types)
    return getattr(found, "entry_point", None)


_cgutils = _part("numba.core", "cgutils", None)
_rng = _part("numba.core.types", "npy_rng", None)
_bits = _part("numba.np.random.generator_core", "_bit_gen_type", None)
# The fields of Numba's types for a Generator, and for the bits behind it.
_RNG = ("bit_generator", "meminfo", "parent")
_BITS = (
    "parent",
    "state_address",
    "state",
    "fnptr_next_uint64",
    "fnptr_next_uint32",
    "fnptr_next_double",
    "bit_generator",
)


def _fields(kind: Any) -> tuple[str, ...]:
    try:
        return tuple(_models.lookup(kind)._fields)
    except Exception:  # what Numba says of an unknown type is no promise either
        return ()


# Whether a kernel can make a Generator of addresses. It needs no runtime then.
CAN_ADDRESS = (
    not config.DISABLE_JIT
    and bool(WITHOUT_RUNTIME)
    and hasattr(_cgutils, "create_struct_proxy")
    and hasattr(_cgutils, "unpack_tuple")
    and (_fields(_rng), _fields(_bits)) == (_RNG, _BITS)
)


def _generator_of(context: Any, addresses: Any) -> Any:
    """Make a Generator of addresses: its own, and those of its bits in the order of `_BITS`.

    Nobody counts references to it: the caller that gives the addresses must hold the object.
    """

    def make(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        own, parent, *rest = _cgutils.unpack_tuple(builder, args[0])
        inner = _cgutils.create_struct_proxy(_bits)(context, builder)
        inner.parent = builder.inttoptr(parent, inner.parent.type)
        for name, address in zip(_BITS[1:], rest, strict=True):
            setattr(inner, name, address)
        outer = _cgutils.create_struct_proxy(_rng)(context, builder)
        outer.bit_generator = inner._getvalue()
        outer.meminfo = outer.meminfo.type(None)
        outer.parent = builder.inttoptr(own, outer.parent.type)
        return outer._getvalue()

    return _rng(addresses), make


generator_of = intrinsic(_generator_of)


WHY_NOT_KEPT = (
    "DUELAY_PLAIN_NUMBA is set"
    if IS_PLAIN
    else f"Numba {numba.__version__} keeps kernels in a way that duelay does not know"
)


def can_keep() -> bool:
    """Whether this Numba lets us keep kernels in folders of our own."""
    return _FunctionCache is not None and hasattr(config, "CACHE_DIR")


def use(compiled: Any, cache: Any) -> None:
    """Let a kernel look into this cache before it is compiled."""
    if hasattr(compiled, "_cache"):
        compiled._cache = cache


def cache_in(folder: Path, function: Any) -> Any:
    """Return Numba's cache of a function in a folder; an error where it would be elsewhere."""
    given = config.CACHE_DIR
    config.CACHE_DIR = str(folder)
    try:
        cache = _FunctionCache(function)
    finally:
        config.CACHE_DIR = given
    if not Path(cache.cache_path).is_relative_to(folder):  # beside the source
        raise OSError(f"Numba would keep it in {cache.cache_path}")
    return cache


_Result = _part("numba.core.compiler", "CompileResult", None)
_triple = _part("llvmlite.binding", "get_process_triple", None)
_dumps = _part("numba.core.serialize", "dumps", None)


def is_for_any_processor() -> bool:
    """Whether what this process compiles runs on every processor of its kind."""
    return getattr(config, "CPU_NAME", None) == "generic"


def machine() -> str:
    """Return the kind of processor and system that kernels are compiled for."""
    return str(_triple()) if _triple is not None else ""


def written_kernel(compiled: Any) -> bytes:
    """Return a compiled kernel as bytes, for `read_kernel` of another process."""
    return bytes(_dumps(compiled._reduce()))


def read_kernel(content: bytes, context: Any) -> Any:
    """Return a compiled kernel that another process has written; an error if it cannot be read."""
    context.refresh()
    return _Result._rebuild(context, *pickle.loads(content))


def was_interrupted(error: Exception) -> bool:
    """Whether a kernel has no code to keep since LLVM's callback met a Ctrl-C, and lost it."""
    return isinstance(error, RuntimeError) and "no compiled object yet" in str(error)


def cache_folder() -> str:
    """Return the folder that NUMBA_CACHE_DIR names, or nothing; ask `can_keep` before."""
    return str(config.CACHE_DIR)


def use_within(compiled: Any, part: Any) -> None:
    """Let kernels that call `compiled` call `part` in its place."""
    compiled.get_call_template = part.get_call_template
    compiled.get_overload = part.get_overload


def as_callee(function: Any, bodies: Any) -> None:
    """Let kernels that call a function ask `bodies` which kernel that is."""
    function.bodies = bodies  # Numba's type has no more than a weak reference
    function._numba_type_ = numba.types.Dispatcher(bodies)


class StoppedError(Exception):
    """The compiler was stopped between two kernels."""


class _Stopper(Listener):  # type: ignore[misc,valid-type]
    """Ends the compilation of one thread when somebody says so."""

    def __init__(self, stop: threading.Event) -> None:
        self._stop, self._thread = stop, threading.get_ident()

    def on_start(self, happening: Any) -> None:
        """Before each kernel."""
        if self._stop.is_set() and threading.get_ident() == self._thread:
            raise StoppedError

    def on_end(self, happening: Any) -> None: ...


_compiler_lock = _part("numba.core.compiler_lock", "global_compiler_lock", None)


def hold_compiler() -> None:
    """Wait until no other thread compiles, and keep it so until `let_go_of_compiler`."""
    if hasattr(_compiler_lock, "acquire"):
        _compiler_lock.acquire()


def let_go_of_compiler() -> None:
    """Let other threads compile again."""
    if hasattr(_compiler_lock, "release"):
        _compiler_lock.release()


def can_stop() -> bool:
    """Whether a compilation can be stopped: a program that ends must not wait for all of it."""
    return register_listener is not None and unregister_listener is not None


@contextlib.contextmanager
def stopping(stop: threading.Event) -> Iterator[None]:
    """Let this thread stop compiling, by a `StoppedError`, once `stop` is set."""
    stopper = _Stopper(stop)
    register_listener("numba:compile", stopper)
    try:
        yield
    finally:
        unregister_listener("numba:compile", stopper)
