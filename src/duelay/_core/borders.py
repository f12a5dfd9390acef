"""Kernels that Python calls while somebody waits: they are interpreted until they are compiled.

Compiled and interpreted, a kernel does the same, with the same numbers. So the first calls are
interpreted. Meanwhile a thread compiles the kernel, or reads it from disk, and a later call finds
it done. A program that calls seldom never waits for the compiler. Once the interpreter has taken
`PATIENCE` seconds, each call waits a moment for the compiler before it is interpreted. A program
that calls often loses little by that, and no call takes long.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba import config

from duelay._core import numba_parts, outside
from duelay._core.cache import KernelCache
from duelay._core.compiling import IN_BACKGROUND, say_so
from duelay._core.interpreted import interpreted, plain

F = TypeVar("F", bound=Callable[..., Any])
PATIENCE = 2.0  # seconds of the interpreter's, in all
_PAUSE = 0.5  # seconds before the thread begins: a program that ends sooner need not wait for it
_MOMENT = 0.1  # seconds that a call then waits for the compiler
_MANY = 10  # such waits, after which we say that we compile
_MOST = 3000  # steps: a call of more is not interpreted, but waits for the compiler ...
_SOME = 300  # ... or of more than these, if the kernel is on disk: reading it takes as long
_FEW = 2000  # steps of a whole simulation: more are compiled


def border(kernel: F) -> F:
    """Let Python call a kernel before it is compiled."""
    return border_of(None)(kernel)


def border_of(steps: Callable[..., int] | None) -> Callable[[F], F]:
    """Let Python call a kernel before it is compiled, if its work is short.

    `steps` tells from the arguments how many rounds its loop goes; a round is as much work as a
    duel. With many rounds the call waits for the compiler.
    """

    def around(kernel: F) -> F:
        if config.DISABLE_JIT or not numba_parts.APART or not numba_parts.can_stop():
            return kernel
        return cast(F, _Border(kernel, steps))

    return around


def bind(kernel: Any, objects: tuple[Any, ...], *rest: Any) -> Callable[..., Any] | None:
    """Return a kernel with its first arguments given, quick to call; None until it is compiled.

    Types are looked at here, and not again. So nothing in `objects` may change its type: they are
    numbers, arrays, and tuples of these. `rest` are numbers of the types that calls will give.
    """
    return kernel.bind(objects, rest) if isinstance(kernel, _Border) else None


def is_worth_compiling(kernel: Any, args: tuple[Any, ...], steps: float) -> bool:
    """Whether to wait for a kernel to be compiled; `steps` is its work over all calls.

    What is compiled already, or kept on disk, is used. And a user's code is compiled: its author is
    told at once what is wrong with it.
    """
    if config.DISABLE_JIT or steps > _FEW or COMPILER.is_impatient:
        return True
    types = tuple(numba.typeof(argument) for argument in args)
    return _is_kept(kernel, types) or types in kernel.overloads or not outside.are_ours(types)


def _is_kept(kernel: Any, types: tuple[Any, ...]) -> bool:
    """Whether a kernel is on disk, for such arguments or for others."""
    kept = getattr(kernel, "_cache", None)
    return isinstance(kept, KernelCache) and kept.has_some(types)


def without_compiling(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of Python that calls kernels, and calls them interpreted."""

    def call(*args: Any) -> Any:
        start = time.thread_time()
        try:
            return plain(function)(*args)
        finally:
            COMPILER.spent += time.thread_time() - start

    return call


class _Border:
    """A kernel that may not be compiled yet."""

    def __init__(self, compiled: Any, steps: Callable[..., int] | None) -> None:
        functools.update_wrapper(self, compiled.py_func)
        self.compiled = compiled
        self._steps = steps
        self._ready: set[Any] = set()  # kinds of arguments that it is compiled for
        self._failed: set[Any] = set()
        numba_parts.as_callee(self, compiled)

    def __call__(self, *args: Any) -> Any:
        kind = _kind(args)
        if kind in self._ready:
            return self.compiled(*args)
        return self._meanwhile(kind, args)

    def _meanwhile(self, kind: Any, args: tuple[Any, ...]) -> Any:
        types = tuple(numba.typeof(argument) for argument in args)
        steps = 0 if self._steps is None else self._steps(*args)
        is_long = steps > _MOST or (steps > _SOME and _is_kept(self.compiled, types))
        is_known = self._is_known(kind, types)
        if not is_known and not is_long and not COMPILER.is_stopped:
            COMPILER.want(self, kind, types)
            if COMPILER.is_impatient:
                COMPILER.wait_a_moment(self, types)
                is_known = self._is_known(kind, types)
        if is_known or is_long or COMPILER.is_stopped:
            result = self.compiled(*args)
            self._ready.add(kind)
            return result
        start = time.thread_time()
        try:
            return interpreted(self)(*args)
        finally:
            COMPILER.spent += time.thread_time() - start

    def _is_known(self, kind: Any, types: tuple[Any, ...]) -> bool:
        """Whether there is nothing to compile, or a user is to be told at once what is wrong."""
        is_done = types in self.compiled.overloads or kind in self._failed
        return is_done or not outside.are_ours(types)

    def bind(self, objects: tuple[Any, ...], rest: tuple[Any, ...]) -> Callable[..., Any] | None:
        """`bind`, of this kernel."""
        args = (*objects, *rest)
        if _kind(args) not in self._ready:
            return None
        if not _is_lasting(args):
            return functools.partial(self, *objects)
        point = numba_parts.entry_point(self.compiled, tuple(map(numba.typeof, args)))
        return None if point is None else functools.partial(point, *objects)

    def compile(self, kind: Any, types: tuple[Any, ...]) -> None:
        """Compile it for such arguments, or read it from disk."""
        try:
            self.compiled.compile(types)
        except numba_parts.StoppedError:
            raise
        except Exception:
            self._failed.add(kind)  # who calls it next is told
        else:
            self._ready.add(kind)


def _kind(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return what tells most kinds of arguments apart, quickly: a rule, and what a ledger assumes.

    Where that is not enough, the call that comes first compiles, and waits.
    """
    return tuple([(argument.__class__, getattr(argument, "assumed", None).__class__)
                  for argument in args[:2]])  # fmt: skip


_LASTING = (np.ndarray, np.random.Generator, bool, int, float, str, type(None))


def _is_lasting(thing: Any) -> bool:
    """Whether the type that Numba has for it can never change."""
    if isinstance(thing, tuple):
        return all(map(_is_lasting, thing))
    return type(thing) in _LASTING or isinstance(thing, np.generic)


class _Compiler:
    """A thread that compiles what is wanted, one after the other, and ends when nothing is."""

    def __init__(self) -> None:
        self.spent = 0.0  # seconds of the interpreter's
        self._wanted: dict[Any, tuple[_Border, Any, Any]] = {}
        self._lock = threading.Condition()  # notified when a kernel is done
        self._moments = 0  # how often callers have waited a moment
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()

    @property
    def is_impatient(self) -> bool:
        """Whether the interpreter has taken so long that callers wait for the compiler."""
        return self.spent > PATIENCE or self.is_stopped

    @property
    def is_stopped(self) -> bool:
        """Whether nothing is compiled unless the caller does it."""
        return self._stop.is_set()

    def want(self, border: _Border, kind: Any, types: tuple[Any, ...]) -> None:
        """Compile a kernel for such arguments, soon."""
        with self._lock:
            if (border, types) in self._wanted:
                return
            self._wanted[border, types] = (border, kind, types)
            self._start()

    def wait_a_moment(self, border: _Border, types: tuple[Any, ...]) -> None:
        """Wait until this kernel is done, but not for long."""
        with self._lock:
            self._lock.wait_for(lambda: (border, types) not in self._wanted, _MOMENT)
            self._moments += 1
            is_many = self._moments == _MANY and (border, types) in self._wanted
        if is_many:
            say_so()

    def _start(self) -> None:
        if self._thread is None and not self._stop.is_set():
            self._thread = threading.Thread(target=self._work, name=IN_BACKGROUND, daemon=True)
            self._thread.start()

    def _work(self) -> None:
        with contextlib.suppress(numba_parts.StoppedError), numba_parts.stopping(self._stop):
            if not self.is_impatient:
                self._stop.wait(_PAUSE)
            while not self._stop.is_set():
                with self._lock:
                    if not self._wanted:
                        self._thread = None
                        return
                    key = next(iter(self._wanted))
                    border, kind, types = self._wanted[key]
                border.compile(kind, types)
                with self._lock:
                    self._wanted.pop(key, None)
                    self._lock.notify_all()

    def stop(self) -> None:
        """End the thread after the kernel that it is at; what is wanted stays so."""
        self._stop.set()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()
            self._thread = None

    def go_on(self) -> None:
        """Go on after a stop, or after a fork in either process."""
        self._lock = threading.Condition()
        self._stop = threading.Event()
        self._thread = None
        with self._lock:
            if self._wanted:
                self._start()

    def wait(self) -> None:
        """Wait until nothing is wanted."""
        thread = self._thread
        if thread is not None:
            thread.join()


COMPILER = _Compiler()


def _before_fork() -> None:
    """Let no thread compile: a child could never compile if one of its parent's had the lock."""
    COMPILER.stop()
    numba_parts.hold_compiler()


def _forked() -> None:
    numba_parts.let_go_of_compiler()
    COMPILER.go_on()


atexit.register(COMPILER.stop)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_forked, after_in_child=_forked)
