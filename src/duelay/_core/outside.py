"""Rules from outside: the parts of a kernel beside our own sources.

A kernel is compiled for the types of its arguments. If one of them is a user's NamedTuple, the
kernel contains the functions registered for it, the functions that these call, and the values of
the globals that they read. `name_of` gives a digest of all of that. A process finds a kernel on
disk only if all of that is the same.
"""

from __future__ import annotations

import dis
import hashlib
import sys
from collections.abc import Callable, Iterable, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numba
import numpy as np

from duelay._core.sources import is_outside, sources_of_class

GENERICS: list[Callable[..., Any]] = []  # the functions that take rules from outside
_CONSTANTS = (bool, int, float, complex, str, bytes, np.generic, numba.types.Type, type(None))
_TOLD = tuple(  # types that are the same in every process
    kind
    for name in ("Number", "Boolean", "Array", "UnicodeType", "NoneType")
    if isinstance(kind := getattr(numba.types, name, None), type)
) + (type(getattr(numba.types, "npy_rng", None)), numba.types.Literal)


class NotKeptError(Exception):
    """Why a kernel cannot be found again."""


def are_ours(types: Iterable[Any]) -> bool:
    """Whether these types bring no code of a user's along."""
    try:
        return not any(is_outside(cls) for kind in types for cls in _classes(kind))
    except NotKeptError:
        return False


def name_of(types: Iterable[Any]) -> str | None:
    """Return a digest of the user's code that these types bring along; None if there is none."""
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
    """Yield the NamedTuples in a type of Numba's; refuse one that its name does not import."""
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
    elif not isinstance(kind, _TOLD):
        raise NotKeptError(f"{kind} is not a type of records, arrays and numbers")


def _identity(part: Any) -> str:
    """Return the name and the sources of a class or a function."""
    sources = sources_of_class(part)
    if sources is None or part.__module__ == "__main__" or sources.is_of_a_prompt:
        raise NotKeptError(f"{part.__qualname__} is of a prompt or a script, and not of a module")
    return f"{_title(part)} {sources.digest}"


def _reached(part: Any) -> Iterator[tuple[str, list[Any]]]:
    """Yield the parts of a class or a function: a text, and further classes and functions."""
    if isinstance(part, type):
        for function in GENERICS:
            body = function.dispatch(part)  # type: ignore[attr-defined]
            yield f"{function.__name__} {_title(body)}", [body] if is_outside(body) else []
        yield "", [cls for cls in part.__mro__ if cls is not part and is_outside(cls)]
        return
    steps = list(_steps(part.__code__))
    if any(step.opname == "IMPORT_NAME" for step in steps):
        raise NotKeptError(f"{_title(part)} has an import within")
    read = {step.argval for step in steps if step.opname == "LOAD_GLOBAL"}
    names = {step.argval for step in steps if isinstance(step.argval, str)}  # attributes, too
    cells = zip(part.__code__.co_freevars, part.__closure__ or (), strict=True)
    values = {name: part.__globals__[name] for name in read if name in part.__globals__}
    values |= {name: cell.cell_contents for name, cell in cells}
    for name, value in values.items():
        for path, inner in _through_modules(name, value, names, ()):
            yield from _told(f"{_title(part)} {path}", inner)


def _title(part: Any) -> str:
    return f"{part.__module__}.{part.__qualname__}"


def _steps(code: CodeType) -> Iterator[dis.Instruction]:
    """Yield the steps of a function, and of those within it."""
    yield from dis.get_instructions(code)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _steps(constant)


def _through_modules(
    path: str, value: Any, names: set[str], above: tuple[ModuleType, ...]
) -> Iterator[tuple[str, Any]]:
    """Yield a value; for a module, its members of these names."""
    if not isinstance(value, ModuleType):
        yield path, value
    elif value not in above and is_outside(value):
        for name in sorted(names & set(vars(value))):
            inner = vars(value)[name]
            yield from _through_modules(f"{path}.{name}", inner, names, (*above, value))


def _told(name: str, value: Any) -> Iterator[tuple[str, list[Any]]]:
    """Yield the value of a global, as a text or as a further class or function."""
    value = getattr(value, "py_func", value)
    if isinstance(value, _CONSTANTS):
        yield f"{name} = {value!r}", []
    elif isinstance(value, np.ndarray):
        content = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
        yield f"{name} = {value.dtype} {value.shape} {content}", []
    elif isinstance(value, tuple):
        yield f"{name} = {len(value)}", [type(value)] if is_outside(type(value)) else []
        for place, part in enumerate(value):
            yield from _told(f"{name}[{place}]", part)
    elif callable(value) and not is_outside(value):
        yield "", []  # ours, Python's or NumPy's
    elif isinstance(value, FunctionType) or (isinstance(value, type) and issubclass(value, tuple)):
        yield "", [value]
    else:
        raise NotKeptError(f"{name} is of {type(value).__name__}, and may differ another time")
