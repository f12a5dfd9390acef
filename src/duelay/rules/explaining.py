"""What is wrong with a user's rule, in a sentence: it does not compile, or chooses no two arms."""

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

from duelay._core import outside
from duelay._core.numba_parts import COMPILER_ERRORS
from duelay._core.sources import is_outside
from duelay.rules.turn import no_rule, select

# Numba raises an AttributeError where a module lacks a function that a kernel calls.
ERRORS = (*COMPILER_ERRORS, AttributeError) if COMPILER_ERRORS else ()
PAIR_ERRORS = (IndexError, TypeError, ValueError)  # of a choice that is no pair of arms
_NO_NAME = re.compile(r"NameError: (?:global )?name '(\w+)' is not defined")
_NO_MEMBER = re.compile(r"module '([\w.]+)' has no attribute '(\w+)'")
_NO_ARM = "select must return two arms, whole numbers from 0 to K - 1"  # said by `pick`
_TAKE_IT = {("turn.py", "pick"), ("ledger.py", "record")}  # functions with the pair, as i and j
_PACKAGES = (Path(__file__).resolve().parents[1], Path(numba.__file__).resolve().parent)
_LINE = re.compile(r'File "([^"]+)", line (\d+)')
_RULES = (
    "it must be a NamedTuple of numbers and arrays, whose functions make no new arrays, change no "
    "number in it, return whole numbers and call nothing but kernels"
)
_DRAWS = re.compile(r"\b(integers|choice|permuted|shuffle)\b")  # of a Generator's
_NO_DRAW = "of a Generator's methods not all are compiled: int(rng.random() * n) draws one of n"
_NOT_FOUR = "select must take four arguments, as in: def choose(rule, ledger, t, rng)"
_NOT_TWO = "select must return two arms, each a whole number, as in: return first, second"
_NOT_WHOLE = "select must return two arms, each a whole number: int(...) makes one of a float"


def refuse(rule: Any, error: Exception) -> NoReturn:
    """Raise why a rule cannot be compiled, as far as can be told; Numba's own words are its cause.

    An error that is not the compiler's is raised as it is. Interpreted, `select` itself says that
    no rule has this name.
    """
    name, body = type(rule).__name__, select.dispatch(type(rule))
    if body is select.dispatch(object):
        raise TypeError(no_rule(rule)) from error
    found = _what(type(rule), body, str(error))
    if found is None and isinstance(error, AttributeError):
        raise error
    where, why = found or ("", _RULES)
    place = f" ({where})" if where else ""
    if why not in (_NOT_FOUR, _NOT_TWO, _NOT_WHOLE):  # these are as wrong interpreted
        why += "; set NUMBA_DISABLE_JIT=1 to run it interpreted"
    raise TypeError(f"the rule {name} cannot be compiled{place}: {why}") from error


def refuse_pair(rule: Any, n_arms: int, error: Exception) -> None:
    """Raise what is wrong with the pair that a rule has chosen, if that is the error.

    Interpreted, a choice that is no pair fails where it is unpacked, or used as an index.
    """
    pair, is_unpacked = _pair_of(error)
    if str(error) == _NO_ARM:
        what = "has chosen an arm that is not there"
    elif not is_unpacked:
        what = "has not chosen two arms"
    elif pair is not None and not all(isinstance(arm, numbers.Integral) for arm in pair):
        what = "has chosen an arm that is no whole number"
    else:
        return
    got = "" if pair is None else f", got {pair[0]} and {pair[1]}"
    raise ValueError(
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


def _what(cls: type, body: Any, words: str) -> tuple[str, str] | None:
    """Return the line of the user's code that is wrong, and why; None if neither is known."""
    if is_outside(body) and not _takes_four(body):
        code = body.__code__
        return f"{Path(code.co_filename).name}, line {code.co_firstlineno}", _NOT_FOUR
    if (lacks := _NO_NAME.search(words)) is not None:
        why = f"there is no {lacks[1]}: define or import it above, or mend its name"
        return _line_with(cls, lacks[1], "GLOBAL"), why
    if (lacks := _NO_MEMBER.search(words)) is not None:
        where = _line_with(cls, lacks[2], "ATTR", "METHOD")
        return (where, f"{lacks[1]} has no {lacks[2]}") if where else None
    if where := _line_in(words):
        return where, _NO_DRAW if _DRAWS.search(words) else _RULES
    if _LINE.search(words) is None or "pyobject" in words or not is_outside(body):
        return None  # its arguments cannot be compiled
    # The rule's own functions compile, and their caller does not: what they return is wrong.
    is_no_pair = "exhaust iter" in words or "returning of array" in words
    return _returns(body), _NOT_TWO if is_no_pair else _NOT_WHOLE


def _takes_four(body: Any) -> bool:
    try:
        inspect.signature(body).bind(*range(4))
    except TypeError:
        return False
    return True


def _line_in(words: str) -> str:
    """Return the innermost line of the user's code that Numba's words name."""
    theirs = [(path, line) for path, line in _LINE.findall(words) if _is_theirs(path)]
    return f"{Path(theirs[-1][0]).name}, line {theirs[-1][1]}" if theirs else ""


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
    waiting: list[Any] = [generic.dispatch(cls) for generic in outside.GENERICS]  # type: ignore[attr-defined]
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
