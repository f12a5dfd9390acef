"""The database of live experiments: its tables, statements, and counts by time."""
