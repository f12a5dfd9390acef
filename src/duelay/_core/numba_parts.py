"""What we use of Numba and it does not promise: all of it is here, and each can be done without.

- The option ``_nrt``: kernels count no references. Without it they take twice the time.
- `FunctionCache`, `NullCache`, a dispatcher's ``_cache`` and ``config.CACHE_DIR``: kernels on disk,
  in folders of our own. Without them all is compiled at every start.
- ``numba.core.event``: somebody who waits for the compiler is told. Without it we are silent.
- `NumbaError`: a rule that cannot be compiled is explained. Without it Numba's own words stand.

One more, ``instance_class`` of a NamedTuple's type, tells which rule a kernel is compiled for, and
cannot be done without. A release of Numba that we have not seen is therefore not installed: see
``numba`` in pyproject.toml.

``DUELAY_PLAIN_NUMBA=1`` does without all of them now, as a release without them would.
"""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import Any

import numba
from numba import config

IS_PLAIN = os.environ.get("DUELAY_PLAIN_NUMBA", "") not in ("", "0")


def _part(module: str, name: str, otherwise: Any) -> Any:
    """Return a part of Numba, or what there is in its place."""
    if IS_PLAIN:
        return otherwise
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError):
        return otherwise


register_listener = _part("numba.core.event", "register", None)
Listener = _part("numba.core.event", "Listener", object)
NumbaError = _part("numba.core.errors", "NumbaError", ())  # to be caught: nothing
NoCache = _part("numba.core.caching", "NullCache", object)  # answers what a cache of ours does not
_FunctionCache = _part("numba.core.caching", "FunctionCache", None)
_options = _part("numba.core.options", "DefaultOptions", None)
# No second wrapper, for C, around every kernel: a tenth of the time that compiling takes.
WITHOUT_C: dict[str, Any] = (
    {"no_cfunc_wrapper": True} if hasattr(_options, "no_cfunc_wrapper") else {}
)
# The options of a kernel that makes no arrays.
WITHOUT_RUNTIME: dict[str, Any] = {"_nrt": False} if hasattr(_options, "_nrt") else {}

WHY_NOT_KEPT = (
    "DUELAY_PLAIN_NUMBA is set"
    if IS_PLAIN
    else f"Numba {numba.__version__} keeps kernels in a way that duelay does not know"
)


def can_keep() -> bool:
    """Whether this Numba lets us keep kernels in folders of our own."""
    return _FunctionCache is not None and hasattr(config, "CACHE_DIR")


def use(compiled: Any, cache: Any) -> None:
    """Let a kernel look into this cache before it is compiled."""
    if hasattr(compiled, "_cache"):
        compiled._cache = cache


def cache_in(folder: Path, function: Any) -> Any:
    """Return Numba's cache of a function in a folder; an error where it would be elsewhere."""
    given = config.CACHE_DIR
    config.CACHE_DIR = str(folder)
    try:
        cache = _FunctionCache(function)
    finally:
        config.CACHE_DIR = given
    if not Path(cache.cache_path).is_relative_to(folder):  # beside the source
        raise OSError(f"Numba would keep it in {cache.cache_path}")
    return cache


def cache_folder() -> str:
    """Return the folder that NUMBA_CACHE_DIR names, or nothing; ask `can_keep` before."""
    return str(config.CACHE_DIR)
