"""The duels of an experiment, their answers and times, as arrays."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duelay._core import checks, timestamps
from duelay._core.duration import Duration
from duelay._core.feedback import check_display, check_feedback
from duelay.delays.ticks_or_clock import in_ticks
from duelay.errors import InvalidValueError
from duelay.ledger.display_order import ORDERS
from duelay.logs import csv_format, parquet_format, reader
from duelay.logs import merge as merging
from duelay.logs.arm_changes import (
    Change,
    Declaration,
    check_changes,
    check_declared,
    joined_of,
    present_of,
)
from duelay.logs.time_columns import TimeReader
from duelay.problems import check_arms


@dataclass(frozen=True, eq=False)
class History:
    """Every duel of an experiment and its answer, as arrays; `player.history()` returns it.

    With ``feedback="conversions"`` only wins of the first arm are reported, so silence may mean
    that the second arm won, that the answer is late, or that it never comes. With ``"votes"`` both
    outcomes are reported, and silence is no answer.

    Parameters
    ----------
    n_arms : int
        The number of arms, K.
    first, second : ndarray of int
        (n,), the arms of duel 0, 1, ...; duel k is tick k + 1.
    delay : ndarray of float
        (n,), the time until the answer came: ticks, or seconds by the clock. NaN for silence.
    first_won : ndarray of float
        (n,), 1 if the first arm won, 0 if the second did, 1/2 for a tie, or the mean of several
        votes. NaN for silence.
    window : int or Duration, optional
        The age at which a silent duel is closed: ticks, a duration by the clock, or None.
    feedback : str
        ``"conversions"`` or ``"votes"``.
    order : str, optional
        How the first arm was chosen: ``"coin"``, ``"alternate"``, ``"champion"`` or None if that is
        not known.
    arms : tuple of str
        The names of the arms; "0", "1", ... if there are none.
    at : ndarray of float, optional
        (n,), by the clock: when each duel was asked, in seconds since the epoch.
    now : float, optional
        By the clock: the time of the history, in seconds since the epoch.
    chosen_by : str
        The policy that chose the pairs, as text; empty if it is not known.
    unit : ndarray of int, optional
        (n,), the same number for duels of the same visitor, prompt or judge.
    skipped : tuple of str
        A sentence for each bad row that `read` left out.
    changes : tuple of Change
        The arms that joined or were retired, in order.
    declared : Declaration, optional
        The arm that was declared the winner, if any.
    numbers : tuple of ndarray of int
        In the result of `merge`, the new numbers of the duels of each history.
    n_earlier : int
        The number of earlier duels that are not in the history: the store keeps only their counts.
    display : str
        ``"pair"``, or ``"one"`` if the first arm of each duel was shown alone.

    Raises
    ------
    ValueError
        If the arrays do not fit each other.

    Examples
    --------
    >>> History(n_arms=2, first=[0, 1, 0], second=[1, 0, 1], delay=[2, np.nan, 1],
    ...         first_won=[1, np.nan, 1]).ages
    array([3, 2, 1])
    """

    n_arms: int
    first: NDArray[np.int64]
    second: NDArray[np.int64]
    delay: NDArray[np.float64]
    first_won: NDArray[np.float64]
    window: int | Duration | None = None
    feedback: str = "conversions"
    order: str | None = None
    arms: tuple[str, ...] = ()
    at: NDArray[np.float64] | None = None
    now: float | None = None
    chosen_by: str = ""
    unit: NDArray[np.int64] | None = None
    skipped: tuple[str, ...] = ()
    changes: tuple[Change, ...] = ()
    declared: Declaration | None = None
    numbers: tuple[NDArray[np.int64], ...] = ()
    n_earlier: int = 0
    display: str = "pair"

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        set_(self, "n_arms", checks.whole("n_arms", self.n_arms, least=2))
        set_(self, "arms", check_arms(self.arms or self.n_arms))
        if len(self.arms) != self.n_arms:
            raise InvalidValueError(
                f"arms must be {self.n_arms} names, got {len(self.arms)}", argument="arms"
            )
        for name in ("first", "second"):
            set_(self, name, _arms(name, getattr(self, name), self.n_arms))
        for name in ("delay", "first_won"):
            set_(self, name, np.asarray(getattr(self, name), dtype=np.float64))
        shapes = {getattr(self, name).shape for name in ("first", "second", "delay", "first_won")}
        if len(shapes) > 1 or self.first.ndim != 1:
            raise InvalidValueError(
                "first, second, delay and first_won must be rows of one number a duel, got the "
                f"shapes {sorted(shapes)}"
            )
        set_(self, "window", checks.window(self.window))
        check_feedback(self.feedback, counts="which duel was heard must be known")
        check_display(self.display, self.feedback)
        if self.order is not None:
            checks.one_of("order", self.order, ORDERS)
        if self.unit is not None:
            set_(self, "unit", _units(self.unit, self.n))
        set_(self, "n_earlier", checks.whole("n_earlier", self.n_earlier, least=0))
        set_(self, "skipped", tuple(map(str, self.skipped)))
        self._check_times()
        self._check_answers()
        set_(self, "changes", check_changes(self))
        set_(self, "declared", check_declared(self))

    def _check_times(self) -> None:
        if self.at is None:
            in_ticks(self.window)  # refuses one in time
            return
        if self.window is not None and not isinstance(self.window, Duration):
            raise InvalidValueError(
                f"window must be a duration such as '14d' where `at` is given, got {self.window!r}",
                argument="window",
            )
        at = np.asarray(self.at, dtype=np.float64)
        if at.shape != self.first.shape or not np.isfinite(at).all() or (np.diff(at) < 0).any():
            raise InvalidValueError(
                "at must hold the time of each duel in seconds, none before the last"
            )
        if (np.abs(at) > timestamps.FURTHEST).any() or (
            np.abs(self.delay) > timestamps.FURTHEST
        ).any():
            raise InvalidValueError("at and delay must be in seconds, and not in milliseconds")
        object.__setattr__(self, "at", timestamps.whole(at))
        object.__setattr__(self, "delay", timestamps.whole(self.delay))
        if not at.size and self.now is None:
            return
        last = float(
            max(self.asked.max(initial=-np.inf), np.nanmax(self.answered, initial=-np.inf))
        )
        now = last if self.now is None else timestamps.seconds("now", self.now)
        if now < last:
            raise InvalidValueError(
                f"now must not be before the last time, {last!r}, got {self.now!r}", argument="now"
            )
        object.__setattr__(self, "now", now)

    def _check_answers(self) -> None:
        heard = self.is_heard
        if (heard != ~np.isnan(self.first_won)).any():
            raise InvalidValueError(
                "delay and first_won must be nan for the same duels", argument="delay"
            )
        won, is_vote = self.first_won[heard], self.feedback == "votes"
        if not ((won >= 0.0) & (won <= 1.0) if is_vote else won == 1.0).all():
            words = "from 0 to 1, or nan" if is_vote else "1 or nan under conversions"
            raise InvalidValueError(f"first_won must be {words}")
        most = self.ages if self.window is None else np.minimum(self.ages, self.window)
        least = 1 if self.at is None else 0
        slack = 0.0 if self.at is None else 1e-6  # a window need not be whole microseconds
        wrong = np.flatnonzero(heard & ~((self.delay >= least) & (self.delay <= most + slack)))
        if wrong.size:
            k = int(wrong[0])
            raise InvalidValueError(
                f"delay must be from {least} to the duel's age, or the window: duel {k} may have "
                f"at most {most[k]}, got {self.delay[k]:g}",
                argument="delay",
            )

    @classmethod
    def read(
        cls,
        source: Any,
        *,
        columns: Mapping[str, str | None] | None = None,
        time_format: str | None = None,
        zone: str | datetime.tzinfo | None = None,
        encoding: str | None = None,
        window: int | str | Duration | None = None,
        order: str | None = None,
        display: str | None = None,
        arms: Iterable[str] = (),
        now: Any = None,
        chosen_by: str = "",
        skip_bad: bool = False,
    ) -> History:
        """Read a history from a table with a row for each duel.

        The columns are shown_at, first, second and answered_at; also winner for votes, and unit if
        a visitor may answer several times. A log in ticks has first, second and delay, in the order
        of the duels. An empty answered_at or delay is silence. Without both columns, winners count
        as answers without delay. A file of `to_parquet` is read as it was written.

        Parameters
        ----------
        source : path, table or mapping
            The path of a CSV or Parquet file, a pandas or polars DataFrame, a pyarrow Table, or a
            mapping of columns.
        columns : mapping of str to str, optional
            The columns that have other names, as in ``{"shown_at": "ts"}``; None for a role that no
            column has.
        time_format : str, optional
            The format of times, as of `datetime.strptime`. Otherwise times are ISO 8601, or numbers
            since the epoch.
        zone : str or datetime.tzinfo, optional
            The time zone of times without one, by name or as a `datetime.tzinfo`.
        encoding : str, optional
            The encoding of a CSV that is not UTF-8.
        window : int, str or Duration, optional
            The time for which answers count; a later answer is silence.
        order : str, optional
            How the first arm was chosen; see `History`.
        display : str, optional
            ``"one"`` if a visitor saw the first arm alone, as in an A/B test; by default what the
            file says, or ``"pair"``.
        arms : iterable of str
            All arms, in their order; by default in the order of the table.
        now : float, datetime or str, optional
            The time at which the log was written; a later answer is silence. By default the last
            time in the log.
        chosen_by : str
            The policy that chose the pairs, or ``"design"``.
        skip_bad : bool
            Whether to leave out bad rows, each with a sentence in `skipped`.

        Raises
        ------
        ValueError
            If the table cannot be read, or has a bad row. The message names the row and the column.
        """
        fields = reader.read(
            source,
            columns=columns,
            encoding=encoding,
            times=TimeReader(time_format, zone),
            window=checks.window(window),
            arms=tuple(arms),
            now=now,
            skip_bad=checks.yes_or_no("skip_bad", skip_bad),
        )
        told = {"order": order, "display": display, "chosen_by": chosen_by}
        fields |= {name: value for name, value in told.items() if value}
        try:
            return cls(**fields)
        except ValueError as error:
            raise InvalidValueError(f"{reader.name_of(source)}: {error}") from None

    @classmethod
    def from_csv(cls, path: str | Path, **told: Any) -> History:
        """Read a history from a CSV file.

        Parameters
        ----------
        path : str or Path
            The path of the file.
        **told : object
            Further arguments of `read`.
        """
        return cls.read(path, **told)

    def to_csv(self, path: str | Path) -> None:
        """Write a CSV file with a row for each duel, for `from_csv` and `duelay check`.

        Parameters
        ----------
        path : str or Path
            The path of the file.
        """
        csv_format.write(self, Path(path))

    @classmethod
    def from_parquet(cls, path: str | Path, **told: Any) -> History:
        """Read a Parquet file, of `to_parquet` or another program; needs pyarrow.

        Parameters
        ----------
        path : str or Path
            The path of the file.
        **told : object
            Further arguments of `read`.
        """
        return cls.read(path, **told)

    def to_parquet(self, path: str | Path) -> None:
        """Write a Parquet file that `read` gives back in full; needs pyarrow.

        The columns are those of `to_csv`. The metadata have the arms, window, order and the like.

        Parameters
        ----------
        path : str or Path
            The path of the file.
        """
        parquet_format.write(self, Path(path))

    @classmethod
    def merge(cls, *histories: History) -> History:
        """Merge histories by the clock into one, in the order of time.

        A player that replays the result has the evidence of all of them. An arm is present as long
        as it is present in any of them.

        Parameters
        ----------
        histories : History
            Histories of different players, with the same arms, feedback and window. Of two duels at
            the same time, the one of the earlier argument comes first.

        Returns
        -------
        History
            Its duels are numbered anew: ``numbers[k][id]`` is the number of duel `id` of the k-th
            history.

        Raises
        ------
        ValueError
            If the histories do not fit each other.
        """
        return cls(**merging.merge(histories))

    @property
    def n(self) -> int:
        """The number of duels."""
        return len(self.first)

    @property
    def joined(self) -> NDArray[np.int64]:
        """(K,): 0 for the first arms, n for the n-th that joined later."""
        return joined_of(self.arms, self.changes)

    @property
    def present(self) -> NDArray[np.bool_]:
        """(K,): whether each arm has not been retired."""
        return present_of(self.arms, self.changes)

    @property
    def ages(self) -> NDArray[Any]:
        """(n,): the age of each duel at the next ask; by the clock, now."""
        if self.at is not None and self.now is not None:
            return timestamps.whole(self.now - self.at)
        return np.arange(self.n, 0, -1)

    @property
    def asked(self) -> NDArray[np.float64]:
        """(n,): when each duel was asked: the tick, by the clock the time."""
        return np.arange(1.0, self.n + 1.0) if self.at is None else self.at

    @property
    def answered(self) -> NDArray[np.float64]:
        """(n,): when each answer came: the tick, by the clock the time; nan for silence."""
        answered = self.asked + self.delay
        return answered if self.at is None else timestamps.whole(answered)

    @property
    def is_heard(self) -> NDArray[np.bool_]:
        """(n,): whether each duel has an answer."""
        return ~np.isnan(self.delay)


def _arms(name: str, given: Any, n_arms: int) -> NDArray[np.int64]:
    """Return arms as whole numbers from 0 to K - 1."""
    arms = np.asarray(given)
    if arms.size == 0:
        return arms.astype(np.int64)
    if arms.dtype.kind not in "iu" or arms.min() < 0 or arms.max() >= n_arms:
        raise InvalidValueError(f"{name} must hold arms from 0 to {n_arms - 1}", argument=name)
    return arms.astype(np.int64)


def _units(given: Any, n: int) -> NDArray[np.int64]:
    """Return a whole number for each duel."""
    units = np.asarray(given)
    if units.shape != (n,) or (n and units.dtype.kind not in "iu"):
        raise InvalidValueError(
            f"unit must hold a whole number for each of the {n} duels, or be None"
        )
    return units.astype(np.int64)
