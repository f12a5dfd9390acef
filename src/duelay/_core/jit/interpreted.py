"""Kernels as plain Python functions that call no compiled code."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

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
        found = types.FunctionType(
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
            is_python = isinstance(body, types.FunctionType)
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
