"""Histories of duels, and how they are written, read and merged."""
