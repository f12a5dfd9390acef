"""Logs of duels: a history, and how it is written, read and merged."""
