"""What a visitor sees of a duel."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Let experiments show one arm at a time; those that are there show both."""
    op.add_column(
        "experiments",
        sa.Column("display", sa.String(8), nullable=False, server_default=sa.text("'pair'")),
    )
