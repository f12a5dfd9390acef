"""Records, which are dataclasses or NamedTuples, of the plain data that JSON has."""

from __future__ import annotations

import functools
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from typing import Any, TypeVar, cast

R = TypeVar("R")


def read_record(kind: type[R], found: Mapping[str, Any]) -> R:
    """Return a record, and the records within it; fields of later versions are left out."""
    readers = _readers(cast(Any, kind))
    return kind(**{name: read(found[name]) for name, read in readers.items() if name in found})


@functools.cache
def _readers(kind: Any) -> dict[str, Callable[[Any], Any]]:
    """Return what reads each field."""
    return {name: _reader(hint) or _as_it_is for name, hint in typing.get_type_hints(kind).items()}


def _as_it_is(value: Any) -> Any:
    return value


def _reader(hint: Any) -> Callable[[Any], Any] | None:
    """Return what reads values of a type; None for plain data."""
    origin, inner = typing.get_origin(hint), [_reader(part) for part in typing.get_args(hint)]
    if is_dataclass(hint) or hasattr(hint, "_fields"):
        return functools.partial(read_record, hint)
    if origin is tuple:
        read = inner[0] or _as_it_is
        return lambda values: tuple(map(read, values))
    read_inner = next(filter(None, inner), None)
    if read_inner is None:
        return None
    if origin is list:
        return lambda values: [read_inner(value) for value in values]
    assert origin in (types.UnionType, typing.Union)
    return lambda value: None if value is None else read_inner(value)
