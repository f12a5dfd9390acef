"""Kernels compiled ahead: a wheel may bring them, for every processor of its kind.

Numba's own cache is for the machine that compiled: its keys name the processor, and its folders
the places of the sources. Here a file is named by the kernel, the types of its arguments, and the
Python, the Numba and the kind of machine that can read it. It stands in a folder that is named by a
digest of our sources. A kernel that does not fit is not found, and is compiled as if there were no
file.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import Any

import numba

from duelay._core import numba_parts
from duelay._core.files import write_whole
from duelay._core.sources import own_digest

FOLDER = Path(__file__).parents[1] / "_kernels"  # in the wheel; a checkout has none
KERNELS: list[Any] = []  # that Python calls, each once


def has(function: Any, arguments: tuple[Any, ...]) -> bool:
    """Whether a kernel came compiled for such arguments."""
    return FOLDER.is_dir() and _path(FOLDER, function, arguments).is_file()


def load(function: Any, arguments: tuple[Any, ...], context: Any) -> Any:
    """Return a kernel that came compiled for such arguments, or None."""
    if not FOLDER.is_dir():
        return None
    try:
        found = numba_parts.read_kernel(_path(FOLDER, function, arguments).read_bytes(), context)
        return found if tuple(found.signature.args) == arguments else None
    except Exception:  # there is none, or it is damaged: what is installed is not ours to mend
        return None


def write(folder: Path) -> int:
    """Write all that this process has compiled for Python to call; return how many kernels.

    No thread may be compiling any more.
    """
    if not numba_parts.is_for_any_processor():
        raise ValueError("NUMBA_CPU_NAME must be generic: these kernels are for other machines")
    n = 0
    for kernel in KERNELS:
        for arguments, compiled in kernel.overloads.items():
            path = _path(folder, kernel.py_func, tuple(arguments))
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, numba_parts.written_kernel(compiled))
            n += 1
    return n


def _path(folder: Path, function: Any, arguments: tuple[Any, ...]) -> Path:
    """Return the file of a kernel; a digest in its name stands for what can read it."""
    python = sys.implementation.cache_tag
    parts = (python, numba.__version__, numba_parts.machine(), *map(str, arguments))
    digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
    name = f"{function.__module__}.{function.__qualname__}-{digest}.kernel"
    return folder / own_digest() / name
