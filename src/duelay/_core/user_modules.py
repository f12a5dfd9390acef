"""The user's modules: imported by name, or received from the process that sent them.

Laws and policies that a module registers with `duelay.text.named` can then be written as text.
"""

from __future__ import annotations

import atexit
import importlib
import importlib.machinery
import re
import shutil
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterable
from pathlib import Path

from duelay._core.sources import Sources, find_sources, is_installed, read_sources
from duelay.errors import InvalidValueError

_MODULE_NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
_OURS: dict[str, Sources] = {}  # what was imported here, by the name of the module or package
_LOCK = threading.RLock()  # a worker's threads receive at the same time


def bring_in(name: str, folders: Iterable[Path]) -> None:
    """Import a module by its name, sought in the folders first; they stay on the search path.

    A module that was edited after its last import is imported anew.
    """
    if not isinstance(name, str) or not _MODULE_NAME.fullmatch(name) or name.endswith(".py"):
        hint = f" ({name[:-3]})" if isinstance(name, str) and name.endswith(".py") else ""
        raise InvalidValueError(f"import must name a module, not a file{hint}, got {name!r}")
    places = [str(folder.resolve()) for folder in folders]
    with _LOCK:
        for place in reversed(places):
            _search_first(place)
        top = name.partition(".")[0]
        there = _find(top)
        if top in _OURS and there != _OURS[top]:
            _forget(_OURS[top])
        if top in sys.modules and there is not None and there != read_sources(top):
            raise InvalidValueError(
                f"import {name!r}: another module of this name is in use, from "
                f"{getattr(sys.modules[top], '__file__', 'elsewhere')}: give yours another name"
            )
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{name}.".startswith(f"{error.name}."):
                raise InvalidValueError(f"import {name!r}: {explain(error)}") from error
            raise InvalidValueError(
                f"import {name!r}: there is no such module in {' or '.join(places)}, nor is one "
                f"installed"
            ) from None
        except Exception as error:  # the user's code may raise anything
            raise InvalidValueError(f"import {name!r}: {explain(error)}") from error
        if (sources := read_sources(top)) is not None:
            _OURS[top] = sources


def receive(name: str, files: tuple[tuple[str, bytes], ...], is_sent: bool) -> Sources:
    """Make a module that came with a cell ready to be imported, unless it is here already."""
    sources = Sources(name, files, is_sent)
    with _LOCK:
        if is_sent and _OURS.get(name) != sources:
            _forget(sources)  # the loaded module may be older than its file
            if _find(name) != sources:
                _search_first(_unpack(sources))
            _OURS[name] = sources
    return sources


def _find(name: str) -> Sources | None:
    """Read the sources that an import of this name would find on the search path."""
    importlib.invalidate_caches()
    found = importlib.machinery.PathFinder.find_spec(name)
    if found is None:
        return None
    places = [*(found.submodule_search_locations or ()), found.origin]
    start = places[0]
    return None if start is None else find_sources(name, Path(start).resolve())


def _search_first(place: str) -> None:
    if place in sys.path:
        sys.path.remove(place)
    sys.path.insert(0, place)


def _forget(sources: Sources) -> None:
    """Let the modules be imported anew."""
    for name in sources.modules:
        _OURS.pop(name, None)
    for loaded in list(sys.modules):
        if loaded.partition(".")[0] in sources.modules:
            del sys.modules[loaded]


def _unpack(sources: Sources) -> str:
    """Write the files into a temporary folder, removed when this process ends."""
    folder = tempfile.mkdtemp(prefix="duelay-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for name, content in sources.files:
        path = Path(folder) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    importlib.invalidate_caches()
    return folder


def explain(error: BaseException) -> str:
    """Say what went wrong in the user's code, and where."""
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if isinstance(error, SyntaxError):
        return what  # it says where by itself
    ours = str(Path(__file__).parents[1])
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        path = Path(frame.filename)
        if not path.is_relative_to(ours) and path.is_file() and not is_installed(path):
            return f"{what} ({path.name}, line {frame.lineno})"
    return what
