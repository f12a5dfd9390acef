"""A digest of the user's code that a compiled kernel contains.

A kernel is compiled for the types of its arguments. If one of them is a user's NamedTuple, the
kernel contains the functions registered for it, the functions that these call, and the values of
the globals that they read. A process finds the kernel on disk only if all of these are the same.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterable, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numba
import numpy as np

from duelay._core.sources import is_outside, sources_of_class

GENERICS: list[Callable[..., Any]] = []  # the functions with a body for each type of rule
_CONSTANTS = (bool, int, float, complex, str, bytes, np.generic, numba.types.Type, type(None))
_SAME_EVERYWHERE = (  # types that are the same in every process
    numba.types.Number, numba.types.Boolean, numba.types.Array, numba.types.UnicodeType,
    numba.types.NoneType, numba.types.Literal, type(getattr(numba.types, "npy_rng", None)),
)  # fmt: skip


class NotKeptError(Exception):
    """A kernel that contains this code cannot be found again by another process."""


def are_ours(types: Iterable[Any]) -> bool:
    """Return whether kernels for these types contain no code of the user."""
    try:
        return not any(is_outside(cls) for kind in types for cls in _classes(kind))
    except NotKeptError:
        return False


def name_of(types: Iterable[Any]) -> str | None:
    """Return a digest of the user's code in a kernel for these types, or None if there is none."""
    waiting: list[Any] = [cls for kind in types for cls in _classes(kind) if is_outside(cls)]
    if not waiting:
        return None
    seen: list[Any] = []
    texts: set[str] = set()
    while waiting:
        part = waiting.pop()
        if not any(part is known for known in seen):
            seen.append(part)
            texts.add(_identity(part))
            for text, more in _reached(part):
                texts.add(text)
                waiting += more
    return hashlib.sha256("\n".join(sorted(texts)).encode()).hexdigest()


def _classes(kind: Any) -> Iterator[type]:
    """Yield the NamedTuples in a type; raise NotKeptError for one that no import finds."""
    if (cls := getattr(kind, "instance_class", None)) is not None:
        found: Any = sys.modules.get(cls.__module__)
        for step in cls.__qualname__.split("."):
            found = getattr(found, step, None)
        if found is not cls:
            raise NotKeptError(f"{_title(cls)} is not what an import of that name gives")
        yield cls
    if isinstance(kind, numba.types.BaseTuple):
        for part in kind:
            yield from _classes(part)
    elif not isinstance(kind, _SAME_EVERYWHERE):
        raise NotKeptError(f"{kind} is not a type of records, arrays and numbers")


def _identity(part: Any) -> str:
    """Return the name and the digest of the sources of a class or a function."""
    sources = sources_of_class(part)
    if sources is None or part.__module__ == "__main__" or sources.is_of_a_prompt:
        raise NotKeptError(f"{part.__qualname__} is of a prompt or a script, and not of a module")
    return f"{_title(part)} {sources.digest}"


def _reached(part: Any) -> Iterator[tuple[str, list[Any]]]:
    """Yield what a class or a function depends on: a text, and further classes and functions."""
    if isinstance(part, type):
        for function in GENERICS:
            body = function.dispatch(part)  # type: ignore[attr-defined]
            yield f"{function.__name__} {_title(body)}", [body] if is_outside(body) else []
        yield "", [cls for cls in part.__mro__ if cls is not part and is_outside(cls)]
        return
    names = _names(part.__code__)
    cells = zip(part.__code__.co_freevars, part.__closure__ or (), strict=True)
    values = {name: part.__globals__[name] for name in names & part.__globals__.keys()}
    values |= {name: cell.cell_contents for name, cell in cells}
    for name, value in values.items():
        for path, inner in _through_modules(name, value, names, ()):
            yield from _describe(f"{_title(part)} {path}", inner)


def _title(part: Any) -> str:
    return f"{part.__module__}.{part.__qualname__}"


def _names(code: CodeType) -> set[str]:
    """Return the globals and attributes that a function, or one within it, reads by name."""
    within = (_names(part) for part in code.co_consts if isinstance(part, CodeType))
    return set(code.co_names).union(*within)


def _through_modules(
    path: str, value: Any, names: set[str], above: tuple[ModuleType, ...]
) -> Iterator[tuple[str, Any]]:
    """Yield a value, or the members of a module with these names."""
    if not isinstance(value, ModuleType):
        yield path, value
    elif value not in above and is_outside(value):
        for name in sorted(names & set(vars(value))):
            inner = vars(value)[name]
            yield from _through_modules(f"{path}.{name}", inner, names, (*above, value))


def _describe(name: str, value: Any) -> Iterator[tuple[str, list[Any]]]:
    """Yield the value of a global as a text, or as a further class or function."""
    value = getattr(value, "py_func", value)
    if isinstance(value, _CONSTANTS):
        yield f"{name} = {value!r}", []
    elif isinstance(value, np.ndarray):
        content = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
        yield f"{name} = {value.dtype} {value.shape} {content}", []
    elif isinstance(value, tuple):
        yield f"{name} = {len(value)}", [type(value)] if is_outside(type(value)) else []
        for place, part in enumerate(value):
            yield from _describe(f"{name}[{place}]", part)
    elif callable(value) and not is_outside(value):
        yield "", []  # ours, Python's or NumPy's
    elif isinstance(value, FunctionType) or (isinstance(value, type) and issubclass(value, tuple)):
        yield "", [value]
    else:
        raise NotKeptError(f"{name} is of {type(value).__name__}, and may differ another time")
