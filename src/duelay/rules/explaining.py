"""Why a rule of one's own cannot be compiled, in a sentence: where, and what is wrong."""

from __future__ import annotations

import dis
import re
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType
from typing import Any, NoReturn

from duelay._core import outside
from duelay._core.numba_parts import COMPILER_ERRORS
from duelay._core.sources import is_outside
from duelay.rules.turn import select

# Numba lets the last one out where a module lacks what a kernel calls.
ERRORS = (*COMPILER_ERRORS, AttributeError) if COMPILER_ERRORS else ()
_NO_NAME = re.compile(r"NameError: (?:global )?name '(\w+)' is not defined")
_NO_MEMBER = re.compile(r"module '([\w.]+)' has no attribute '(\w+)'")
_LINE = re.compile(r'File "([^"]+)", line (\d+)')
_RULES = (
    "it must be a NamedTuple of numbers and arrays, whose functions make no new arrays, change no "
    "number in it, return whole numbers and call nothing but kernels"
)


def refuse(rule: Any, error: Exception) -> NoReturn:
    """Raise why a rule cannot be compiled, as far as can be told; Numba's own words are its cause.

    What is no error of the compiler's is raised as it is. Interpreted, `select` says the first of
    these itself.
    """
    name, body = type(rule).__name__, select.dispatch(type(rule))
    if body is select.dispatch(object):
        raise TypeError(f"no rule is called {name}: register select for it") from error
    found = _what(type(rule), body, str(error))
    if found is None and isinstance(error, AttributeError):
        raise error
    where, why = found or ("", _RULES)
    place = f" ({where})" if where else ""
    raise TypeError(
        f"the rule {name} cannot be compiled{place}: {why}; set NUMBA_DISABLE_JIT=1 to run it "
        f"interpreted"
    ) from error


def _what(cls: type, body: Any, words: str) -> tuple[str, str] | None:
    """Return the line of the user's code that is wrong, and why; None if neither is known."""
    if (lacks := _NO_NAME.search(words)) is not None:
        why = f"there is no {lacks[1]}: define or import it above, or mend its name"
        return _line_with(cls, lacks[1], "GLOBAL"), why
    if (lacks := _NO_MEMBER.search(words)) is not None:
        where = _line_with(cls, lacks[2], "ATTR", "METHOD")
        return (where, f"{lacks[1]} has no {lacks[2]}") if where else None
    if where := _line_in(words):
        return where, _RULES
    if _LINE.search(words) is None or "pyobject" in words or not is_outside(body):
        return None  # what it is called with cannot be compiled
    # Its own functions can be, and who calls it cannot: that is by what it returns.
    returns = [step for step in dis.get_instructions(body) if step.opname.startswith("RETURN_")]
    why = "select must return two arms, each a whole number: int(...) makes one of a float"
    return _place(body, returns[-1]), why


def _line_in(words: str) -> str:
    """Return the innermost line of the user's code that Numba's words name."""
    ours = Path(__file__).parents[1].name
    places = _LINE.findall(words)
    theirs = [(path, line) for path, line in places if {ours, "numba"}.isdisjoint(Path(path).parts)]
    return f"{Path(theirs[-1][0]).name}, line {theirs[-1][1]}" if theirs else ""


def _line_with(cls: type, name: str, *kinds: str) -> str:
    """Return the first line of the user's functions that reads a name; empty if none does."""
    for function in _functions(cls):
        for step in dis.get_instructions(function):
            if step.argval == name and step.opname.endswith(kinds):
                return _place(function, step)
    return ""


def _functions(cls: type) -> Iterator[FunctionType]:
    """Yield the user's functions that are compiled for a rule, those first that are registered."""
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
