"""Explain errors of a user's rule: it does not compile, or does not choose two arms."""

from __future__ import annotations

import dis
import inspect
import numbers
import re
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType
from typing import Any, NoReturn

import numba
import numpy as np

from duelay._core import checks
from duelay._core.jit import user_kernels
from duelay._core.jit.private_numba import COMPILER_ERRORS
from duelay._core.sources import is_outside
from duelay.errors import InvalidTypeError, InvalidValueError
from duelay.ledger.ledger import Ledger
from duelay.policies.turn import no_rule, select

# Numba raises an AttributeError where a module lacks a function that a kernel calls.
ERRORS = (*COMPILER_ERRORS, AttributeError) if COMPILER_ERRORS else ()
PAIR_ERRORS = (IndexError, TypeError, ValueError)  # of a choice that is no pair of arms
_NO_NAME = re.compile(r"NameError: (?:global )?name '(\w+)' is not defined")
_NO_MEMBER = re.compile(r"module '([\w.]+)' has no attribute '(\w+)'")
_NO_TYPE = "Cannot determine Numba type"
_NO_ARM = "select must return two arms, whole numbers from 0 to K - 1"  # said by `pick`
_TAKE_IT = {("turn.py", "pick"), ("ledger.py", "record")}  # functions with the pair, as i and j
_KINDS = (numbers.Number, np.generic, tuple, str, type(None))  # that compile, beside arrays
_PACKAGES = (Path(__file__).resolve().parents[1], Path(numba.__file__).resolve().parent)
_LINE = re.compile(r'File "([^"]+)", line (\d+)|^ *During: .* at (.+) \((\d+)\)$', re.MULTILINE)
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_NO_FIELD = re.compile(r"Unknown attribute '(\w+)' of type (\w[^(\n]*)\(")
_NO_KERNEL = re.compile(r"Untyped global name '(\w+)':.*<class 'function'>")
_RETURN = re.compile(r"Return of: .*, type '(.+)', location: *\n *File \"([^\"]+)\", line (\d+)")
_NO_PAIR = re.compile(r"expected \w*Tuple\(.*\), got None")  # of a branch without a return
_RULES = (
    "it must be a NamedTuple of numbers and arrays, whose functions make no new arrays, change no "
    "number in it, return whole numbers and call nothing but kernels"
)
_DRAWS = re.compile(r"\b(integers|choice|permuted|shuffle)\b")  # of a Generator's
_ALLOCATES = re.compile(r"NRT required but not enabled|Only accept returning of array passed")
_NO_DRAW = "of a Generator's methods not all are compiled: int(rng.random() * n) draws one of n"
_NOT_FOUR = "select must take four arguments, as in: def choose(rule, ledger, t, rng)"
_NOT_TWO = "select must return two arms, each a whole number, as in: return first, second"
_UNLIKE = "a function must return the same kind of thing on every line that returns"
_NO_ROOM = (
    "no new array or list can be made: keep one in a field of the rule, which rule() makes, and "
    "write into it"
)
_NOT_WHOLE = "select must return two arms, each a whole number: int(...) makes one of a float"


def refuse(rule: Any, error: Exception) -> NoReturn:
    """Raise why a rule cannot be compiled, as far as can be told; Numba's own words are its cause.

    An error that is not the compiler's is raised as it is. Interpreted, `select` itself says that
    no rule has this name.
    """
    name, body = type(rule).__name__, select.dispatch(type(rule))
    if body is select.dispatch(object):
        raise InvalidTypeError(no_rule(rule)) from error
    found = _what(rule, body, _COLOURS.sub("", str(error)))
    if found is None and isinstance(error, AttributeError):
        raise error
    where, why = found or ("", _RULES)
    place = f" ({where})" if where else ""
    if why not in (_NOT_FOUR, _NOT_TWO, _NOT_WHOLE) and " has no field " not in why:
        # those are as wrong interpreted
        why += "; set NUMBA_DISABLE_JIT=1 to run it interpreted"
    raise InvalidTypeError(f"the rule {name} cannot be compiled{place}: {why}") from error


def refuse_pair(rule: Any, n_arms: int, error: Exception) -> None:
    """Raise what is wrong with the pair that a rule has chosen, if that is the error.

    Interpreted, a choice that is no pair fails where it is unpacked, or used as an index.
    """
    if str(error).startswith(_NO_TYPE) and _odd_field(rule):
        refuse(rule, error)  # Numba's error is a ValueError where it looks at arguments
    pair, is_unpacked = _pair_of(error)
    if str(error) == _NO_ARM:
        what = "has chosen an arm that is not there"
    elif not is_unpacked or _NO_PAIR.fullmatch(str(error)):
        what = "has not chosen two arms"
    elif pair is not None and not all(isinstance(arm, numbers.Integral) for arm in pair):
        what = "has chosen an arm that is no whole number"
    else:
        return
    got = "" if pair is None else f", got {pair[0]} and {pair[1]}"
    raise InvalidValueError(
        f"the rule {type(rule).__name__} {what} ({_returns(select.dispatch(type(rule)))}): select "
        f"must return two arms, whole numbers from 0 to {n_arms - 1}{got}"
    ) from error


def _pair_of(error: Exception) -> tuple[tuple[Any, Any] | None, bool]:
    """Return the pair that an interpreted turn was about, and False if it could not be unpacked."""
    pair, is_unpacked = None, True
    for frame, _ in traceback.walk_tb(error.__traceback__):
        code = frame.f_code
        if (Path(code.co_filename).name, code.co_name) in _TAKE_IT:
            arms = frame.f_locals
            pair = (arms["i"], arms["j"]) if "j" in arms else None
            is_unpacked = "j" in arms
        else:
            is_unpacked = True  # it has gone wrong elsewhere
    return pair, is_unpacked


def _what(rule: Any, body: Any, words: str) -> tuple[str, str] | None:
    """Return the line of the user's code that is wrong, and why; None if neither is known."""
    cls = type(rule)
    if is_outside(body) and not _takes_four(body):
        code = body.__code__
        return f"{Path(code.co_filename).name}, line {code.co_firstlineno}", _NOT_FOUR
    if (lacks := _NO_NAME.search(words)) is not None:
        why = f"there is no {lacks[1]}: define or import it above, or mend its name"
        return _line_with(cls, lacks[1], "GLOBAL"), why
    if (lacks := _NO_MEMBER.search(words)) is not None:
        where = _line_with(cls, lacks[2], "ATTR", "METHOD")
        return (where, f"{lacks[1]} has no {lacks[2]}") if where else None
    if (lacks := _NO_FIELD.search(words)) is not None:
        return _line_in(words), _no_field(cls, lacks[2], lacks[1])
    if (plain := _NO_KERNEL.search(words)) is not None:
        return _line_in(words), f"{plain[1]} is no kernel: write @duelay.rules.kernel above it"
    if returns := _RETURN.findall(words):
        return _unlike(body, returns)
    if ("nopython" in words or words.startswith(_NO_TYPE)) and (field := _odd_field(rule)):
        return _line_in(words), field
    if where := _line_in(words):
        if _DRAWS.search(words):
            return where, _NO_DRAW
        return where, _NO_ROOM if _ALLOCATES.search(words) else _RULES
    if _LINE.search(words) is None or "pyobject" in words or not is_outside(body):
        return None  # its arguments cannot be compiled
    # The rule's own functions compile, and their caller does not: what they return is wrong.
    is_no_pair = "exhaust iter" in words or "returning of array" in words
    return _returns(body), _NOT_TWO if is_no_pair else _NOT_WHOLE


def _unlike(body: Any, returns: list[tuple[str, str, str]]) -> tuple[str, str]:
    """Return the lines whose returns are of another kind than the others, and what to do."""
    own = {line for *_, line in body.__code__.co_lines()}
    if all(int(line) in own for _, _, line in returns):  # those of `select`
        returns, why = [r for r in returns if "Tuple(" not in r[0]] or returns, _NOT_TWO
    else:
        why = _UNLIKE
    lines = " or ".join(sorted({line for _, _, line in returns}, key=int))
    return f"{Path(returns[0][1]).name}, line {lines}", why


def _no_field(cls: type, kind: str, name: str) -> str:
    """Say that something of a kind, as Numba calls it, has no attribute of this name."""
    fields = {"Ledger": Ledger._fields, cls.__name__: getattr(cls, "_fields", ())}
    if kind in fields:
        return f"{kind} has no field {name}{checks.nearest(name, fields[kind])}"
    return f"{kind} has no {name}, or none that can be compiled"


def _odd_field(rule: Any) -> str:
    """Say which field of a rule is nothing that can be compiled; empty if all can be."""
    for name in getattr(rule, "_fields", ()):
        value = getattr(rule, name)
        is_array = isinstance(value, np.ndarray) and not value.dtype.hasobject
        if not is_array and not isinstance(value, _KINDS):
            return (
                f"its field {name} is a {type(value).__name__}, and must be a number, an array of "
                f"numbers or a NamedTuple of these"
            )
    return ""


def _takes_four(body: Any) -> bool:
    try:
        inspect.signature(body).bind(*range(4))
    except TypeError:
        return False
    return True


def _line_in(words: str) -> str:
    """Return the innermost line of the user's code that Numba's words name."""
    for file, its_line, path, line in _LINE.findall(words):  # the innermost comes first
        if _is_theirs(file or path):
            return f"{Path(file or path).name}, line {its_line or line}"
    return ""


def _is_theirs(path: str) -> bool:
    """Whether a file is neither one of this package nor one of Numba's."""
    whole = Path(path).resolve()
    return not any(whole.is_relative_to(folder) for folder in _PACKAGES)


def _line_with(cls: type, name: str, *kinds: str) -> str:
    """Return the first line of the user's functions that reads a name; empty if none does."""
    for function in _functions(cls):
        for step in dis.get_instructions(function):
            if step.argval == name and step.opname.endswith(kinds):
                return _place(function, step)
    return ""


def _functions(cls: type) -> Iterator[FunctionType]:
    """Yield the user's functions that are compiled for a rule, the registered ones first."""
    waiting: list[Any] = [generic.dispatch(cls) for generic in user_kernels.GENERICS]  # type: ignore[attr-defined]
    seen: list[Any] = []
    while waiting:
        part = waiting.pop(0)
        part = getattr(part, "py_func", part)
        if isinstance(part, FunctionType) and is_outside(part) and part not in seen:
            seen.append(part)
            yield part
            names = part.__code__.co_names
            waiting += [part.__globals__[name] for name in names if name in part.__globals__]


def _place(function: Any, step: dis.Instruction) -> str:
    line = None if step.positions is None else step.positions.lineno
    return f"{Path(function.__code__.co_filename).name}, line {line}"


def _returns(body: Any) -> str:
    """Return the lines on which a function returns."""
    steps = [step for step in dis.get_instructions(body) if step.opname.startswith("RETURN_")]
    places = list(dict.fromkeys(_place(body, step) for step in steps))
    return places[0] + "".join(f" or {place.rpartition(' ')[2]}" for place in places[1:])
