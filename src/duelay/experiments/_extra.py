"""The packages that experiments need beyond the core, checked before anything imports them."""

from __future__ import annotations

from duelay._core import extras

NEEDS = ("filelock", "joblib", "markdown", "matplotlib", "pyarrow")


def check() -> None:
    """Say in one sentence what is missing, and how to install it."""
    extras.need("experiments", NEEDS, "experiments")


check()
