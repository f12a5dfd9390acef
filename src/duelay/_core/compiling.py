"""Say that kernels are being compiled, if that takes more than a second."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import Any

from duelay._core.say import say

try:  # private to Numba: without it we are silent, not wrong
    from numba.core import event
except ImportError:  # pragma: no cover
    event = None

PATIENCE = 1.0  # seconds


class Announcer:
    """Listens to Numba; says once that we compile, when that has taken a second."""

    def __init__(self, sentence: Callable[[], str]) -> None:
        self._sentence = sentence
        self._depth = 0  # compilations nest: a kernel compiles the kernels that it calls
        self._timer: threading.Timer | None = None
        self._is_said = False

    def on_start(self, happening: Any) -> None:
        """Start the timer."""
        with contextlib.suppress(Exception):  # an error here must not stop the compilation
            if self._is_said or not _is_ours(happening):
                return
            self._depth += 1
            if self._depth == 1:
                self._timer = threading.Timer(PATIENCE, self._speak)
                self._timer.daemon = True
                self._timer.start()

    def on_end(self, happening: Any) -> None:
        """Stop the timer."""
        with contextlib.suppress(Exception):
            if self._depth and _is_ours(happening):
                self._depth -= 1
                if self._depth == 0 and self._timer is not None:
                    self._timer.cancel()

    def _speak(self) -> None:
        if not self._is_said:
            self._is_said = True
            say(self._sentence())


def _is_ours(happening: Any) -> bool:
    return str(happening.data["dispatcher"].py_func.__module__).startswith("duelay.")


def announce(sentence: Callable[[], str]) -> None:
    """From now on say this sentence, once, when a compilation of ours has taken a second."""
    if event is None:  # pragma: no cover
        return
    listener = type("Listener", (Announcer, event.Listener), {})(sentence)
    with contextlib.suppress(Exception):
        event.register("numba:compile", listener)
