"""Other events of a duel: metrics, their events, and counts by pair."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def _experiment() -> sa.Column[int]:
    return sa.Column("experiment", sa.Integer(), nullable=False)


def upgrade() -> None:
    """Make the tables; ids of events are not used again."""
    if op.get_bind().dialect.name == "sqlite":
        with op.batch_alter_table(
            "events", recreate="always", table_kwargs={"sqlite_autoincrement": True}
        ):
            pass
    op.create_table(
        "metrics",
        _experiment(),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("baseline", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("bound", sa.Double(), nullable=True),
        sa.Column("within", sa.BigInteger(), nullable=False),
        sa.Column("since", sa.BigInteger(), nullable=False),
        sa.Column("booked", sa.BigInteger(), nullable=False),
        sa.Column("alarms", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["experiment"], ["experiments.id"]),
        sa.PrimaryKeyConstraint("experiment", "number"),
        sa.UniqueConstraint("experiment", "name"),
    )
    op.create_table(
        "metric_events",
        _experiment(),
        sa.Column("metric", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("place", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("late", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["experiment"], ["experiments.id"]),
        sa.PrimaryKeyConstraint("experiment", "metric", "number", "place"),
        sqlite_with_rowid=False,
    )
    for name in ("metric_counts", "folded_metric_counts"):
        op.create_table(
            name,
            _experiment(),
            *(
                sa.Column(key, sa.Integer(), autoincrement=False, nullable=False)
                for key in ("metric", "first", "second")
            ),
            *(
                sa.Column(count, sa.BigInteger(), nullable=False)
                for count in ("shown", "of_first", "of_second")
            ),
            sa.ForeignKeyConstraint(["experiment"], ["experiments.id"]),
            sa.PrimaryKeyConstraint("experiment", "metric", "first", "second"),
        )
