"""Logs in the shell: the options say what a log does not, errors name them."""

import json
from pathlib import Path

import click
import numpy as np
import pytest

from duelay import History, cli
from duelay.cli.logs import check_command


@pytest.fixture
def command(monkeypatch, capsys):
    """Run `duelay check ...`; return the status, and what was printed."""

    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["duelay", "check", *map(str, arguments)])
        status = 0
        try:
            cli.run()
        except SystemExit as stop:
            status = stop.code
        told = capsys.readouterr()
        return status, told.out, told.err

    return run


def local_log(path, *, first_share=0.5, n=400, bad=0):
    """A log of somebody else: local times, other names, rows from the latest to the first."""
    rng = np.random.default_rng(0)
    lines = []
    for k in range(n):
        left, right = ("red", "blue") if rng.random() < first_share else ("blue", "red")
        day, minute = 1 + k // 60, k % 60
        click = f"{day:02}.06.2026 13:{minute:02}" if rng.random() < 0.5 else ""
        lines.append(f"{day:02}.06.2026 12:{minute:02};{left};{right};{click};v{k}")
    lines += [f"{k}. June;red;blue;;v" for k in range(bad)]
    path.write_text("\n".join(["ts;left;right;click;visitor", *reversed(lines)]) + "\n")
    return path


NAMED = ["--column", "shown_at=ts", "--column", "first=left", "--column", "second=right",
         "--column", "answered_at=click", "--column", "unit=visitor"]  # fmt: skip
LOCAL = [*NAMED, "--time-format", "%d.%m.%Y %H:%M", "--zone", "Europe/Berlin"]


def test_a_log_of_somebody_else_is_checked(command, tmp_path):
    path = local_log(tmp_path / "duels.csv")
    told = ["--order", "coin", "--window", "14d", "--now", "2026-07-01 12:00", "--json"]
    status, out, _ = command(path, *LOCAL, *told)
    found = json.loads(out)
    assert status == 0 and found["duels"] == 400 and sorted(found["arms"]) == ["blue", "red"]
    assert (found["order"], found["window"], found["skipped"]) == ("coin", "14d", [])
    path = local_log(tmp_path / "duels.csv", first_share=0.7)
    status, out, _ = command(path, *LOCAL, "--order", "coin")
    assert status == 1 and "\n! order balance" in out


def test_the_options_of_a_log_are_in_the_docs():
    page = (Path(__file__).parents[2] / "docs" / "simulator.md").read_text("utf-8")
    options = [o.opts[0] for o in check_command.params if isinstance(o, click.Option)]
    assert [option for option in options if f"`{option}" not in page] == []


def test_a_parquet_file_is_checked(command, tmp_path):
    read = {"time_format": "%d.%m.%Y %H:%M", "zone": "Europe/Berlin", "order": "coin"}
    names = dict(pair.split("=") for pair in NAMED[1::2])
    history = History.read(local_log(tmp_path / "duels.csv"), columns=names, **read)
    history.to_parquet(tmp_path / "duels.parquet")
    status, out, _ = command(tmp_path / "duels.parquet", "--json")
    assert status == 0 and json.loads(out)["order"] == "coin"


def test_bad_rows_are_counted_and_listed(command, tmp_path):
    path = local_log(tmp_path / "duels.csv", bad=25)
    status, out, err = command(path, *LOCAL)
    assert status == 2 and out == ""
    assert "duels.csv, line 2: ts (shown_at) must be a time as '%d.%m.%Y %H:%M' has it" in err
    page = tmp_path / "report.md"
    status, out, _ = command(path, *LOCAL, "--skip-bad", "--out", page)
    assert status == 0 and "\n25 bad rows left out:\n  line 2: ts (shown_at) must be" in out
    assert "line 21:" in out and "line 22:" not in out and "and 5 more: --json has all" in out
    assert "25 bad rows are left out." in page.read_text()
    _, out, _ = command(path, *LOCAL, "--skip-bad", "--json")
    assert len(json.loads(out)["skipped"]) == 25


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--window", "1000"], "--window must be a duration where a log has times"),
        (["--zone", "Berlin"], "--zone must be the name of a time zone"),
        (["--time-format", "ISO"], "--time-format must be as of strptime"),
        (["--now", "noon"], "--now must be a time"),
        (["--now", "2020-01-01T00:00Z"], "line 2: shown_at must not be after now"),
        (["--column", "shown_at"], "--column must be ROLE=NAME, such as shown_at=ts"),
        (["--column", "when=ts"], "--column must be of shown_at, first"),
        (["--column", "first=who"], "it has no column 'who' for first; it has: shown_at,"),
    ],
)  # fmt: skip
def test_errors_name_options(command, tmp_path, arguments, message):
    path = tmp_path / "duels.csv"
    path.write_text("shown_at,first,second,answered_at,page\n2026-05-01T12:00Z,a,b,,x\n")
    status, out, err = command(path, *arguments)
    assert status == 2 and out == "" and message in err


def test_what_is_missing_is_said_as_the_shell_has_it(command, tmp_path):
    path = tmp_path / "duels.csv"
    path.write_text("ts,first,second,answered_at\n2026-05-01 12:00,a,b,\n")
    assert "'shown_at'" in (told := command(path)[2]) and "(see --column ROLE=NAME)" in told
    assert "zone" in command(path, "--column", "shown_at=ts")[2]
    path.write_text("first,second,delay,my winner\na,b,1,tie\n")
    told = command(path)[2]
    assert "'my winner'" in told and "(see --column ROLE=NAME)" in told
    assert command(path, "--column", "winner=", "--window", "2h")[2].startswith("duelay: --window")


def test_names_that_differ_in_blanks_alone_are_noted(command, tmp_path):
    path = tmp_path / "duels.csv"
    path.write_text("first,second,winner\n" + "a,b,a\na ,b,b\n" * 10)
    status, out, _ = command(path)
    assert "worth a look: names of arms differ in case or blanks alone: 'a', 'a '" in out
    (note,) = json.loads(command(path, "--json")[1])["notes"]
    assert note in out
    path.write_text("first,second,winner\na,b,a\n")
    assert command(path)[1].startswith("1 duel of 2 arms, 1 answer (votes)\n")
