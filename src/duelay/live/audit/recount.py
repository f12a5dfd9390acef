"""Compute the counts and the evidence of an experiment from the rows of its duels alone.

Only the audit uses it. The writer counts with code of its own, so that the audit finds a mistake in
either.

What became of a duel, and its stake, are in its row. So what the bets have come to is a sum over
the rows of booked duels: log (1 + 2 x g) for the arm that an answer or a silence spoke for, and
log (1 - 2 x g) for the other one. For an answer x is 1, for a silence it is the stake. Pairs are
chosen by similar sums over all that is heard, in which x of a silence are its odds. With a margin
there are also the sums of the tie bettors (`tie_bets`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, select

from duelay.ledger.delay_models.continuous_time import learned_ages
from duelay.live.state import ExperimentState
from duelay.live.storage import schema
from duelay.live.storage.delay_histogram import read_ages
from duelay.live.storage.rows import DuelRow, DuelRows
from duelay.live.storage.schema import MICRO

COUNTS = ("plays", "conversions", "answers", "late", "repeats", "repeated_answers",
          "repeated_conversions")  # fmt: skip
SUMS = ("given", "wins", "lead", "n", "tie_near", "tie_far")
CLOSED = ("closed", "closed_conversions", "closed_answers", "closed_given", "n_open")
TOTALS = ("n_matured", "n_answered", "n_heard", "delays")
_BY_ANSWER, _BY_SILENCE = 1, 2
_MAX_ROWS_PER_READ = 10_000


class Recount:
    """Counters and sums of the duels that are added to it."""

    def __init__(self, state: ExperimentState) -> None:
        k = len(state.arms)
        self.state = state
        self.pairs: dict[str, NDArray[Any]] = {
            name: np.zeros((k, k), dtype=np.int64) for name in COUNTS
        } | {name: np.zeros((k, k)) for name in SUMS}
        self.gaps = state.eprocess.gaps
        self.wealth = np.zeros((k, k, self.gaps.size))
        self.closed: dict[str, NDArray[Any]] = {name: np.zeros((k, k)) for name in CLOSED}
        window = state.settings.window
        self.ages = learned_ages(None if window is None else float(window))
        # Of each ordered pair: x of each bet, and what the two tie bettors make of the duel.
        self.steps: dict[tuple[int, int], list[tuple[float, float, float]]] = {}
        self.asked = np.zeros(len(self.ages), dtype=np.int64)
        self.answered = np.zeros(len(self.ages), dtype=np.int64)
        # Columns of the row of the experiment, by the rows of duels; and what folded ones may add.
        self.totals = dict.fromkeys(TOTALS, 0.0)
        self.folded_totals = dict.fromkeys(TOTALS, 0.0)

    def add_folded(self, connection: Connection) -> None:
        """Add what is left of the duels whose rows are gone."""
        experiment, folded = self.state.settings.id, schema.folded_pairs
        for row in connection.execute(select(folded).where(folded.c.experiment == experiment)):
            for name in (*COUNTS, *SUMS):
                self.pairs[name][row.first, row.second] += getattr(row, name)
            self.wealth[row.first, row.second] += np.frombuffer(row.wealth, dtype="<f8")
        self._close_folded()
        self._add_folded_totals()
        asked, answered = read_ages(connection, schema.folded_ages, experiment, len(self.asked))
        self.asked += asked
        self.answered += answered

    def _close_folded(self) -> None:
        """Count the duels whose rows are gone as closed, which they all are."""
        pairs = self.pairs
        self.closed["closed"] += pairs["plays"] - pairs["repeats"]
        self.closed["closed_answers"] += pairs["answers"] - pairs["repeated_answers"]
        self.closed["closed_conversions"] += pairs["conversions"] - pairs["repeated_conversions"]
        self.closed["closed_given"] += pairs["given"]
        for values in self.closed.values():
            np.fill_diagonal(values, 0)  # an arm against itself teaches nothing

    def _add_folded_totals(self) -> None:
        """Count the duels whose rows are gone: all are booked, and answers came by their window."""
        n, heard = self.closed["closed"].sum().item(), self.closed["closed_answers"].sum().item()
        window = self.state.settings.window
        longest = np.inf if window is None else float(window)
        self.folded_totals = {"n_matured": n, "n_answered": heard, "n_heard": heard,
                              "delays": heard * longest if heard else 0.0}  # fmt: skip

    def add(self, row: DuelRow) -> None:
        """Add a duel."""
        i, j, counts = row["first"], row["second"], self.pairs
        is_heard, won = row["told"] is not None, int(row["first_won"] == 1.0)
        counts["plays"][i, j] += 1
        counts["answers"][i, j] += is_heard
        counts["conversions"][i, j] += won
        counts["late"][i, j] += row["late"] is not None
        if not row["enters"]:
            counts["repeats"][i, j] += 1
            counts["repeated_answers"][i, j] += is_heard
            counts["repeated_conversions"][i, j] += won
            return
        counts["given"][i, j] += row["first_won"] or 0.0
        if i != j:
            self._bet(row)
            is_booked = row["number"] <= self.state.head["matured"]
            self.totals["n_matured"] += is_booked
            self.totals["n_answered"] += is_booked and row["settled_by"] == _BY_ANSWER
            self.totals["n_heard"] += is_heard
            self.totals["delays"] += (row["told"] - row["asked"]) / MICRO if is_heard else 0.0
            if row["number"] <= self.state.head["closed"]:
                self._close(row)

    def _close(self, row: DuelRow) -> None:
        i, j = row["first"], row["second"]
        delay = np.inf if row["told"] is None else (row["told"] - row["asked"]) / MICRO
        place = int(np.searchsorted(self.ages, delay, side="right")) - 1
        self.closed["closed"][i, j] += 1
        self.asked[: place + 1] += 1
        if row["told"] is not None:
            self.answered[place] += 1
            self.closed["closed_answers"][i, j] += 1
            self.closed["closed_conversions"][i, j] += row["first_won"] == 1.0
            self.closed["closed_given"][i, j] += row["first_won"]

    def _bet(self, row: DuelRow) -> None:
        i, j, by = row["first"], row["second"], row["settled_by"]
        is_vote = self.state.settings.is_vote
        is_booked = row["number"] <= self.state.head["matured"]
        if by is None:
            self.closed["n_open"][i, j] += 1
            self.closed["n_open"][j, i] += 1
        won = 0.5 if row["first_won"] is None else row["first_won"]
        size = 2.0 * won - 1.0  # in favour of the first
        is_silent = by == _BY_SILENCE
        if by == _BY_ANSWER or (is_vote and row["told"] is not None):
            self._weigh(i, j, size, 1.0)
        elif is_silent and not is_vote:
            self._weigh(i, j, -row["odds"], row["odds"] ** 2)
        if not is_booked or row["stake"] is None or by is None or (is_silent and is_vote):
            return
        for one, other, x in ((i, j, 1.0), (j, i, -1.0)):
            near, far = self._bet_on_tie(row, is_silent=is_silent, is_first=one == i)
            x *= -row["stake"] if is_silent else size
            self.wealth[one, other] += np.log1p(2.0 * x * self.gaps)
            self.pairs["tie_near"][one, other] += near
            self.pairs["tie_far"][one, other] += far
            self.steps.setdefault((one, other), []).append((x, near, far))
        if not is_silent:
            self.pairs["wins"][i, j] += won
            self.pairs["wins"][j, i] += 1.0 - won

    def _bet_on_tie(self, row: DuelRow, *, is_silent: bool, is_first: bool) -> tuple[float, float]:
        """Return the logs by which a booked duel multiplies the tie bettors of either place."""
        margin = self.state.settings.margin
        if margin is None:
            return 0.0, 0.0
        if self.state.settings.is_vote:
            won, even = row["first_won"] if is_first else 1.0 - row["first_won"], 0.5 - margin
            over = (won - even) / (even * (1.0 - even))
            return math.log1p(margin * over), math.log1p(2.0 * margin * over)
        place = 2 * is_silent + (not is_first)
        near, far = (tie_bets(row["stake"], margin, n * margin)[place] for n in (1.0, 2.0))
        return near, far

    def _weigh(self, i: int, j: int, size: float, weight: float) -> None:
        """Count news where pairs are chosen: `size` for i over j."""
        for one, other, x in ((i, j, size), (j, i, -size)):
            self.pairs["lead"][one, other] += x
            self.pairs["n"][one, other] += weight


@functools.lru_cache(maxsize=100_000)
def tie_bets(stake: float, margin: float, h: float) -> tuple[float, ...]:
    """Return log q / p of a duel: converted with the own arm first or second, or silent.

    `duelay.ledger.evidence.margin` solves the equation for alpha by bisection; written out, it is
    2 m0 (1 - m0) alpha^2 - (1 + phi (m0 + m1 - 2 m0 m1)) alpha + phi = 0.
    """
    m0 = 0.5 - margin
    m1, phi = m0 + h, 2.0 * stake / (1.0 + stake)
    square, line = 2.0 * m0 * (1.0 - m0), 1.0 + phi * (m0 + m1 - 2.0 * m0 * m1)
    alpha = 2.0 * phi / (line + math.sqrt(line * line - 4.0 * square * phi))
    q = (phi * m1, phi * (1.0 - m1), 1.0 - phi * m1, 1.0 - phi * (1.0 - m1))
    p = (alpha * m0, alpha * (1.0 - m0), 1.0 - alpha * m0, 1.0 - alpha * (1.0 - m0))
    return tuple(math.log(one / other) for one, other in zip(q, p, strict=True))


def most_evidence(
    sizes: Sequence[float], gaps: NDArray[np.float64], log_weight: NDArray[np.float64]
) -> float:
    """Return the log of the highest evidence that a bettor has had; bets in the order of asking."""
    return max(0.0, float(_evidence_by_bet(np.array(sizes), gaps, log_weight).max()))


def most_bar(
    steps: Sequence[tuple[float, float, float]],
    gaps: NDArray[np.float64],
    log_weight: NDArray[np.float64],
) -> float:
    """Return the log of the highest evidence with a margin, Ebar, of a pair; steps as above."""
    sizes, near, far = np.array(steps).T
    parts = [
        _evidence_by_bet(sizes, gaps, log_weight),
        np.cumsum(near) - math.log(2),
        np.cumsum(far) - math.log(2),
    ]
    return max(0.0, float(np.logaddexp.reduce(parts, axis=0).max()) - math.log(2))


def _evidence_by_bet(
    sizes: NDArray[np.float64], gaps: NDArray[np.float64], log_weight: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the log evidence after each bet."""
    wealth = np.cumsum(np.log1p(2.0 * sizes[:, None] * gaps), axis=0)
    return np.asarray(np.logaddexp.reduce(log_weight + wealth, axis=1))


def duel_rows(connection: Connection, experiment: int, after: int = 0) -> Iterator[DuelRow]:
    """Give the rows of all duels in the order in which they were asked, some at a time."""
    duels = schema.duels
    while True:
        rows = connection.execute(
            select(duels)
            .where(duels.c.experiment == experiment, duels.c.number > after)
            .order_by(duels.c.number)
            .limit(_MAX_ROWS_PER_READ)
        ).mappings().all()  # fmt: skip
        yield from cast(DuelRows, rows)
        if len(rows) < _MAX_ROWS_PER_READ:
            return
        after = rows[-1]["number"]
