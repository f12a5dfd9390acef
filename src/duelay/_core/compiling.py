"""Say that kernels are being compiled, if that takes more than a second."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import Any

from duelay._core.numba_parts import Listener, register_listener
from duelay._core.say import say

PATIENCE = 1.0  # seconds
IN_BACKGROUND = "duelay-compiler"  # the thread whose work nobody waits for


class Announcer(Listener):  # type: ignore[misc]
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
                self._timer = threading.Timer(PATIENCE, self.speak)
                self._timer.daemon = True
                self._timer.start()

    def on_end(self, happening: Any) -> None:
        """Stop the timer."""
        with contextlib.suppress(Exception):
            if self._depth and _is_ours(happening):
                self._depth -= 1
                if self._depth == 0 and self._timer is not None:
                    self._timer.cancel()

    def speak(self) -> None:
        """Say it, once."""
        if not self._is_said:
            self._is_said = True
            say(self._sentence())


def _is_ours(happening: Any) -> bool:
    """Whether it is a kernel of ours that somebody waits for."""
    if threading.current_thread().name == IN_BACKGROUND:
        return False
    return str(happening.data["dispatcher"].py_func.__module__).startswith("duelay.")


_announcer: Announcer | None = None


def announce(sentence: Callable[[], str]) -> None:
    """From now on say this sentence, once, when a compilation of ours has taken a second."""
    global _announcer
    if register_listener is not None:
        _announcer = Announcer(sentence)
        with contextlib.suppress(Exception):  # not a promise of Numba's
            register_listener("numba:compile", _announcer)


def say_so() -> None:
    """Say the sentence now, if it has not been said: somebody waits for the thread."""
    if _announcer is not None:
        _announcer.speak()
