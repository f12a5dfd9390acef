"""The clock of an experiment."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Let experiments go on by the clock of their store."""
    op.add_column("experiments", sa.Column("clock", sa.String(32), nullable=True))
