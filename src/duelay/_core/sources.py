"""Digests of the sources that numbers depend on: ours, and the modules of a user's policies.

Compiled kernels and finished cells of experiments are stored with a digest, and are not used after
a change of these sources.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import hashlib
import re
import sys
import uuid
import weakref
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

_ROOT = Path(__file__).parents[1]
_WITHOUT_NUMBERS = {_ROOT.name, f"{_ROOT.name}._version"}  # a release alone changes no number
_IMPORT = re.compile(rb"^from (%b[.\w]*) import (\([^)]*\)|.*)" % _ROOT.name.encode(), re.MULTILINE)
_WORD = re.compile(rb"\w+")
_COMPILES = re.compile(rb"\b(kernel|entry|generic)\b")
_SOURCES = (".py", ".so", ".pyd")
_INSTALLED = {"site-packages", "dist-packages"}
_PROMPT = "<prompt>"
# Modules that are not the user's.
_GIVEN = (sys.stdlib_module_names | {"duelay", "llvmlite", "numba", "numpy"}) - {"__main__"}


@dataclasses.dataclass(frozen=True)
class Sources:
    """The files of a user's module when it was imported, and of the modules beside it."""

    name: str  # of the module, or of its package
    files: tuple[tuple[str, bytes], ...]  # by their path below the folder that it was found in
    is_sent: bool  # whether workers get a copy; an installed module must be installed there, too

    @functools.cached_property
    def digest(self) -> str:
        """A digest of the files."""
        return _digest(self.files)

    @property
    def is_of_a_prompt(self) -> bool:
        """Whether it was written at a prompt, so that there is no file."""
        return [name for name, _ in self.files] == [_PROMPT]

    @property
    def modules(self) -> set[str]:
        """The modules and packages in it, by name."""
        return {path.partition("/")[0].partition(".")[0] for path, _ in self.files}

    def __reduce__(self) -> tuple[Any, ...]:
        from duelay._core.user_modules import receive

        return receive, (self.name, self.files, self.is_sent)


def digest_of_kernels(compiler: str) -> str:
    """Return a digest of all our modules that define kernels, and of what these import.

    Parameters
    ----------
    compiler
        The name of the module that has the decorators of kernels.
    """
    return digest_of_modules(*(
        path for path in _modules().values()
        if any(module == compiler and _COMPILES.search(names) for module, names in _imports(path))
    ))  # fmt: skip


def digest_of_modules(*paths: Path) -> str:
    """Return a digest of files of ours and of all modules of ours that they import, and so on.

    Only imports at the start of a line count. An import within a function is for output, or for
    types alone.
    """
    waiting, found = list(paths), set[Path]()
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            for module, names in _imports(path):
                inner = [f"{module}.{name.decode()}" for name in _WORD.findall(names)]
                waiting += [_modules()[name] for name in (module, *inner) if name in _modules()]
    return _digest((path.relative_to(_ROOT).as_posix(), path.read_bytes()) for path in found)


@functools.cache
def _modules() -> dict[str, Path]:
    """Return the files of our modules by name, without those that can change no number."""
    found = {}
    for path in _ROOT.rglob("*.py"):
        parts = path.relative_to(_ROOT.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return {name: path for name, path in found.items() if name not in _WITHOUT_NUMBERS}


@functools.cache
def _imports(path: Path) -> list[tuple[str, bytes]]:
    """Return the modules of ours that a file imports from, each with the names that it imports."""
    return [(module.decode(), names) for module, names in _IMPORT.findall(path.read_bytes())]


def sources_of(*recipes: Any) -> dict[str, Sources]:
    """Return the user's modules that laws and policies come from, by name."""
    classes = {cls for recipe in recipes for cls in _classes(recipe)}
    found = [sources for cls in classes if (sources := sources_of_class(cls)) is not None]
    return {sources.name: sources for sources in sorted(found, key=lambda s: (s.name, s.digest))}


_SEEN: weakref.WeakKeyDictionary[Any, Sources | None] = weakref.WeakKeyDictionary()


def is_outside(thing: Any) -> bool:
    """Whether a class, a function or a module is the user's; for another object, its type."""
    if isinstance(thing, ModuleType):
        name = thing.__name__
    else:
        name = getattr(thing, "__module__", None) or type(thing).__module__
    return str(name).partition(".")[0] not in _GIVEN


def sources_of_class(cls: type | FunctionType) -> Sources | None:
    """Return the sources of a class as they were when it was first seen; None for one of ours.

    It works for a function, too. A class written at a prompt has no file and gets a random digest,
    so that no other process uses a result of it.
    """
    if cls not in _SEEN:
        top = cls.__module__.partition(".")[0]
        if top == "duelay" or top in sys.stdlib_module_names - {"__main__"}:
            _SEEN[cls] = None
        else:
            prompt = Sources(top, ((_PROMPT, uuid.uuid4().bytes),), is_sent=False)
            _SEEN[cls] = (None if _is_of_a_prompt(cls) else read_sources(top)) or prompt
    return _SEEN[cls]


def _is_of_a_prompt(cls: type | FunctionType) -> bool:
    """Whether it is in no file; methods that a dataclass writes, in "<string>", do not count."""
    if isinstance(cls, FunctionType):
        return not Path(cls.__code__.co_filename).is_file()
    methods = [value for value in vars(cls).values() if isinstance(value, FunctionType)]
    files = {method.__code__.co_filename for method in methods} - {"<string>"}
    return not all(Path(file).is_file() for file in files)


def read_sources(name: str) -> Sources | None:
    """Read the files of a module that has been imported; None where it has none."""
    module = sys.modules.get(name)
    if name == "__main__" and getattr(module, "__package__", None):  # python -m package.module
        return read_sources(str(module.__package__).partition(".")[0])  # type: ignore[union-attr]
    places = [*getattr(module, "__path__", ()), getattr(module, "__file__", None)]
    if places[0] is None or not Path(places[0]).exists():
        return None
    start = Path(places[0]).resolve()
    return find_sources(name, start)


def find_sources(name: str, start: Path) -> Sources:
    """Read a module's file, or its package's folder, and what it imports from beside it."""
    folder = start.parent
    is_own = not is_installed(start)
    files: dict[str, bytes] = {}
    waiting = [start]
    while waiting:
        for path in _files_of(waiting.pop()):
            key = path.relative_to(folder).as_posix()
            if key not in files:
                files[key] = path.read_bytes()
                if is_own:
                    waiting += _beside(folder, _imported(files[key]))
    return Sources(name, tuple(sorted(files.items())), is_sent=is_own)


def is_installed(path: Path) -> bool:
    """Whether a file is Python's own, or of a package that was installed."""
    library = Path(ast.__file__).resolve().parent
    return bool(_INSTALLED & set(path.parts)) or path.is_relative_to(library)


def _files_of(place: Path) -> Iterable[Path]:
    if place.is_dir():
        return sorted(path for path in place.rglob("*") if path.suffix in _SOURCES)
    return [place]


def _beside(folder: Path, names: Iterable[str]) -> Iterator[Path]:
    """Yield the paths of those modules that are in the folder."""
    for name in names:
        if (folder / name / "__init__.py").is_file():
            yield folder / name
        elif (folder / f"{name}.py").is_file():
            yield folder / f"{name}.py"


@functools.lru_cache(maxsize=4096)  # a package with many rules is read for each of them
def _imported(source: bytes) -> frozenset[str]:
    """Return the top-level modules and packages of all absolute imports in a file."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return frozenset()
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names.add(node.module)
    return frozenset(name.partition(".")[0] for name in names) - {"duelay"}


def _classes(recipe: Any) -> Iterator[type]:
    """Yield the classes that a law or a policy is made of, those of its parts included."""
    yield from type(recipe).__mro__
    if isinstance(recipe, tuple | list):
        parts: Iterable[Any] = recipe
    elif dataclasses.is_dataclass(recipe):
        parts = [getattr(recipe, field.name) for field in dataclasses.fields(recipe)]
    else:
        return
    for part in parts:
        if not isinstance(part, int | float | str | None):
            yield from _classes(part)


def _digest(files: Iterable[tuple[str, bytes]]) -> str:
    digest = hashlib.sha256()
    for name, content in sorted(files):
        digest.update(f"{name}\n{len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()[:16]
