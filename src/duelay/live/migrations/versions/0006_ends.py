"""How an experiment ends: a margin, a budget, a date, an arm that was chosen; and its verdict."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the columns; what was declared before was a winner."""
    none = sa.text("0")
    columns: list[tuple[str, Any]] = [
        ("margin", sa.Double()), ("ends", sa.String(16)), ("budget", sa.BigInteger()),
        ("until", sa.BigInteger()), ("fallback", sa.Integer()), ("chosen", sa.Integer()),
        ("archived", sa.BigInteger()), ("stopped", sa.BigInteger()),
    ]  # fmt: skip
    for name, kind in columns:
        op.add_column("experiments", sa.Column(name, kind, nullable=True))
    counts: list[tuple[str, str, Any]] = [("experiments", "verdict", sa.SmallInteger())]
    counts += [("pairs", name, sa.Double()) for name in ("log_bar", "best_bar")]
    for table in ("pairs", "folded_pairs"):
        counts += [(table, name, sa.Double()) for name in ("tie_near", "tie_far")]
    for table, name, number in counts:
        op.add_column(table, sa.Column(name, number, nullable=False, server_default=none))
    op.execute("UPDATE experiments SET verdict = 1 WHERE winner IS NOT NULL")
