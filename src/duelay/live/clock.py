"""The clocks of live experiments.

All times of an experiment come from one clock: with PostgreSQL from the clock of the database, with
SQLite from the clock of the machine, or from a clock that was given when the experiment was made.
A process that does not have this clock, or whose own clock differs from it by more than a minute,
reads and does not write.

Windows and delays are lengths of time. If the clock is set an hour ahead, no duel has become
an hour older. So `SteadyClock` measures the time that has passed by a clock that cannot be set. As
long as the machine's clock agrees with that, it shows the machine's time. After a jump it goes on
from where it was, and moves slowly towards the machine's time.
"""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Callable
from typing import Any

from duelay._core import checks, forks, timestamps
from duelay._core.duration import in_brief
from duelay.errors import ClockError, InvalidValueError

MAX_DIFFERENCE = 60.0  # seconds between the clock of a process and that of its store
GIVEN = "given"  # in the store: the clock is a function of the programs that use the experiment
_MAX_SPEED = 1e6

_MIN_JUMP = 1.0  # seconds: a clock that is set by a network steps by less
_MAX_GAP = 0.1  # seconds between reading one clock and reading the other ...
_MAX_TRIES = 5  # ... as far as so many tries give that: a busy machine may stop us in between
_MAX_DRIFT = 0.05  # seconds a second, towards the machine's clock after a jump


def _passed() -> float:
    """Seconds by a clock that cannot be set; on Linux it goes on while the machine sleeps."""
    kind = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if kind is None else time.clock_gettime(kind)


def wall() -> float:
    """Return the time of this machine, in seconds since the epoch."""
    return time.time()


class SteadyClock:
    """Seconds since the epoch; `clock()` reads them.

    >>> clock, before = SteadyClock(), time.time()
    >>> before <= clock() <= time.time()
    True
    """

    def __init__(
        self,
        read: Callable[[], float] = lambda: wall(),
        passed: Callable[[], float] = lambda: _passed(),
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

    def follow(self) -> float:
        """Show the machine's time from now on, wherever it has jumped; return it."""
        with self._lock:
            self._at, self._since = self._both()
            self.off = 0.0
            return self._at

    def _both(self) -> tuple[float, float]:
        """Read both clocks at one moment: what passes in between would look like a jump."""
        for _ in range(_MAX_TRIES):
            before, wall, after = self._passed(), self._read(), self._passed()
            if after - before < _MAX_GAP:
                break
        return wall, after


def check_clock(clock: Any) -> str | None:
    """Return how a store notes the clock of an experiment; None for the store's own."""
    if callable(clock):
        return GIVEN
    return check_speed(clock, "a function that returns seconds since the epoch, or ")


def check_speed(clock: Any, other: str = "") -> str | None:
    """Return how a store notes a clock that is faster than the world; None for the store's own.

    `other` says what else it might have been.
    """
    if clock is None:
        return None
    found = re.fullmatch(r"(\d+(?:\.\d+)?)x", clock) if isinstance(clock, str) else None
    if found is None:
        raise InvalidValueError(
            f"clock must be {other}how many times as fast as the world it goes, such as '1000x' "
            f"(at most {_MAX_SPEED:,.0f}), got {clock!r}",
            argument="clock",
        )
    return f"{checks.number('clock', float(found[1]), above=0, most=_MAX_SPEED):g}x"


def meaning_of_at(noted: str | None) -> str:
    """Return what the time of an answer is; `noted` is what the store says of the clock."""
    words = "seconds since the epoch"
    if noted is None:
        return words
    return f"{words} by the experiment's own clock, which experiment.now() reads"


class ExperimentClock:
    """The clock of an experiment, as a process reads it.

    `noted` is what the store says of it, `clock` what this process was given, and `created` when
    the experiment was made, in seconds: a fast clock goes from there.
    """

    def __init__(self, noted: str | None, clock: Any, created: float, *, is_shared: bool) -> None:
        said = check_clock(clock)
        if said is not None and said != noted:
            own = {None: "its store", GIVEN: "a function"}.get(noted, noted)
            raise InvalidValueError(
                f"clock must be left out, as the experiment goes by that of {own}, got {clock!r}"
            )
        self.created, self.noted = created, noted
        self._speed = float(noted[:-1]) if noted not in (None, GIVEN) else 1.0
        self.is_missing = noted == GIVEN and clock is None
        self._has_shared = is_shared and noted != GIVEN  # the database's clock counts
        if noted == GIVEN:
            self._own: Callable[[], float] = wall if clock is None else clock
        else:
            self._own = wall if is_shared else SteadyClock()

    def __call__(self) -> float:
        """Return the time by the clock of this process."""
        return self.to_experiment(self._own())

    def latest(self) -> float:
        """Return the latest time that a caller may name: the machine may have been set ahead."""
        is_steady = isinstance(self._own, SteadyClock)
        return max(self(), self.to_experiment(wall())) if is_steady else self()

    def shown(self, moment: float, shared: float | None) -> float:
        """Return the time for somebody who reads; `shared` is the time of the database.

        It is `moment`, the latest time of the experiment, where this process lacks its clock.
        """
        if self.is_missing:
            return moment
        is_theirs = self._has_shared and shared is not None
        return max(moment, self.to_experiment(shared) if is_theirs else self())  # type: ignore[arg-type]

    def of_creation(self, shared: float | None, begun: float) -> float:
        """Return the time at which an experiment is made."""
        if self._has_shared and shared is not None:
            return _check_shared(shared, begun)
        return self._own()

    def of_write(self, moment: float, shared: float | None, begun: float) -> float:
        """Return the time of a transaction, or raise if this process must not write.

        Where this process lacks the clock it is `moment`: see `missing`.

        Parameters
        ----------
        moment : the latest time of the experiment.
        shared : the time of the database, where it has a clock.
        begun : the time of this machine before `shared` was asked for.
        """
        if self.is_missing:
            return moment
        if self._has_shared and shared is not None:
            return self.to_experiment(_check_shared(shared, begun))
        now = self()
        behind = (moment - now) / self._speed
        if behind > MAX_DIFFERENCE and isinstance(self._own, SteadyClock):
            now = self.to_experiment(self._own.follow())  # it was behind, and has been set right
            behind = (moment - now) / self._speed
        if behind > MAX_DIFFERENCE:
            until = timestamps.iso(moment)
            raise _wrong(-behind, f"the latest time of the store, {until} (if the clock is right, "
                         "one that was ahead has written there, and calls succeed after that time)"
                         )  # fmt: skip
        return now

    def missing(self) -> ClockError:
        """Return the error of a request that needs the clock, where this process lacks it."""
        return ClockError(
            "the experiment goes by a clock of its own, a function that this process was not "
            "given, so that nothing is written: open it in Python with clock=, the function "
            "(without it, its status and arms can be changed, and it can be read)"
        )

    def to_experiment(self, time: float) -> float:
        """Return a time of the world by the clock of the experiment."""
        return self.created + self._speed * (time - self.created)


def _check_shared(shared: float, begun: float) -> float:
    """Return the time of the database, which was read since `begun`; raise if ours is wrong."""
    off = min(max(shared, begun), wall()) - shared
    if abs(off) > MAX_DIFFERENCE:
        raise _wrong(off, "the clock of the database")
    return shared


def _wrong(ahead: float, of: str) -> ClockError:
    way = "ahead of" if ahead > 0 else "behind"
    return ClockError(
        f"the clock of this process is {in_brief(abs(ahead))} {way} {of}, so that nothing is "
        "written: set the clock, and call again"
    )
