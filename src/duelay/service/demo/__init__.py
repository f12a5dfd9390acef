"""The demonstration of `duelay demo-live`."""
