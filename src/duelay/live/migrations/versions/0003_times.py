"""Counts by time: what the page draws."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_MOST, _MINUTE = 128, 60_000_000

# A duel counts in the bucket in which it was asked, an answer in the one in which it was told. Of
# duels whose rows are gone these times are lost: they and their answers count in the first bucket.
_PAIR_TIMES = """
INSERT INTO pair_times (experiment, first, second, minute, plays, conversions, answers, given)
SELECT experiment, first, second, minute, sum(plays), sum(conversions), sum(answers), sum(given)
FROM (
    SELECT d.experiment, d.first, d.second,
        (d.asked - e.created) / e.width * (e.width / 60000000) AS minute,
        1 AS plays, 0 AS conversions, 0 AS answers, 0.0 AS given
    FROM duels d JOIN experiments e ON e.id = d.experiment
    UNION ALL
    SELECT d.experiment, d.first, d.second,
        (d.told - e.created) / e.width * (e.width / 60000000),
        0, CASE WHEN d.first_won = 1 THEN 1 ELSE 0 END, 1, CASE WHEN d.enters THEN d.first_won
        ELSE 0.0 END
    FROM duels d JOIN experiments e ON e.id = d.experiment WHERE d.told IS NOT NULL
    UNION ALL
    SELECT experiment, first, second, 0, plays, conversions, answers, given
    FROM folded_pairs WHERE plays > 0
) AS parts GROUP BY experiment, first, second, minute
"""
_TIMES = """
INSERT INTO times (experiment, minute, arm, asked, answered, heard)
SELECT experiment, minute, arm, sum(asked), sum(answered), sum(heard)
FROM (
    SELECT experiment, minute, -1 AS arm, plays AS asked, 0 AS answered, answers AS heard
    FROM pair_times
    UNION ALL
    SELECT experiment, minute, first, plays, 0, 0 FROM pair_times WHERE plays > 0
    UNION ALL
    SELECT experiment, minute, second, plays, 0, 0 FROM pair_times WHERE plays > 0
    UNION ALL
    SELECT d.experiment, (d.asked - e.created) / e.width * (e.width / 60000000), -1, 0, 1, 0
    FROM duels d JOIN experiments e ON e.id = d.experiment WHERE d.told IS NOT NULL
    UNION ALL
    SELECT experiment, 0, -1, 0, answers, 0 FROM folded_pairs WHERE plays > 0
) AS parts GROUP BY experiment, minute, arm
"""


def upgrade() -> None:
    """Make the tables, and count what is there."""
    op.create_table(
        "times",
        sa.Column("experiment", sa.Integer(), nullable=False),
        sa.Column("minute", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("arm", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("asked", sa.BigInteger(), nullable=False),
        sa.Column("answered", sa.BigInteger(), nullable=False),
        sa.Column("heard", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["experiment"],
            ["experiments.id"],
        ),
        sa.PrimaryKeyConstraint("experiment", "minute", "arm"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "pair_times",
        sa.Column("experiment", sa.Integer(), nullable=False),
        sa.Column("first", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("second", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("minute", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("plays", sa.BigInteger(), nullable=False),
        sa.Column("conversions", sa.BigInteger(), nullable=False),
        sa.Column("answers", sa.BigInteger(), nullable=False),
        sa.Column("given", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["experiment"],
            ["experiments.id"],
        ),
        sa.PrimaryKeyConstraint("experiment", "first", "second", "minute"),
        sqlite_with_rowid=False,
    )
    minute = sa.text(str(_MINUTE))
    width = sa.Column("width", sa.BigInteger(), nullable=False, server_default=minute)
    op.add_column("experiments", width)
    nobody = sa.text("0")
    swept = sa.Column("swept", sa.Integer(), nullable=False, server_default=nobody)
    op.add_column("experiments", swept)
    connection = op.get_bind()
    rows = connection.execute(sa.text("SELECT id, created, moment FROM experiments")).all()
    for id, created, moment in rows:
        wide = _MINUTE
        while (moment - created) // wide >= _MOST:
            wide *= 2
        connection.execute(
            sa.text("UPDATE experiments SET width = :width WHERE id = :id"),
            {"width": wide, "id": id},
        )
    connection.execute(sa.text(_PAIR_TIMES))
    connection.execute(sa.text(_TIMES))
