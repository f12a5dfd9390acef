"""Histories from players and from CSV files, and the command that checks them."""

import json
import math

import numpy as np
import pytest

import duelay
from duelay import cli
from duelay.assumptions import TESTS, check_assumptions
from duelay.logs.history import History


def run_cli(monkeypatch, *arguments):
    monkeypatch.setattr("sys.argv", ["duelay", *arguments])
    try:
        cli.run()
    except SystemExit as stop:
        return stop.code
    return 0


def test_a_history_of_votes_knows_who_won():
    player = duelay.DoubleThompson().start(3, seed=0, feedback="votes")
    said = ["first", "second", "tie", None, "first"]
    for winner in said:
        duel = player.ask()
        if winner is not None:
            player.tell(duel, winner=winner)
    history = player.history()
    assert history.feedback == "votes" and history.order == "coin"
    np.testing.assert_array_equal(history.first_won, [1, 0, 0.5, np.nan, 1])
    np.testing.assert_array_equal(history.delay, [1, 1, 1, np.nan, 1])


def test_a_log_is_read_from_a_csv(tmp_path):
    path = tmp_path / "duels.csv"
    path.write_text("first,second,delay\nred,blue,2\nblue,red,\nred,red,1\n")
    history = History.from_csv(path, order="coin")
    assert history.n_arms == 2 and history.feedback == "conversions"
    assert history.first.tolist() == [0, 1, 0] and history.second.tolist() == [1, 0, 0]
    np.testing.assert_array_equal(history.delay, [2, np.nan, 1])
    path.write_text("first,second,delay,when\na,b,2,noon\nb,a,2,one\na,b,1,two\n")
    silent = History.from_csv(path, window=1).is_heard  # the second's answer came after the last
    assert silent.tolist() == [False, False, True]
    assert History.from_csv(path).is_heard.tolist() == [True, True, True]
    path.write_text("first,second,delay,winner\nred,blue,2,second\nblue,red,,\nred,blue,1,tie\n")
    np.testing.assert_array_equal(History.from_csv(path).first_won, [0, np.nan, 0.5])


@pytest.mark.parametrize(
    "text, message",
    [
        ("first,second\na,b\n", r"'shown_at', 'answered_at' are missing \(or delay, in ticks\)"),
        ("first,second,delay\n", "there are no duels in it"),
        ("first,second,delay\na,b,soon\n", "line 2: delay"),
        ("first,second,delay\na,b\n", "line 2: the row is too short"),
        (
            "first,second,delay,winner\na,b,1,c\n",
            "winner",
        ),
        ("first,second,delay,winner\na,b,,tie\n", "winner"),
        ("first,second,delay,winer\na,b,1,tie\n", r"column 'winer' \(did you mean winner"),
        ("first,second,delay\na,b,0\n", "delay must"),
        ("first,second,delay\na,a,1\n", "there must be two arms, got 'a' alone"),
    ],
)
def test_a_bad_log_is_refused_with_its_line(tmp_path, text, message):
    path = tmp_path / "duels.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        History.from_csv(path)
    with pytest.raises(ValueError, match="cannot read duels from"):
        History.from_csv(tmp_path / "none.csv")


def test_the_command_says_what_is_wrong(tmp_path, monkeypatch, capsys):
    rng = np.random.default_rng(0)
    lines = ["first,second,delay,winner"]
    for number in range(2000):
        first, second = ("a", "b") if rng.random() < 0.5 else ("b", "a")
        won = "first" if rng.random() < 0.62 else "second"  # being first helps
        lines.append(f"{first},{second},{min(2000 - number, rng.geometric(0.2))},{won}")
    path = tmp_path / "duels.csv"
    path.write_text("\n".join(lines) + "\n")
    page = tmp_path / "report.md"
    assert run_cli(monkeypatch, "check", str(path), "--order", "coin", "--out", str(page)) == 1
    report = page.read_text()
    findings = check_assumptions(History.from_csv(path, order="coin"))
    told = sum(not math.isnan(finding.p_value) for finding in findings)
    assert f"2000 duels of 2 arms, 2000 answers (votes). 1 of {told} tests alarm" in report
    assert told < len(findings)  # of one pair nothing can be told by pairs
    assert report.index("| **position effect** |") < report.index("| order balance |")
    out = capsys.readouterr().out
    assert out.startswith("2000 duels of 2 arms, 2000 answers (votes)")
    alarms = [line for line in out.splitlines() if line.startswith("!")]
    assert len(alarms) == 1 and "position effect" in alarms[0]
    assert run_cli(monkeypatch, "check", str(tmp_path / "none.csv")) == 2


def log(folder, *, names=("a", "b"), first_share=0.5, n=600):
    """Write a log of votes that is sound, but for how often the first name is shown first."""
    rng = np.random.default_rng(1)
    lines = ["first,second,delay,winner"]
    for number in range(n):
        first, second = names if rng.random() < first_share else reversed(names)
        won = "first" if rng.random() < 0.5 else "second"
        lines.append(f"{first},{second},{min(n - number, rng.geometric(0.2))},{won}")
    path = folder / "duels.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_the_status_says_whether_a_test_alarms(tmp_path, monkeypatch, capsys):
    assert run_cli(monkeypatch, "check", str(log(tmp_path))) == 0
    assert "!" not in capsys.readouterr().out
    assert run_cli(monkeypatch, "check", str(log(tmp_path, first_share=0.7))) == 1
    assert "\n! order balance" in capsys.readouterr().out


def test_a_log_keeps_the_names_of_its_arms_and_findings_use_them(tmp_path, monkeypatch, capsys):
    path = log(tmp_path, names=("old *page*|1", "new"), first_share=0.7)
    history = History.from_csv(path)
    assert sorted(history.arms) == ["new", "old *page*|1"]
    page = tmp_path / "report.md"
    assert run_cli(monkeypatch, "check", str(path), "--out", str(page)) == 1
    assert "Arm old *page*|1 is shown first in 7" in capsys.readouterr().out
    assert r"Arm old \*page\*\|1 is shown first in 7" in page.read_text()


def test_the_findings_as_json(tmp_path, monkeypatch, capsys):
    path = log(tmp_path, names=("red", "blue"), first_share=0.7)
    assert run_cli(monkeypatch, "check", str(path), "--json", "--window", "1e3") == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["duels"], told["answers"], told["feedback"]) == (600, 600, "votes")
    assert sorted(told["arms"]) == ["blue", "red"]
    assert (told["level"], told["window"], told["order"]) == (0.05, 1000, None)
    by_name = {finding["name"]: finding for finding in told["findings"]}
    assert len(by_name) == len(TESTS)
    balance = by_name["order balance"]
    assert balance["is_alarm"] is True and balance["p_value"] < 1e-9 and balance["n"] == 600
    assert by_name["delay by pair"]["p_value"] is None  # one pair: nothing to compare


def test_a_history_of_a_player_has_its_names():
    player = duelay.RUCB().start(["red", "blue"], seed=0)
    player.ask()
    assert player.history().arms == ("red", "blue")
    assert duelay.RUCB().start(2, seed=0).history().arms == ("0", "1")


def test_other_targets_and_feedback_from_the_command_line(monkeypatch, capsys):
    assert 0 == run_cli(
        monkeypatch, "simulate", "--dataset", "tennis-without-sampras", "--policy", "borda",
        "--policy", "double-thompson", "--target", "borda", "--feedback", "votes", "--batch", "5",
        "--horizon", "200", "--runs", "2", "--quiet",
    )  # fmt: skip
    out = capsys.readouterr().out
    assert "winner Ivan Lendl" in out and "target=borda, feedback=votes, batch=5" in out
