"""What has happened in an experiment, duel by duel: who was shown, what was heard, and when."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duelay._core import checks
from duelay._core.duration import Duration
from duelay._core.feedback import check_feedback
from duelay._core.files import write_whole
from duelay.delays.units import in_ticks
from duelay.ledger.order import ORDERS
from duelay.problems import check_arms


@dataclass(frozen=True, eq=False)
class History:
    """Every duel of an experiment and its answer, as arrays; `player.history()` returns it.

    With ``feedback="conversions"`` only wins of the first arm are ever heard, and silence may mean
    that the second won, that the answer is late, or that it never comes. With ``"votes"`` both
    outcomes are heard, and silence is no answer. Delays are in ticks, or by the clock in seconds.

    Examples
    --------
    >>> History(n_arms=2, first=[0, 1, 0], second=[1, 0, 1], delay=[2, np.nan, 1],
    ...         first_won=[1, np.nan, 1]).ages
    array([3, 2, 1])
    """

    n_arms: int
    first: NDArray[np.int64]  # (n,): the arm shown first in duel 0, 1, ...; duel k is tick k + 1
    second: NDArray[np.int64]  # (n,)
    delay: NDArray[np.float64]  # (n,): until its answer was heard; nan for silence
    first_won: NDArray[np.float64]  # (n,): 1 first won, 0 second won, 1/2 a tie; nan for silence
    window: int | Duration | None = None
    feedback: str = "conversions"
    order: str | None = None  # as the policy has it; None where that is not known
    arms: tuple[str, ...] = ()  # their names; "0", "1", ... where none are given
    at: NDArray[np.float64] | None = None  # (n,): by the clock, when each was asked: seconds
    now: float | None = None  # by the clock: the time of the history

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        set_(self, "n_arms", checks.whole("n_arms", self.n_arms, least=2))
        set_(self, "arms", check_arms(self.arms or self.n_arms))
        if len(self.arms) != self.n_arms:
            raise ValueError(f"arms must be {self.n_arms} names, got {len(self.arms)}")
        for name in ("first", "second"):
            set_(self, name, _arms(name, getattr(self, name), self.n_arms))
        for name in ("delay", "first_won"):
            set_(self, name, np.asarray(getattr(self, name), dtype=np.float64))
        shapes = {getattr(self, name).shape for name in ("first", "second", "delay", "first_won")}
        if len(shapes) > 1 or self.first.ndim != 1:
            raise ValueError(
                "first, second, delay and first_won must be rows of one number a duel, got the "
                f"shapes {sorted(shapes)}"
            )
        set_(self, "window", checks.window(self.window))
        check_feedback(self.feedback, counts="which duel was heard must be known")
        if self.order is not None:
            checks.one_of("order", self.order, ORDERS)
        self._check_times()
        self._check_answers()

    def _check_times(self) -> None:
        if self.at is None:
            in_ticks(self.window)  # refuses one in time
            return
        at = np.asarray(self.at, dtype=np.float64)
        if at.shape != self.first.shape or not np.isfinite(at).all() or (np.diff(at) < 0).any():
            raise ValueError("at must hold the time of each duel in seconds, none before the last")
        heard = at + np.nan_to_num(self.delay)
        now = float(max(at.max(initial=-np.inf), heard.max(initial=-np.inf)))
        if self.now is not None and self.now < now:
            raise ValueError(f"now must not be before the last time, {now!r}, got {self.now!r}")
        object.__setattr__(self, "at", at)
        object.__setattr__(self, "now", now if self.now is None else float(self.now))

    def _check_answers(self) -> None:
        heard = self.is_heard
        if (heard != ~np.isnan(self.first_won)).any():
            raise ValueError("delay and first_won must be nan for the same duels")
        allowed = [1.0] if self.feedback == "conversions" else [0.0, 0.5, 1.0]
        if not np.isin(self.first_won[heard], allowed).all():
            words = "1 or nan under conversions" if len(allowed) == 1 else "0, 1/2, 1 or nan"
            raise ValueError(f"first_won must be {words}")
        most = self.ages if self.window is None else np.minimum(self.ages, self.window)
        least = 1 if self.at is None else 0
        slack = 0.0 if self.at is None else 1e-6 * (1.0 + np.abs(most))  # of rounded differences
        wrong = np.flatnonzero(heard & ~((self.delay >= least) & (self.delay <= most + slack)))
        if wrong.size:
            k = int(wrong[0])
            raise ValueError(
                f"delay must be from {least} to the duel's age, or the window: duel {k} may have "
                f"at most {most[k]}, got {self.delay[k]:g}"
            )

    @classmethod
    def from_csv(
        cls, path: str | Path, *, window: int | None = None, order: str | None = None
    ) -> History:
        """Read a history from a CSV: a row a duel, with the columns first, second and delay.

        Arms are given by their names. An empty delay is silence, and so is an answer that came
        after the window, or after the last duel. With a column winner ("first", "second" or "tie")
        the answers are votes. Other columns are ignored.
        """
        path = Path(path)
        try:
            with path.open(newline="", encoding="utf-8-sig") as lines:
                table = csv.DictReader(lines)
                rows = list(table)
                columns = list(table.fieldnames or ())
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            reason = getattr(error, "strerror", None) or error
            raise ValueError(f"cannot read duels from {path}: {reason}") from None
        for column in ("first", "second", "delay"):
            if column not in columns:
                found = ", ".join(columns) or "none"
                raise ValueError(f"{path}: the column {column!r} is missing; it has: {found}")
        is_vote = "winner" in columns
        for column in columns:
            if not is_vote and checks.nearest(column, ["winner"]):
                raise ValueError(f"{path}: unknown column {column!r} (did you mean winner?)")
        if not rows:
            raise ValueError(f"{path}: there are no duels in it")
        places: dict[str, int] = {}
        delay, won = [], []
        for number, row in enumerate(rows):
            age = len(rows) - number
            longest = age if window is None else min(age, window)
            late, winner = _answer(row, is_vote, longest, f"{path}, line {number + 2}")
            delay.append(late)
            won.append(winner)
            for side in ("first", "second"):
                places.setdefault(str(row[side]), len(places))
        if len(places) < 2:
            raise ValueError(f"{path}: there must be two arms, got {next(iter(places))!r} alone")
        try:
            return cls(
                n_arms=len(places),
                first=np.array([places[str(row["first"])] for row in rows], dtype=np.int64),
                second=np.array([places[str(row["second"])] for row in rows], dtype=np.int64),
                delay=np.array(delay),
                first_won=np.array(won),
                window=window,
                feedback="votes" if is_vote else "conversions",
                order=order,
                arms=tuple(places),
            )
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None

    def to_csv(self, path: str | Path) -> None:
        """Write a CSV that `from_csv` and `duelay check` read: a row a duel, arms by name."""
        lines = io.StringIO()
        writer = csv.writer(lines, lineterminator="\n")
        is_vote = self.feedback == "votes"
        writer.writerow(["first", "second", "delay", *(["winner"] if is_vote else [])])
        words = {0.0: "second", 0.5: "tie", 1.0: "first"}
        for first, second, delay, won in zip(
            self.first, self.second, self.delay, self.first_won, strict=True
        ):
            row = [self.arms[first], self.arms[second], "" if np.isnan(delay) else f"{delay:g}"]
            writer.writerow([*row, words.get(float(won), "")] if is_vote else row)
        write_whole(Path(path), lines.getvalue().encode())

    @property
    def n(self) -> int:
        """The number of duels."""
        return len(self.first)

    @property
    def ages(self) -> NDArray[Any]:
        """(n,): the age of each duel at the next ask; by the clock, now."""
        if self.at is not None and self.now is not None:
            return np.asarray(self.now - self.at)
        return np.arange(self.n, 0, -1)

    @property
    def is_heard(self) -> NDArray[np.bool_]:
        """(n,): whether an answer has been heard."""
        return ~np.isnan(self.delay)


def _answer(row: dict[str, Any], is_vote: bool, longest: int, where: str) -> tuple[float, float]:
    """Return delay and who won of one row; nan for silence, or what came after `longest` ticks."""
    if None in row.values():
        raise ValueError(f"{where}: the row is too short")
    said, winner = row["delay"].strip(), row["winner"].strip() if is_vote else "first"
    words = {"first": 1.0, "second": 0.0, "tie": 0.5}
    if is_vote and (winner not in words if said else winner != ""):
        needs = "first, second or tie" if said else "empty where delay is"
        raise ValueError(f"{where}: winner must be {needs}, got {winner!r}")
    if not said:
        return float("nan"), float("nan")
    try:
        delay = float(said)
    except ValueError:
        raise ValueError(
            f"{where}: delay must be a number of ticks or empty, got {said!r}"
        ) from None
    if delay > longest:
        return float("nan"), float("nan")
    return delay, words[winner]


def _arms(name: str, given: Any, n_arms: int) -> NDArray[np.int64]:
    """Return arms as whole numbers from 0 to K - 1."""
    arms = np.asarray(given)
    if arms.size == 0:
        return arms.astype(np.int64)
    if arms.dtype.kind not in "iu" or arms.min() < 0 or arms.max() >= n_arms:
        raise ValueError(f"{name} must hold arms from 0 to {n_arms - 1}")
    return arms.astype(np.int64)
