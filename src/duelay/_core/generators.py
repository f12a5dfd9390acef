"""A Generator by its addresses, for kernels that Python calls often.

Numba takes a Generator apart at every call: it looks up its state and its functions, which takes
longer than to choose a duel. Their addresses do not change while the Generator lives. So a caller
that keeps a Generator looks them up once.
"""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import numpy as np
from numba import config
from numba.extending import overload

from duelay._core import numba_parts


class _Addresses(NamedTuple):
    own: int  # of the Generator, as an object of Python's
    parent: int  # of its bit generator
    state_address: int  # and so on: the interface to this, in C
    state: int
    next_uint64: int
    next_uint32: int
    next_double: int
    bit_generator: int


class ByAddress(_Addresses):
    """Where a Generator is in memory; and the Generator, which lives as long as this does."""

    generator: np.random.Generator
    bits: np.random.BitGenerator


def by_address(rng: np.random.Generator) -> Any:
    """Return a Generator as `generator_at` takes it: by its addresses, or else as it is."""
    if not numba_parts.CAN_ADDRESS:
        return rng
    bits = rng.bit_generator
    found: Any = bits.ctypes
    functions = [found.next_uint64, found.next_uint32, found.next_double]
    starts = [ctypes.cast(function, ctypes.c_void_p).value for function in functions]
    interface = [found.state_address, found.state.value, *starts, found.bit_generator.value]
    place = ByAddress._make([id(rng), id(bits), *interface])
    place.generator, place.bits = rng, bits
    return place


def generator_at(place: Any) -> Any:
    """Return, in a kernel, the Generator that `by_address` was given."""
    return place.generator if isinstance(place, ByAddress) else place


# Called by Numba with a type.
def _body(place: Any) -> Any:
    if not numba_parts.CAN_ADDRESS:
        return lambda place: place
    if getattr(place, "instance_class", None) is ByAddress:
        return lambda place: numba_parts.generator_of(place)
    return None  # without the runtime, a reference to a Generator would never be released


if not config.DISABLE_JIT:
    _OPTIONS = numba_parts.WITHOUT_RUNTIME if numba_parts.CAN_ADDRESS else {}
    overload(generator_at, strict=False, jit_options=_OPTIONS)(_body)
