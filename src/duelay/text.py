"""The text form of laws, policies and traffic.

Examples are ``geometric:0.01``, ``rucb-delay:alpha=1,window=500`` and ``poisson:10s``. The command
line, specification files and the service use this form. Its grammar is::

    form  = name [":" argument {"," argument}]
    argument = [key "="] value          arguments without a key come first, as in Python
    value = single | {single "/"} [single]
    single = number | duration | word | "none" | form of a law | "(" form of a law ")"

A plain number is one of ticks. A duration such as ``14d`` or ``2h30m`` is in time.

A law within something else needs brackets only where it has a comma or a slash of its own:
``rucb-delay:delay=geometric:0.01`` but ``rucb-delay:delay=(weibull:0.5,100)``.

An alias such as ``recommended`` stands for a form, and its parameters change those of that form:
``recommended:window=1000``.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from duelay._core import checks
from duelay._core.deprecation import accept_old_names
from duelay._core.duration import Duration
from duelay._core.sources import is_outside, sources_of_class
from duelay.errors import InvalidValueError

C = TypeVar("C", bound=type)
M = TypeVar("M", bound=Callable[[], Any])

_KINDS: dict[str, dict[str, type]] = {"law": {}, "policy": {}, "traffic": {}}
_ALIASES: dict[str, dict[str, Callable[[], Any]]] = {"law": {}, "policy": {}, "traffic": {}}
_INTEGER = re.compile(r"[+-]?\d+")
MAX_NESTED_LAWS = 20  # laws within laws; a policy and `by-pair` may stand around them
_TEXT_NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]*")


def named(kind: str, name: str) -> Callable[[C], C]:
    """Register a frozen dataclass under a name of the text form; a decorator.

    Parameters
    ----------
    kind : str
        ``"law"``, ``"policy"`` or ``"traffic"``.
    name : str
        Letters, digits and dashes.

    Raises
    ------
    ValueError
        If the name is invalid or belongs to a class of duelay, or the class is no dataclass.
    """
    known = _KINDS[checks.one_of("kind", kind, _KINDS)]
    if not isinstance(name, str) or not _TEXT_NAME.fullmatch(name):
        raise InvalidValueError(f"name must be of letters, digits and dashes, got {name!r}")

    def register(cls: C) -> C:
        if not dataclasses.is_dataclass(cls):
            raise InvalidValueError(
                f"named must stand above @dataclass(frozen=True), and {cls.__name__} is none"
            )
        is_ours = sources_of_class(cls) is None  # reads its module now, before an edit of the file
        if name in known and sources_of_class(known[name]) is None and not is_ours:
            raise InvalidValueError(f"name must not be one of duelay's own, got {name!r}")
        known[name] = cls
        cls.text_name = name  # type: ignore[attr-defined]
        return cls

    return register


def alias(kind: str, name: str) -> Callable[[M], M]:
    """Return a decorator that gives what a function returns another name in text.

    Parameters
    ----------
    kind : str
        ``"law"``, ``"policy"`` or ``"traffic"``.
    name : str
        The name, such as ``"recommended"`` for a policy.
    """

    def register(make: M) -> M:
        _ALIASES[kind][name] = make
        return make

    return register


def aliases(kind: str) -> dict[str, Any]:
    """Return what each alias of a kind stands for.

    Parameters
    ----------
    kind : str
        ``"law"``, ``"policy"`` or ``"traffic"``.
    """
    return {name: make() for name, make in _ALIASES[kind].items()}


def names(kind: str) -> dict[str, type]:
    """Return every class of a kind by its name in text.

    Parameters
    ----------
    kind : str
        ``"law"``, ``"policy"`` or ``"traffic"``.
    """
    return dict(_KINDS[kind])


def parameters(cls: type) -> list[str]:
    """Return a class's parameters, with their defaults as text."""
    shown = []
    for field in _fields(cls):
        required = field.default is dataclasses.MISSING
        shown.append(_argument(field) + ("" if required else f"={_print(field.default)}"))
    return shown


@accept_old_names(is_nested=None)
def parse(kind: str, text: str, defaults: Mapping[str, Any] | None = None) -> Any:
    """Return the law, policy or traffic of a text form.

    Parameters
    ----------
    kind : str
        ``"law"``, ``"policy"`` or ``"traffic"``.
    text : str
        The text form.
    defaults : mapping of str to object, optional
        Values of parameters that the text leaves out, if the metadata of their field has
        ``of_the_world``. The command line passes the simulated law to policies in this way.

    Raises
    ------
    ValueError
        If the text has an unknown name or parameter, or a value that does not fit.
    """
    return _parse(kind, text, defaults)


def _parse(kind: str, text: str, defaults: Mapping[str, Any] | None = None, hint: str = "") -> Any:
    """Return what `parse` does; `hint` ends the message if a parameter is missing."""
    name, _, rest = text.strip().partition(":")
    name = name.strip()
    known = [*_KINDS[kind], *_ALIASES[kind]]
    if name not in known:
        listed = ", ".join(sorted(known))
        raise InvalidValueError(
            f"unknown {kind} {name!r}{checks.nearest(name, known)}; there are: {listed}; one of "
            f"your own must be imported first (in the shell, --import MODULE)"
        )
    meant = _ALIASES[kind][name]() if name in _ALIASES[kind] else None
    cls = _KINDS[kind][name] if meant is None else type(meant)
    fields = {_argument(field): field for field in _fields(cls)}
    given: dict[str, Any] = {}
    for position, argument in enumerate(_split(rest, ",") if rest.strip() else []):
        key, equals, value = argument.partition("=")
        key = key.strip().replace("-", "_")
        if not equals or not key.isidentifier():
            places = [key for key, field in fields.items() if not field.kw_only]
            if list(given) != places[:position] or position >= len(places):
                raise InvalidValueError(
                    f"{kind} {text!r}: cannot place {argument!r}; write key=value"
                )
            key, value = places[position], argument
        if key not in fields:
            listed = ", ".join(fields) or "none"
            raise InvalidValueError(
                f"{kind} {name} has no parameter {key!r}{checks.nearest(key, fields)}; "
                f"it has: {listed}"
            )
        if key in given:
            raise InvalidValueError(f"{kind} {text!r} gives {key} twice")
        given[key] = _value(value)
        if is_outside(cls):  # ours check their own
            _check_kind(key, fields[key].type, given[key])
    if meant is not None:
        given = {key: getattr(meant, field.name) for key, field in fields.items()} | given
    for key, value in (defaults or {}).items():
        if key in fields and fields[key].metadata.get("of_the_world"):
            given.setdefault(key, value)
    missing = [
        key
        for key, field in fields.items()
        if key not in given
        and field.default is dataclasses.MISSING
        and field.default_factory is dataclasses.MISSING
    ]
    _check_whole(f"{kind} {name}", cls)
    if missing:
        raise InvalidValueError(f"{kind} {name} needs {', '.join(missing)}, got {text!r}{hint}")
    try:
        return cls(**given)
    except ValueError as error:
        raise InvalidValueError(f"{kind} {text!r}: {error}") from None


@accept_old_names(is_full="full")
def form(recipe: Any, *, full: bool = False) -> str:
    """Return the text form of a law, a policy or traffic, for which `parse` returns an equal one.

    Parameters
    ----------
    recipe : Law, Policy or Traffic
        A law, a policy or traffic.
    full : bool
        Whether to show all parameters of a policy. Otherwise only those are shown that differ from
        their default, or whose metadata has ``of_the_world``. Laws and traffic always show all, in
        order and without names.
    """
    if not recipe.text_name:  # a user's own, not named: its repr cannot be parsed
        return repr(recipe)
    arguments = []
    in_order = type(recipe) in [*_KINDS["law"].values(), *_KINDS["traffic"].values()]
    for field in _fields(recipe):
        value = getattr(recipe, field.name)
        if in_order:
            arguments.append(_print(value))
        elif full or not _is_implied(recipe, field) or field.metadata.get("of_the_world"):
            arguments.append(f"{_argument(field)}={_print(value)}")
    name = recipe.text_name
    return f"{name}:{','.join(arguments)}" if arguments else str(name)


def _is_implied(recipe: Any, field: Any) -> bool:
    """Whether the recipe would be the same if this field were left out."""
    if getattr(recipe, field.name) == field.default:
        return True
    if field.default is dataclasses.MISSING:
        return False
    try:
        return bool(dataclasses.replace(recipe, **{field.name: field.default}) == recipe)
    except ValueError:
        return False


def _check_whole(what: str, cls: type) -> None:
    """Raise ValueError if a class lacks a method, and name a similar one that it has."""
    for lacks in sorted(getattr(cls, "__abstractmethods__", ())):
        own = [name for part in cls.__mro__ if is_outside(part) for name in vars(part)]
        near = difflib.get_close_matches(lacks, [name for name in own if name[:1] != "_"], n=1)
        hint = f" (is it {near[0]}?)" if near else ""
        raise InvalidValueError(
            f"{what} must have a method {lacks}, and {cls.__name__} has none{hint}"
        )


def _check_kind(name: str, kind: Any, value: Any) -> None:
    """Refuse a value that does not fit a field of a plain type."""
    needs = getattr(kind, "__name__", kind)
    if needs in ("float", "int") and not checks.number(name, value).is_integer() and needs == "int":
        raise InvalidValueError(f"{name} must be a whole number, got {value!r}")
    if needs == "bool":
        checks.yes_or_no(name, value)


def _fields(recipe: Any) -> list[Any]:
    """The fields that have text: all but those whose metadata says that they have none."""
    return [f for f in dataclasses.fields(recipe) if f.metadata.get("has_text", True)]


def _argument(field: Any) -> str:
    """A field's name as an argument; another one where a method already bears it."""
    return str(field.metadata.get("argument", field.name))


def _split(text: str, separator: str) -> list[str]:
    """Split at the separators that stand outside brackets."""
    parts, depth, start = [], 0, 0
    for position, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth > MAX_NESTED_LAWS + 2:
            raise InvalidValueError(
                f"laws must be nested at most {MAX_NESTED_LAWS} deep, got {text[:60]!r}..."
            )
        if depth < 0:
            break
        if character == separator and depth == 0:
            parts.append(text[start:position].strip())
            start = position + 1
    if depth != 0:
        raise InvalidValueError(f"brackets do not match in {text!r}")
    return [*parts, text[start:].strip()]


def _value(text: str) -> Any:
    text = text.strip()
    parts = _split(text, "/")
    if len(parts) > 1:
        return tuple(_value(part) for part in (parts if parts[-1] else parts[:-1]))
    if text.startswith("(") and text.endswith(")"):
        return parse("law", text[1:-1])
    words = {"none": None, "true": True, "false": False}
    if text.lower() in words:
        return words[text.lower()]
    if _INTEGER.fullmatch(text):
        return int(text)
    try:
        return float(text)
    except ValueError:
        pass
    if ":" in text or text in _KINDS["law"]:
        hint = f"; within another form a law with a comma needs brackets, ({text},...)"
        return _parse("law", text, hint=hint)
    return text


def _print(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return "/".join(_print(part) for part in value) + ("/" if len(value) == 1 else "")
    if isinstance(value, float) and not isinstance(value, Duration):
        short = f"{value:g}"
        return short if float(short) == value else repr(value)
    if dataclasses.is_dataclass(value):
        text = form(value)
        return f"({text})" if "," in text or "/" in text else text
    return str(value)
