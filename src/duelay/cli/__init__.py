"""The command line: a file for each command, or for a few that belong together."""

from duelay.cli.main import run

__all__ = ["run"]
