"""The packages that experiments need beyond the core, checked before anything imports them."""

from __future__ import annotations

from importlib.util import find_spec

NEEDS = ("filelock", "joblib", "markdown", "matplotlib", "pyarrow")


def check() -> None:
    """Say in one sentence what is missing, and how to install it."""
    missing = [name for name in NEEDS if find_spec(name) is None]
    if missing:
        them = "it" if len(missing) == 1 else "them"
        raise ModuleNotFoundError(
            f"experiments need {', '.join(missing)}: install {them} with pip install "
            "'duelay[experiments]'",
            name=missing[0],
        )


check()
