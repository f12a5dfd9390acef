"""A notice on standard error when a caller waits for the compiler for more than a second.

``DUELAY_COMPILE_NOTICE`` in the environment sets another number of seconds, or ``never``.
"""

from __future__ import annotations

import contextlib
import math
import os
import threading
import warnings
from collections.abc import Callable
from typing import Any

from duelay._core.jit.private_numba import listen
from duelay._core.stderr import say

BACKGROUND_THREAD = "duelay-compiler"  # callers do not wait for this thread


def _seconds(setting: str) -> float:
    """Return the number of seconds that a setting asks for; infinity for ``never``."""
    seconds = math.nan
    with contextlib.suppress(ValueError):
        seconds = math.inf if setting == "never" else float(setting or 1.0)
    if seconds >= 0.0:
        return seconds
    warnings.warn(
        f"DUELAY_COMPILE_NOTICE must be seconds or never, got {setting!r}: 1 is used", stacklevel=2
    )
    return 1.0


NOTICE_SECONDS = _seconds(os.environ.get("DUELAY_COMPILE_NOTICE", ""))


class Notice:
    """Listens to Numba and says once that it compiles, after `NOTICE_SECONDS` of compilation."""

    def __init__(self, sentence: Callable[[], str]) -> None:
        self._unsaid = [sentence]
        self._depth = 0  # compilations nest: a kernel compiles the kernels that it calls
        self._timer: threading.Timer | None = None

    def notify(self, event: Any) -> None:
        """Start the timer with the outermost compilation, and stop it with its end."""
        module = str(event.data["dispatcher"].py_func.__module__)
        in_background = threading.current_thread().name == BACKGROUND_THREAD
        if in_background or not module.startswith("duelay."):
            return
        self._depth += 1 if event.is_start else -1
        if event.is_start and NOTICE_SECONDS == 0.0:
            self.speak()
        elif event.is_start and self._depth == 1 and self._unsaid and NOTICE_SECONDS < math.inf:
            self._timer = threading.Timer(NOTICE_SECONDS, self.speak)
            self._timer.daemon = True
            self._timer.start()
        elif self._depth == 0 and self._timer is not None:
            self._timer.cancel()

    def speak(self) -> None:
        """Print the sentence, unless another thread has printed it."""
        with contextlib.suppress(IndexError):
            say(self._unsaid.pop()())


def announce(sentence: Callable[[], str]) -> None:
    """Print this sentence, once, when a compilation of a kernel of ours takes too long."""
    listen(Notice(sentence).notify)
