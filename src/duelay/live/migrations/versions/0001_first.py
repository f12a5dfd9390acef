"""The first schema."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "experiments",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("goal", sa.String(length=16), nullable=False),
        sa.Column("policy", sa.Text(), nullable=False),
        sa.Column("feedback", sa.String(length=16), nullable=False),
        sa.Column("window", sa.BigInteger(), nullable=True),
        sa.Column("error", sa.Double(), nullable=False),
        sa.Column("self_duels", sa.Boolean(), nullable=False),
        sa.Column("share", sa.Double(), nullable=False),
        sa.Column("forget_after", sa.BigInteger(), nullable=True),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("moment", sa.BigInteger(), nullable=False),
        sa.Column("asked", sa.BigInteger(), nullable=False),
        sa.Column("heard", sa.BigInteger(), nullable=False),
        sa.Column("backwards", sa.BigInteger(), nullable=False),
        sa.Column("furthest", sa.Double(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("changes", sa.BigInteger(), nullable=False),
        sa.Column("matured", sa.BigInteger(), nullable=False),
        sa.Column("closed", sa.BigInteger(), nullable=False),
        sa.Column("forgotten", sa.BigInteger(), nullable=False),
        sa.Column("settled", sa.BigInteger(), nullable=False),
        sa.Column("kappa", sa.Double(), nullable=False),
        sa.Column("refit", sa.BigInteger(), nullable=False),
        sa.Column("n_matured", sa.BigInteger(), nullable=False),
        sa.Column("n_answered", sa.BigInteger(), nullable=False),
        sa.Column("n_heard", sa.BigInteger(), nullable=False),
        sa.Column("delays", sa.Double(), nullable=False),
        sa.Column("winner", sa.Integer(), autoincrement=False, nullable=True),
        sa.Column("declared", sa.BigInteger(), nullable=False),
        sa.Column("declared_at", sa.BigInteger(), nullable=True),
        sa.Column("stride", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("name"),
    )
    op.create_table(
        "ages",
        sa.Column("experiment", sa.Integer(), nullable=False),
        sa.Column("bucket", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("asked", sa.BigInteger(), nullable=False),
        sa.Column("answered", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["experiment"],
            ["experiments.id"],
        ),
        sa.PrimaryKeyConstraint("experiment", "bucket"),
    )
    op.create_table(
        "arms",
        sa.Column("experiment", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["experiment"],
            ["experiments.id"],
        ),
        sa.PrimaryKeyConstraint("experiment", "number"),
        sa.UniqueConstraint("experiment", "name"),
    )
    op.create_table(
        "changes",
        sa.Column("experiment", sa.Integer(), nullable=False),
        sa.Column("place", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("arm", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("tick", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["experiment"],
            ["experiments.id"],
        ),
        sa.PrimaryKeyConstraint("experiment", "place"),
    )
    op.create_table(
        "duels",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("experiment", sa.Integer(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("first", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("second", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("asked", sa.BigInteger(), nullable=False),
        sa.Column("unit", sa.Text(), nullable=True),
        sa.Column("key", sa.Text(), nullable=True),
        sa.Column("enters", sa.Boolean(), nullable=False),
        sa.Column("told", sa.BigInteger(), nullable=True),
        sa.Column("place", sa.BigInteger(), nullable=True),
        sa.Column("first_won", sa.Double(), nullable=True),
        sa.Column("late", sa.BigInteger(), nullable=True),
        sa.Column("settled_by", sa.SmallInteger(), nullable=True),
        sa.Column("settled", sa.BigInteger(), nullable=True),
        sa.Column("odds", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(
            ["experiment"],
            ["experiments.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "duels_by_key",
        "duels",
        ["experiment", "key"],
        unique=True,
        sqlite_where=sa.text("key IS NOT NULL"),
        postgresql_where=sa.text("key IS NOT NULL"),
    )
    op.create_index("duels_by_number", "duels", ["experiment", "number"], unique=True)
    op.create_index(
        "duels_by_place",
        "duels",
        ["experiment", "place"],
        unique=True,
        sqlite_where=sa.text("place IS NOT NULL"),
        postgresql_where=sa.text("place IS NOT NULL"),
    )
    op.create_index(
        "duels_by_unit",
        "duels",
        ["experiment", "unit", "number"],
        unique=False,
        sqlite_where=sa.text("unit IS NOT NULL"),
        postgresql_where=sa.text("unit IS NOT NULL"),
    )
    op.create_table(
        "folded_ages",
        sa.Column("experiment", sa.Integer(), nullable=False),
        sa.Column("bucket", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("asked", sa.BigInteger(), nullable=False),
        sa.Column("answered", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["experiment"],
            ["experiments.id"],
        ),
        sa.PrimaryKeyConstraint("experiment", "bucket"),
    )
    op.create_table(
        "folded_pairs",
        sa.Column("experiment", sa.Integer(), nullable=False),
        sa.Column("first", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("second", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("plays", sa.BigInteger(), nullable=False),
        sa.Column("conversions", sa.BigInteger(), nullable=False),
        sa.Column("answers", sa.BigInteger(), nullable=False),
        sa.Column("late", sa.BigInteger(), nullable=False),
        sa.Column("repeats", sa.BigInteger(), nullable=False),
        sa.Column("repeated_answers", sa.BigInteger(), nullable=False),
        sa.Column("repeated_conversions", sa.BigInteger(), nullable=False),
        sa.Column("given", sa.Double(), nullable=False),
        sa.Column("wealth", sa.LargeBinary(), nullable=False),
        sa.Column("wins", sa.Double(), nullable=False),
        sa.Column("lead", sa.Double(), nullable=False),
        sa.Column("n", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["experiment"],
            ["experiments.id"],
        ),
        sa.PrimaryKeyConstraint("experiment", "first", "second"),
    )
    op.create_table(
        "pairs",
        sa.Column("experiment", sa.Integer(), nullable=False),
        sa.Column("first", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("second", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("plays", sa.BigInteger(), nullable=False),
        sa.Column("conversions", sa.BigInteger(), nullable=False),
        sa.Column("answers", sa.BigInteger(), nullable=False),
        sa.Column("late", sa.BigInteger(), nullable=False),
        sa.Column("repeats", sa.BigInteger(), nullable=False),
        sa.Column("repeated_answers", sa.BigInteger(), nullable=False),
        sa.Column("repeated_conversions", sa.BigInteger(), nullable=False),
        sa.Column("given", sa.Double(), nullable=False),
        sa.Column("wealth", sa.LargeBinary(), nullable=False),
        sa.Column("wins", sa.Double(), nullable=False),
        sa.Column("lead", sa.Double(), nullable=False),
        sa.Column("n", sa.Double(), nullable=False),
        sa.Column("closed", sa.BigInteger(), nullable=False),
        sa.Column("closed_conversions", sa.BigInteger(), nullable=False),
        sa.Column("closed_answers", sa.BigInteger(), nullable=False),
        sa.Column("closed_given", sa.Double(), nullable=False),
        sa.Column("n_open", sa.BigInteger(), nullable=False),
        sa.Column("log_evidence", sa.Double(), nullable=False),
        sa.Column("best", sa.Double(), nullable=False),
        sa.Column("seen", sa.Double(), nullable=False),
        sa.Column("passed", sa.BigInteger(), nullable=True),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["experiment"],
            ["experiments.id"],
        ),
        sa.PrimaryKeyConstraint("experiment", "first", "second"),
    )
    op.create_table(
        "paths",
        sa.Column("experiment", sa.Integer(), nullable=False),
        sa.Column("tick", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=True),
        sa.Column("evidence", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["experiment"],
            ["experiments.id"],
        ),
        sa.PrimaryKeyConstraint("experiment", "tick"),
    )
    op.create_table(
        "seen_units",
        sa.Column("experiment", sa.Integer(), nullable=False),
        sa.Column("unit", sa.Text(), nullable=False),
        sa.Column("low", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("high", sa.Integer(), autoincrement=False, nullable=False),
        sa.ForeignKeyConstraint(
            ["experiment"],
            ["experiments.id"],
        ),
        sa.PrimaryKeyConstraint("experiment", "unit", "low", "high"),
        sqlite_with_rowid=False,
    )
