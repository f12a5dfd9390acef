"""Kernels that Python calls: they are interpreted until a background thread has compiled them.

A kernel gives the same numbers compiled and interpreted. The first calls are interpreted while a
thread compiles the kernel or reads it from disk, so no call waits for the compiler. Only a call
that is long work compiles the kernel first.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import threading
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any, TypeVar, cast

import numba

from duelay._core.jit import private_numba, user_kernels
from duelay._core.jit.cache import KernelCache
from duelay._core.jit.notice import BACKGROUND_THREAD

F = TypeVar("F", bound=Callable[..., Any])
START_DELAY = 0.5  # seconds: a program that ends sooner need not wait for the thread
MAX_INTERPRETED_STEPS = 3000  # of one call; a call of more steps waits for the compiler
MAX_STEPS_IF_ON_DISK = 300  # ... as reading the kernel from disk takes as long as these
MAX_INTERPRETED_DUELS = 2000  # of all simulations of a process; later ones are compiled


def border(kernel: F) -> F:
    """Let Python call a kernel before it is compiled."""
    return border_of(None)(kernel)


def border_of(count_steps: Callable[..., int] | None) -> Callable[[F], F]:
    """Let Python call a kernel before it is compiled, if the call is short work.

    `count_steps` is called with the arguments and returns how many steps the call takes. A step is
    as much work as a duel.
    """

    def wrap(kernel: F) -> F:
        if not private_numba.COMPILES_PARTS:
            return kernel
        return cast(F, _Border(kernel, count_steps))

    return wrap


_HOLDER = threading.local()  # `refuses`: whether this thread must not wait for the compiler


class CompilationError(Exception):
    """A call has to wait for the compiler, in a thread that must not wait now."""

    def __init__(self, border: _Border, kind: Any, types: tuple[Any, ...]) -> None:
        super().__init__("a kernel is not compiled yet")
        self._request = border, kind, types

    def compile(self) -> None:
        """Wait for the compiler; the same call does not wait again."""
        border, kind, types = self._request
        border.compile(kind, types)


@contextlib.contextmanager
def refuse_to_wait() -> Iterator[None]:
    """Raise `CompilationError` where a call of this thread would wait for the compiler.

    It is for work that holds what others wait for.
    """
    before = getattr(_HOLDER, "refuses", False)
    _HOLDER.refuses = True
    try:
        yield
    finally:
        _HOLDER.refuses = before


_n_interpreted = 0  # duels of simulations


def is_worth_compiling(kernel: Any, args: tuple[Any, ...], n_duels: float) -> bool:
    """Return whether a simulation of so many duels has to wait for the compiler.

    A kernel that is compiled or on disk is used. A user's rule is compiled in any case, so that its
    author learns at once what is wrong with it.
    """
    global _n_interpreted
    if not private_numba.COMPILES_PARTS or COMPILER.is_stopped:
        return True
    types = tuple(map(numba.typeof, args))
    if _is_on_disk(kernel, types) or types in kernel.overloads or not user_kernels.are_ours(types):
        return True
    if _n_interpreted + n_duels > MAX_INTERPRETED_DUELS:
        return True
    _n_interpreted += int(n_duels)
    return False


def without_compiling(function: F) -> F:
    """Return a Python function that runs all kernels interpreted."""
    return cast(F, plain(function))


def _is_on_disk(kernel: Any, types: tuple[Any, ...]) -> bool:
    cache = kernel._cache
    return isinstance(cache, KernelCache) and cache.has_some(types)


class _Border:
    """A kernel that may not be compiled yet."""

    def __init__(self, compiled: Any, count_steps: Callable[..., int] | None) -> None:
        functools.update_wrapper(self, compiled.py_func)
        self.compiled = compiled
        self._count_steps = count_steps
        self._ready: set[Any] = set()  # kinds of arguments that are not interpreted any more
        private_numba.as_callee(self, compiled)

    def __call__(self, *args: Any) -> Any:
        kind = _kind(args)
        if kind in self._ready:
            return self.compiled(*args)
        types = tuple(map(numba.typeof, args))
        if self._has_to_compile(types, args):
            if getattr(_HOLDER, "refuses", False) and types not in self.compiled.overloads:
                raise CompilationError(self, kind, types)
            result = self.compiled(*args)
            self._ready.add(kind)
            return result
        COMPILER.add(self, kind, types)
        return interpreted(self)(*args)

    def _has_to_compile(self, types: tuple[Any, ...], args: tuple[Any, ...]) -> bool:
        if (
            COMPILER.is_stopped
            or types in self.compiled.overloads
            or not user_kernels.are_ours(types)
        ):
            return True
        steps = 0 if self._count_steps is None else self._count_steps(*args)
        if steps <= MAX_STEPS_IF_ON_DISK:
            return False
        return steps > MAX_INTERPRETED_STEPS or _is_on_disk(self.compiled, types)

    def compile(self, kind: Any, types: tuple[Any, ...]) -> None:
        """Compile the kernel for such arguments, or read it from disk."""
        with contextlib.suppress(Exception):  # the next caller compiles and gets the error
            self.compiled.compile(types)
        self._ready.add(kind)


def _kind(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the classes of a rule and of what a ledger assumes, as a quick key of the arguments.

    Where that is not enough, the first call with other types compiles and waits.
    """
    return tuple([(argument.__class__, getattr(argument, "assumed", None).__class__)
                  for argument in args[:2]])  # fmt: skip


class _StoppedError(BaseException):  # not an Exception, which Numba could handle
    """The background thread was stopped between two kernels."""


class _Compiler:
    """A thread that compiles the requested kernels one by one, and ends when none is left."""

    def __init__(self) -> None:
        self.is_stopped = False  # callers then compile what they call
        self._was_stopped = False  # before a fork
        self._requests: dict[Any, tuple[_Border, Any, Any]] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()
        private_numba.listen(self.notify)

    def add(self, border: _Border, kind: Any, types: tuple[Any, ...]) -> None:
        """Compile a kernel for such arguments, soon."""
        with self._lock:
            self._requests.setdefault((border, types), (border, kind, types))
            self._start()

    def _start(self) -> None:
        if self._thread is None and not self.is_stopped:
            self._thread = threading.Thread(target=self._run, name=BACKGROUND_THREAD, daemon=True)
            self._thread.start()

    def _run(self) -> None:
        self._stop.wait(START_DELAY)
        while not self.is_stopped:
            with self._lock:
                if not self._requests:
                    self._thread = None
                    return
                key = next(iter(self._requests))
                border, kind, types = self._requests[key]
            with contextlib.suppress(_StoppedError):
                border.compile(kind, types)
                with self._lock:
                    self._requests.pop(key, None)

    def notify(self, event: Any) -> None:
        """Interrupt the thread before the next kernel: Numba calls this around each of them."""
        if self.is_stopped and event.is_start and threading.current_thread() is self._thread:
            raise _StoppedError

    def stop(self) -> None:
        """End the thread after the kernel that it compiles; the requests stay."""
        self.is_stopped = True
        self._stop.set()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()
            self._thread = None

    def resume(self, is_stopped: bool = False) -> None:
        """Continue after a stop, or in a new process."""
        self._lock, self._stop, self._thread = threading.Lock(), threading.Event(), None
        self.is_stopped = is_stopped
        with self._lock:
            if self._requests:
                self._start()

    def wait(self) -> None:
        """Wait until all requests are done."""
        thread = self._thread
        if thread is not None:
            thread.join()

    def before_fork(self) -> None:
        """Let no thread compile: the child could never compile if a thread had Numba's lock."""
        self._was_stopped = self.is_stopped
        self.stop()
        private_numba.hold_compiler()

    def after_fork(self) -> None:
        """Continue, in the parent and in the child."""
        private_numba.release_compiler()
        self.resume(self._was_stopped)


COMPILER = _Compiler()
atexit.register(COMPILER.stop)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=COMPILER.before_fork, after_in_parent=COMPILER.after_fork,
                        after_in_child=COMPILER.after_fork)  # fmt: skip


_GLOBALS: dict[int, dict[str, Any]] = {}  # with plain functions, by the id of a module's globals
_FUNCTIONS: dict[Any, Any] = {}


def interpreted(thing: Any) -> Any:
    """Return a kernel as a plain function, and any other object as it is."""
    thing = getattr(thing, "compiled", thing)
    body = getattr(thing, "py_func", None)
    if body is not None:
        return plain(body)
    if hasattr(thing, "bodies"):  # of a generic function
        if thing not in _FUNCTIONS:
            _FUNCTIONS[thing] = _dispatching(thing)
        return _FUNCTIONS[thing]
    return thing


def plain(body: Callable[..., Any]) -> Any:
    """Return a copy of a Python function whose globals are plain functions, not kernels."""
    if body not in _FUNCTIONS:
        found = FunctionType(
            body.__code__, _globals_of(body), body.__name__, body.__defaults__, body.__closure__
        )
        found.__kwdefaults__ = body.__kwdefaults__
        _FUNCTIONS[body] = found
    return _FUNCTIONS[body]


def _dispatching(generic: Any) -> Callable[..., Any]:
    found: dict[type, Any] = {}

    def call(first: Any, *rest: Any) -> Any:
        cls = type(first)
        if cls not in found:
            body = generic.dispatch(cls)
            is_python = isinstance(body, FunctionType)
            found[cls] = plain(body) if is_python else interpreted(body)
        return found[cls](first, *rest)

    return call


def _globals_of(body: Callable[..., Any]) -> dict[str, Any]:
    """Return the globals of a function, with plain functions in the place of kernels."""
    names = body.__globals__
    copy = _GLOBALS.get(id(names))
    if copy is None:
        copy = _GLOBALS[id(names)] = dict(names)  # stored first: modules refer to each other
        copy |= {name: interpreted(value) for name, value in names.items()}
    return copy
