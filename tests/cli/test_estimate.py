"""`duelay estimate`: from a log of a stranger to files, in one command."""

from __future__ import annotations

import csv
import datetime
import json
import sys
import zoneinfo

import numpy as np
import pytest
from click.testing import CliRunner

import duelay
import made_logs
from duelay import cli
from duelay.cli.main import main

BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")


@pytest.fixture
def log(tmp_path):
    """A CSV as somebody else has it: other names, local times, semicolons."""
    h = made_logs.make("never", seed=0, n=160).history

    def local(at):
        if np.isnan(at):
            return ""
        return datetime.datetime.fromtimestamp(at, BERLIN).strftime("%d.%m.%Y %H:%M:%S")

    path = tmp_path / "log.csv"
    with path.open("w", newline="") as lines:
        writer = csv.writer(lines, delimiter=";")
        writer.writerow(["id", "gezeigt", "links", "rechts", "geklickt"])
        for k in range(h.n):
            names = h.arms[h.first[k]], h.arms[h.second[k]]
            writer.writerow([k, local(h.asked[k]), *names, local(h.answered[k])])
    return path


TOLD = ["--column", "shown_at=gezeigt", "--column", "first=links", "--column", "second=rechts",
        "--column", "answered_at=geklickt", "--zone", "Europe/Berlin",
        "--time-format", "%d.%m.%Y %H:%M:%S", "--order", "coin"]  # fmt: skip


def run(*arguments):
    return CliRunner().invoke(main, ["estimate", *map(str, arguments)], catch_exceptions=False)


@pytest.mark.long
def test_a_log_of_a_stranger_leads_to_a_ranking_and_a_page(log, tmp_path):
    done = run(log, *TOLD, "--out", tmp_path / "result")
    assert done.exit_code == 0
    assert "arm D" in done.output and "leader beats it" in done.output
    assert "wrote" in done.output and "report.html" in done.output
    page = (tmp_path / "result" / "report.html").read_text()
    assert page.count("data:image/svg+xml") == 5
    assert (tmp_path / "result" / "figures" / "delays.svg").exists()
    data = json.loads((tmp_path / "result" / "estimate.json").read_text())
    assert data["duels"] == 160 and [law["law"] for law in data["laws_table"]][0]


@pytest.mark.long
def test_json_is_for_programs(log):
    data = json.loads(run(log, *TOLD, "--json", "--chosen-by", "design").output)
    assert data["order"] == "coin" and data["guarantee"]["kind"] == "proved"
    assert len(data["ranking_table"]) == 4


def test_what_the_log_lacks_is_said_with_the_options_of_the_shell(log):
    with pytest.raises(ValueError, match="see --column"):
        run(log)
    with pytest.raises(ValueError, match="time format"):
        run(log, *TOLD[:8], "--zone", "Europe/Berlin")


@pytest.mark.long
def test_bad_rows_are_listed(log):
    with log.open("a") as lines:
        lines.write("161;morgen;arm A;arm B;\n")
    done = run(log, *TOLD, "--skip-bad")
    assert "1 bad row left out:" in done.output and "'morgen'" in done.output


@pytest.mark.long
def test_a_law_that_is_told_is_taken(log):
    done = run(log, *TOLD, "--delay", "never:0.3,(log-normal:20m,1)")
    assert "the delay law being as it was told" in done.output


@pytest.mark.parametrize(
    "missing, arguments",
    [
        ("markdown", ["estimate", "log.csv", "--out", "result"]),
        ("pyarrow", ["estimate", "log.csv", "--out", "result"]),
        ("pyarrow", ["estimate", "log.parquet"]),
        ("pyarrow", ["check", "log.parquet"]),
    ],
)
def test_a_package_that_is_missing_is_one_sentence_with_its_extra(
    missing, arguments, tmp_path, monkeypatch, capsys
):
    h = made_logs.make("clean", seed=0, n=20).history
    h.to_csv(tmp_path / "log.csv")
    h.to_parquet(tmp_path / "log.parquet")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, missing, None)
    monkeypatch.setattr("sys.argv", ["duelay", *arguments])
    with pytest.raises(SystemExit) as stop:
        cli.run()
    said = capsys.readouterr().err
    assert stop.value.code == 2 and said.count("\n") == 1
    assert missing in said and "pip install 'duelay[logs]'" in said
    with pytest.raises(duelay.DuelayError, match=r"duelay\[logs\]"):
        if missing == "pyarrow":
            h.to_parquet(tmp_path / "other.parquet")
        else:
            duelay.estimate(h).save(tmp_path / "result")
    assert not (tmp_path / "result").exists() and not (tmp_path / "other.parquet").exists()
