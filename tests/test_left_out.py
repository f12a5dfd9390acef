"""What was skipped is said in at most ten lines, and a reason is never lost in them."""

import os
import subprocess
import sys
from types import SimpleNamespace

import left_out


def test_the_same_reason_is_one_line_and_the_most_frequent_comes_first():
    told = [("a.py", 1, "Skipped: no fork"), ("b.py", 7, "Skipped: no\n  curl"), "Skipped: no fork"]
    counts = left_out.reasons([SimpleNamespace(longrepr=words) for words in told])
    assert left_out.lines(counts) == ["2 x no fork", "1 x no curl"]


def test_more_than_ten_reasons_are_ten_lines_with_all_tests_in_them():
    counts = {f"reason {n:02}": 30 - n for n in range(12)}
    assert len(left_out.lines(dict(list(counts.items())[:10]))) == 10
    *first, last = left_out.lines(counts)
    assert first[0] == "30 x reason 00" and len(first) == 9
    assert last == "60 x for 3 more reasons: pytest -rs has them"


def test_several_runs_are_told_as_one(tmp_path):
    code = "import left_out; left_out.write({'no fork': 2, %r: 1})"
    env = {**os.environ, "PYTHONPATH": os.path.dirname(left_out.__file__)}
    for other in ("no curl", "no disk"):
        subprocess.run(
            [sys.executable, "-c", code % other],
            check=True,
            env={**env, "DUELAY_LEFT_OUT": str(tmp_path / "left")},
        )
    command = [sys.executable, left_out.__file__, str(tmp_path / "left")]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert said.splitlines() == [
        "LEFT OUT, of 2 runs of tests:", "4 x no fork", "1 x no curl", "1 x no disk",
    ]  # fmt: skip
