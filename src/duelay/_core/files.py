"""Writing files whole, or not at all."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def write_whole(path: Path, content: bytes) -> None:
    """Write a file atomically: it is on the disk whole, or not at all.

    It is written beside its place as ``.draft-...`` and moved there in one step.
    """
    draft = path.with_name(f".draft-{os.getpid()}-{path.name}"[:200])
    try:
        with draft.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:  # name the file that was asked for, not the draft
        raise type(error)(error.errno, error.strerror, str(path)) from None
    finally:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
