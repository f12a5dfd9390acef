"""How a store's tables came about: Alembic's folder, one file a step in `versions`."""
