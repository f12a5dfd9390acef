"""A line on standard error, for people."""

from __future__ import annotations

import contextlib
import sys


def say(line: str) -> None:
    """Print a line on standard error; do nothing if that is missing or closed."""
    with contextlib.suppress(OSError, AttributeError, ValueError):
        print(line, file=sys.stderr, flush=True)
