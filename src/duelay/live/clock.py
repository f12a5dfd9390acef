"""A clock that goes on steadily when the clock of the machine jumps.

Windows and delays are lengths of time. If the clock is set an hour ahead, no duel has become
an hour older. So `SteadyClock` measures the time that has passed by a clock that cannot be set. As
long as the machine's clock agrees with that, it shows the machine's time. After a jump it goes on
from where it was, and moves slowly towards the machine's time.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable

from duelay._core import forks, timestamps
from duelay._core.duration import in_brief

_MIN_JUMP = 1.0  # seconds: a clock that is set by a network steps by less
_MAX_GAP = 0.1  # seconds between reading one clock and reading the other ...
_MAX_TRIES = 5  # ... as far as so many tries give that: a busy machine may stop us in between
_MAX_DRIFT = 0.05  # seconds a second, towards the machine's clock after a jump


def _passed() -> float:
    """Seconds by a clock that cannot be set; on Linux it goes on while the machine sleeps."""
    kind = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if kind is None else time.clock_gettime(kind)


class SteadyClock:
    """Seconds since the epoch; `clock()` reads them.

    >>> clock, before = SteadyClock(), time.time()
    >>> before <= clock() <= time.time()
    True
    """

    def __init__(
        self, read: Callable[[], float] = time.time, passed: Callable[[], float] = _passed
    ) -> None:
        self._read, self._passed = read, passed
        self._at, self._since = self._both()
        self._lock = forks.lock(self)
        self.off = 0.0  # by how much the machine's clock is ahead since it jumped

    def __call__(self) -> float:
        """Return the time."""
        with self._lock:
            wall, passed = self._both()
            gone = max(passed - self._since, 0.0)
            expected = self._at + gone
            off = wall - expected
            if abs(off) > _MIN_JUMP and self.off == 0.0:
                warnings.warn(
                    f"the clock of this machine jumped {'ahead' if off > 0 else 'back'} by "
                    f"{in_brief(abs(off))}, to {timestamps.iso(wall)}: time goes on from "
                    f"{timestamps.iso(expected)}, and moves towards it slowly",
                    stacklevel=2,
                )
            if abs(off) > _MIN_JUMP:
                most = _MAX_DRIFT * gone
                expected += min(max(off, -most), most)
                self.off = wall - expected
            else:
                expected, self.off = wall, 0.0
            self._at, self._since = expected, passed
            return expected

    def _both(self) -> tuple[float, float]:
        """Read both clocks at one moment: what passes in between would look like a jump."""
        for _ in range(_MAX_TRIES):
            before, wall, after = self._passed(), self._read(), self._passed()
            if after - before < _MAX_GAP:
                break
        return wall, after
