"""Say that kernels are being compiled, if that takes more than a second.

``DUELAY_COMPILE_NOTICE`` in the environment sets other seconds, or ``never``.
"""

from __future__ import annotations

import contextlib
import math
import os
import threading
import warnings
from collections.abc import Callable
from typing import Any

from duelay._core.numba_parts import Listener, register_listener
from duelay._core.say import say

IN_BACKGROUND = "duelay-compiler"  # the thread whose work nobody waits for


def _patience(told: str) -> float:
    """Return after how many seconds it is said: infinitely many for never."""
    seconds = math.nan
    with contextlib.suppress(ValueError):
        seconds = math.inf if told == "never" else float(told or 1.0)
    if seconds >= 0.0:
        return seconds
    warnings.warn(
        f"DUELAY_COMPILE_NOTICE must be seconds or never, got {told!r}: taken for 1", stacklevel=2
    )
    return 1.0


PATIENCE = _patience(os.environ.get("DUELAY_COMPILE_NOTICE", ""))  # seconds


class Announcer(Listener):  # type: ignore[misc]
    """Listens to Numba; says once that we compile, when that has taken `PATIENCE` seconds."""

    def __init__(self, sentence: Callable[[], str]) -> None:
        self._unsaid = [sentence]
        self._depth = 0  # compilations nest: a kernel compiles the kernels that it calls
        self._timer: threading.Timer | None = None

    def on_start(self, happening: Any) -> None:
        """Start the timer."""
        with contextlib.suppress(Exception):  # an error here must not stop the compilation
            if not self._unsaid or not _is_ours(happening):
                return
            self._depth += 1
            if PATIENCE == 0.0:
                self.speak()
            elif self._depth == 1 and PATIENCE < math.inf:
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
        """Say it, once, whichever threads ask for it."""
        try:
            sentence = self._unsaid.pop()
        except IndexError:
            return
        say(sentence())


def _is_ours(happening: Any) -> bool:
    """Whether it is a kernel of ours that somebody waits for."""
    if threading.current_thread().name == IN_BACKGROUND:
        return False
    return str(happening.data["dispatcher"].py_func.__module__).startswith("duelay.")


_announcer: Announcer | None = None


def announce(sentence: Callable[[], str]) -> None:
    """From now on say this sentence, once, when a compilation of ours has taken too long."""
    global _announcer
    if register_listener is not None:
        _announcer = Announcer(sentence)
        with contextlib.suppress(Exception):  # not a promise of Numba's
            register_listener("numba:compile", _announcer)


def say_so() -> None:
    """Say the sentence now, if it has not been said: somebody waits for the thread."""
    if _announcer is not None and PATIENCE < math.inf:
        _announcer.speak()
