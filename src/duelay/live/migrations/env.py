"""What Alembic runs: the connection is handed over by `duelay.live.storage.store`."""

from __future__ import annotations

from alembic import context

from duelay.live.storage.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=context.config.attributes["version_table"],
    render_as_batch=True,  # SQLite cannot alter a column in place
)
with context.begin_transaction():
    context.run_migrations()
