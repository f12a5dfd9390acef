"""Duels are booked in the order of asking: W_s and the stake of each, and the evidence anew.

W_s and kappa_s may depend on everything that was known when a duel was asked. Of the duels that are
there, the rows say what that was: which answers had come by then, and which duels were due. So
these duels get the W_s and the stake that they would have had. Their evidence is computed anew from
that, and is as sound as that of later duels. Duels whose rows are gone keep theirs. A winner that
is declared stays so.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_MICRO = 1_000_000
_MAX_ROWS = 10_000  # that are read or written at once
_BY_ANSWER, _BY_SILENCE = 1, 2
# The formulas of `duelay.ledger.evidence` at the time of this migration.
_GAPS = np.array([0.01, 0.02, 0.035, 0.055, 0.08, 0.11, 0.15, 0.2, 0.27, 0.35, 0.45])
_WEIGHTS = np.exp(-(_GAPS**2) / (2 * 0.1**2)) * np.gradient(_GAPS)
_LOG_WEIGHTS = np.log(_WEIGHTS / _WEIGHTS.sum())

_HEADS = sa.text(
    'SELECT id, feedback, "window", asked, moment, version FROM experiments ORDER BY id'
)
_DUELS = sa.text(
    "SELECT id, number, first, second, asked, told, first_won FROM duels WHERE "
    "experiment = :experiment AND number > :after AND enters AND first <> second "
    "ORDER BY number LIMIT :n"
)
_SET_DUEL = sa.text(
    "UPDATE duels SET wait = :wait, stake = :stake, settled_by = :by, odds = :odds WHERE id = :id"
)
_SET_PAIR = sa.text(
    "UPDATE pairs SET wealth = :wealth, wins = :wins, lead = :lead, n = :n, n_open = :n_open, "
    "log_evidence = :log_evidence, best = :best, seen = :wins, passed = NULL, version = :version "
    "WHERE experiment = :experiment AND first = :first AND second = :second"
)
_SET_HEAD = sa.text(
    "UPDATE experiments SET earlier = asked, matured = :pointer, kappa = :kappa, refit = :refit, "
    "n_matured = :n_matured, n_answered = :n_answered, n_heard = :n_heard, delays = :delays, "
    "version = :version WHERE id = :experiment"
)


def upgrade() -> None:
    """Make the columns, and compute the evidence of each experiment anew."""
    none = sa.text("0")
    for name in ("lag", "earlier"):
        column = sa.Column(name, sa.BigInteger(), nullable=False, server_default=none)
        op.add_column("experiments", column)
    op.add_column("experiments", sa.Column("held", sa.BigInteger(), nullable=True))
    op.add_column("duels", sa.Column("wait", sa.BigInteger(), nullable=True))
    op.add_column("duels", sa.Column("stake", sa.Double(), nullable=True))
    op.drop_column("duels", "settled")
    connection = op.get_bind()
    heads = connection.execute(_HEADS).mappings().all()
    for head in heads:
        past = _Past(head)
        past.read(connection)
        past.replay()
        past.write(connection)


class _Past:
    """The duels of an experiment, and what becomes of each."""

    def __init__(self, head: Any) -> None:
        self.head, self.is_vote = head, head["feedback"] == "votes"
        self.longest = math.inf if head["window"] is None else head["window"] / _MICRO
        self.duels: list[list[Any]] = []  # id, number, first, second, asked, told, first_won
        self.kappa, self.refit = 0.6, 0
        self.n_matured = self.n_answered = self.n_heard = 0
        self.delays = 0.0
        self.n_booked = 0

    def read(self, connection: Any) -> None:
        """Read the duels that enter the evidence, in the order of asking."""
        after, n = 0, _MAX_ROWS
        while n == _MAX_ROWS:
            parameters = {"experiment": self.head["id"], "after": after, "n": _MAX_ROWS}
            rows = connection.execute(_DUELS, parameters).all()
            self.duels += [list(row) for row in rows]
            after, n = rows[-1].number if rows else after, len(rows)

    def replay(self) -> None:
        """Ask and answer in the order of time; book what is due before each duel is asked."""
        n = len(self.duels)
        self.wait: list[int | None] = [None] * n
        self.stake: list[float | None] = [None] * n
        self.by: list[int | None] = [None] * n
        self.odds: list[float | None] = [None] * n
        events = []  # an answer comes before the duels of its moment, but after its own
        for place, (_, _, _, _, asked, told, _) in enumerate(self.duels):
            events.append((asked, 1, place))
            if told is not None:
                events.append((told, 0 if told > asked else 2, place))
        events.sort()
        for at, kind, place in events:
            if kind == 1:
                self._book(at)
                if self.n_heard >= 10:
                    self.wait[place] = round(self._patience() * _MICRO)
                    self.stake[place] = self.kappa
            else:
                self._hear(place, at)
        self._book(self.head["moment"])

    def _patience(self) -> float:
        n = self.n_heard
        if n < 10:
            return self.longest
        return min(3.0 * self.delays / n * (1.0 + 20.0 / n), self.longest)

    def _hear(self, place: int, at: int) -> None:
        age, wait = at - self.duels[place][4], self.wait[place]
        self.n_heard += 1
        self.delays += age / _MICRO
        if place >= self.n_booked and (wait is None or age <= wait):
            self.by[place], self.odds[place] = _BY_ANSWER, 1.0

    def _book(self, moment: int) -> None:
        usual = self._patience() * _MICRO
        while self.n_booked < len(self.duels):
            place = self.n_booked
            wait, asked = self.wait[place], self.duels[place][4]
            if asked > moment or moment - asked < (usual if wait is None else wait):
                return
            if self.by[place] is None:
                self.by[place] = _BY_SILENCE
                self.odds[place] = 0.0 if self.is_vote else self.kappa
            self.n_matured += 1
            self.n_answered += self.by[place] == _BY_ANSWER
            if self.n_matured >= self.refit:
                share = min(1.0, (2.0 * self.n_answered + 7.5) / (self.n_matured + 10.0))
                self.kappa = share / (2.0 - share)
                self.refit = self.n_matured + self.n_matured // 20 + 1
            self.n_booked += 1

    def write(self, connection: Any) -> None:
        """Write what became of each duel, and the sums of each pair."""
        rows = [
            {"id": duel[0], "wait": wait, "stake": stake, "by": by, "odds": odds}
            for duel, wait, stake, by, odds in zip(
                self.duels, self.wait, self.stake, self.by, self.odds, strict=True
            )
        ]
        for start in range(0, len(rows), _MAX_ROWS):
            connection.execute(_SET_DUEL, rows[start : start + _MAX_ROWS])
        experiment, version = self.head["id"], self.head["version"] + 1
        pairs = self._pairs(connection)
        for (first, second), sums in pairs.items():
            connection.execute(_SET_PAIR, {
                "experiment": experiment, "first": first, "second": second, "version": version,
                **sums,
            })  # fmt: skip
        pointer = self.duels[self.n_booked][1] - 1 if self.n_booked < len(self.duels) else (
            self.head["asked"]
        )  # fmt: skip
        connection.execute(_SET_HEAD, {
            "experiment": experiment, "version": version, "pointer": pointer, "kappa": self.kappa,
            "refit": self.refit, "n_matured": self.n_matured, "n_answered": self.n_answered,
            "n_heard": self.n_heard, "delays": self.delays,
        })  # fmt: skip

    def _pairs(self, connection: Any) -> dict[tuple[int, int], dict[str, Any]]:
        """Return the sums of every ordered pair."""
        where = {"experiment": self.head["id"]}
        query = "SELECT first, second{} FROM {} WHERE experiment = :experiment"
        found: dict[tuple[int, int], dict[str, Any]] = {
            (row.first, row.second): {"bets": [], "wealth": np.zeros(_GAPS.size), "wins": 0.0,
                                      "lead": 0.0, "n": 0.0, "n_open": 0}
            for row in connection.execute(sa.text(query.format("", "pairs")), where)
        }  # fmt: skip
        folded = sa.text(query.format(", wealth, wins, lead, n", "folded_pairs"))
        for row in connection.execute(folded, where):
            found[row.first, row.second] |= {
                "wealth": np.frombuffer(row.wealth, dtype="<f8"),
                "wins": row.wins, "lead": row.lead, "n": row.n,
            }  # fmt: skip
        for place, duel in enumerate(self.duels):
            self._add(found, place, duel)
        for sums in found.values():
            steps = np.array([np.zeros(_GAPS.size), *sums.pop("bets")])
            wealth = sums["wealth"] + np.cumsum(steps, axis=0)
            evidence = np.logaddexp.reduce(_LOG_WEIGHTS + wealth, axis=1)
            sums["log_evidence"] = float(evidence[-1])
            sums["best"] = max(0.0, float(evidence.max()))
            sums["wealth"] = wealth[-1].astype("<f8").tobytes()
        return found

    def _add(self, found: Any, place: int, duel: list[Any]) -> None:
        _, _, first, second, _, told, first_won = duel
        by, stake, odds = self.by[place], self.stake[place], self.odds[place]
        is_silent = by == _BY_SILENCE
        size = odds = 0.0 if odds is None else -odds  # in favour of the first, of a silence
        if by == _BY_ANSWER or (self.is_vote and told is not None):
            size, odds = 2.0 * first_won - 1.0, 1.0
        is_bet = place < self.n_booked and stake is not None and not (is_silent and self.is_vote)
        staked = -(stake or 0.0) if is_silent else size
        for i, j, sign in ((first, second, 1.0), (second, first, -1.0)):
            sums = found[i, j]
            sums["n_open"] += by is None
            sums["lead"] += sign * size
            sums["n"] += odds**2
            if is_bet:
                sums["bets"].append(np.log1p(2.0 * sign * staked * _GAPS))
                sums["wins"] += 0.0 if is_silent else 0.5 + 0.5 * sign * size
