"""What the tests of commands share."""

import sys

import pytest

from duelay import cli


@pytest.fixture
def command(monkeypatch, capsys):
    """Runs the command; returns its status, standard output and standard error."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["duelay", *map(str, arguments)])
        status = 0
        try:
            cli.run()
        except SystemExit as stop:
            status = stop.code or 0
        return status, *capsys.readouterr()

    return run
