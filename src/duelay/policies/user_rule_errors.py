"""Explain errors of a user's rule: it does not compile, or does not choose two arms."""

from __future__ import annotations

import dis
import numbers
import re
import traceback
from pathlib import Path
from typing import Any, NoReturn

import numba

from duelay._core.jit.private_numba import COMPILER_ERRORS
from duelay.errors import InvalidTypeError, InvalidValueError
from duelay.policies.turn import no_rule, select

# Numba raises an AttributeError where a module lacks a function that a kernel calls.
ERRORS = (*COMPILER_ERRORS, AttributeError) if COMPILER_ERRORS else ()
PAIR_ERRORS = (IndexError, TypeError, ValueError)  # of a choice that is no pair of arms
_NO_ARM = "select must return two arms, whole numbers from 0 to K - 1"  # said by `pick`
_NO_PAIR = re.compile(r"expected \w*Tuple\(.*\), got None")  # of a branch without a return
_TAKE_PAIR = {("turn.py", "pick"), ("ledger.py", "record")}  # functions with the pair, as i and j
_NUMBA = Path(numba.__file__).resolve().parent
_PACKAGES = (Path(__file__).resolve().parents[1], _NUMBA)
_LINE = re.compile(r'File "([^"]+)", line (\d+)|^ *During: .* at (.+) \((\d+)\)$', re.MULTILINE)
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_RULES = (
    "select(rule, ledger, t, rng) must return two arms, whole numbers; the rule must be a "
    "NamedTuple of numbers and arrays; its functions may not make arrays or lists or change a "
    "number of the rule, and may call only functions with @duelay.rules.kernel; set "
    "NUMBA_DISABLE_JIT=1 to run it interpreted"
)


def refuse(rule: Any, error: Exception) -> NoReturn:
    """Raise an error with the user's line, Numba's words and what a rule must be.

    An error that is not the compiler's is raised as it is.
    """
    body = select.dispatch(type(rule))
    if body is select.dispatch(object):
        raise InvalidTypeError(no_rule(rule)) from error
    if isinstance(error, AttributeError) and not _is_numbas(error):
        raise error
    words = _COLOURS.sub("", str(error))
    lines = [line.strip() for line in words.splitlines()]
    what = next((line for line in lines if line and not line.startswith("Failed in ")), "")
    raise InvalidTypeError(
        f"the rule {type(rule).__name__} cannot be compiled ({_line_in(words) or _returns(body)}): "
        f"{what.rstrip(':')}; {_RULES}"
    ) from error


def refuse_pair(rule: Any, n_arms: int, error: Exception) -> None:
    """Raise what is wrong with the pair that a rule has chosen, if that is the error.

    Interpreted, a choice that is no pair fails where it is unpacked, or used as an index.
    """
    if str(error).startswith("Cannot determine Numba type"):
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
        if (Path(code.co_filename).name, code.co_name) in _TAKE_PAIR:
            arms = frame.f_locals
            pair = (arms["i"], arms["j"]) if "j" in arms else None
            is_unpacked = "j" in arms
        else:
            is_unpacked = True  # it has gone wrong elsewhere
    return pair, is_unpacked


def _is_numbas(error: Exception) -> bool:
    """Whether an error was raised while Numba was at work."""
    frames = traceback.walk_tb(error.__traceback__)
    return any(
        Path(frame.f_code.co_filename).resolve().is_relative_to(_NUMBA) for frame, _ in frames
    )


def _line_in(words: str) -> str:
    """Return the innermost line of the user's code that Numba's words name."""
    for file, its_line, path, line in _LINE.findall(words):  # the innermost comes first
        whole = Path(file or path).resolve()
        if not any(whole.is_relative_to(folder) for folder in _PACKAGES):
            return f"{whole.name}, line {its_line or line}"
    return ""


def _returns(body: Any) -> str:
    """Return the lines on which a function returns."""
    steps = [step for step in dis.get_instructions(body) if step.opname.startswith("RETURN_")]
    lines = dict.fromkeys(str(step.positions and step.positions.lineno) for step in steps)
    return f"{Path(body.__code__.co_filename).name}, line {' or '.join(lines)}"
