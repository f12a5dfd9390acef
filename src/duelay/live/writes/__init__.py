"""Everything that writes to the database of an experiment."""
