"""A kernel interpreted: the same function, and all that it calls."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

_GLOBALS: dict[int, dict[str, Any]] = {}  # with plain functions, by the id of a module's globals
_FUNCTIONS: dict[Any, Any] = {}


def interpreted(thing: Any) -> Any:
    """Return a kernel as plain Python; what is no kernel as it is."""
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
    """Return a function of Python that calls no compiled kernel."""
    if body not in _FUNCTIONS:
        found = types.FunctionType(
            body.__code__, _around(body), body.__name__, body.__defaults__, body.__closure__
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


def _around(body: Callable[..., Any]) -> dict[str, Any]:
    """Return the globals of a module, with plain functions for kernels."""
    names = body.__globals__
    around = _GLOBALS.get(id(names))
    if around is None:
        around = _GLOBALS[id(names)] = dict(names)  # kept before it is filled: modules call others
        around |= {name: interpreted(value) for name, value in names.items()}
    return around
