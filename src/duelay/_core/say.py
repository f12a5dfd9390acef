"""A line on standard error, for whoever reads; nobody need."""

from __future__ import annotations

import contextlib
import sys


def say(line: str) -> None:
    """Print a line on standard error; where there is none, or it is closed, nothing."""
    with contextlib.suppress(OSError, AttributeError, ValueError):
        print(line, file=sys.stderr, flush=True)
